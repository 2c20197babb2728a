"""Deep fragment embeddings (Karpathy, Joulin and Fei-Fei, NIPS 2014).

Regions of photos and fragments of captions are embedded into one space and trained to align;
photos and captions are then ranked by their alignments. Beside the paper's model run its
ablations and the two systems that it compares with, DeViSE and SDT-RNN, on the same features.

Features, regions and word vectors are not those of the paper: see
docs/experiments/karpathy2014.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from kernelcore.captions.normalize import english_pipeline
from kernelcore.deep import FragmentRanker
from kernelcore.evaluation import ResultTable, Table
from kernelcore.experiments.karpathy2014.alignments import Alignments
from kernelcore.experiments.karpathy2014.captions import FragmentSteps
from kernelcore.experiments.karpathy2014.findings import parts_section
from kernelcore.experiments.karpathy2014.published import (
    PUBLISHED,
    PUBLISHED_FIRST,
    SOURCE,
)
from kernelcore.experiments.karpathy2014.systems import (
    BATCH_SIZE,
    FULL,
    PRINTED,
    RANDOM,
    SETTINGS,
    SYSTEMS,
    System,
    Words,
)
from kernelcore.experiments.scores import Scores
from kernelcore.experiments.sections import (
    histories_of,
    training_figures,
    training_section,
)
from kernelcore.experiments.steps import Source, compute
from kernelcore.experiments.study import StudyResults
from kernelcore.experiments.training import (
    TrainedStudy,
)
from kernelcore.images import RegionFeatures
from kernelcore.images.regions import Pooling
from kernelcore.lexical import WordVectors, join_word_vectors
from kernelcore.models import ChanceRanker
from kernelcore.report import Section

__all__ = ["PRINTED", "PUBLISHED", "SYSTEMS", "Karpathy2014", "System", "run"]

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
    MAIN = FULL
    BEFORE = ("captions", "regions of photos")
    NUMBER = 0
    SOURCE, SETTINGS, PUBLISHED = SOURCE, SETTINGS, PUBLISHED

    batch_size: int = BATCH_SIZE
    spacy_model: str | None = None

    _words: dict[Words, WordVectors] = field(init=False, repr=False)
    _captions: dict[Words, FragmentSteps] = field(init=False, repr=False)
    _seen: tuple[Pooling | None, Source[RegionFeatures] | None] = field(init=False, repr=False)

    def prepare(self) -> None:
        """Read the corpus, parse the captions and compute the features of regions."""
        with self.stages.stage("captions"):
            self.read()
            texts = {split: pool.texts for split, pool in self.corpus.pools.items()}
            both = join_word_vectors(self.vectors, self.corpus.learned_vectors(self.store))
            self._words = {
                # vectors of length 1 train slowly
                "joined": WordVectors(both.words, _LENGTH * both.vectors),
                "pretrained": self.vectors,
            }
            self._captions = {
                words: FragmentSteps(
                    texts,
                    vectors.words,
                    self.store,
                    spacy_model=self.spacy_model or english_pipeline(),
                    **self.shared,
                )
                for words, vectors in self._words.items()
            }
            wanted = [self._system(name) for name in self.names if name != RANDOM]
            compute(
                self._captions[own.words].step(own.captions, split)
                for own in wanted
                for split in ("train", "dev", self.split)
            )
        with self.stages.stage("regions of photos"):
            self.describe()
            self._seen = None, None
            for pooling in {own.pooling or self.pooling for own in wanted} - {self.pooling}:
                self.regions_by(pooling)

    def _trained(self, name: str) -> FragmentRanker:
        """Train a system."""
        system = self._system(name)
        params = {**self.params, **system.options, "n_epochs": system.n_epochs}
        ranker: FragmentRanker = self.train(
            FragmentRanker(**params),
            self._described(system),
            {
                split: self._captions[system.words].step(system.captions, split)
                for split in ("train", "dev")
            },
            word_vectors=self._words[system.words],
        )
        return ranker

    def score(self, name: str) -> Scores:
        """Train a system and score the photos and captions of the split."""
        if name == RANDOM:
            return self._random_scores()
        system, ranker = self._system(name), self._trained(name)
        captions = {
            own: self._captions[system.words].step(system.captions, own)
            for own in (self.split, "train")
        }
        regions = self._described(system)
        images = regions.value().select(self.corpus.photos(self.split))
        new = captions[self.split].value()
        scores = ranker.scores(images, new, n_threads=self.n_threads)
        known = regions.value(), captions["train"].value()
        corrected = self.hub_corrected(ranker, scores, (images, new), known)
        settings = {
            **ranker.get_params(),
            "captions": system.captions,
            "words": system.words,
            "pooling": system.pooling,
            "best_epoch": ranker.history_.best_epoch + 1,
        }
        return Scores(
            scores, scores, settings, corrected, history=ranker.history_, ranker=ranker
        )

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
                *self.shared_sections(results, published, pool),
                *([] if parts is None else [parts]),
                self.selection_section(scored),
                *self._sections(scored),
            ),
            figures=lambda: [
                *training_figures(histories_of(scored)),
                *([] if drawn is None else drawn.figures()),
            ],
            settings=self.settings_of_run(
                {name: self._system(name).n_epochs for name in scored}
            ),
            summary=(
                "Made by `kernelcore reproduce karpathy2014`. All systems are trained on the "
                "same regions of the photos and on all captions. Pools have all captions of "
                "each image, and the rank of an image query is that of its best caption. "
                "The best epoch on dev is kept."
            ),
        )

    def settings_of(self, name: str) -> dict[str, Any]:
        """Return the parameters of a system, its captions, words and regions."""
        params = {**self.params, **self._system(name).options, "device": None}
        return {**params, **asdict(self._system(name)), "options": None}

    def _random_scores(self) -> Scores:
        photos, texts = self.corpus.photos(self.split), self.corpus.pools[self.split].texts
        scores = ChanceRanker(self.rng).scores(photos, texts)
        return Scores(scores, scores, {"rng": self.rng})

    def _system(self, name: str) -> System:
        """Return a system with what the options of the run say."""
        system = _ALL[name]
        return replace(
            system,
            pooling=system.pooling or self.pooling,
            n_epochs=self.n_epochs or system.n_epochs,
        )

    def _described(self, system: System) -> Source[RegionFeatures]:
        """Return the regions as a system sees them; those of the last system are kept."""
        pooling = system.pooling or self.pooling
        if self._seen[0] != pooling:
            self._seen = pooling, None  # frees a gigabyte
            self._seen = pooling, self._describe_by(pooling)
        assert self._seen[1] is not None, "made above"
        return self._seen[1]

    def _describe_by(self, pooling: Pooling) -> Source[RegionFeatures]:
        """Make the regions, of which the first has the features of the whole photo.

        The key is a digest of boxes and of the features of the first and last region of each
        photo. One of all features would read a gigabyte.
        """
        regions = self.regions if pooling == self.pooling else self.regions_by(pooling)
        starts, ends = regions.offsets[:-1], regions.offsets[1:]
        if pooling == "map":
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
        system, own = self._system(name), scored[name]
        return Alignments(
            system,
            own.ranker,
            own.annotation,
            pool=self.corpus.pools[self.split],
            captions=self._captions[system.words],
            split=self.split,
            regions=self._described(system).value(),
            files=self.corpus.files,
            n_threads=self.n_threads,
        )

    def _sections(self, scored: Mapping[str, Scores]) -> Iterator[Section]:
        first = self.evaluate(scored, number=self.NUMBER)
        rows = [*first, *(PUBLISHED_FIRST if self.split == "test" else ())]
        yield Section(
            "One caption per image in the pool",
            ("The pool has one caption of each image, as in Hodosh et al.; here the first.",),
            (ResultTable(rows).to_table(),),
        )
        names = tuple((name, _ALL[name].published) for name in scored)
        table = Table(columns=("here", "the paper's table"), rows=names, n_labels=2)
        yield Section("Names in the paper", (), (table,))
        yield training_section(histories_of(scored))


run = Karpathy2014.reproduce
