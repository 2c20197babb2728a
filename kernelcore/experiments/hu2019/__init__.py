"""Binary image selection (Hu, Misra and van der Maaten, 2019).

Visual-semantic embeddings and stacked cross attention rank photos and captions, and tell
which of two photos a caption describes. Kernel CCA on the same features is a baseline that the
paper does not have. Captioners write captions, and select photos by the likelihood of a
caption.

Features, regions and training data are not those of the paper: see docs/experiments/hu2019.md.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from kernelcore._check import Array
from kernelcore._ragged import take
from kernelcore.evaluation import Result, ResultTable
from kernelcore.experiments.hu2019.beside_retrieval import (
    accepted_section,
    correlation_section,
)
from kernelcore.experiments.hu2019.captioners import captioner_sections
from kernelcore.experiments.hu2019.kernels import (
    KERNEL_SYSTEMS,
    KernelModels,
)
from kernelcore.experiments.hu2019.systems import (
    BATCH_SIZE,
    CAPTIONER,
    MAIN,
    PUBLISHED,
    PUBLISHED_ROWS,
    PUBLISHED_SELECTIONS,
    SETTINGS,
    SOURCE,
    SYSTEMS,
    System,
)
from kernelcore.experiments.judged import Questions
from kernelcore.experiments.metric_agreement import agreement_section
from kernelcore.experiments.scores import Scores
from kernelcore.experiments.sections import (
    histories_of,
    training_figures,
    training_section,
)
from kernelcore.experiments.steps import Source
from kernelcore.experiments.study import StudyResults
from kernelcore.experiments.training import (
    TrainedStudy,
    identified,
)
from kernelcore.images import read_image
from kernelcore.report import Section, query_examples
from kernelcore.report.examples import Example

__all__ = [
    "CAPTIONER",
    "KERNEL_SYSTEMS",
    "PUBLISHED",
    "SYSTEMS",
    "Hu2019",
    "System",
    "run",
]

_ABOUT = (
    "Made by `kernelcore reproduce hu2019`. All systems are trained on the same photos. They "
    "use all captions, except the kernel system of one caption. The five systems of the paper "
    "are trained by one recipe, and the best epoch on dev is kept. In an earlier version of "
    "this page, two of the five had been trained again with better word embeddings after a "
    "look at their results on test; here all five are trained anew. Pools have all captions "
    "of each image, and the rank of an image query is that of its best caption."
)


@dataclass(kw_only=True)
class Hu2019(TrainedStudy[Scores]):
    """The study of Hu et al. (2019); `TrainedStudy` documents its other options.

    The default of `systems` is all that can run here. The cache also holds Gram matrices.

    Parameters
    ----------
    outside_corpus : path, optional
        Tagged text for a word similarity of the kernel systems; the default is
        ``brown_tagged.txt`` in `data` or in ``brown`` beside it.
    spacy_model : str, optional
        Pipeline that tags captions for the kernel systems (extra ``text``); the default is an
        English one that is installed.
    """

    NAME = "hu2019"
    TITLE = f"Embeddings, cross attention and binary image selection, {SOURCE}"
    SYSTEMS = (*KERNEL_SYSTEMS, *SYSTEMS, CAPTIONER)
    MAIN = MAIN
    BEFORE = ("captions", "features of photos")
    AFTER = (CAPTIONER,)
    NUMBER = 2  # as in Hodosh et al.
    SOURCE, SETTINGS, PUBLISHED = SOURCE, SETTINGS, PUBLISHED

    batch_size: int = BATCH_SIZE
    outside_corpus: str | os.PathLike[str] | None = None
    spacy_model: str | None = None

    _kernels: KernelModels = field(init=False, repr=False)
    _writes: bool = field(init=False, repr=False)
    _left_out: dict[str, str] = field(init=False, repr=False)

    def check(self) -> None:
        """Check the options, and tell the system that writes captions from the others."""
        super().check()
        self._writes = CAPTIONER in self.names
        self.names = [name for name in self.names if name != CAPTIONER]
        if not self.names:
            raise ValueError(
                f"systems must hold one that ranks photos and captions, got {CAPTIONER} alone"
            )

    def prepare(self) -> None:
        """Read the corpus and compute features; leave out systems that cannot run here."""
        if not self._writes:
            self.stages.leave_out({CAPTIONER})
        with self.stages.stage("captions"):
            self.read()
        with self.stages.stage("features of photos"):
            self.describe()
        self._left_out = {}
        if any(name in KERNEL_SYSTEMS for name in self.names):
            with self.stages.stage("words of captions"):
                self._kernels = KernelModels(
                    self.corpus,
                    self.photos.value(),
                    self.store,
                    outside_corpus=self.outside_corpus,
                    spacy_model=self.spacy_model,
                    **self.shared,
                )
            lacks = self._kernels.left_out
            self._left_out = {name: lacks[name] for name in self.names if name in lacks}
        self.names = [name for name in self.names if name not in self._left_out]
        if not self.names:
            reasons = "; ".join(f"{name}: {what}" for name, what in self._left_out.items())
            raise ValueError(f"systems must hold one that can run here, got {reasons}")

    def score(self, name: str) -> Scores:
        """Train a system and score the photos and captions of the split."""
        if name in KERNEL_SYSTEMS:
            return self._kernels.scores(name, self.split)
        ranker = self._trained(name)
        every = self._described(SYSTEMS[name]).value()
        texts = self.corpus.pools[self.split].texts
        chosen = take(every, self.corpus.photos(self.split))
        scores = ranker.scores(chosen, texts, n_threads=self.n_threads)
        known = every, self.raw_captions("train").value()
        corrected = self.hub_corrected(ranker, scores, (chosen, texts), known)
        history = ranker.history_
        settings = {**ranker.get_params(), "best_epoch": history.best_epoch + 1}
        return Scores(scores, scores, settings, corrected=corrected, history=history)

    def settings_of(self, name: str) -> dict[str, Any]:
        """Return the parameters of a network; those of kernel CCA are chosen on dev."""
        if name in KERNEL_SYSTEMS:
            return {"outside_corpus": str(self.outside_corpus), "spacy": str(self.spacy_model)}
        own = SYSTEMS[name]
        return {**self.params, **own.options, "device": None, "images": own.images}

    def _trained(self, name: str) -> Any:
        """Train a network."""
        system = SYSTEMS[name]
        return self.train(
            system.kind(**{**self.params, **system.options}),
            self._described(system),
            {own: self.raw_captions(own) for own in ("train", "dev")},
            word_vectors=self.embeddings,
        )

    def findings(self, scored: Mapping[str, Scores]) -> StudyResults:
        """Evaluate both pools, binary image selection and captions that are written."""
        results = self.evaluate(scored)
        shown = self.MAIN if self.MAIN in scored else self.names[0]
        rows = {
            name: replace(row, source=f"{SOURCE}, COCO-1K")
            for name, row in PUBLISHED_ROWS.items()
        }
        return StudyResults(
            self.TITLE,
            (*results, *self.published),
            self.stages,
            sections=(
                *self.shared_sections(
                    results,
                    rows if self.published else {},
                    self.corpus.pools[self.split],
                ),
                *self._sections(scored, results),
            ),
            examples=partial(self._examples, shown, scored[shown]),
            figures=partial(training_figures, histories_of(scored)),
            settings=self.settings_of_run(self.params["n_epochs"]),
            summary=_ABOUT,
        )

    def _described(self, system: System) -> Source[Any]:
        """Return the photos as a system reads them."""
        return self.photos if system.images == "photos" else identified(self.regions)

    def _sections(
        self, scored: Mapping[str, Scores], results: Sequence[Result]
    ) -> Iterator[Section]:
        pool = self.corpus.pools[self.split]
        variants = [one for name, own in scored.items() for one in own.variants(name)]
        search = {name: scores for name, _, scores in variants}
        questions = self._questions
        by_caption = questions.results(search)
        yield questions.section(
            by_caption, published=PUBLISHED_SELECTIONS if self.published else ()
        )
        own = {result.system: result for result in results if result.system in scored}
        yield from filter(
            None,
            (
                correlation_section(own, by_caption),
                accepted_section(search, questions, pool, self.NUMBER),
            ),
        )
        yield from self._caption_sections(questions)
        yield Section(
            "One caption per image in the pool",
            ("The pool has one caption of each image, the third, as in Hodosh et al.",),
            (ResultTable(self.evaluate(scored, number=self.NUMBER)).to_table(),),
        )
        if self._left_out:
            lines = tuple(f"{name}: {what}." for name, what in self._left_out.items())
            yield Section("Left out", lines, ())
        histories = histories_of(scored)
        if histories:
            yield training_section(histories)

    def _caption_sections(self, questions: Questions) -> Iterator[Section]:
        """Train the captioner and measure what it writes, beside people's verdicts."""
        if not self._writes:
            return
        with self.stages.stage(CAPTIONER):
            yield from captioner_sections(self, questions, self.NUMBER)
            agreement = agreement_section(self.corpus, self.store)
        if agreement is not None:
            yield agreement

    def _examples(self, name: str, scored: Scores) -> tuple[Example, ...]:
        """Good, typical and bad queries of a system in the pool of one caption."""
        pool = self.corpus.pools[self.split]
        photos = np.unique(pool.photos)
        columns = np.flatnonzero(pool.numbers == self.NUMBER)
        rows = np.searchsorted(photos, pool.photos[columns])
        captions = [pool.texts[column] for column in columns]

        def pixels(i: int) -> Array:
            return read_image(self.corpus.files[int(photos[rows[i]])])

        named: dict[str, Any] = {"system": name, "n_threads": self.n_threads}
        search, annotation = (
            part[rows][:, columns] for part in (scored.search, scored.annotation)
        )
        return (
            *query_examples(search, captions, pixels, task="search", **named),
            *query_examples(annotation, captions, pixels, task="annotation", **named),
        )


run = Hu2019.reproduce
