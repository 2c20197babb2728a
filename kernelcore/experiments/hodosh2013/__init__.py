"""Framing image description as a ranking task (Hodosh, Young and Hockenmaier, JAIR 47, 2013).

Photos are compared by spatial pyramids of colour, texture and SIFT words, captions by text
kernels. The rankers are kernel CCA and nearest neighbours. Training images have all their
captions; the pools of the other splits have one caption per image. For each system and task,
the five best settings on ``dev`` by each of R@1, R@5 and R@10 are combined by Borda's count.
No setting is chosen on the reported split.

Choices that the paper leaves open are named in `GRID` and in docs/experiments/hodosh2013.md.
Systems as printed have those of `PRINTED_GRID`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, cast

from kernelcore.captions.normalize import english_pipeline
from kernelcore.datasets import CaptionedImages
from kernelcore.evaluation import Result, evaluate
from kernelcore.experiments.corpus import Corpus, find_outside_corpus
from kernelcore.experiments.hodosh2013.descriptions import Descriptions
from kernelcore.experiments.hodosh2013.findings import make_sections
from kernelcore.experiments.hodosh2013.hubs import hubs_section
from kernelcore.experiments.hodosh2013.judged import CaptionPool, Judgments
from kernelcore.experiments.hodosh2013.kernels import (
    BASES,
    KERNELS,
    Kernels,
)
from kernelcore.experiments.hodosh2013.ranking import score
from kernelcore.experiments.hodosh2013.systems import (
    BASELINE,
    GRID,
    NOT_CORRECTED,
    PRINTED,
    PRINTED_GRID,
    PRINTED_NOTES,
    PUBLISHED,
    PUBLISHED_ON,
    SOURCE,
    SYSTEMS,
    Grid,
    System,
)
from kernelcore.experiments.hodosh2013.words import (
    STAGE,
    Resources,
    Texts,
)
from kernelcore.experiments.scores import Scores, hub_corrected_name
from kernelcore.experiments.sections import printed_section
from kernelcore.experiments.steps import Step, compute_side_by_side, pending
from kernelcore.experiments.study import Study, StudyResults
from kernelcore.images import read_image
from kernelcore.report import Section, query_examples
from kernelcore.report.examples import Example

__all__ = [
    "GRID",
    "PRINTED",
    "PRINTED_GRID",
    "PUBLISHED",
    "SYSTEMS",
    "Grid",
    "Hodosh2013",
    "System",
    "run",
]


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
    printed_grid : Grid, default PRINTED_GRID
        The same for the systems as printed.
    wordnet_dir : path, default "/usr/share/wordnet"
        Folder of the WordNet database, for the similarity Lin.
    outside_corpus : path, optional
        Tagged text for the similarity D_out; the default is ``brown_tagged.txt`` in `data`
        or in ``brown`` beside it.
    spacy_model : str, optional
        Pipeline that tags captions for the similarity A (extra ``text``); the default is
        an English one that is installed.
    spelling : path, optional
        Text file of correct words, one a line, for the systems as printed. Without one
        their spelling is not corrected.
    """

    NAME = "hodosh2013"
    TITLE = f"Sentence-based image description, {SOURCE}"
    SYSTEMS, PRINTED, MAIN = SYSTEMS, PRINTED, BASELINE
    BEFORE = ("captions", "histograms of photos", STAGE, KERNELS, BASES)
    AFTER = ("judgments and tests",)

    pool: int = 2
    other_pool: int | None = 0
    grid: Grid = GRID
    printed_grid: Grid = PRINTED_GRID
    wordnet_dir: str | os.PathLike[str] = "/usr/share/wordnet"
    outside_corpus: str | os.PathLike[str] | None = None
    spacy_model: str | None = None
    spelling: str | os.PathLike[str] | None = None

    _resources: Resources = field(init=False, repr=False)
    _descriptions: Descriptions = field(init=False, repr=False)
    _kernels: dict[str, Kernels] = field(init=False, repr=False)
    _steps: dict[str, Step[Scores]] = field(init=False, repr=False)

    def stage_of(self, system: str) -> str:
        """Name of the stage that scores a system."""
        return f"scores of {system}"

    def prepare(self) -> None:
        """Read the corpus and compute the kernels and bases of all systems."""
        if self.spelling is not None and not Path(self.spelling).is_file():
            raise FileNotFoundError(
                "spelling must be a list of words, and there is no file "
                f"{os.fspath(self.spelling)}"
            )
        self._resources = Resources(
            self.wordnet_dir,
            self.outside_corpus or find_outside_corpus(self.data),
            self.spacy_model or english_pipeline(),
            self.spelling,
        )
        with self.stages.stage("captions"):
            self._descriptions = Descriptions(
                Corpus.read(self.data),
                self._resources,
                self.store,
                cache_dir=self.cache_dir,
                **self.shared,
            )
            grids = {self._kind(name): self._grid(name) for name in self.names}
            for grid in grids.values():
                self._check_captions(self._descriptions.captions(grid)[0])
        with self.stages.stage("histograms of photos"):
            self._kernels = {
                kind: self._descriptions.kernels(grid, pool=self.pool)
                for kind, grid in grids.items()
            }
        self._steps = {
            name: score(system, self.split, self._kernels[self._kind(name)])
            for name, system in self._systems.items()
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
        """Evaluate the scores, test differences and compare with judgments."""
        elsewhere: dict[str, Scores] = {}
        if self._other_pool is not None:
            with self.stages.stage(f"scores of {BASELINE}, pool #{self._other_pool}"):
                kernels = self._kernels["ours"].with_pool(self._other_pool)
                elsewhere[BASELINE] = score(SYSTEMS[BASELINE], self.split, kernels).value()
        with self.stages.stage("judgments and tests"):
            results = self._evaluate(scored, self.pool)
            dataset = self._descriptions.dataset
            pool = CaptionPool.of(dataset, self.split, self.pool)
            shown = {*scored, hub_corrected_name(BASELINE)}
            sections = list(self._comparisons(results))
            if any(name in SYSTEMS for name in scored):
                sections += make_sections(
                    [result for result in results if result.system in shown],
                    scored,
                    pool,
                    Judgments.of(self.data, pool),
                    elsewhere=[
                        result
                        for result in self._evaluate(elsewhere, self._other_pool)
                        if result.system in elsewhere
                    ],
                    n_threads=self.n_threads,
                )
        spelling = self._resources.spelling
        return StudyResults(
            self.TITLE,
            (*results, *(PUBLISHED if self._is_published else ())),
            self.stages,
            sections,
            examples=partial(_examples, scored, dataset, self.split, pool, self.n_threads),
            settings={
                **{
                    f"grid, {kind}": asdict(kernels.grid)
                    for kind, kernels in self._kernels.items()
                },
                "spaCy pipeline": self._resources.spacy_model,
                "outside corpus": self._resources.corpus_name,
                **(
                    {"spelling": None if spelling is None else Path(spelling).name}
                    if any(kernels.grid.spelling for kernels in self._kernels.values())
                    else {}
                ),
            },
            summary=(
                "Made by `kernelcore reproduce hodosh2013`. Systems are trained on all "
                "captions of an image and ranked on pools with one caption per image. For "
                "each system and task, the five best settings on dev by each of R@1, R@5 and "
                "R@10 (fifteen models) are combined by Borda's count."
                + (" These figures are of dev itself: they are optimistic.")
                * (self.split == "dev")
            ),
        )

    @property
    def _systems(self) -> dict[str, System]:
        """The systems of the run."""
        return {name: {**SYSTEMS, **PRINTED}[name] for name in self.names}

    @property
    def _is_published(self) -> bool:
        """Whether the run reports what the published figures are of."""
        return (self.split, f"caption #{self.pool}") == PUBLISHED_ON

    @property
    def _other_pool(self) -> int | None:
        """The number of the other pool, if it is measured."""
        is_whole = set(SYSTEMS) <= set(self.names)
        return self.other_pool if is_whole and self.other_pool != self.pool else None

    def _kind(self, name: str) -> str:
        """Name of the kernels that a system needs."""
        return "as printed" if name in PRINTED else "ours"

    def _grid(self, name: str) -> Grid:
        return self.printed_grid if name in PRINTED else self.grid

    def _check_captions(self, texts: Texts) -> None:
        """Check early that no caption, file or model is missing."""
        systems = self._systems.values()
        splits = ["dev", self.split, *(["train"] if any(s.single for s in systems) else [])]
        pools = [self.pool, *([] if self._other_pool is None else [self._other_pool])]
        for split, number in product(splits, pools):
            texts.check_pool(split, number)
        self._resources.check(name for system in systems for name in system.lexical)

    def _evaluate(self, scored: Mapping[str, Scores], pool: int | None) -> list[Result]:
        return [
            evaluate(
                annotation,
                search,
                system=variant,
                settings=own.settings,
                pool=f"caption #{pool}",
                protocol=SOURCE,
                dataset=self._descriptions.dataset.name,
                split=self.split,
                n_threads=self.n_threads,
            )
            for name, own in scored.items()
            for variant, annotation, search in own.variants(name)
        ]

    def _comparisons(self, results: Sequence[Result]) -> Iterator[Section]:
        """Tabulate the three rows of each system, and what the correction for hubs does."""
        published = {row.system: row for row in PUBLISHED} if self._is_published else {}
        three_rows = printed_section(results, published)
        notes = PRINTED_NOTES if self._resources.spelling else (*PRINTED_NOTES, NOT_CORRECTED)
        if three_rows is not None:
            yield replace(three_rows, paragraphs=(*three_rows.paragraphs, *notes))
        elif any(name in PRINTED for name in self.names):
            yield Section("As printed", notes)
        by_name = {result.system: result for result in results}
        corrected = hubs_section(by_name, n_threads=self.n_threads)
        if corrected is not None:
            yield corrected


run = Hodosh2013.reproduce


def _examples(
    scored: Mapping[str, Scores],
    dataset: CaptionedImages,
    split: str,
    pool: CaptionPool,
    n_threads: int | None,
) -> tuple[Example, ...]:
    """Good, typical and bad queries of the paper's best system, or of the last one."""
    name = BASELINE if BASELINE in scored else list(scored)[-1]
    rows = dataset.split(split)

    def pixels(i: int) -> Any:
        return read_image(cast("Path", dataset.paths[rows[i]]))

    shown = (pool.captions, pixels)
    named: dict[str, Any] = {"system": name, "n_threads": n_threads}
    return (
        *query_examples(scored[name].search, *shown, task="search", **named),
        *query_examples(scored[name].annotation, *shown, task="annotation", **named),
    )
