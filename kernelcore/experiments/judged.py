"""Binary image selection: each system chooses which of two photos a caption describes."""

from __future__ import annotations

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
    RelevanceJudgments,
    judged_selections,
    load_flickr_crowd,
    load_flickr_expert,
    neighbour_selections,
)
from kernelcore.evaluation import Published, ResultTable, evaluate_selections
from kernelcore.experiments.corpus import Corpus
from kernelcore.lexical import WordVectors
from kernelcore.report import Section

EXPERT_FILE, CROWD_FILE = "ExpertAnnotations.txt", "CrowdFlowerAnnotations.txt"
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


class _Source(NamedTuple):
    """A file of judgments: its reader, the score of gold pairs, and thresholds."""

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
    photos = _Photos.of(corpus, vectors, split)
    tables, remarks = [], []
    for selections in photos.triples(corpus.folder):
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
        tables.append(ResultTable([*results, *published]).to_table())
    return Section("Binary image selection", (_ABOUT, *remarks), tables)


@dataclass(frozen=True)
class _Photos:
    """Photos and captions in the order of the rows and columns of the scores.

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
    def of(cls, corpus: Corpus, vectors: WordVectors, split: str) -> _Photos:
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

    def triples(self, folder: Path) -> Iterator[BinarySelections | str]:
        """Make the triples of each source, or say why there are none."""
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
        """Make triples of judgments; captions are right for their own photos."""
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
    """Return the triples, or the reason why the corpus has none."""
    try:
        return make()
    except ValueError as error:
        return f"No triples: {error}."
