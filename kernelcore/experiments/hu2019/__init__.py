"""Binary image selection (Hu, Misra and van der Maaten, 2019).

Visual-semantic embeddings and stacked cross attention rank photos and captions, and tell
which of two photos a caption describes. Kernel CCA on the same features is a baseline that the
paper does not have.

Features, regions and training data are not those of the paper: see `CHOICES`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from kernelcore._validation import Array
from kernelcore.evaluation import ResultTable
from kernelcore.experiments.hu2019.kernels import (
    KERNEL_SYSTEMS,
    KernelModels,
)
from kernelcore.experiments.hu2019.systems import (
    BATCH_SIZE,
    CHOICES,
    PUBLISHED,
    PUBLISHED_SELECTIONS,
    SETTINGS,
    SOURCE,
    SYSTEMS,
    System,
)
from kernelcore.experiments.scores import Scores
from kernelcore.experiments.sections import choices_section
from kernelcore.experiments.steps import Source
from kernelcore.experiments.study import StudyResults
from kernelcore.experiments.training import (
    TrainedStudy,
    histories_of,
    identified,
    training_figures,
    training_section,
)
from kernelcore.images import read_image
from kernelcore.kernels.prepared import take
from kernelcore.report import Example, Section, annotation_examples, search_examples

__all__ = ["CHOICES", "KERNEL_SYSTEMS", "PUBLISHED", "SYSTEMS", "Hu2019", "System", "run"]

NUMBER = 2
"""Number of the caption of each image that is in the smaller pool, as in Hodosh et al."""


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
    SYSTEMS = (*KERNEL_SYSTEMS, *SYSTEMS)
    BEFORE = ("captions", "features of photos")
    SOURCE, SETTINGS, PUBLISHED = SOURCE, SETTINGS, PUBLISHED

    batch_size: int = BATCH_SIZE
    outside_corpus: str | os.PathLike[str] | None = None
    spacy_model: str | None = None

    _images: dict[str, Source[Any]] = field(init=False, repr=False)
    _kernels: KernelModels = field(init=False, repr=False)
    _left_out: dict[str, str] = field(init=False, repr=False)

    def prepare(self) -> None:
        """Read the corpus and compute features; leave out systems that cannot run here."""
        with self.stages.stage("captions"):
            self.read()
        with self.stages.stage("features of photos"):
            self.describe()
        self._images = {"photos": self.photos, "regions": identified(self.regions)}
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
        return super().score(name)

    def score_with(
        self, name: str, *, seed: int, split: str, change: Mapping[str, Any]
    ) -> Scores:
        """Train a network and score the photos and captions of a split."""
        system = SYSTEMS[name]
        params = {
            "n_epochs": system.n_epochs,
            **self.params,
            **system.options,
            "rng": seed,
            **change,
        }
        captions = {own: self.raw_captions(own) for own in ("train", "dev")}
        images = self._images[system.reads]
        ranker = self.train(
            system.kind(**params),
            images,
            captions,
            word_vectors=None if "n_embedding" in system.options else self.embeddings,
        )
        every, texts = images.value(), self.corpus.pools[split].texts
        chosen, known = (take(every, self.corpus.photos(own)) for own in (split, "train"))
        scores = ranker.scores(chosen, texts, n_threads=self.n_threads)
        bank = known, captions["train"].value()
        return Scores(
            scores,
            scores,
            {**params, "best_epoch": ranker.history_.best_epoch + 1},
            corrected=self.hub_corrected(ranker, scores, (chosen, texts), bank),
            history=ranker.history_,
        )

    def findings(self, scored: Mapping[str, Scores]) -> StudyResults:
        """Evaluate both pools and binary image selection."""
        results = self.evaluate(scored)
        shown = self.names[-1]
        return StudyResults(
            self.TITLE,
            (*results, *self.published),
            self.stages,
            sections=(
                *self.shared_sections(results, {}),
                self.selection_section(scored, published=PUBLISHED_SELECTIONS),
                *self._sections(scored),
            ),
            examples=partial(self._examples, shown, scored[shown]),
            figures=partial(training_figures, histories_of(scored)),
            settings=self.settings_of_run(
                self.n_epochs or {name: system.n_epochs for name, system in SYSTEMS.items()}
            ),
            summary=(
                "Made by `kernelcore reproduce hu2019`. All systems are trained on the same "
                "photos. They use all captions, except the kernel system of one caption. "
                "Pools have all captions of each image, and the rank of an image query is "
                "that of its best caption. Settings and epochs are chosen on dev."
            ),
        )

    def _sections(self, scored: Mapping[str, Scores]) -> Iterator[Section]:
        single = self.evaluate(scored, number=NUMBER)
        yield Section(
            "One caption per image in the pool",
            ("The pool has one caption of each image, the third, as in Hodosh et al.",),
            (ResultTable(single).to_table(),),
        )
        if self._left_out:
            lines = tuple(f"{name}: {what}." for name, what in self._left_out.items())
            yield Section("Left out", lines, ())
        histories = histories_of(scored)
        if histories:
            yield training_section(histories)
        yield choices_section(CHOICES)

    def _examples(self, name: str, scored: Scores) -> tuple[Example, ...]:
        """Good, typical and bad queries of a system in the pool of one caption."""
        pool = self.corpus.pools[self.split]
        photos = np.unique(pool.photos)
        columns = np.flatnonzero(pool.numbers == NUMBER)
        rows = np.searchsorted(photos, pool.photos[columns])
        captions = [pool.texts[column] for column in columns]

        def pixels(i: int) -> Array:
            return read_image(self.corpus.files[int(photos[rows[i]])])

        named: dict[str, Any] = {"system": name, "n_threads": self.n_threads}
        search, annotation = (
            part[rows][:, columns] for part in (scored.search, scored.annotation)
        )
        return (
            *search_examples(search, captions, pixels, **named),
            *annotation_examples(annotation, captions, pixels, **named),
        )


run = Hu2019.reproduce
