"""Which of two photos a caption describes, where the other one is known to be wrong."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
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
    DatasetWarning,
    RelevanceJudgments,
    judged_selections,
    load_flickr,
    load_flickr_crowd,
    load_flickr_expert,
    neighbour_selections,
)
from kernelcore.evaluation import (
    PublishedSelection,
    evaluate_selections,
    selection_table,
)
from kernelcore.experiments.corpora import Corpus
from kernelcore.experiments.hodosh2013.judged import (
    CROWD_FILE,
    CROWD_SHARE,
    EXPERT_FILE,
    PERFECT,
)
from kernelcore.report import Section

_ABOUT = (
    "Share of triples in which the photo that a caption describes has a better score than "
    "another one; chance is 50 %. The other photo is, of those that people found wrong for the "
    "caption, the one whose captions are most similar; or, without people, the photo's nearest "
    "neighbour, and the caption is one of whose words few are in the neighbour's captions. The "
    "interval is Wilson's at 95 %, as if triples were independent."
)


class _Source(NamedTuple):
    """Judgments that a corpus may come with; the score of own captions, and thresholds."""

    file: str
    load: Callable[[Path], RelevanceJudgments]
    own: float
    right: float
    wrong: float


_SOURCES = (
    _Source(CROWD_FILE, load_flickr_crowd, own=1.0, right=CROWD_SHARE, wrong=0.0),
    _Source(EXPERT_FILE, load_flickr_expert, own=PERFECT, right=3.0, wrong=2.0),
)


def judged_section(
    data: str | os.PathLike[str],
    corpus: Corpus,
    split: str,
    scores: Mapping[str, npt.ArrayLike],
    *,
    published: Sequence[PublishedSelection] = (),
) -> Section:
    """Measure binary image selection (BISON) by each system.

    Triples are made of the verdicts of people: a caption, a photo that they found right for
    it and, of those that they found wrong, the most similar one; and of captions alone: each
    photo with its nearest neighbour. How similar photos are is the cosine of the mean word
    vectors of their captions.

    Parameters
    ----------
    data : path
        Folder of the corpus; that of Flickr8k has files of judgments.
    corpus : Corpus
        What `data` holds.
    split : str
    scores : mapping of str to array_like of shape (n_photos, n_captions)
        Of each system, how well the photos of the split, in the order of ``corpus.files``,
        fit the captions of ``corpus.pools[split]``; where search has scores of its own, those.
    published : sequence of PublishedSelection, optional
        Rows to stand in each table below ours.

    Returns
    -------
    Section
        A table for each kind of triples, with the interval of each accuracy. Of a kind that
        the corpus does not allow a sentence says why.

    See Also
    --------
    kernelcore.datasets.judged_selections : Makes triples of verdicts.
    kernelcore.datasets.neighbour_selections : Makes triples of captions.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DatasetWarning)  # told when the corpus was read
        dataset = load_flickr(data)
    photos = _Photos.of(dataset, corpus, split)
    tables, remarks = [], []
    for selections in photos.triples(Path(data)):
        if isinstance(selections, str):
            remarks.append(selections)
            continue
        results = [
            evaluate_selections(
                selections,
                values,
                image_ids=photos.photos.image_ids,
                caption_ids=photos.caption_ids,
                system=name,
                dataset=corpus.name,
                split=split,
            )
            for name, values in scores.items()
        ]
        tables.append(selection_table([*results, *published]))
    return Section("Binary image selection", (_ABOUT, *remarks), tables)


@dataclass(frozen=True)
class _Photos:
    """Photos and captions by the rows and columns of the scores.

    Attributes
    ----------
    photos : CaptionedImages
    caption_ids : list of str
    words : list of list of list of str
        Content words of each caption of each photo.
    vectors : ndarray of float32, shape (n_photos, n_dimensions)
        Means of the vectors of these words.
    """

    photos: CaptionedImages
    caption_ids: list[str]
    words: list[list[list[str]]]
    vectors: npt.NDArray[np.float32]

    @classmethod
    def of(cls, dataset: CaptionedImages, corpus: Corpus, split: str) -> _Photos:
        """Find the photos and captions of a split in the data set."""
        pool = corpus.pools[split]
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
            corpus.word_vectors.mean([list(chain(*photo)) for photo in words]),
        )

    def triples(self, folder: Path) -> Iterator[BinarySelections | str]:
        """Make each kind of triples, or say why there are none."""
        for source in _SOURCES:
            path = folder / source.file
            if not path.is_file():
                yield f"The corpus has no judgments of people in a file {source.file}."
                continue
            judged = source.load(path).select(self.photos.image_ids, self.caption_ids)
            if len(judged):
                yield _made(partial(self.judged, judged, source))
            else:
                yield f"{source.file} has no judgments of this split."
        yield _made(partial(neighbour_selections, self.photos, self.vectors, self.words))

    def judged(self, judged: RelevanceJudgments, source: _Source) -> BinarySelections:
        """Make triples of verdicts, and of the photos that captions were written for."""
        gold = RelevanceJudgments.gold(self.photos, score=source.own)
        lengths = np.linalg.norm(self.vectors, axis=1, keepdims=True)
        units = self.vectors / np.where(lengths > 0, lengths, 1)
        return judged_selections(
            judged.union(gold, both="first").select(self.photos.image_ids, self.caption_ids),
            self.photos,
            right=source.right,
            wrong=source.wrong,
            similarity=units @ units.T,
        )


def _made(make: Callable[[], BinarySelections]) -> BinarySelections | str:
    """Return the triples, or what keeps this corpus from having any."""
    try:
        return make()
    except ValueError as error:
        return f"No triples: {error}."
