"""Kernels of photos and captions, their bases, and ranks by them, as cached steps."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, replace
from functools import cache, partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from kernelcore._check import Array
from kernelcore._extras import installed_versions
from kernelcore._store import digest
from kernelcore._threads import (
    Progress,
    in_threads,
    one_blas_thread,
    reporting,
    resolve_n_threads,
)
from kernelcore.captions import EncodedCaptions, Vocabulary
from kernelcore.datasets import CaptionedImages
from kernelcore.experiments.corpus import SPLITS
from kernelcore.experiments.kernel_systems import Grid, System
from kernelcore.experiments.scores import Scores
from kernelcore.experiments.steps import Kind, Source, Step, Store, pending
from kernelcore.experiments.words import WORDS, Lexicon, word_kernel
from kernelcore.images import SpatialHistograms, VisualWords
from kernelcore.kcca import KCCAFactorization, KernelBasis, kernel_basis
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
from kernelcore.models import NearestNeighbourRanker, hub_corrected, select_kcca
from kernelcore.models.base import TASKS
from kernelcore.models.kcca_ranker import with_ridge
from kernelcore.models.kcca_settings import KCCASelection, KCCASetting
from kernelcore.models.photo_features import FeatureKernel

KERNELS, BASES = "kernels", "bases"
"""Names of stages."""

_CODEBOOKS = Kind.of("codebooks", 1, VisualWords)
_GRAM_PHOTOS = Kind.array("gram-photos", 1)
_GRAM_CAPTIONS = Kind.array("gram-captions", 1)
_BASIS = Kind.of("basis", 1, KernelBasis)
_SELECTION = Kind.json("selection", 2)
_SCORES = Kind.of("scores", 2, Scores)

_IDF_EXPONENTS = {"none": 0.0, "sqrt_idf": 0.5, "idf": 1.0}
_TAG_RANK_WIDTH = 0.5  # times the mean chi-square distance
_HUB_NEIGHBORS = 30
_PAIRS = ("regularization", "ridge")  # lists in JSON


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
    lexicon : Lexicon
    photos : callable
        See `PhotoSteps`.
    store : Store
    grid : Grid
    pool : int
    **run
        Threads and progress.
    """

    def __init__(
        self,
        lexicon: Lexicon,
        photos: PhotoSteps,
        store: Store,
        grid: Grid,
        *,
        pool: int,
        **run: Any,
    ) -> None:
        self._lexicon, self._pool = lexicon, pool
        self.store, self.grid, self.run = store, grid, run
        self.image = photos
        self._vocabulary = Source(lexicon.vocabulary, lexicon.vocabulary.idf())
        self._sources = cache(self._read_captions)

    def text(self, split: str, system: System, *, every: bool = False) -> Step[Array]:
        """Similarity of the split's captions with those of the training images.

        With `every`, a row is any caption of an image, not that of the pool's number.
        """
        train = self._sources("train", self._pool if system.single else None, False)
        rows = train
        if split != "train":
            rows = self._sources(split, None if every else self._pool, True)
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

    def basis(
        self, kernel: Step[Array], *, exponent: float | None = None, ridge: float = 1.0
    ) -> Step[KernelBasis]:
        """Basis of a training kernel: of a power of it, or with a ridge."""
        return Step(
            self.store,
            _BASIS,
            _decompose,
            kernel,
            stage=BASES,
            exponent=exponent,
            ridge=ridge,
            decomposition=self.grid.decomposition,
            max_rank=self.grid.max_rank,
        )

    def _read_captions(
        self, split: str, number: int | None, as_images: bool
    ) -> Source[EncodedCaptions]:
        """Read captions of a split: of one number, or all; grouped by image, or one per row."""
        found = self._lexicon.captions(split)
        if number is not None:
            found = found.with_caption(number)
        elif as_images:
            found = found.caption_as_image()
        return Source(found, found.word_ids, found.caption_offsets, found.image_offsets)


