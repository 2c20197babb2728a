"""The demo: the whole pipeline on drawn scenes, in half a minute and without data."""

from __future__ import annotations

import os
import tempfile
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from kernelcore._check import Array, check_integer, drawn_seed
from kernelcore._threads import Progress, working
from kernelcore.datasets import Scene, Thing, make_scenes
from kernelcore.datasets.scenes.content import PEOPLE, RELATIONS
from kernelcore.evaluation import Result, ResultTable, evaluate
from kernelcore.images import SpatialHistograms, VisualWords
from kernelcore.kernels import bag_of_words_f1
from kernelcore.models import ChanceRanker, NearestNeighbourRanker, PhotoIndex, PhotoRanker
from kernelcore.models.base import TASKS
from kernelcore.models.photo_features import PhotoKernel
from kernelcore.models.training_items import CaptionKernel
from kernelcore.report import (
    StageRecorder,
    query_examples,
    recall_figure,
    similarity_figure,
    write_html,
)

SYSTEMS: Mapping[str, CaptionKernel] = {
    "kernel CCA, bags of words": "bag_of_words",
    "kernel CCA, word sequences": "word_sequence",
}
MIN_IMAGES = 25
_POOL = 2  # number of the caption of each scene in the pool, as in the literature
_WIDTH = 96
_VERBS = {
    "chase": "chases",
    "jump_over": "jumps over",
    "pull": "pulls",
    "left_of": "is to the left of",
}


@dataclass(frozen=True)
class RoleSwaps:
    """How often a ranker prefers a sentence to the same sentence with exchanged roles.

    Attributes
    ----------
    n_scenes : int
        Test scenes whose roles can be exchanged, as in "a dog chases a cat".
    n_right : int
        Scenes for which the right sentence has the higher score.
    n_ties : int
        Scenes for which both sentences have the same score.
    """

    n_scenes: int
    n_right: int
    n_ties: int

    @property
    def accuracy(self) -> float:
        """Share of the scenes with the right order; ties count half, and 0.5 is chance."""
        return (self.n_right + 0.5 * self.n_ties) / self.n_scenes if self.n_scenes else 0.5

    def __str__(self) -> str:
        if not self.n_scenes:
            return "no test scene has two roles that can be exchanged."
        if self.n_ties == self.n_scenes:
            return (
                f"both sentences score the same in all of {self.n_scenes} test scenes, because "
                "as bags of words they are equal."
            )
        return (
            f"the sentences are told apart in {self.n_scenes - self.n_ties} of {self.n_scenes} "
            f"test scenes, and the right one scores higher in {100 * self.accuracy:.1f} % "
            "(chance: 50.0 %, ties count half)."
        )


