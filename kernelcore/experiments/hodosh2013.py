"""Framing image description as a ranking task (Hodosh, Young and Hockenmaier, JAIR 47, 2013).

Photos are compared by spatial pyramids of colour, texture and SIFT words, captions by text
kernels; kernel CCA or a nearest neighbour ranks. Training images have all their captions, the
pools of the other splits one caption per image. For each system and each task the five best
settings on the development split by R@1, R@5 and R@10 are combined by Borda's count. Nothing
is chosen on the split that is reported.

What the paper leaves open is chosen by this package and named in `GRID`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from kernelcore._progress import Progress
from kernelcore._validation import Array, check_choice
from kernelcore.captions import CaptionNormalizer, Vocabulary
from kernelcore.datasets import load_flickr
from kernelcore.evaluation import PublishedMetrics, PublishedResult, RetrievalResult, evaluate
from kernelcore.experiments.study import Study
from kernelcore.images import SpatialHistograms, VisualWords
from kernelcore.kcca import KCCAFactorization, KernelBasis, kernel_basis
from kernelcore.kernels import average, bag_of_words, bag_of_words_f1, power, spatial_pyramid
from kernelcore.models import KCCASelection, NearestNeighbourRanker, select_kcca
from kernelcore.models.base import TASKS
from kernelcore.report import StageRecorder

SOURCE = "Hodosh et al. 2013"


@dataclass(frozen=True)
class System:
    """One of the systems that the paper compares.

    Attributes
    ----------
    text : {"bag_of_words", "bag_of_words_f1"}
        How captions are compared.
    weights : {"none", "idf", "sqrt_idf"}
        Weights of the words.
    ranker : {"kcca", "nearest_neighbour"}
    single : bool
        Train with one caption per image, the one of the pool's number, instead of all.
    pyramid : bool
        Compare photos cell by cell; otherwise by the histograms of the whole image.
    """

    text: Literal["bag_of_words", "bag_of_words_f1"]
    weights: Literal["none", "idf", "sqrt_idf"] = "none"
    ranker: Literal["kcca", "nearest_neighbour"] = "kcca"
    single: bool = False
    pyramid: bool = True


SYSTEMS: Mapping[str, System] = {
    "NN_F1": System("bag_of_words_f1", ranker="nearest_neighbour"),
    "NN_F1^idf": System("bag_of_words_f1", "idf", ranker="nearest_neighbour"),
    "NN_BoW5": System("bag_of_words", ranker="nearest_neighbour"),
    "BoW1": System("bag_of_words", single=True),
    "BoW5^histo": System("bag_of_words", pyramid=False),
    "BoW5": System("bag_of_words"),
    "BoW5^idf": System("bag_of_words", "idf"),
    "BoW5^sqrt-idf": System("bag_of_words", "sqrt_idf"),
}

PUBLISHED = (
    PublishedResult(
        "Tri5Sem",
        SOURCE,
        annotation=PublishedMetrics({1: 0.083, 5: 0.216, 10: 0.303}, 34),
        search=PublishedMetrics({1: 0.076, 5: 0.207, 10: 0.301}, 38),
    ),
)
"""The only row of the paper's tables whose figures are known to us."""


@dataclass(frozen=True)
class Grid:
    """Settings tried on the development split; every value is this package's choice.

    Attributes
    ----------
    powers : tuple of float
        Exponents of the averaged image kernel; the best one by the sum of all recalls is
        kept for each pair of kernels.
    n_components : tuple of int
    regularization : tuple of (float, float)
        Pairs for (photos, captions).
    correlation_power : tuple of float
        Weights of the components, see `kernelcore.models.KCCARanker`. The paper has 0 only.
    max_rank : int
        Eigenvectors kept of each kernel.
    mirror : bool
        Compare photos also with the mirror image of their cells, and take the mean of both:
        a caption does not tell left from right. The paper does not do so.
    """

    powers: tuple[float, ...] = (1.0, 2.0)
    n_components: tuple[int, ...] = (20, 30, 45, 70, 100, 150, 200, 300, 400, 600)
    regularization: tuple[tuple[float, float], ...] = tuple(
        (photos, captions) for photos in (0.1, 0.3, 1.0, 2.0) for captions in (1.0, 2.0, 4.0)
    )
    correlation_power: tuple[float, ...] = (0.0, 1.0, 2.0, 3.0, 4.0)
    max_rank: int = 1500
    mirror: bool = True


