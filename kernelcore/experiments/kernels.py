"""Kernels of photos and captions and their bases, as cached steps."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from kernelcore._check import Array
from kernelcore._extras import installed_versions
from kernelcore._store import digest
from kernelcore.captions import EncodedCaptions, Vocabulary
from kernelcore.datasets import CaptionedImages
from kernelcore.experiments.corpus import SPLITS
from kernelcore.experiments.kernel_systems import Grid, System
from kernelcore.experiments.steps import Kind, Source, Step, Store
from kernelcore.experiments.words import Lexicon, Texts, word_kernel
from kernelcore.images import SpatialHistograms, VisualWords
from kernelcore.kcca import KernelBasis, kernel_basis
from kernelcore.kcca.basis import Decomposition
from kernelcore.kernels import (
    TagRank,
    average,
    bag_of_words,
    bag_of_words_f1,
    normalize,
    power,
    spatial_pyramid,
    word_sequence,
)
from kernelcore.models.kcca_ranker import with_ridge
from kernelcore.models.photo_features import FeatureKernel

KERNELS, BASES = "kernels", "bases"
"""Names of stages."""

_CODEBOOKS = Kind.of("codebooks", 1, VisualWords)
_GRAM_PHOTOS = Kind.array("gram-photos", 1)
_GRAM_CAPTIONS = Kind.array("gram-captions", 1)
_BASIS = Kind.of("basis", 1, KernelBasis)

_IDF_EXPONENTS = {"none": 0.0, "sqrt_idf": 0.5, "idf": 1.0}
_TAG_RANK_WIDTH = 0.5  # times the mean chi-square distance


Described: TypeAlias = Mapping[str, Source[SpatialHistograms]]
"""Visual words of one feature, for the photos of each split."""


def describe_photos(
    dataset: CaptionedImages,
    recipe: Mapping[str, Any],
    store: Store,
    *,
    cache_dir: Path | str | None,
    **run: Any,
) -> list[Described]:
    """Histograms of visual words of all photos, one for each feature of a recipe."""
    paths = [path for path in dataset.paths if path is not None]
    training = [paths[i] for i in dataset.split("train")]
    photos = Source(training, digest(*(path.read_bytes() for path in training)))
    version = installed_versions()["opencv-python-headless"]
    words = VisualWords(**recipe, rng=0)

    def learn(photos: Source[list[Path]], *_: Any) -> Any:
        return words.fit(photos.value(), **run)

    step = Step(store, _CODEBOOKS, learn, photos, words.get_params(), version)
    features = step.value().transform(paths, cache_dir=cache_dir, **run).values()
    return [
        {split: _identified(one.select(dataset.split(split))) for split in SPLITS}
        for one in features
    ]


def _identified(histograms: SpatialHistograms) -> Source[SpatialHistograms]:
    return Source(histograms, histograms.counts, histograms.totals)


PhotoSteps: TypeAlias = Callable[[str, System], Step[Array]]
"""Kernel of the photos of a split, rows, and the training photos, columns, for a system."""


def pyramid_steps(
    photos: Sequence[Described], store: Store, *, mirror: bool, **run: Any
) -> PhotoSteps:
    """Compare photos by histogram intersection in cells, the mean over features, as the paper.

    With `mirror`, cells are compared with the mirror image, too. Some systems have no cells.
    """
    train = [one["train"] for one in photos]

    def step(split: str, system: System) -> Step[Array]:
        how = {"cells": system.pyramid, "mirror": mirror and system.pyramid}
        rows = [one[split] for one in photos]
        compare = partial(_compare_histograms, **run)
        return Step(store, _GRAM_PHOTOS, compare, rows, train, stage=KERNELS, **how)

    return step


def feature_steps(dataset: CaptionedImages, features: Array, store: Store) -> PhotoSteps:
    r"""Compare photos by radial basis functions of features of length 1, one row per photo.

    .. math:: k(x, y) = \exp(-\lVert x - y \rVert^2 / s)

    with s the mean squared distance of training photos; see `FeatureKernel`. A power of this
    kernel is the same kernel with another width. The kernel depends on nothing of the system.
    """
    units = np.asarray(features, np.float32)
    units = units / np.maximum(np.linalg.norm(units, axis=1, keepdims=True), 1e-12)
    rows = {split: Source(units[dataset.split(split)]) for split in SPLITS}

    def step(split: str, _: System) -> Step[Array]:
        inputs = rows[split], rows["train"]
        return Step(store, _GRAM_PHOTOS, _compare_features, *inputs, stage=KERNELS)

    return step


class Kernels:
    """Kernels of photos and of captions between each split and the training split, as steps.

    Rows of ``dev`` and ``test`` are photos, or the captions of the pool's number. Rows of
    ``train`` are the columns.

    Parameters
    ----------
    texts : Texts
    photos : callable
        See `PhotoSteps`.
    lexicon : Lexicon
    store : Store
    grid : Grid
    pool : int
    **run
        Threads and progress.
    """

    def __init__(
        self,
        texts: Texts,
        photos: PhotoSteps,
        lexicon: Lexicon,
        store: Store,
        grid: Grid,
        *,
        pool: int,
        **run: Any,
    ) -> None:
        self._texts, self._photos, self._lexicon = texts, photos, lexicon
        self.store, self.grid, self.run = store, grid, run
        self._pool: int | None = pool
        self._training_pool = pool
        self._vocabulary = Source(texts.vocabulary, texts.vocabulary.idf())
        self._sources = cache(self._read_captions)

    def with_all_captions(self) -> Kernels:
        """Return the same with every caption of an image in the pool, one per row."""
        other = copy(self)
        other._pool = None
        return other

    def image(self, split: str, system: System) -> Step[Array]:
        """Kernel of the split's photos with the training photos."""
        return self._photos(split, system)

    def text(self, split: str, system: System) -> Step[Array]:
        """Similarity of the split's captions with those of the training images."""
        single = self._training_pool if system.single else None
        train = self._sources("train", single, False)
        rows = train if split == "train" else self._sources(split, self._pool, True)
        return Step(
            self.store,
            _GRAM_CAPTIONS,
            partial(_compare_captions, **self.run),
            rows,
            train,
            self._vocabulary,
            self._lexicon.steps(system.lexical),
            stage=KERNELS,
            text=system.text,
            weights=system.weights,
            tag_rank_width=_TAG_RANK_WIDTH,
        )

    def image_basis(self, exponent: float, system: System) -> Step[KernelBasis]:
        """Basis of a power of the training photos' kernel."""
        return self._basis(self.image("train", system), exponent=exponent)

    def text_basis(self, ridge: float, system: System) -> Step[KernelBasis]:
        """Basis of the training captions' kernel with a ridge."""
        return self._basis(self.text("train", system), ridge=ridge)

    def _basis(
        self, kernel: Step[Array], *, exponent: float | None = None, ridge: float = 1.0
    ) -> Step[KernelBasis]:
        grid = self.grid
        return Step(
            self.store,
            _BASIS,
            _decompose,
            kernel,
            stage=BASES,
            exponent=exponent,
            ridge=ridge,
            decomposition=grid.decomposition,
            max_rank=grid.max_rank,
        )

    def _read_captions(
        self, split: str, number: int | None, as_images: bool
    ) -> Source[EncodedCaptions]:
        """Read captions of a split: of one number, or all; grouped by image, or one per row."""
        found = self._texts.of_split(split)
        if number is not None:
            found = found.with_caption(number)
        elif as_images:
            found = found.caption_as_image()
        return Source(found, found.word_ids, found.caption_offsets, found.image_offsets)


