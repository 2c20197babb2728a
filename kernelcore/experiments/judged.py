"""Binary image selection: each system chooses which of two photos a caption describes."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kernelcore.captions import CaptionNormalizer
from kernelcore.datasets import (
    BinarySelections,
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
class Questions:
    """Triples of a split by their source; a source without judgments of the split has none.

    A triple has a caption, a photo that it describes, and another one. With judgments, the
    other photo is the most similar one that people judged wrong. With captions alone, it is
    the nearest neighbour, whose captions share few words with the caption.

    Attributes
    ----------
    image_ids, caption_ids : tuple of str
        Rows and columns of scores: photos of the split in the order of ``corpus.files``,
        captions of ``corpus.pools[split]``.
    dataset, split : str
        Labels of all results.
    judgments : list of (JudgmentSource, RelevanceJudgments)
        Judgments of the split, with gold pairs.
    selections : dict of str to BinarySelections
        By the file of judgments, or `NEIGHBOURS`.
    """

    image_ids: tuple[str, ...]
    caption_ids: tuple[str, ...]
    dataset: str
    split: str
    judgments: list[tuple[JudgmentSource, RelevanceJudgments]]
    selections: dict[str, BinarySelections]

    @classmethod
    def of(cls, corpus: Corpus, vectors: WordVectors, split: str) -> Questions:
        """Make the triples of each source."""
        dataset = corpus.dataset
        row_of = {path: row for row, path in enumerate(dataset.paths)}
        photos = dataset.subset([row_of[corpus.files[own]] for own in corpus.photos(split)])
        ids = photos.image_ids, corpus.pools[split].ids
        train = [dataset.captions[row] for row in dataset.split("train")]
        words = CaptionNormalizer().fit(train).normalize_images(photos.captions)
        means = vectors.mean([list(chain(*photo)) for photo in words])
        lengths = np.linalg.norm(means, axis=1, keepdims=True)
        units = means / np.where(lengths > 0, lengths, 1)
        judgments, selections = [], {}
        for source in SOURCES:
            path = corpus.folder / source.file
            if path.is_file() and len(judged := source.load(path).select(*ids)):
                # a caption's own photo is right where nobody judged it
                gold = RelevanceJudgments.gold(photos, score=source.own)
                every = judged.union(gold, both="first").select(*ids)
                judgments.append((source, every))
                limits = {"right": source.right, "wrong": source.wrong}
                with suppress(ValueError):  # a small corpus may have no triple
                    selections[source.file] = judged_selections(
                        every, photos, **limits, similarity=units @ units.T
                    )
        with suppress(ValueError):
            selections[NEIGHBOURS] = neighbour_selections(photos, means, words)
        return cls(*ids, dataset.name, split, judgments, selections)

    def results(self, system: str, scores: npt.ArrayLike | PairScorer) -> dict[str, Result]:
        """Let a system choose between the photos of the triples of each source.

        Parameters
        ----------
        system : str
        scores : array_like of shape (n_photos, n_captions), or callable
            Scores of search, or a function of pairs as for
            `kernelcore.evaluation.evaluate_selections`.

        Returns
        -------
        dict of str to Result
            One for each of `selections`.
        """
        ids: dict[str, Any] = {"image_ids": self.image_ids, "caption_ids": self.caption_ids}
        labels = {"system": system, "dataset": self.dataset, "split": self.split}
        options = labels if callable(scores) else labels | ids
        return {
            source: evaluate_selections(selections, scores, **options)
            for source, selections in self.selections.items()
        }