GRID = Grid()


def run(
    data: Path | str,
    *,
    systems: Sequence[str] = ("BoW5",),
    split: Literal["test", "dev"] = "test",
    pool: int = 2,
    grid: Grid = GRID,
    cache_dir: Path | str | None = None,
    n_threads: int | None = None,
    progress: Progress = False,
) -> Study:
    """Train systems of the paper and measure them on a split.

    Parameters
    ----------
    data : path
        Folder of Flickr8k or Flickr30k, see `kernelcore.datasets.load_flickr`.
    systems : sequence of str, default ("BoW5",)
        Names from `SYSTEMS`.
    split : {"test", "dev"}, default "test"
        The split to report. Settings are chosen on ``dev`` in any case.
    pool : int, default 2
        Number of the caption of each image that is in the pool: 2 in the paper.
    grid : Grid, default GRID
        Settings to try.
    cache_dir : path, optional
        Where the histograms of photos are kept as they are computed: a second run, also
        after a kill, goes on from there.
    n_threads : int, optional
        Threads to use; the default is every core this process may run on.
    progress : bool or callable, default False
        Show bars.

    Returns
    -------
    kernelcore.experiments.study.Study
        One result per system, beside what is published, with the stages of the run.

    Raises
    ------
    ValueError
        If a system or split does not exist, or an image lacks the pool's caption.
    FileNotFoundError
        If `data` does not hold the corpus, or photos are missing.
    """
    for name in systems:
        check_choice("systems", name, tuple(SYSTEMS))
    check_choice("split", split, ("test", "dev"))
    recorder = StageRecorder()
    corpus = _Corpus(
        data, pool, recorder, cache_dir=cache_dir, n_threads=n_threads, progress=progress
    )
    results = [_measure(name, corpus, split, grid) for name in systems]
    return Study(
        f"Sentence-based image description, {SOURCE}", (*results, *PUBLISHED), recorder
    )


class _Corpus:
    """The data set in the forms that kernels read, and how the run was asked to go."""

    def __init__(
        self,
        data: Path | str,
        pool: int,
        recorder: StageRecorder,
        *,
        cache_dir: Path | str | None,
        n_threads: int | None,
        progress: Progress,
    ) -> None:
        self.pool, self.recorder = pool, recorder
        self.n_threads, self.progress = n_threads, progress
        with recorder.stage("captions"):
            dataset = load_flickr(data)
            dataset = dataset.subset(
                np.concatenate([dataset.split(name) for name in ("train", "dev", "test")])
            )
            train = dataset.split("train")
            normalize = CaptionNormalizer().fit([dataset.captions[i] for i in train])
            tokens = normalize.normalize_images(dataset.captions, progress=progress)
            self.vocabulary = Vocabulary.from_captions([tokens[i] for i in train])
            self.captions = self.vocabulary.encode(
                tokens, caption_numbers=dataset.caption_numbers
            )
        paths = [path for path in dataset.paths if path is not None]
        if len(paths) < len(dataset):
            raise FileNotFoundError(
                f"{data} must hold the photos of its captions, "
                f"{len(dataset) - len(paths)} of {len(dataset)} are missing"
            )
        with recorder.stage("codebooks"):
            words = VisualWords(rng=0).fit(
                [paths[i] for i in train], n_threads=n_threads, progress=progress
            )
        with recorder.stage("histograms of photos"):
            self.photos = words.transform(
                paths, cache_dir=cache_dir, n_threads=n_threads, progress=progress
            )
        self.dataset = dataset
        self._image_kernels: dict[tuple[bool, str], Array] = {}
        self._image_bases: dict[tuple[bool, float], KernelBasis] = {}

    def image_kernel(self, split: str, grid: Grid, *, pyramid: bool) -> Array:
        """Kernel of the split's photos with the training photos, averaged over features."""
        key = (pyramid, split)
        if key not in self._image_kernels:
            rows, train = self.dataset.split(split), self.dataset.split("train")
            pairs = [
                (words.select(rows), other)
                for words in self.photos.values()
                for other in _views(words.select(train), mirror=grid.mirror and pyramid)
            ]
            self._image_kernels[key] = average(
                [
                    spatial_pyramid(
                        photos,
                        others,
                        level_weights=None if pyramid else np.eye(photos.n_levels)[0],
                        dtype=np.float32,
                        n_threads=self.n_threads,
                        progress=self.progress,
                    )
                    for photos, others in pairs
                ]
            )
        return self._image_kernels[key]

    def image_basis(self, exponent: float, grid: Grid, *, pyramid: bool) -> KernelBasis:
        """Basis of a power of the training photos' kernel; all systems share it."""
        key = (pyramid, exponent)
        if key not in self._image_bases:
            kernel = self.image_kernel("train", grid, pyramid=pyramid)
            self._image_bases[key] = _basis(power(kernel, exponent), grid)
        return self._image_bases[key]

    def text_kernel(self, split: str, system: System) -> Array:
        """Similarity of the split's captions with those of the training images."""
        train = self.captions.select(self.dataset.split("train"))
        if system.single:
            train = train.with_caption(self.pool)
        rows = train
        if split != "train":
            rows = self.captions.select(self.dataset.split(split)).with_caption(self.pool)
        exponent = {"none": 0.0, "sqrt_idf": 0.5, "idf": 1.0}[system.weights]
        similarity = {"bag_of_words": bag_of_words, "bag_of_words_f1": bag_of_words_f1}
        return similarity[system.text](
            rows,
            None if rows is train else train,
            weights=self.vocabulary.idf() ** exponent,
            unknown_weight=self.vocabulary.unknown_idf**exponent,
            dtype=np.float32,
        )


