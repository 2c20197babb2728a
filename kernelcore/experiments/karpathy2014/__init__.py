"""Deep fragment embeddings (Karpathy, Joulin and Fei-Fei, NIPS 2014).

Regions of photos and fragments of captions are embedded into one space and trained to align;
photos and captions are then ranked by their alignments. Beside the paper's model run its
ablations and the two systems that it compares with, DeViSE and SDT-RNN, on the same features.

Features, regions and word vectors are not those of the paper: see `CHOICES`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import numpy as np

from kernelcore.captions.normalize import english_pipeline
from kernelcore.deep import FragmentRanker
from kernelcore.evaluation import ResultTable, Table
from kernelcore.experiments.karpathy2014.alignments import Alignments
from kernelcore.experiments.karpathy2014.captions import FragmentSteps
from kernelcore.experiments.karpathy2014.findings import epochs_section, parts_section
from kernelcore.experiments.karpathy2014.published import (
    CHOICES,
    PUBLISHED,
    PUBLISHED_FIRST,
    SOURCE,
)
from kernelcore.experiments.karpathy2014.systems import (
    ADDITIONS,
    BATCH_SIZE,
    FULL,
    PRINTED,
    RANDOM,
    SETTINGS,
    SYSTEMS,
    FirstRegion,
    System,
)
from kernelcore.experiments.scores import Scores
from kernelcore.experiments.sections import choices_section
from kernelcore.experiments.steps import Source, compute
from kernelcore.experiments.study import StudyResults
from kernelcore.experiments.training import (
    TrainedStudy,
    histories_of,
    training_figures,
    training_section,
)
from kernelcore.images import RegionFeatures
from kernelcore.images.regions import Pooling
from kernelcore.lexical import WordVectors
from kernelcore.models import ChanceRanker
from kernelcore.report import Section

__all__ = ["CHOICES", "PRINTED", "PUBLISHED", "SYSTEMS", "Karpathy2014", "System", "run"]

FIRST = 0
"""Number of the caption of each image that is in the smaller pool."""

_ALL = {**SYSTEMS, **PRINTED}
_LENGTH = 4.0  # vectors of length 1, as of `Corpus.embeddings`, train slowly


@dataclass(kw_only=True)
class Karpathy2014(TrainedStudy[Scores]):
    """The study of Karpathy et al. (2014); `TrainedStudy` documents its other options.

    The cache also holds parsed captions.

    Parameters
    ----------
    spacy_model : str, optional
        Pipeline that parses captions (extra ``text``); the default is an English one that is
        installed.
    """

    NAME = "karpathy2014"
    TITLE = f"Deep fragment embeddings, {SOURCE}"
    SYSTEMS = SYSTEMS
    PRINTED = PRINTED
    ADDITIONS = ADDITIONS
    MAIN = FULL
    BEFORE = ("captions", "regions of photos")
    SOURCE, SETTINGS, PUBLISHED = SOURCE, SETTINGS, PUBLISHED

    batch_size: int = BATCH_SIZE
    spacy_model: str | None = None

    _captions: FragmentSteps = field(init=False, repr=False)
    _described: Callable[[Pooling, FirstRegion], Source[RegionFeatures]] = field(
        init=False, repr=False
    )

    def prepare(self) -> None:
        """Read the corpus, parse the captions and compute the features of regions."""
        with self.stages.stage("captions"):
            self.read()
            texts = {split: pool.texts for split, pool in self.corpus.pools.items()}
            self._captions = FragmentSteps(
                texts,
                self.embeddings.words,
                self.store,
                spacy_model=self.spacy_model or english_pipeline(),
                **self.shared,
            )
            compute(
                self._captions.step(_ALL[name].captions, split)
                for name in self.names
                for split in ("train", "dev", self.split)
                if name != RANDOM
            )
        with self.stages.stage("regions of photos"):
            self.describe()
            self._described = lru_cache(1)(self._describe_as)  # one takes a gigabyte

    def _score_with(
        self, name: str, *, seed: int, split: str, change: Mapping[str, Any]
    ) -> Scores:
        """Train a system and score the photos and captions of a split."""
        if name == RANDOM:
            return self._random_scores(seed, split)
        system = _ALL[name].changed(change)
        params = {"n_epochs": system.n_epochs, **self.params, **system.options, "rng": seed}
        captions = {
            own: self._captions.step(system.captions, own)
            for own in dict.fromkeys(("train", "dev", split))
        }
        seen = system.pooling or self.pooling, system.first_region
        regions = self._described(*seen)
        ranker = self.train(
            FragmentRanker(**params), regions, captions, word_vectors=self._words_of(system)
        )
        images, known = (
            regions.value().select(self.corpus.photos(own)) for own in (split, "train")
        )
        new = captions[split].value()
        scores = ranker.scores(images, new, n_threads=self.n_threads)
        bank = known, captions["train"].value()
        corrected = self.hub_corrected(ranker, scores, (images, new), bank)
        settings = {
            **params,
            "captions": system.captions,
            "words": system.words,
            "pooling": seen[0],
            "first_region": seen[1],
            "best_epoch": ranker.history_.best_epoch + 1,
        }
        found = Scores(
            scores, scores, settings, corrected, history=ranker.history_, ranker=ranker
        )
        if not system.hubs_corrected:
            return found
        return replace(found, annotation=corrected[0], search=corrected[1], corrected=None)

    def findings(self, scored: Mapping[str, Scores]) -> StudyResults:
        """Evaluate both pools and draw alignments of one system."""
        results = self.evaluate(scored)
        rows = {row.system: row for row in self.published}
        published = {
            name: rows[own.published] for name, own in SYSTEMS.items() if own.published in rows
        }
        pool = self.corpus.pools[self.split]
        parts = parts_section(results, self.published, pool)
        drawn = self._alignments(scored)
        return StudyResults(
            self.TITLE,
            (*results, *self.published),
            self.stages,
            sections=(
                *self.shared_sections(results, published),
                *([] if parts is None else [parts]),
                self.selection_section(scored),
                *self._sections(scored),
            ),
            figures=lambda: [
                *training_figures(histories_of(scored)),
                *([] if drawn is None else drawn.figures()),
            ],
            settings=self.settings_of_run(
                {name: _ALL[name].n_epochs for name in scored}
                if self.n_epochs is None
                else self.n_epochs
            ),
            summary=(
                "Made by `kernelcore reproduce karpathy2014`. All systems are trained on the "
                "same regions of the photos and on all captions. Pools have all captions of "
                "each image, and the rank of an image query is that of its best caption. "
                "The best epoch on dev is kept."
            ),
        )

    def _random_scores(self, seed: int, split: str) -> Scores:
        pool = self.corpus.pools[split]
        scores = ChanceRanker(seed).scores(self.corpus.photos(split), pool.texts)
        return Scores(scores, scores, {"rng": seed})

    def _words_of(self, system: System) -> WordVectors:
        """Return vectors of the words of the captions; zeros stand for a word without one."""
        own = self.embeddings
        if system.words == "joined":
            return WordVectors(own.words, _LENGTH * own.vectors)
        rows = np.zeros((len(own), self.vectors.n_dimensions))
        known = [i for i, word in enumerate(own.words) if word in self.vectors]
        rows[known] = [self.vectors[own.words[i]] for i in known]
        return WordVectors(own.words, rows)

    def _describe_as(
        self, pooling: Pooling, first_region: FirstRegion
    ) -> Source[RegionFeatures]:
        """Return the regions as a system sees them.

        The key is a digest of boxes and of the features of the first and last region of each
        photo. One of all features would read a gigabyte.
        """
        regions = self.regions
        if pooling != self.pooling:
            regions = self.corpus.regions(
                network=self.network,
                pooling=pooling,
                device=self.device,
                cache_dir=self.cache_dir,
                **self.shared,
            )
        starts, ends = regions.offsets[:-1], regions.offsets[1:]
        if pooling == "map" and first_region == "photo":
            features = np.array(regions.features)
            features[starts] = self.whole
            regions = replace(regions, features=features)
        identity = regions.boxes, regions.features[starts], regions.features[ends - 1]
        return Source(regions, *identity)

    def _alignments(self, scored: Mapping[str, Scores]) -> Alignments | None:
        """Return what draws alignments: of the full model, or else of the last system."""
        trained = [name for name, own in scored.items() if own.ranker is not None]
        if not trained:
            return None
        name = FULL if FULL in trained else trained[-1]
        system, own = _ALL[name], scored[name]
        return Alignments(
            system,
            own.ranker,
            own.annotation,
            pool=self.corpus.pools[self.split],
            captions=self._captions,
            split=self.split,
            regions=self._described(
                system.pooling or self.pooling, system.first_region
            ).value(),
            files=self.corpus.files,
            n_threads=self.n_threads,
        )

    def _sections(self, scored: Mapping[str, Scores]) -> Iterator[Section]:
        first = self.evaluate(scored, number=FIRST)
        rows = [*first, *(PUBLISHED_FIRST if self.split == "test" else ())]
        yield Section(
            "One caption per image in the pool",
            ("The pool has one caption of each image, as in Hodosh et al.; here the first.",),
            (ResultTable(rows).to_table(),),
        )
        names = tuple((name, _ALL[name].published) for name in scored)
        table = Table(columns=("here", "the paper's table"), rows=names, n_labels=2)
        yield Section("Names in the paper", (), (table,))
        histories = histories_of(scored)
        yield training_section(histories)
        as_printed = {name: own for name, own in histories.items() if name in PRINTED}
        if as_printed:
            yield epochs_section(as_printed)
        yield choices_section(CHOICES)


run = Karpathy2014.reproduce