def score(system: System, split: str, kernels: Kernels, *, every: bool = False) -> Step[Scores]:
    """Return the step that ranks the photos and captions of a split by one system.

    Settings are chosen in the pool of the kernels. The scores come as they are and corrected
    for hubs, with the training items as the bank. Systems with partial Gram-Schmidt, as the
    paper has it, are not corrected: their ridge is in the training captions' kernel, but not
    in that of new captions.

    Parameters
    ----------
    system : System
    split : str
    kernels : Kernels
    every : bool, default False
        Rank all captions instead of those of the pool.
    """
    new = [kernels.image(split, system), kernels.text(split, system, every=every)]
    train = [kernels.image("train", system), kernels.text("train", system)]
    grid, about = kernels.grid, asdict(system)
    # with partial Gram-Schmidt a pair of kernels has one ridge, else each setting has its own
    is_paired = grid.decomposition == "gram_schmidt"
    ridges = grid.ridge if is_paired else (1.0,)
    of_settings = (1.0,) if is_paired else grid.ridge
    hub_neighbors = 0 if is_paired else _HUB_NEIGHBORS
    if system.ranker == "nearest_neighbour":
        return Step(
            kernels.store,
            _SCORES,
            _rank_by_neighbours,
            new,
            train,
            system=about,
            hub_neighbors=hub_neighbors,
        )
    bases = [
        [kernels.basis(train[0], exponent=exponent) for exponent in grid.powers],
        [kernels.basis(train[1], ridge=ridge) for ridge in ridges],
    ]
    selection = Step(
        kernels.store,
        _SELECTION,
        partial(_try_all, **kernels.run),
        bases,
        [kernels.image("dev", system), kernels.text("dev", system)],
        powers=grid.powers,
        ridges=ridges,
        n_components=grid.n_components,
        regularization=grid.regularization,
        ridge=of_settings,
        correlation_power=grid.correlation_power,
    )
    return Step(
        kernels.store,
        _SCORES,
        partial(_rank_by_kcca, n_threads=kernels.run.get("n_threads")),
        new,
        bases,
        selection,
        system=about,
        grid=asdict(grid),
        hub_neighbors=hub_neighbors,
    )


def compute_kernels(
    scores: Iterable[Step[Scores]],
    stage: Callable[[str], AbstractContextManager[None]] = lambda _: nullcontext(),
    *,
    n_threads: int | None,
    progress: Progress,
) -> None:
    """Compute what scores need in three stages: similar words, kernels, and their bases.

    Bases are computed side by side, each on one thread of BLAS.
    """
    needed = pending(scores)
    for name in (WORDS, KERNELS):
        with stage(name):
            for step in needed:
                if step.stage == name:
                    step.value()
    with stage(BASES), one_blas_thread(), reporting(progress, "Bases") as report:
        in_threads(
            lambda step: step.value() is None,  # keep no value in memory: it may be large
            [step for step in needed if step.stage == BASES],
            resolve_n_threads(n_threads),
            setting=one_blas_thread,
            report=report,
        )


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
    options: dict[str, Any] = {
        "word_weights": vocabulary.idf() ** exponent,
        "unknown_weight": vocabulary.unknown_idf**exponent,
        "dtype": np.float32,
    }
    if text == "word_sequence":
        similarity = word_kernel(similarities)
        options["word_kernel"] = None if similarity is None else similarity.matrix
        return word_sequence(new, known, **options, **run)
    return (bag_of_words if text == "bag_of_words" else bag_of_words_f1)(new, known, **options)


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