def _measure(name: str, corpus: _Corpus, split: str, grid: Grid) -> RetrievalResult:
    system, recorder = SYSTEMS[name], corpus.recorder
    with recorder.stage(f"{name}: kernels"):
        splits = dict.fromkeys(("train", "dev", split))
        photos = {s: corpus.image_kernel(s, grid, pyramid=system.pyramid) for s in splits}
        captions = {s: corpus.text_kernel(s, system) for s in splits}
    settings: dict[str, Any] = asdict(system)
    if system.ranker == "nearest_neighbour":
        ranker = NearestNeighbourRanker("precomputed", "precomputed")
        ranker.fit(photos["train"], captions["train"])
        scores = {
            task: ranker.scores(photos[split], captions[split], task=task) for task in TASKS
        }
    else:
        exponent, selection = _select(name, photos, captions, corpus, grid)
        with recorder.stage(f"{name}: scores"):
            new_photos = power(photos[split], exponent)
            scores = {
                task: selection.scores(new_photos, captions[split], task=task) for task in TASKS
            }
        settings |= {"grid": asdict(grid), "power": exponent}
        settings |= {task: [s._asdict() for s in selection.winners(task)] for task in TASKS}
    return evaluate(
        scores["annotation"],
        scores["search"],
        system=name,
        protocol=SOURCE,
        dataset=corpus.dataset.name,
        split=split,
        pool=f"caption #{corpus.pool}",
        settings=settings,
    )


def _select(
    name: str,
    photos: Mapping[str, Array],
    captions: Mapping[str, Array],
    corpus: _Corpus,
    grid: Grid,
) -> tuple[float, KCCASelection]:
    """Choose the settings of kernel CCA on the development split, the power first."""
    recorder = corpus.recorder
    with recorder.stage(f"{name}: basis of captions"):
        caption_basis = _basis(captions["train"], grid)
    candidates: list[tuple[float, KCCASelection]] = []
    for exponent in grid.powers:
        with recorder.stage(f"{name}: basis of photos, p = {exponent:g}"):
            photo_basis = corpus.image_basis(exponent, grid, pyramid=SYSTEMS[name].pyramid)
        rank = min(len(photo_basis.eigenvalues), len(caption_basis.eigenvalues))
        with recorder.stage(f"{name}: selection on dev, p = {exponent:g}"):
            selection = select_kcca(
                KCCAFactorization(photo_basis, caption_basis),
                power(photos["dev"], exponent),
                captions["dev"],
                n_components=[n for n in grid.n_components if n <= rank] or [rank],
                regularization=grid.regularization,
                correlation_power=grid.correlation_power,
                n_threads=corpus.n_threads,
                progress=corpus.progress,
            )
        candidates.append((exponent, selection))
    return max(candidates, key=lambda candidate: candidate[1].recalls.sum(axis=(1, 2)).max())


def _views(photos: SpatialHistograms, *, mirror: bool) -> list[SpatialHistograms]:
    return [photos, photos.mirrored()] if mirror else [photos]


def _basis(K: Array, grid: Grid) -> KernelBasis:
    return kernel_basis(K, decomposition="eigen", max_rank=grid.max_rank)