def published_basis(K: Array, max_rank: int) -> KernelBasis:
    """Largest eigenvectors of a kernel, down to n eps of the largest eigenvalue.

    In float32 this is a thousand times the rounding error. The published figures were computed
    with this limit, before `kernel_basis` had a better one.
    """
    basis = kernel_basis(K, decomposition="eigen", max_rank=max_rank, n_threads=1)
    floor = len(K) * np.finfo(K.dtype).eps * basis.eigenvalues[0]
    return replace(basis, rounding=float(floor))


def _decompose(
    kernel: Step[Array],
    *,
    exponent: float | None,
    ridge: float,
    decomposition: Decomposition,
    max_rank: int,
) -> KernelBasis:
    K = kernel.value()
    if exponent is not None:
        K = power(K, exponent)
    K = with_ridge(K, ridge)
    if decomposition == "eigen":
        return published_basis(K, max_rank)
    return kernel_basis(K, decomposition=decomposition, max_rank=max_rank, n_threads=1)


def _compare_histograms(
    rows: Sequence[Source[SpatialHistograms]],
    train: Sequence[Source[SpatialHistograms]],
    *,
    cells: bool,
    mirror: bool,
    **run: Any,
) -> Array:
    """Return the mean of the kernels of the features."""
    kernels = [
        spatial_pyramid(
            own.value(),
            None if own is known else known.value(),
            level_weights=None if cells else np.eye(own.value().n_levels)[0],
            mirror=mirror,
            dtype=np.float32,
            **run,
        )
        for own, known in zip(rows, train, strict=True)
    ]
    return average(kernels)


def _compare_features(rows: Source[Array], train: Source[Array]) -> Array:
    return FeatureKernel(train.value()).gram(None if rows is train else rows.value())


def _compare_captions(
    rows: Source[EncodedCaptions],
    train: Source[EncodedCaptions],
    words: Source[Vocabulary],
    similarities: Mapping[str, Step[Any]],
    *,
    text: str,
    weights: str,
    tag_rank_width: float,
    **run: Any,
) -> Array:
    new, known = rows.value(), None if rows is train else train.value()
    if text == "tag_rank":
        return _compare_tag_ranks(new, known, tag_rank_width, run)
    exponent, vocabulary = _IDF_EXPONENTS[weights], words.value()
    idf = vocabulary.idf() ** exponent
    unknown = vocabulary.unknown_idf**exponent
    if text == "word_sequence":
        similarity = word_kernel(similarities)
        return word_sequence(
            new,
            known,
            word_kernel=None if similarity is None else similarity.matrix,
            word_weights=idf,
            unknown_weight=unknown,
            dtype=np.float32,
            **run,
        )
    compare = {"bag_of_words": bag_of_words, "bag_of_words_f1": bag_of_words_f1}[text]
    return compare(new, known, word_weights=idf, unknown_weight=unknown, dtype=np.float32)


def _compare_tag_ranks(
    new: EncodedCaptions, known: EncodedCaptions | None, width: float, run: Mapping[str, Any]
) -> Array:
    """Tag-rank kernel, normalised over an image's captions as in the paper."""
    train = new if known is None else known
    kernel = TagRank(width_factor=width).fit(train)
    training = kernel.gram(train, dtype=np.float32, **run)
    if known is None:
        return normalize(training)
    # a single caption has similarity 1 with itself
    similarities = kernel.gram(new, known, dtype=np.float32, **run)
    return normalize(similarities, np.ones(len(new)), training.diagonal())