def _try_all(
    bases: Sequence[Sequence[Step[KernelBasis]]],
    dev: Sequence[Step[Array]],
    *,
    powers: Sequence[float],
    ridges: Sequence[float],
    ridge: Sequence[float],
    n_components: Sequence[int],
    regularization: Sequence[Any],
    correlation_power: Sequence[float],
    **run: Any,
) -> list[dict[str, Any]]:
    """Recalls on the development split of each power, ridge of the pair, and setting."""
    photos, captions = (step.value() for step in dev)
    tried = []
    for of_pair, basis in zip(ridges, bases[1], strict=True):
        texts = basis.value()
        # a ridge of a setting needs a constant diagonal, which an image without words lacks
        of_settings = ridge if texts.diagonal is not None else (1.0,)
        for exponent, images in zip(powers, bases[0], strict=True):
            factorization = KCCAFactorization(images.value(), texts)
            rank = factorization.rank
            found = select_kcca(
                factorization,
                power(photos, exponent),
                captions,
                n_components_grid=[n for n in n_components if n <= rank] or [rank],
                regularization_grid=regularization,
                ridge_grid=[(1.0, d) for d in of_settings],
                correlation_power_grid=correlation_power,
                **run,
            )
            settings = [setting._asdict() for setting in found.settings]
            recalls = found.recalls.tolist()
            tried.append(
                {"power": exponent, "ridge": of_pair, "settings": settings, "recalls": recalls}
            )
    return tried


def _rank_by_kcca(
    new: Sequence[Step[Array]],
    bases: Sequence[Sequence[Step[KernelBasis]]],
    selection: Step[Any],
    *,
    system: Mapping[str, Any],
    grid: Mapping[str, Any],
    hub_neighbors: int,
    n_threads: int | None,
) -> Scores:
    """Borda's count of the settings that win on dev, after the choice of power and ridge."""
    tried = selection.value()
    best = max(tried, key=lambda one: np.sum(one["recalls"], axis=(1, 2)).max())
    ridges = list(dict.fromkeys(one["ridge"] for one in tried))
    image_basis = bases[0][grid["powers"].index(best["power"])]
    text_basis = bases[1][ridges.index(best["ridge"])]
    chosen = KCCASelection(
        KCCAFactorization(image_basis.value(), text_basis.value()),
        [
            KCCASetting(**setting | {name: tuple(setting[name]) for name in _PAIRS})
            for setting in best["settings"]
        ],
        np.array(best["recalls"]),
    )
    photos, captions = power(new[0].value(), best["power"]), new[1].value()

    def pair(n: int) -> tuple[Array, Array]:
        run: dict[str, Any] = {"hub_neighbors": n, "n_threads": n_threads}
        return (
            chosen.scores(photos, captions, task="annotation", **run),
            chosen.scores(photos, captions, task="search", **run),
        )

    settings: dict[str, Any] = {
        **system,
        "grid": grid,
        "power": best["power"],
        "ridge": best["ridge"],
        "best_sum_on_dev": chosen.recalls.sum(axis=(1, 2)).max(),
        **{task: [one._asdict() for one in chosen.winners(task)] for task in TASKS},
    }
    return Scores(*pair(0), settings, pair(hub_neighbors) if hub_neighbors else None)


def _rank_by_neighbours(
    new: Sequence[Step[Array]],
    known: Sequence[Step[Array]],
    *,
    system: Mapping[str, Any],
    hub_neighbors: int,
) -> Scores:
    """Rank by nearest neighbours, and correct by training items.

    A training caption as a query has itself as its nearest caption, so its scores are the
    similarities of its own photo. The bank of each task is therefore a kernel.
    """
    ranker = NearestNeighbourRanker("precomputed", "precomputed")
    ranker.fit(*(step.value() for step in known))
    photos, captions = (step.value() for step in new)
    annotation, search = (ranker.scores(photos, captions, task=task) for task in TASKS)
    if not hub_neighbors:
        return Scores(annotation, search, system)
    corrected = (
        hub_corrected(annotation, captions.T, task="annotation", n_neighbors=hub_neighbors),
        hub_corrected(search, photos, task="search", n_neighbors=hub_neighbors),
    )
    return Scores(annotation, search, system, corrected)
