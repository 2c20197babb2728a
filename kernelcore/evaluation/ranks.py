"""Ranks of the gold items, from a matrix of scores, without sorting it.

All ranks and metrics follow from counts of the candidates ahead of a gold one and tied with it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from kernelcore import _core
from kernelcore._check import Array, check_choice
from kernelcore._threads import attentive, resolve_n_threads, threads_for
from kernelcore.evaluation._inputs import (
    GoldItems,
    Positions,
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
_GONE = "that is gone: they must not change during the call"


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
    table = as_rows("scores", scores)
    items = as_gold(gold, table.shape)
    (counted,) = count_gold(table, best_gold, ties, n_threads, rows=items)
    return ranks_from_counts(*counted, ties)


def retrieval_ranks(
    scores: npt.ArrayLike,
    caption_image: npt.ArrayLike | None = None,
    *,
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
    table = as_rows("scores", scores)
    owner = as_caption_image(caption_image, table.shape)
    both = {"rows": captions_by_image(owner), "columns": one_each(owner)}
    counted = count_gold(table, best_gold, ties, n_threads, **both)
    return RetrievalRanks(*(ranks_from_counts(*of, ties) for of in counted))


def check_same_shape(search_scores: Rows, annotation_scores: Rows) -> None:
    """Refuse scores of search for other images or captions than those of annotation."""
    if search_scores.shape != annotation_scores.shape:
        raise ValueError(
            f"{search_scores.name} must have the shape of {annotation_scores.name}, "
            f"{annotation_scores.shape}, rows are images in both, got {search_scores.shape}"
        )


class Targets(NamedTuple):
    """Scores that the candidates of every query are compared with.

    The first axis is one of layers: the first gold candidate of all queries, then the second.
    """

    scores: Array
    first: Integers  # index of the first gold candidate with that score
    n_best: Integers  # gold candidates with that score; 0 where a query has none in a layer

    def part(self, queries: slice, first_candidate: int) -> tuple[Array, Array]:
        """Return those of some queries, among candidates that are counted from another one."""
        scores, first, n_best = (values[:, queries] for values in self)
        used = max(1, np.count_nonzero(n_best.any(axis=1)))  # none where all scores are NaN
        places = np.ascontiguousarray(first[:used] - first_candidate)
        return np.ascontiguousarray(scores[:used]), places


def best_gold(gold: GoldItems, gold_scores: Array) -> Targets:
    """Return the best gold candidate of every query; `gold_scores` are of all of them."""
    starts = gold.offsets[:-1]
    best = np.maximum.reduceat(gold_scores, starts)
    is_best = gold_scores == np.repeat(best, gold.n_gold)
    outside = np.iinfo(np.int64).max
    first = np.minimum.reduceat(np.where(is_best, gold.candidates, outside), starts)
    n_best = np.add.reduceat(is_best, starts, dtype=np.int64)
    return Targets(best[np.newaxis], first[np.newaxis], n_best[np.newaxis])


def every_gold(gold: GoldItems, gold_scores: Array) -> Targets:
    """Return all gold candidates of every query, one layer for each."""
    shape = (int(gold.n_gold.max()), len(gold.n_gold))
    place = _layer_of(gold), gold.query
    scores = np.full(shape, np.inf, dtype=gold_scores.dtype)
    first, is_here = np.zeros((2, *shape), dtype=np.int64)
    scores[place], first[place], is_here[place] = gold_scores, gold.candidates, 1
    return Targets(scores, first, is_here)


class Counter:
    """Counts the candidates ahead of every target, piece by piece, in any order.

    Queries are rows, columns, or both.

    Attributes
    ----------
    counts : tuple of ndarray of int64, shape (2 or 3, n_layers, n_queries), or None
        Of the targets of the rows and of the columns: greater candidates, equal ones, and
        under "ordinal" equal ones before it.
    """

    def __init__(self, targets: Sequence[Targets | None], ties: str) -> None:
        self._targets, self._is_ordered = targets, ties == "ordinal"
        n_kinds = 3 if self._is_ordered else 2
        self.counts: tuple[Any, ...] = tuple(
            None if own is None else np.zeros((n_kinds, *own.scores.shape), np.int64)
            for own in targets
        )

    def add(self, rows: slice, columns: slice, scores: Array, n_threads: int) -> bool:
        """Count in the C-contiguous scores of some rows and columns; say if one is NaN."""
        sides: list[tuple[Array, Array, Integers] | None] = []
        for own, total, queries, candidates in zip(
            self._targets, self.counts, (rows, columns), (columns, rows), strict=True
        ):
            if own is None:
                sides.append(None)
                continue
            part = own.part(queries, candidates.start)
            sides.append((*part, np.empty((len(total), part[0].size), np.int64)))
        n_layers = max(len(side[0]) for side in sides if side is not None)
        threads = threads_for(n_threads, n_layers * scores.size / 4)
        has_nan = _core.count_ranks(
            scores, sides[0], sides[1], self._is_ordered, threads, attentive(None)
        )
        for total, side, queries in zip(self.counts, sides, (rows, columns), strict=True):
            if side is not None:
                gold, _, found = side
                total[:, : len(gold), queries] += found.reshape(-1, *gold.shape)
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
        None if rows is None else targets(rows, table.at(rows.query, rows.candidates)),
        None
        if columns is None
        else targets(columns, table.at(columns.candidates, columns.query)),
    ]
    whole = table.whole()
    step = 1 if whole is None or whole.flags.c_contiguous else -1  # or the matrix is turned
    counter = Counter(sides[::step], ties)
    for span, piece in table.pieces() if whole is None else [(slice(0, len(whole)), whole)]:
        here, there = [span, slice(0, piece.shape[1])][::step]
        if counter.add(here, there, piece if step == 1 else piece.T, n_threads):
            places = np.argwhere(np.isnan(piece)).tolist()
            where = f"at [{span.start + places[0][0]}, {places[0][1]}]" if places else _GONE
            raise ValueError(f"{table.name} must not hold NaN, got NaN {where}")
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
        starts = np.cumsum(self.n_gold) - self.n_gold
        greater = np.minimum.reduceat(self.greater, starts)
        is_best = self.greater == np.repeat(greater, self.n_gold)
        n_best = np.add.reduceat(is_best, starts, dtype=np.int64)
        first = np.flatnonzero(is_best)[np.cumsum(n_best) - n_best]
        counts = [part[first] for part in self[1:] if part is not None]
        return [ranks_from_counts(counts, n_best, rule) for rule in rules]


def by_gold(counts: Integers, gold: GoldItems) -> Integers:
    """Return the counts of `every_gold` for one gold candidate after the other."""
    return counts[:, _layer_of(gold), gold.query]


def ranks_from_counts(
    counts: Sequence[Integers] | Integers, n_best: Integers, ties: str
) -> npt.NDArray[np.float64]:
    """Ranks of the best gold candidates, by the rules of `gold_ranks`."""
    greater, tied = counts[:2]
    if ties == "mean":
        ahead = (tied + 1) / (n_best + 1) - 1
    elif ties == "min":
        ahead = np.zeros(greater.shape)
    else:
        ahead = counts[2] if ties == "ordinal" else tied - n_best
    return np.asarray(1 + greater + ahead, dtype=np.float64).ravel()


def _layer_of(gold: GoldItems) -> Positions:
    """Return the number of each gold candidate among those of its query."""
    return np.arange(len(gold.candidates)) - np.repeat(gold.offsets[:-1], gold.n_gold)
