"""Binary image selection: each system chooses which of two photos a caption describes."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kernelcore.captions import CaptionNormalizer
from kernelcore.datasets import (
    BinarySelections,
    CaptionedImages,
    RelevanceJudgments,
    judged_selections,
    load_flickr_crowd,
    load_flickr_expert,
    neighbour_selections,
)
from kernelcore.evaluation import Result, evaluate_selections
from kernelcore.evaluation.selections import PairScorer
from kernelcore.experiments.corpus import Corpus
from kernelcore.lexical import WordVectors

EXPERT_FILE, CROWD_FILE = "ExpertAnnotations.txt", "CrowdFlowerAnnotations.txt"
NEIGHBOURS = "neighbours"
"""The source of triples that are made of captions alone."""
CROWD_SHARE = 0.5
"""Share of yes from which a pair is relevant."""
PERFECT = 4.0
"""The experts' best score."""


class JudgmentSource(NamedTuple):
    """A file of judgments: its reader, the score of gold pairs, and thresholds."""

    file: str
    load: Callable[[Path], RelevanceJudgments]
    own: float
    right: float
    wrong: float


SOURCES = (
    JudgmentSource(CROWD_FILE, load_flickr_crowd, own=1.0, right=CROWD_SHARE, wrong=0.0),
    JudgmentSource(EXPERT_FILE, load_flickr_expert, own=PERFECT, right=3.0, wrong=2.0),
)


@dataclass(frozen=True)
class SplitPhotos:
    """Photos and captions of a split in the order of the rows and columns of scores.

    Attributes
    ----------
    photos : CaptionedImages
    caption_ids : list of str
    words : list of list of list of str
        Content words of each caption of each photo.
    vectors : ndarray of float32, shape (n_photos, n_dimensions)
        Mean vector of these words.
    """

    photos: CaptionedImages
    caption_ids: list[str]
    words: list[list[list[str]]]
    vectors: npt.NDArray[np.float32]

    @classmethod
    def of(cls, corpus: Corpus, vectors: WordVectors, split: str) -> SplitPhotos:
        """Find the photos and captions of a split in the data set."""
        dataset, pool = corpus.dataset, corpus.pools[split]
        row_of = {path: row for row, path in enumerate(dataset.paths)}
        rows = [row_of[corpus.files[photo]] for photo in np.unique(pool.photos)]
        photos = dataset.subset(rows)
        ids = {
            (path, number): caption_id
            for path, numbers, own in zip(
                photos.paths, photos.caption_numbers, photos.caption_ids, strict=True
            )
            for number, caption_id in zip(numbers, own, strict=True)
        }
        owners = zip(pool.photos, pool.numbers, strict=True)
        normalizer = CaptionNormalizer().fit(
            [dataset.captions[row] for row in dataset.split("train")]
        )
        words = normalizer.normalize_images(photos.captions)
        return cls(
            photos,
            [ids[corpus.files[photo], int(number)] for photo, number in owners],
            words,
            vectors.mean([list(chain(*photo)) for photo in words]),
        )

    def judgments(self, path: Path, source: JudgmentSource) -> RelevanceJudgments:
        """Read the judgments of the pairs of this split."""
        return source.load(path).select(self.photos.image_ids, self.caption_ids)

    def with_gold(
        self, judged: RelevanceJudgments, source: JudgmentSource
    ) -> RelevanceJudgments:
        """Add the captions' own photos, for which they are right where nobody judged them."""
        gold = RelevanceJudgments.gold(self.photos, score=source.own)
        every = judged.union(gold, both="first")
        return every.select(self.photos.image_ids, self.caption_ids)

    def selections(
        self, judged: RelevanceJudgments, source: JudgmentSource
    ) -> BinarySelections:
        """Pair each right photo of a caption with the most similar wrong one."""
        lengths = np.linalg.norm(self.vectors, axis=1, keepdims=True)
        units = self.vectors / np.where(lengths > 0, lengths, 1)
        return judged_selections(
            judged,
            self.photos,
            right=source.right,
            wrong=source.wrong,
            similarity=units @ units.T,
        )


@dataclass(frozen=True)
class Questions:
    """Triples of a split by their source; a source without judgments of the split has none.

    A triple has a caption, a photo that it describes, and another one. With judgments, the
    other photo is the most similar one that people judged wrong. With captions alone, it is
    the nearest neighbour, whose captions share few words with the caption.

    Attributes
    ----------
    photos : SplitPhotos
    dataset, split : str
        Labels of all results.
    judgments : list of (JudgmentSource, RelevanceJudgments)
        Judgments of the split, with gold pairs.
    selections : dict of str to BinarySelections
        By the file of judgments, or `NEIGHBOURS`.
    """

    photos: SplitPhotos
    dataset: str
    split: str
    judgments: list[tuple[JudgmentSource, RelevanceJudgments]]
    selections: dict[str, BinarySelections]

    @classmethod
    def of(cls, corpus: Corpus, vectors: WordVectors, split: str) -> Questions:
        """Make the triples of each source."""
        photos = SplitPhotos.of(corpus, vectors, split)
        judgments = []
        for source in SOURCES:
            path = corpus.folder / source.file
            if path.is_file() and len(judged := photos.judgments(path, source)):
                judgments.append((source, photos.with_gold(judged, source)))
        makers: dict[str, Callable[[], BinarySelections]] = {
            source.file: partial(photos.selections, judged, source)
            for source, judged in judgments
        }
        makers[NEIGHBOURS] = partial(
            neighbour_selections, photos.photos, photos.vectors, photos.words
        )
        selections = {}
        for name, make in makers.items():
            with suppress(ValueError):  # a small corpus may have no triple
                selections[name] = make()
        return cls(photos, corpus.name, split, judgments, selections)

    def results(self, system: str, scores: npt.ArrayLike | PairScorer) -> dict[str, Result]:
        """Let a system choose between the photos of the triples of each source.

        Parameters
        ----------
        system : str
        scores : array_like of shape (n_photos, n_captions), or callable
            Scores of search: photos of the split in the order of ``corpus.files``, captions of
            ``corpus.pools[split]``. Or a function of pairs as for
            `kernelcore.evaluation.evaluate_selections`.

        Returns
        -------
        dict of str to Result
            One for each of `selections`.
        """
        is_matrix = not callable(scores)
        return {
            source: evaluate_selections(
                selections,
                scores,
                image_ids=self.photos.photos.image_ids if is_matrix else None,
                caption_ids=self.photos.caption_ids if is_matrix else None,
                system=system,
                dataset=self.dataset,
                split=self.split,
            )
            for source, selections in self.selections.items()
        }
