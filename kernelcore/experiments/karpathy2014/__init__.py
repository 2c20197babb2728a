"""Deep fragment embeddings (Karpathy, Joulin and Fei-Fei, NIPS 2014).

Regions of photos and fragments of captions are embedded into one space and trained to align;
photos and captions are then ranked by their alignments. Beside the paper's model run its
ablations and the two systems that it compares with, DeViSE and SDT-RNN, on the same features.

Features, regions and word vectors are not those of the paper: see `CHOICES`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from kernelcore.captions import SentenceFragments
from kernelcore.captions.encoded import offsets_of
from kernelcore.captions.normalize import english_pipeline
from kernelcore.deep import FragmentRanker
from kernelcore.evaluation import ResultTable, Table
from kernelcore.experiments.karpathy2014.captions import FragmentSteps
from kernelcore.experiments.karpathy2014.systems import (
    BATCH_SIZE,
    CHOICES,
    FULL,
    N_EPOCHS,
    PUBLISHED,
    PUBLISHED_FIRST,
    SETTINGS,
    SOURCE,
    SYSTEMS,
    TRIPLETS,
    System,
)
from kernelcore.experiments.scores import Scores
from kernelcore.experiments.sections import choices_section
from kernelcore.experiments.steps import compute
from kernelcore.experiments.study import StudyResults
from kernelcore.experiments.training import (
    TrainedStudy,
    histories_of,
    identified,
    training_figures,
    training_section,
)
from kernelcore.images import read_image
from kernelcore.report import ReportFigure, Section, aligned_regions, found_regions

__all__ = ["CHOICES", "PUBLISHED", "SYSTEMS", "Karpathy2014", "System", "run"]

FIRST = 0
"""Number of the caption of each image that is in the smaller pool."""

_N_PHOTOS = 3
_N_REGIONS = 6


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
    MAIN = FULL
    BEFORE = ("captions", "regions of photos")
    SOURCE, SETTINGS, PUBLISHED = SOURCE, SETTINGS, PUBLISHED

    n_epochs: int = N_EPOCHS
    batch_size: int = BATCH_SIZE
    spacy_model: str | None = None

    _captions: FragmentSteps = field(init=False, repr=False)

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
                self._captions.step(SYSTEMS[name].captions, split)
                for name in self.names
                for split in ("train", "dev", self.split)
            )
        with self.stages.stage("regions of photos"):
            self.describe()

    def score_with(
        self, name: str, *, seed: int, split: str, change: Mapping[str, Any]
    ) -> Scores:
        """Train a system and score the photos and captions of a split."""
        system = SYSTEMS[name]
        params = {**self.params, **system.options, "rng": seed, **change}
        captions = {
            own: self._captions.step(system.captions, own)
            for own in dict.fromkeys(("train", "dev", split))
        }
        ranker = self.train(
            FragmentRanker(**params),
            identified(self.regions),
            captions,
            word_vectors=self.embeddings,
        )
        photos, new = np.unique(self.corpus.pools[split].photos), captions[split].value()
        images = self.regions.select(photos)
        scores = ranker.scores(images, new, n_threads=self.n_threads)
        bank = self.regions.select(self.corpus.photos("train")), captions["train"].value()
        best_epoch = ranker.history_.best_epoch + 1
        return Scores(
            scores,
            scores,
            {**params, "captions": system.captions, "best_epoch": best_epoch},
            corrected=self.hub_corrected(ranker, scores, (images, new), bank),
            history=ranker.history_,
            ranker=ranker,
        )

    def findings(self, scored: Mapping[str, Scores]) -> StudyResults:
        """Evaluate both pools and draw alignments of one system."""
        shown = FULL if FULL in scored else self.names[-1]
        drawn = _Alignments(self, SYSTEMS[shown].captions, scored[shown])
        results = self.evaluate(scored)
        by_name = {row.system: row for row in self.published}
        rows = {
            name: by_name[own.published]
            for name, own in SYSTEMS.items()
            if own.published in by_name
        }
        return StudyResults(
            self.TITLE,
            (*results, *self.published),
            self.stages,
            sections=(
                *self.shared_sections(results, rows),
                self.selection_section(scored),
                *self._sections(scored),
            ),
            figures=lambda: [*training_figures(histories_of(scored)), *drawn.figures()],
            settings=self.settings_of_run(self.n_epochs),
            summary=(
                "Made by `kernelcore reproduce karpathy2014`. All systems are trained on the "
                "same regions of the photos and on all captions. Pools have all captions of "
                "each image, and the rank of an image query is that of its best caption. "
                "Settings and epochs are chosen on dev."
            ),
        )

    def _sections(self, scored: Mapping[str, Scores]) -> Iterator[Section]:
        first = self.evaluate(scored, number=FIRST)
        rows = [*first, *(PUBLISHED_FIRST if self.split == "test" else ())]
        yield Section(
            "One caption per image in the pool",
            ("The pool has one caption of each image, as in Hodosh et al.; here the first.",),
            (ResultTable(rows).to_table(),),
        )
        names = tuple((name, SYSTEMS[name].published) for name in scored)
        table = Table(columns=("here", "the paper's table"), rows=names, n_labels=2)
        yield Section("Names in the paper", (), (table,))
        yield training_section(histories_of(scored))
        yield choices_section(CHOICES)


run = Karpathy2014.reproduce


class _Alignments:
    """Figures of the regions that one system aligns with fragments of captions.

    Everything that a figure needs is loaded here, because a study without a cache deletes its
    files before the figures are drawn.
    """

    def __init__(self, study: Karpathy2014, kind: str, scored: Scores) -> None:
        self._scored, self._kind, self._n_threads = scored, kind, study.n_threads
        self._files, self._regions = study.corpus.files, study.regions
        self._pool = study.corpus.pools[study.split]
        self._is_drawn = kind != "trees" and scored.ranker.regions == "all"
        if self._is_drawn:
            self._fragments: Any = study._captions.step(kind, study.split).value()
            self._extractor = study._captions.extractor(kind)
            self._vocabulary = study._captions.vocabulary

    def figures(self) -> list[ReportFigure]:
        """Draw regions of the fragments of some captions, and regions of some fragments."""
        if not self._is_drawn:
            return []
        drawn = [self._aligned(column) for column in self._well_ranked()]
        if self._kind == "dependencies":
            photos = np.unique(self._pool.photos)
            for triplet in TRIPLETS:
                fragment = self._fragment(*triplet)
                if fragment is not None:
                    drawn.append(self._found(_text(triplet), fragment, photos))
        return drawn

    def _aligned(self, column: int) -> ReportFigure:
        """Draw the best regions of the fragments of a caption in its photo."""
        photo = int(self._pool.photos[column])
        caption = self._fragments.select([column])
        (products,) = self._scored.ranker.alignments(
            self._regions.select([photo]), caption, n_threads=self._n_threads
        )
        start, end = self._regions.offsets[photo : photo + 2]
        return aligned_regions(
            read_image(self._files[photo]),
            self._regions.boxes[start:end],
            products,
            [_text(fragment) for fragment in self._extractor.decode(caption)[0]],
            title=self._pool.texts[column],
        )

    def _fragment(self, relation: str, head: str, dependent: str) -> SentenceFragments | None:
        """Return a fragment as a caption of its own, or None if its words are unknown."""
        relations, index = self._extractor.relations_, self._vocabulary.index
        if relation not in relations or not {head, dependent} <= set(index):
            return None
        ids = relations.index(relation), index[head], index[dependent]
        kinds, heads, dependents = np.array(ids, np.int32)[:, np.newaxis]
        return SentenceFragments(
            kinds,
            heads,
            dependents,
            offsets_of([1]),
            n_relations=len(relations),
            n_words=len(self._vocabulary),
        )

    def _found(
        self, text: str, fragment: SentenceFragments, photos: npt.NDArray[np.intp]
    ) -> ReportFigure:
        """Draw the best regions of a fragment among all photos of the split."""
        part = self._regions.select(photos)
        found = self._scored.ranker.search_regions(
            part, fragment, k=_N_REGIONS, n_threads=self._n_threads
        )
        return found_regions(
            [read_image(self._files[int(photos[match.image])]) for match in found],
            [part.boxes[part.offsets[match.image] + match.region] for match in found],
            [match.score for match in found],
            title=f"Regions for {text}",
        )

    def _well_ranked(self) -> list[int]:
        """Captions of different photos that rank their photo first with the best scores."""
        scores = self._scored.search
        owners = np.unique(self._pool.photos, return_inverse=True)[1]
        columns = np.arange(len(owners))
        right = np.flatnonzero(scores.argmax(axis=0) == owners)
        order = right[np.argsort(-scores[owners[right], columns[right]], kind="stable")]
        _, first = np.unique(owners[order], return_index=True)
        return [int(column) for column in order[np.sort(first)][:_N_PHOTOS]]


def _text(fragment: Sequence[str | None]) -> str:
    relation, first, second = fragment
    return f"{relation}({first or '?'}, {second or '?'})"
