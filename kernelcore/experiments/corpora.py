"""A captioned corpus as the experiments with deep models read it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from kernelcore._progress import Progress
from kernelcore.captions.tokens import tokenize
from kernelcore.datasets import CaptionedImages, load_flickr
from kernelcore.images import CNN, FastestDet, Grid, RegionCNN, RegionFeatures
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
        Position of each caption's photo among all.
    """

    texts: tuple[str, ...]
    numbers: npt.NDArray[np.int64]
    photos: npt.NDArray[np.intp]


@dataclass(frozen=True)
class Corpus:
    """Photos and captions of a published corpus.

    Attributes
    ----------
    name : str
    files : tuple of Path
        Photos, sorted.
    pools : mapping of str to Pool
        Captions of each split.
    word_vectors : WordVectors
        Of the words in captions.
    """

    name: str
    files: tuple[Path, ...]
    pools: Mapping[str, Pool]
    word_vectors: WordVectors

    @classmethod
    def read(
        cls,
        data: str | os.PathLike[str],
        *,
        word_vectors_file: str | os.PathLike[str] | None,
    ) -> Corpus:
        """Read captions and word vectors."""
        dataset = load_flickr(data)
        files = sorted(path for path in dataset.paths if path is not None)
        if not files:
            raise FileNotFoundError(f"{data} must hold the photos of its captions")
        words = {
            word
            for texts in dataset.captions
            for text in texts
            for word in (*tokenize(text), *text.lower().split())
        }
        return cls(
            dataset.name,
            tuple(files),
            {split: _pool(dataset, split, files) for split in SPLITS},
            load_installed_glove(words=words)
            if word_vectors_file is None
            else load_word_vectors(word_vectors_file, words=words),
        )

    def regions(
        self,
        data: str | os.PathLike[str],
        *,
        cache_dir: str | os.PathLike[str] | None,
        device: str,
        n_threads: int | None,
        progress: Progress,
    ) -> RegionFeatures:
        """Describe regions of all photos: of a detector beside the data, if any, and a grid."""
        return RegionCNN(
            CNN(input_size=_MAP_INPUT_SIZE, device=device), proposers=(*_detector(data), Grid())
        ).transform(self.files, cache_dir=cache_dir, n_threads=n_threads, progress=progress)

    def whole_photos(
        self,
        *,
        cache_dir: str | os.PathLike[str] | None,
        device: str,
        n_threads: int | None,
        progress: Progress,
    ) -> npt.NDArray[np.float32]:
        """Describe all photos as wholes, shape (n_photos, n_features)."""
        found = CNN(device=device).transform(
            self.files, cache_dir=cache_dir, n_threads=n_threads, progress=progress
        )
        return found.features


def _pool(dataset: CaptionedImages, split: str, files: list[Path]) -> Pool:
    place = {path: i for i, path in enumerate(files)}
    rows = dataset.split(split)
    owners = [
        (text, number, place[path])
        for i in rows
        if (path := dataset.paths[i]) is not None
        for text, number in zip(dataset.captions[i], dataset.caption_numbers[i], strict=True)
    ]
    if not owners:
        raise ValueError(f"the split {split} must have photos with captions, got none")
    texts, numbers, photos = zip(*owners, strict=True)
    return Pool(texts, np.array(numbers, np.int64), np.array(photos, np.intp))


def _detector(data: str | os.PathLike[str]) -> tuple[FastestDet, ...]:
    """FastestDet, if its file is in a folder ``models`` in the data or beside it."""
    for folder in (Path(data) / "models", Path(data).parent / "models"):
        network, names = folder / "FastestDet.onnx", folder / "coco.names"
        if network.is_file() and names.is_file():
            return (FastestDet(network, class_names=names),)
    return ()