@dataclass(frozen=True, eq=False)
class Demo:
    """Results of the demo.

    Attributes
    ----------
    title : str
    results : tuple of Result
        Of kernel CCA with two kernels of captions, of nearest neighbour and of chance.
    stages : StageRecorder
        Time and memory of the run.
    role_swaps : mapping of str to RoleSwaps
        Result of exchanged roles for each kernel CCA.
    sizes : tuple of int
        Numbers of training, development and test scenes.
    images : ndarray of uint8, shape (n_test, height, width, 3)
        Test scenes.
    captions : tuple of str
        Caption of each test scene.
    scores : mapping of str to ndarray of shape (n_test, n_test)
        Scores of each kernel CCA, rows are images.
    settings : mapping of str to Any
        Options of the run, and the settings that were chosen.
    """

    title: str
    results: tuple[Result, ...]
    stages: StageRecorder
    role_swaps: Mapping[str, RoleSwaps]
    sizes: tuple[int, int, int]
    images: npt.NDArray[np.uint8]
    captions: tuple[str, ...]
    scores: Mapping[str, npt.NDArray[Any]]
    settings: Mapping[str, Any]

    def __str__(self) -> str:
        setup, role_swaps = (textwrap.fill(text, _WIDTH) for text in (self.setup, self.roles))
        table = ResultTable(self.results)
        return "\n\n".join(map(str, (self.title, setup, table, role_swaps, self.stages)))

    @property
    def setup(self) -> str:
        """One sentence about the data."""
        return (
            "kernelcore draws the scenes and writes their captions: "
            f"{self.sizes[0]} scenes for training, with five captions each, {self.sizes[1]} "
            f"for the choice of settings, and {self.sizes[2]} for the test, with one caption "
            "each."
        )

    @property
    def roles(self) -> str:
        """A few sentences about exchanged roles."""
        found = " ".join(f"With {name}, {swaps}" for name, swaps in self.role_swaps.items())
        return (
            'Who does what to whom: the caption "a dog chases a cat" is compared with the same '
            f"sentence with exchanged roles. {found}"
        )

    def write_html(self, path: str | os.PathLike[str]) -> None:
        """Write everything as one HTML page, with figures and examples."""
        system, scores = next(iter(self.scores.items()))
        shown = scores, self.captions, list(self.images)
        examples = [query_examples(*shown, task=task, system=system) for task in TASKS[::-1]]
        write_html(
            path,
            title=self.title,
            summary=f"{self.setup} {self.roles}",
            results=self.results,
            examples=list(chain(*examples)),
            figures=[recall_figure(self.results), similarity_figure(scores, system=system)],
            stages=self.stages,
            settings=self.settings,
        )


def run(
    n_images: int = 1000,
    rng: np.random.Generator | int | None = 0,
    *,
    n_threads: int | None = None,
    progress: Progress = False,
) -> Demo:
    """Draw scenes, train on most of them and rank the others against their captions.

    Parameters
    ----------
    n_images : int, default 1000
        Scenes to draw, at least 25: three fifths for training, one fifth for the choice of
        settings, one fifth for the test.
    rng : Generator or int, optional, default 0
        Seed of the scenes. A generator draws a seed, which is stored in `settings`.
    n_threads : int, optional
        Threads to use; the default is every core this process may run on.
    progress : bool or callable, default False
        Show bars.

    Returns
    -------
    Demo

    Raises
    ------
    TypeError, ValueError
        If `n_images` or `rng` is not an integer or too small.

    Examples
    --------
    >>> from kernelcore.experiments import demo
    >>> found = demo.run(n_images=50)
    >>> [result.system for result in found.results]
    ['kernel CCA, bags of words', 'kernel CCA, word sequences', 'nearest neighbour', 'chance']
    """
    check_integer("n_images", n_images, minimum=MIN_IMAGES)
    start = drawn_seed("rng", rng)
    run: dict[str, Any] = {"n_threads": n_threads, "progress": progress}
    recorder = StageRecorder()
    with recorder.stage("draw the scenes"), working(progress, "Drawing scenes"):
        scenes = make_scenes(n_images, start)
    photos, texts = list(scenes.images), scenes.dataset.captions
    train, dev, test = (scenes.dataset.split(name) for name in ("train", "dev", "test"))

    def items(rows: Any) -> tuple[list[Any], list[Any]]:
        return [photos[i] for i in rows], [texts[i] for i in rows]

    captions = tuple(texts[i][_POOL] for i in test)
    with recorder.stage("learn visual words"):
        words = VisualWords(
            n_words={"colour": 64, "texture": 128, "sift": 128},
            n_sample_images=100,
            n_sample_points=500,
        ).fit(items(train)[0], **run)
    rankers, indices = {}, {}
    with tempfile.TemporaryDirectory() as cache:
        reading = {"cache_dir": cache, **run}  # so that each scene is described once
        with recorder.stage("describe the scenes"):
            features = words.transform(photos, **reading)
        for name, kernel in SYSTEMS.items():
            with recorder.stage(f"learn and choose settings, {name}"):
                # no correction for hubs, so that the systems differ only in their captions
                ranker = PhotoRanker(words, caption_kernel=kernel, hub_neighbors_grid=(0,))
                rankers[name] = ranker.fit(*items(train), dev=items(dev), **reading)
                indices[name] = ranker.index(items(test)[0], **reading)
    with recorder.stage("rank"):
        scores = {
            name: own.scores(indices[name], captions, n_threads=n_threads)
            for name, own in rankers.items()
        }
    with recorder.stage("rank by nearest neighbour"):
        described = {name: own.select(test) for name, own in features.items()}
        nearest = _nearest_neighbour(ranker, described, captions, n_threads)
    ranked = {name: (matrix,) for name, matrix in scores.items()} | {
        "nearest neighbour": nearest,
        "chance": (ChanceRanker(rng=start).scores(test, captions),),
    }
    labels: dict[str, Any] = {
        "dataset": "drawn scenes",
        "split": "test",
        "pool": f"caption #{_POOL}",
        "n_threads": n_threads,
    }
    shown = [scenes.scenes[i] for i in test]
    return Demo(
        f"Search and annotation of {n_images} drawn scenes",
        tuple(evaluate(*own, system=name, **labels) for name, own in ranked.items()),
        recorder,
        {
            name: _role_swaps(own, shown, indices[name], n_threads)
            for name, own in rankers.items()
        },
        (len(train), len(dev), len(test)),
        scenes.images[test],
        captions,
        scores,
        {
            "n_images": n_images,
            "seed": start,
            "visual words": words.n_words,
            **{
                name: {"image power": own.image_power_, **own.setting_._asdict()}
                for name, own in rankers.items()
            },
        },
    )


