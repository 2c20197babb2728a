"""Binary image selection: each system chooses which of two photos a caption describes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
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
from kernelcore.evaluation import (
    Published,
    Result,
    ResultTable,
    evaluate_selections,
)
from kernelcore.evaluation.selections import PairScorer
from kernelcore.experiments.corpus import Corpus
from kernelcore.lexical import WordVectors
from kernelcore.report import Section

EXPERT_FILE, CROWD_FILE = "ExpertAnnotations.txt", "CrowdFlowerAnnotations.txt"
NEIGHBOURS = "neighbours"
"""The source of triples that are made of captions alone."""
CROWD_SHARE = 0.5
"""Share of yes from which a pair is relevant."""
PERFECT = 4.0
"""The experts' best score."""

_ABOUT = (
    "A triple has a caption, a photo that it describes, and another photo. The accuracy is "
    "the share of triples in which the first photo has the higher score; chance is 50 %. In "
    "the triples from human judgments, people judged the caption wrong for the other photo. "
    "Of all such photos it is the one with the most similar captions. In the triples without "
    "judgments, the other photo is the nearest neighbour of the first, and its captions share "
    "few words with the caption. The interval is Wilson's at 95 % and assumes independent "
    "triples."
)


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


def judged_section(
    corpus: Corpus,
    vectors: WordVectors,
    split: str,
    scores: Mapping[str, npt.ArrayLike],
    *,
    published: Sequence[Published] = (),
) -> Section:
    """Measure binary image selection (BISON) by each system.

    Each triple is a caption, a right photo and a wrong photo. Triples have two sources. With
    human judgments, the wrong photo is the most similar one that people judged wrong. With
    captions only, it is the nearest neighbour of the right photo. The similarity of photos is
    the cosine of the mean word vectors of their captions.

    Parameters
    ----------
    corpus : Corpus
        The folder of Flickr8k has files of judgments.
    vectors : WordVectors
    split : str
    scores : mapping of str to array_like of shape (n_photos, n_captions)
        Scores of search by each system: photos of the split in the order of ``corpus.files``,
        captions of ``corpus.pools[split]``.
    published : sequence of Published, optional
        Published rows of each table.

    Returns
    -------
    Section
        A table for each source of triples, with the interval of each accuracy; or a sentence
        that says why a source has no triples.

    See Also
    --------
    kernelcore.datasets.judged_selections : Makes triples of verdicts.
    kernelcore.datasets.neighbour_selections : Makes triples of captions.
    """
    questions = Questions.of(corpus, vectors, split)
    return questions.section(questions.results(scores), published=published)


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
    """Triples of a split by their source, or the reason why a source has none.

    Attributes
    ----------
    photos : SplitPhotos
    dataset, split : str
        Labels of all results.
    judgments : list of (JudgmentSource, RelevanceJudgments)
        Judgments of the split, with gold pairs.
    selections : dict of str to BinarySelections
        By the file of judgments, or `NEIGHBOURS`.
    remarks : list of str
        Why a source has no triples.
    """

    photos: SplitPhotos
    dataset: str
    split: str
    judgments: list[tuple[JudgmentSource, RelevanceJudgments]]
    selections: dict[str, BinarySelections]
    remarks: list[str]

    @classmethod
    def of(cls, corpus: Corpus, vectors: WordVectors, split: str) -> Questions:
        """Make the triples of each source."""
        photos = SplitPhotos.of(corpus, vectors, split)
        judgments, remarks = list[tuple[JudgmentSource, RelevanceJudgments]](), list[str]()
        for source in SOURCES:
            path = corpus.folder / source.file
            if not path.is_file():
                what = f"The corpus has no judgments of people in a file {source.file}."
                remarks.append(what)
                continue
            judged = photos.judgments(path, source)
            if len(judged):
                judgments.append((source, photos.with_gold(judged, source)))
            else:
                remarks.append(f"{source.file} has no judgments of this split.")
        makers: dict[str, Callable[[], BinarySelections]] = {
            source.file: partial(photos.selections, judged, source)
            for source, judged in judgments
        }
        makers[NEIGHBOURS] = partial(
            neighbour_selections, photos.photos, photos.vectors, photos.words
        )
        selections = {}
        for name, make in makers.items():
            try:
                selections[name] = make()
            except ValueError as error:
                remarks.append(f"No triples: {error}.")
        return cls(photos, corpus.name, split, judgments, selections, remarks)

    def results(
        self, scores: Mapping[str, npt.ArrayLike | PairScorer]
    ) -> dict[str, list[Result]]:
        """Measure each system on the triples of each source.

        Parameters
        ----------
        scores : mapping of str to array_like or callable
            Scores of search as for `judged_section`, or a function of pairs as for
            `kernelcore.evaluation.evaluate_selections`.

        Returns
        -------
        dict of str to list of Result
            One result per system for each of `selections`.
        """
        return {
            source: [
                self._result(selections, values, system=name) for name, values in scores.items()
            ]
            for source, selections in self.selections.items()
        }

    def section(
        self,
        results: Mapping[str, Sequence[Result]],
        *,
        published: Sequence[Published] = (),
    ) -> Section:
        """Tabulate the results of each source."""
        tables = [
            ResultTable([*own, *published], uncertainty="interval").to_table()
            for own in results.values()
        ]
        return Section("Binary image selection", (_ABOUT, *self.remarks), tables)

    def _result(
        self, selections: BinarySelections, scores: npt.ArrayLike | PairScorer, *, system: str
    ) -> Result:
        is_matrix = not callable(scores)
        return evaluate_selections(
            selections,
            scores,
            image_ids=self.photos.photos.image_ids if is_matrix else None,
            caption_ids=self.photos.caption_ids if is_matrix else None,
            system=system,
            dataset=self.dataset,
            split=self.split,
        )
