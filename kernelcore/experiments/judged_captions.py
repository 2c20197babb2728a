"""Binary caption selection: each system chooses which of two captions describes a photo."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
import numpy.typing as npt

from kernelcore._validation import Array
from kernelcore.datasets import BinarySelections, RelevanceJudgments
from kernelcore.evaluation import ResultTable, SelectionResult
from kernelcore.experiments.judged import NEIGHBOURS, JudgmentSource, Questions, SplitPhotos
from kernelcore.lexical import WordVectors
from kernelcore.report import Section

MAX_OVERLAP = 0.25
"""Greatest share of words of the other caption that captions of the photo may have, as in
`kernelcore.datasets.neighbour_selections`."""

_ABOUT = (
    "The task of the section before, with photos and captions exchanged; the paper does not "
    "have it. A triple has a photo, a caption that describes it, and another caption. In the "
    "triples from human judgments, people judged the other caption wrong for the photo. Of "
    "all such captions it is the most similar one, by the cosine of mean word vectors. In the "
    "triples without judgments, the other caption belongs to the nearest neighbour of the "
    "photo, and shares few words with the photo's own captions. Systems choose by their scores "
    "for annotation. The intervals assume independent triples; many triples share a photo."
)


@dataclass(frozen=True, eq=False)
class CaptionSelections:
    """Triples of a photo, a caption that describes it, and another one, as positions.

    Attributes
    ----------
    name : str
    triple_ids : tuple of str
    photos, right, wrong : ndarray of intp, shape (n_triples,)
        Row of the photo and columns of both captions in a matrix of scores.
    """

    name: str
    triple_ids: tuple[str, ...]
    photos: npt.NDArray[np.intp]
    right: npt.NDArray[np.intp]
    wrong: npt.NDArray[np.intp]

    @classmethod
    def of(
        cls, name: str, photos: SplitPhotos, triples: Sequence[tuple[int, int, int]]
    ) -> CaptionSelections:
        """Name triples of positions after the ids of their parts."""
        rows, right, wrong = np.array(triples, np.intp).reshape(-1, 3).T
        ids = photos.photos.image_ids, photos.caption_ids
        names = (f"{ids[0][p]} {ids[1][r]} {ids[1][w]}" for p, r, w in triples)
        return cls(name, tuple(names), rows, right, wrong)

    def evaluate(
        self, scores: npt.ArrayLike, *, system: str = "", dataset: str = "", split: str = ""
    ) -> SelectionResult:
        """Measure how often the right caption has the higher score; a tie counts half."""
        matrix = np.asarray(scores)
        right, wrong = (matrix[self.photos, part] for part in (self.right, self.wrong))
        outcomes = np.where(right == wrong, 0.5, right > wrong)
        return SelectionResult(
            self.triple_ids,
            outcomes,
            self.name,
            system=system,
            dataset=dataset,
            split=split,
        )


def caption_selections(
    questions: Questions, vectors: WordVectors
) -> dict[str, CaptionSelections]:
    """Make triples of a photo and two captions, from the same sources as `questions`.

    Parameters
    ----------
    questions : Questions
    vectors : WordVectors
        A caption is the mean of the vectors of its content words.

    Returns
    -------
    dict of str to CaptionSelections
        By source as ``questions.selections``. Sources without a triple are left out.
    """
    photos = questions.photos
    units = _caption_units(photos, vectors)
    found = {
        source.file: CaptionSelections.of(
            judged.name, photos, list(_judged(judged, source, units))
        )
        for source, judged in questions.judgments
    }
    if NEIGHBOURS in questions.selections:
        selections = questions.selections[NEIGHBOURS]
        triples = list(_neighbours(selections, photos))
        found[NEIGHBOURS] = CaptionSelections.of(selections.name, photos, triples)
    return {source: one for source, one in found.items() if one.triple_ids}


def caption_selection_section(results: Mapping[str, Sequence[SelectionResult]]) -> Section:
    """Tabulate the results of each source, one per system."""
    tables = [ResultTable(own).to_table() for own in results.values()]
    return Section("Binary caption selection", (_ABOUT,), tables)


def _caption_units(photos: SplitPhotos, vectors: WordVectors) -> Array:
    """Return the mean word vector of each caption, with length 1 or 0."""
    words = {
        caption_id: own
        for ids, captions in zip(photos.photos.caption_ids, photos.words, strict=True)
        for caption_id, own in zip(ids, captions, strict=True)
    }
    means = vectors.mean([words[caption_id] for caption_id in photos.caption_ids])
    lengths = np.linalg.norm(means, axis=1, keepdims=True)
    units: Array = means / np.where(lengths > 0, lengths, 1)
    return units


def _judged(
    judged: RelevanceJudgments, source: JudgmentSource, units: Array
) -> Iterator[tuple[int, int, int]]:
    """Pair each right caption of a photo with the most similar wrong one."""
    for photo in range(len(judged.image_ids)):
        own = judged.images == photo
        captions, scores = judged.captions[own], judged.scores[own]
        right, wrong = captions[scores >= source.right], captions[scores <= source.wrong]
        if len(right) and len(wrong):
            nearest = (units[right] @ units[wrong].T).argmax(axis=1)
            for caption, other in zip(right, wrong[nearest], strict=True):
                yield photo, int(caption), int(other)


def _neighbours(
    selections: BinarySelections, photos: SplitPhotos
) -> Iterator[tuple[int, int, int]]:
    """Pair the caption of each triple with the least fitting caption of the other photo."""
    own = photos.photos
    rows = {image_id: row for row, image_id in enumerate(own.image_ids)}
    columns = {caption_id: column for column, caption_id in enumerate(photos.caption_ids)}
    for triple in selections:
        row, other = rows[triple.true_image_id], rows[triple.other_image_id]
        known = set(chain(*photos.words[row]))
        overlaps = [
            len(known & set(words)) / len(set(words)) if words else np.inf
            for words in photos.words[other]
        ]
        least = min(overlaps)
        if least <= MAX_OVERLAP:
            wrong = own.caption_ids[other][overlaps.index(least)]
            yield row, columns[triple.caption_id], columns[wrong]