def _nearest_neighbour(
    ranker: PhotoRanker,
    features: Mapping[str, SpatialHistograms],
    captions: Sequence[str],
    n_threads: int | None,
) -> tuple[Array, Array]:
    """Scores of the baseline for annotation and search, on the same photos and words."""
    known = ranker.captions_
    kernel = PhotoKernel(ranker.photos_.photos, None)
    photos = kernel.gram(features, n_threads=n_threads)
    texts = bag_of_words_f1(
        known.encode([[caption] for caption in captions]),
        known.encoded,
        word_weights=known.vocabulary.idf(),
        unknown_weight=known.vocabulary.unknown_idf,
        n_threads=n_threads,
    )
    nearest = NearestNeighbourRanker("precomputed", "precomputed").fit(photos.T, texts.T)
    return nearest.scores(photos, texts), nearest.scores(photos, texts, task="search")


def _role_swaps(
    ranker: PhotoRanker,
    scenes: Sequence[Scene],
    index: PhotoIndex,
    n_threads: int | None,
) -> RoleSwaps:
    """Compare each sentence with the same sentence with agent and patient exchanged."""
    rows = [i for i, scene in enumerate(scenes) if _could_be_swapped(scene)]
    if not rows:
        return RoleSwaps(0, 0, 0)
    right, swapped = (
        np.diag(ranker.scores(index, list(map(_sentence, own)), n_threads=n_threads)[rows])
        for own in ([scenes[i] for i in rows], [_swapped(scenes[i]) for i in rows])
    )
    return RoleSwaps(len(rows), int((right > swapped).sum()), int((right == swapped).sum()))


def _could_be_swapped(scene: Scene) -> bool:
    relation = RELATIONS[scene.relation]
    return (
        scene.relation in _VERBS
        and scene.patient.kind in relation.agents
        and scene.agent.kind in relation.patients
    )


def _swapped(scene: Scene) -> Scene:
    return replace(scene, agent=scene.patient, patient=scene.agent)


def _sentence(scene: Scene) -> str:
    return f"{_phrase(scene.agent)} {_VERBS[scene.relation]} {_phrase(scene.patient)}."


def _phrase(thing: Thing) -> str:
    if thing.kind in PEOPLE:
        return f"a {thing.kind} in {thing.colour}"
    return f"a {thing.colour} {thing.kind}"
