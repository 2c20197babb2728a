"""Ranks of the gold items, from a matrix of scores, without sorting it.

All ranks and metrics follow from counts of the candidates ahead of a gold one and tied with it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from kernelcore import _core
from kernelcore._check import Array, as_real_array, check_choice
from kernelcore._threads import attentive, resolve_n_threads, threads_for
from kernelcore.evaluation._inputs import (
    GoldItems,
    Rows,
    as_caption_image,
    as_gold,
    as_rows,
    captions_by_image,
    one_each,
)

__all__ = ["gold_ranks", "retrieval_ranks"]

Integers: TypeAlias = npt.NDArray[np.int64]
Ties: TypeAlias = Literal["mean", "min", "max", "ordinal"]
TIE_RULES = ("mean", "min", "max", "ordinal")


class RetrievalRanks(NamedTuple):
    """Ranks of both tasks over the same images and captions.

    Attributes
    ----------
    annotation : ndarray of float64, shape (n_images,)
        For every image, the rank of the best of its captions among all captions.
    search : ndarray of float64, shape (n_captions,)
        For every caption, the rank of its image among all images.
    """

    annotation: npt.NDArray[np.float64]
    search: npt.NDArray[np.float64]


def gold_ranks(
    scores: npt.ArrayLike,
    gold: npt.ArrayLike | Sequence[Sequence[int]],
    *,
    ties: Ties = "mean",
    n_threads: int | None = None,
) -> npt.NDArray[np.float64]:
    r"""Rank of the best gold candidate of every query.

    With :math:`s^*` the largest score among the gold candidates of a query, :math:`g` the
    number of candidates with a greater score, :math:`t` the number of candidates with the
    score :math:`s^*` and :math:`m` the number of gold ones among those,

    .. math:: \mathrm{rank} = g + \frac{t + 1}{m + 1}

    which is the mean position of the first gold candidate when ties are broken at random;
    with one gold candidate it is the mean of the tied positions, :math:`g + (t + 1) / 2`.

    Parameters
    ----------
    scores : array_like of shape (n_queries, n_candidates)
        Higher is better. Infinite scores are allowed and tie with their equals; a candidate
        may be ruled out by ``-inf``.
    gold : array_like of int or bool, or sequence of sequences of int
        One candidate index per query, shape (n_queries,); or the indices of the gold
        candidates of each query, as many as there are; or a boolean matrix of the shape of
        `scores`. Every query has at least one.
    ties : {"mean", "min", "max", "ordinal"}, default="mean"
        What a rank means among equal scores: "mean" is given above; "min" puts a gold
        candidate before the others, :math:`g + 1`; "max" puts it after them,
        :math:`g + t - m + 1`; "ordinal" takes tied candidates in the order of their index.
    n_threads : int, optional
        Threads to use; the default is every core this process may run on. The result is the
        same for every value.

    Returns
    -------
    ndarray of float64, shape (n_queries,)
        Ranks from 1 to n_candidates.

    Raises
    ------
    TypeError
        If `scores` does not hold real numbers or `gold` does not hold integers or booleans.
    ValueError
        If `scores` is not 2-D, is empty or holds NaN, or `gold` does not fit it: a query
        without a gold candidate, an index out of range or named twice.

    See Also
    --------
    retrieval_ranks : Both tasks from one matrix of images by captions.
    kernelcore.reference.evaluation.gold_ranks : The definition, by sorting.

    Notes
    -----
    Takes one pass over `scores` and, beyond the result, O(n_queries) memory per thread.
    float32 and float64 matrices are read in place in C and in Fortran order, so ranking the
    columns of a matrix by passing its transpose copies nothing; all others are copied first.
    The counts are integers and exact.

    References
    ----------
    .. [1] M. Hodosh, P. Young and J. Hockenmaier, "Framing image description as a ranking
       task: data, models and evaluation metrics", JAIR 47, 2013.

    Examples
    --------
    >>> from kernelcore.evaluation.ranks import gold_ranks
    >>> gold_ranks([[0.1, 0.7, 0.2], [0.5, 0.5, 0.9]], [1, 0])
    array([1. , 2.5])

    The rank of the better of two gold candidates:

    >>> gold_ranks([[0.1, 0.7, 0.2]], [[0, 2]])
    array([2.])
    """
    matrix = as_scores("scores", scores)
    items = as_gold(gold, matrix.shape)
    (counted,) = count_gold(as_rows("scores", matrix), best_gold, ties, n_threads, rows=items)
    return ranks_from_counts(*counted, ties)


def retrieval_ranks(
    scores: npt.ArrayLike,
    caption_image: npt.ArrayLike | None = None,
    *,
    search_scores: npt.ArrayLike | None = None,
    ties: Ties = "mean",
    n_threads: int | None = None,
) -> RetrievalRanks:
    """Ranks of image annotation and image search, in one pass over the scores.

    Parameters
    ----------
    scores : array_like of shape (n_images, n_captions)
        Higher is better.
    caption_image : array_like of int, shape (n_captions,), optional
        Row of the image that each caption belongs to; every image has at least one. Omit it
        where caption i belongs to image i.
    search_scores : array_like of shape (n_images, n_captions), optional
        Scores for image search where a model has others for that task, in the same
        orientation: rows are images.
    ties : {"mean", "min", "max", "ordinal"}, default="mean"
        The tie rule of `gold_ranks`.
    n_threads : int, optional
        Threads to use; the default is every core this process may run on. The result is the
        same for every value.

    Returns
    -------
    RetrievalRanks
        For every image, the rank of the best of its captions among all captions; for every
        caption, the rank of its image among all images.

    Raises
    ------
    TypeError, ValueError
        As `gold_ranks`.

    See Also
    --------
    streamed_ranks : The same from embeddings, without a matrix of scores.

    Examples
    --------
    >>> from kernelcore.evaluation.ranks import retrieval_ranks
    >>> ranks = retrieval_ranks([[0.9, 0.1, 0.4], [0.8, 0.2, 0.3]], [0, 1, 1])
    >>> ranks.annotation, ranks.search
    (array([1., 2.]), array([1., 1., 2.]))
    """
    matrix = as_rows("scores", as_scores("scores", scores))
    owner = as_caption_image(caption_image, matrix.shape)
    images, captions = captions_by_image(owner), one_each(owner)
    if search_scores is None:
        counted = count_gold(matrix, best_gold, ties, n_threads, rows=images, columns=captions)
        return RetrievalRanks(*(ranks_from_counts(*of, ties) for of in counted))
    other = as_rows("search_scores", as_scores("search_scores", search_scores))
    check_same_shape(other, matrix)
    (annotation,) = count_gold(matrix, best_gold, ties, n_threads, rows=images)
    (search,) = count_gold(other, best_gold, ties, n_threads, columns=captions)
    return RetrievalRanks(*(ranks_from_counts(*of, ties) for of in (annotation, search)))


def as_scores(name: str, scores: Any) -> Array:
    """Return `scores` as a C- or Fortran-contiguous matrix of float32 or float64."""
    fortran = isinstance(scores, np.ndarray) and scores.ndim == 2 and scores.flags.fnc
    matrix = as_real_array(name, scores.T if fortran else scores, ndim=2)
    if not matrix.size:
        raise ValueError(
            f"{name} must have at least one query and one candidate, got shape {matrix.shape}"
        )
    return matrix.T if fortran else matrix


def check_same_shape(search_scores: Rows, annotation_scores: Rows) -> None:
    """Refuse scores of search for other images or captions than those of annotation."""
    if search_scores.shape != annotation_scores.shape:
        raise ValueError(
            f"{search_scores.name} must have the shape of {annotation_scores.name}, "
            f"{annotation_scores.shape}, got {search_scores.shape}"
        )


class Targets(NamedTuple):
    """Scores that the candidates of every query are compared with.

    The first axis is one of layers: the first gold candidate of all queries, then the second.
    """

    scores: Array
    first: Integers  # index of the first gold candidate with that score
    n_best: Integers  # gold candidates with that score; 0 where a query has none in a layer

    def part(self, queries: slice, first_candidate: int) -> Targets:
        """Return those of some queries, among candidates that are counted from another one."""
        scores, first, n_best = (values[:, queries] for values in self)
        used = max(1, np.count_nonzero(n_best.any(axis=1)))  # none where all scores are NaN
        return Targets(scores[:used], first[:used] - first_candidate, n_best[:used])


def best_gold(gold: GoldItems, gold_scores: Array) -> Targets:
    """Return the best gold candidate of every query; `gold_scores` are of all of them."""
    starts = gold.offsets[:-1]
    best = np.maximum.reduceat(gold_scores, starts)
    is_best = gold_scores == np.repeat(best, np.diff(gold.offsets))
    outside = np.iinfo(np.int64).max
    first = np.minimum.reduceat(np.where(is_best, gold.candidates, outside), starts)
    n_best = np.add.reduceat(is_best, starts, dtype=np.int64)
    return Targets(best[np.newaxis], first[np.newaxis], n_best[np.newaxis])


def every_gold(gold: GoldItems, gold_scores: Array) -> Targets:
    """Return all gold candidates of every query, one layer for each."""
    query, number = _numbered(gold)
    shape = (int(number.max()) + 1, len(gold.offsets) - 1)
    scores = np.full(shape, np.inf, dtype=gold_scores.dtype)
    first, is_here = np.zeros((2, *shape), dtype=np.int64)
    scores[number, query] = gold_scores
    first[number, query] = gold.candidates
    is_here[number, query] = 1
    return Targets(scores, first, is_here)


class Counter:
    """Counts the candidates ahead of every target, tile by tile, in any order.

    Queries are rows, columns, or both.

    Attributes
    ----------
    counts : tuple of ndarray of int64, shape (2 or 3, n_layers, n_queries)
        Of the targets of the rows and of the columns: greater candidates, equal ones, and
        under "ordinal" equal ones before it.
    """

    def __init__(self, targets: Sequence[Targets | None], ties: str) -> None:
        self._targets, self._ties = targets, ties
        n_counts = 3 if ties == "ordinal" else 2
        self.counts = tuple(
            np.zeros((n_counts, *((0, 0) if own is None else own.scores.shape)), np.int64)
            for own in targets
        )
        self._adding = threading.Lock()

    def add(self, rows: slice, columns: slice, scores: Array, n_threads: int = 1) -> bool:
        """Count in the C-contiguous scores of some rows and columns; say if one is NaN."""
        parts = [
            None if own is None else own.part(queries, candidates.start)
            for own, queries, candidates in zip(
                self._targets, (rows, columns), (columns, rows), strict=True
            )
        ]
        *counted, has_nan = _count_candidates(scores, parts[0], parts[1], self._ties, n_threads)
        with self._adding:
            for counts, part, found, queries in zip(
                self.counts, parts, counted, (rows, columns), strict=True
            ):
                if part is not None:
                    shape = (len(counts), *part.scores.shape)
                    counts[:, : shape[1], queries] += found.reshape(shape)
        return has_nan


def count_gold(
    table: Rows,
    targets: Callable[[GoldItems, Array], Targets],
    ties: str,
    n_threads: int | None,
    *,
    rows: GoldItems | None = None,
    columns: GoldItems | None = None,
) -> list[tuple[Integers, Integers]]:
    """Count the candidates ahead of the gold ones of the rows of scores, the columns, or both.

    A matrix in memory is read in place, once for each layer of `targets`. Returns counts and
    the number of gold candidates behind each, for each side that is given.
    """
    check_choice("ties", ties, TIE_RULES)
    n_threads = resolve_n_threads(n_threads)
    sides = [
        None if gold is None else targets(gold, _gold_scores(table, gold, side))
        for side, gold in enumerate((rows, columns))
    ]
    whole = table.whole()
    step = 1 if whole is None or whole.flags.c_contiguous else -1  # or the matrix is turned
    counter = Counter(sides[::step], ties)
    for span, piece in table.pieces() if whole is None else [(slice(0, len(whole)), whole)]:
        here, there = [span, slice(0, piece.shape[1])][::step]
        if counter.add(here, there, piece if step == 1 else piece.T, n_threads):
            raise ValueError(
                f"{table.name} must not hold NaN, got NaN {_place_of_nan(piece, span.start)}"
            )
    return [
        (counts, own.n_best)
        for own, counts in zip(sides, counter.counts[::step], strict=True)
        if own is not None
    ]


class GoldPlaces(NamedTuple):
    """Number of candidates ahead of each gold candidate of every query, and tied with it.

    Attributes
    ----------
    n_gold : ndarray of int64, shape (n_queries,)
        Gold candidates of each query. The other arrays have those of the first query first.
    greater, tied, before : ndarray of int64, shape (n_gold.sum(),)
        Candidates with a greater score; with the same, itself included; those of them that
        have a smaller index, which only the rule "ordinal" needs.
    """

    n_gold: Integers
    greater: Integers
    tied: Integers
    before: Integers | None = None

    def ranks(self, *rules: str) -> list[npt.NDArray[np.float64]]:
        """Rank of the best gold candidate of every query by some rules of `gold_ranks`."""
        if len(self.greater) == len(self.n_gold):  # one gold candidate each
            counts = np.stack([count for count in self[1:] if count is not None])
            return [ranks_from_counts(counts, self.n_gold, rule) for rule in rules]
        starts = np.cumsum(self.n_gold) - self.n_gold
        greater = np.minimum.reduceat(self.greater, starts)
        is_best = self.greater == np.repeat(greater, self.n_gold)
        best = [greater, np.maximum.reduceat(np.where(is_best, self.tied, 0), starts)]
        if self.before is not None:
            outside = np.iinfo(np.int64).max
            best.append(np.minimum.reduceat(np.where(is_best, self.before, outside), starts))
        n_best = np.add.reduceat(is_best, starts, dtype=np.int64)
        return [ranks_from_counts(np.stack(best), n_best, rule) for rule in rules]


def places_of(counts: Integers, gold: GoldItems) -> GoldPlaces:
    """Return the counts of `every_gold` candidate."""
    return GoldPlaces(np.diff(gold.offsets), *by_gold(counts, gold))


def by_gold(counts: Integers, gold: GoldItems) -> Integers:
    """Return the counts of `every_gold` for one gold candidate after the other."""
    query, number = _numbered(gold)
    return counts[:, number, query]


def ranks_from_counts(counts: Integers, n_best: Integers, ties: str) -> npt.NDArray[np.float64]:
    """Ranks of the best gold candidates, by the rules of `gold_ranks`."""
    greater, tied = counts[:2]
    if ties == "mean":
        ahead = (tied + 1) / (n_best + 1) - 1
    elif ties == "min":
        ahead = np.zeros(greater.shape)
    else:
        ahead = counts[2] if ties == "ordinal" else tied - n_best
    return np.asarray(1 + greater + ahead, dtype=np.float64).ravel()


def _count_candidates(
    scores: Array,
    rows: Targets | None,
    columns: Targets | None,
    ties: str,
    n_threads: int,
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], bool]:
    """Count, in one pass over C-contiguous `scores`, for queries that are rows or columns.

    Returns the counts of either direction, layer by layer, one row each for candidates with a
    greater score, with the score of the gold one (gold ones too) and, if ``ties == "ordinal"``,
    with that score and a smaller index; and whether a score is NaN.
    """
    ordered = ties == "ordinal"

    def queries(targets: Targets | None) -> tuple[Any, ...] | None:
        if targets is None:
            return None
        counts = np.empty((3 if ordered else 2, targets.scores.size), dtype=np.int64)
        return *map(np.ascontiguousarray, targets[:2]), counts

    by_row, by_column = queries(rows), queries(columns)
    n_layers = max(len(side[0]) for side in (by_row, by_column) if side is not None)
    threads = threads_for(n_threads, n_layers * scores.size / 4)
    has_nan = _core.count_ranks(scores, by_row, by_column, ordered, threads, attentive(None))
    none = np.empty((0, 0), dtype=np.int64)
    return by_row[2] if by_row else none, by_column[2] if by_column else none, has_nan


def _place_of_nan(scores: Array, start: int = 0) -> str:
    """Say where the first NaN stands among scores whose first row has the number `start`."""
    for row, values in enumerate(scores, start):
        columns = np.flatnonzero(np.isnan(values))
        if columns.size:
            return f"at [{row}, {columns[0]}]"
    return "that is gone: they must not change during the call"


def _numbered(gold: GoldItems) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Query of each gold candidate, and its number among those of the query."""
    n_gold = np.diff(gold.offsets)
    query = np.repeat(np.arange(len(n_gold)), n_gold)
    return query, np.arange(len(query)) - gold.offsets[query]


def _gold_scores(table: Rows, gold: GoldItems, side: int) -> Array:
    queries = np.repeat(np.arange(len(gold.offsets) - 1), np.diff(gold.offsets))
    pairs = (queries, gold.candidates)
    return table.at(*(pairs if side == 0 else pairs[::-1]))
