"""Framing image description as a ranking task (Hodosh, Young and Hockenmaier, JAIR 47, 2013).

Photos are compared by spatial pyramids of colour, texture and SIFT words, captions by text
kernels. The rankers are kernel CCA and nearest neighbours. Training images have all their
captions; the pools of the other splits have one caption per image. For each system and task,
the five best settings on ``dev`` by each of R@1, R@5 and R@10 are combined by Borda's count.
No setting is chosen on the reported split.

Choices that the paper leaves open are named in `GRID` and in `systems.CHOICES`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, cast

from kernelcore.captions.normalize import english_pipeline
from kernelcore.evaluation import RetrievalResult, evaluate
from kernelcore.experiments.corpus import Corpus, find_outside_corpus
from kernelcore.experiments.hodosh2013.findings import make_sections
from kernelcore.experiments.hodosh2013.judged import CaptionPool, Judgments
from kernelcore.experiments.hodosh2013.kernels import (
    BASES,
    KERNELS,
    Kernels,
    PyramidKernels,
    describe_photos,
)
from kernelcore.experiments.hodosh2013.ranking import score
from kernelcore.experiments.hodosh2013.systems import (
    BASELINE,
    GRID,
    PUBLISHED,
    PUBLISHED_ON,
    SOURCE,
    SYSTEMS,
    Grid,
    System,
)
from kernelcore.experiments.hodosh2013.words import (
    STAGE,
    Lexicon,
    Resources,
    Texts,
)
from kernelcore.experiments.scores import Scores
from kernelcore.experiments.steps import Step, compute_side_by_side, pending
from kernelcore.experiments.study import Study, StudyResults
from kernelcore.images import read_image
from kernelcore.report import Example, annotation_examples, search_examples

__all__ = ["GRID", "PUBLISHED", "SYSTEMS", "Grid", "Hodosh2013", "System", "run"]


@dataclass(kw_only=True)
class Hodosh2013(Study[Scores]):
    """The study of Hodosh et al. (2013); `Study` documents the options that all studies have.

    The cache holds the histograms of photos, word similarities, Gram matrices, bases, and the
    scores of each system. All 30 systems take about 5 GB.

    Parameters
    ----------
    pool : int, default 2
        Number of the caption of each image that is in the pool: 2 in the paper.
    other_pool : int, optional, default 0
        If all systems run, also measure the paper's best system on the captions of this
        number, as later publications do.
    grid : Grid, default GRID
        Settings to try.
    wordnet_dir : path, default "/usr/share/wordnet"
        Folder of the WordNet database, for the similarity Lin.
    outside_corpus : path, optional
        Tagged text for the similarity D_out; the default is ``brown_tagged.txt`` in `data`
        or in ``brown`` beside it.
    spacy_model : str, optional
        Pipeline that tags captions for the similarity A (extra ``text``); the default is
        an English one that is installed.
    """

    NAME = "hodosh2013"
    TITLE = f"Sentence-based image description, {SOURCE}"
    SYSTEMS = SYSTEMS
    BEFORE = ("captions", "histograms of photos", STAGE, KERNELS, BASES)
    AFTER = ("judgments and tests",)

    pool: int = 2
    other_pool: int | None = 0
    grid: Grid = GRID
    wordnet_dir: str | os.PathLike[str] = "/usr/share/wordnet"
    outside_corpus: str | os.PathLike[str] | None = None
    spacy_model: str | None = None

    _resources: Resources = field(init=False, repr=False)
    _texts: Texts = field(init=False, repr=False)
    _kernels: Kernels = field(init=False, repr=False)
    _steps: dict[str, Step[Scores]] = field(init=False, repr=False)

    def stage_of(self, system: str) -> str:
        """Name of the stage that scores a system."""
        return f"scores of {system}"

    def prepare(self) -> None:
        """Read the corpus and compute the kernels and bases of all systems."""
        chosen = [SYSTEMS[name] for name in self.names]
        self._resources = Resources(
            self.wordnet_dir,
            self.outside_corpus or find_outside_corpus(self.data),
            self.spacy_model or english_pipeline(),
        )
        with self.stages.stage("captions"):
            self._texts = self._read(chosen)
        dataset = self._texts.dataset
        with self.stages.stage("histograms of photos"):
            recipes = self.grid.visual_words
            histograms = describe_photos(
                dataset, recipes, self.store, cache_dir=self.cache_dir, **self.shared
            )
            photos = PyramidKernels(
                dataset, histograms, self.store, mirror=self.grid.mirror, **self.shared
            )
        lexicon = Lexicon(self._texts, self._resources, self.store, progress=self.progress)
        self._kernels = Kernels(
            self._texts, photos, lexicon, self.store, self.grid, pool=self.pool, **self.shared
        )
        self._steps = {
            name: score(SYSTEMS[name], self.split, self._kernels) for name in self.names
        }
        needed = pending(self._steps.values())
        self.stages.compute(STAGE, needed)
        self.stages.compute(KERNELS, needed)
        with self.stages.stage(BASES):
            bases = [step for step in needed if step.stage == BASES]
            compute_side_by_side(bases, **self.shared)

    def score(self, name: str) -> Scores:
        """Score the reported split by one system."""
        return self._steps[name].value()

    def findings(self, scored: Mapping[str, Scores]) -> StudyResults:
        """Evaluate the scores, test the claims of the paper and compare with judgments."""
        elsewhere: dict[str, Scores] = {}
        if self._other_pool is not None:
            with self.stages.stage(f"scores of {BASELINE}, pool #{self._other_pool}"):
                kernels = self._kernels.with_pool(self._other_pool)
                elsewhere[BASELINE] = score(SYSTEMS[BASELINE], self.split, kernels).value()
        with self.stages.stage("judgments and tests"):
            results = self._evaluate(scored, self.pool)
            pool = CaptionPool.of(self._texts.dataset, self.split, self.pool)
            sections = make_sections(
                results,
                scored,
                pool,
                Judgments.of(self.data, pool),
                elsewhere=self._evaluate(elsewhere, self._other_pool),
                n_threads=self.n_threads,
            )
        is_published = (self.split, f"caption #{self.pool}") == PUBLISHED_ON
        return StudyResults(
            self.TITLE,
            (*results, *(PUBLISHED if is_published else ())),
            self.stages,
            sections,
            examples=partial(_examples, scored, self._texts, self.split, pool, self.n_threads),
            settings={
                "grid": asdict(self.grid),
                "spaCy pipeline": self._resources.spacy_model,
                "outside corpus": self._resources.corpus_name,
            },
            summary=(
                "Made by `kernelcore reproduce hodosh2013`. Systems are trained on all "
                "captions of an image and ranked on pools with one caption per image. For "
                "each system and task, the five best settings on dev by each of R@1, R@5 and "
                "R@10 (fifteen models) are combined by Borda's count."
            ),
        )

    @property
    def _other_pool(self) -> int | None:
        """The number of the other pool, if it is measured."""
        is_whole = len(self.names) == len(SYSTEMS)
        return self.other_pool if is_whole and self.other_pool != self.pool else None

    def _read(self, systems: list[System]) -> Texts:
        """Read the captions, and check early that no caption, file or model is missing."""
        corpus = Corpus.read(self.data)
        spacy_model = self._resources.spacy_model
        texts = Texts.of(corpus, spacy_model=spacy_model, progress=self.progress)
        splits = ["dev", self.split, *(["train"] if any(s.single for s in systems) else [])]
        pools = [self.pool, *([] if self._other_pool is None else [self._other_pool])]
        for split, number in product(splits, pools):
            texts.check_pool(split, number)
        self._resources.check(name for system in systems for name in system.lexical)
        return texts

    def _evaluate(
        self, scored: Mapping[str, Scores], pool: int | None
    ) -> list[RetrievalResult]:
        return [
            evaluate(
                scores.annotation,
                scores.search,
                system=name,
                settings=scores.settings,
                pool=f"caption #{pool}",
                protocol=SOURCE,
                dataset=self._texts.dataset.name,
                split=self.split,
                n_threads=self.n_threads,
            )
            for name, scores in scored.items()
        ]


run = Hodosh2013.reproduce


def _examples(
    scored: Mapping[str, Scores],
    texts: Texts,
    split: str,
    pool: CaptionPool,
    n_threads: int | None,
) -> tuple[Example, ...]:
    """Good, typical and bad queries of the paper's best system, or of the last one."""
    name = BASELINE if BASELINE in scored else list(scored)[-1]
    rows = texts.dataset.split(split)

    def pixels(i: int) -> Any:
        return read_image(cast("Path", texts.dataset.paths[rows[i]]))

    shown = (pool.captions, pixels)
    named: dict[str, Any] = {"system": name, "n_threads": n_threads}
    return (
        *search_examples(scored[name].search, *shown, **named),
        *annotation_examples(scored[name].annotation, *shown, **named),
    )
