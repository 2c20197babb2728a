"""Ranks of the gold items, from a matrix of scores, without sorting it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from kernelcore import _core
from kernelcore._check import Array, as_real_array, check_choice
from kernelcore._threads import attentive, resolve_n_threads, threads_for
from kernelcore.evaluation._inputs import (
    GoldItems,
    as_caption_image,
    as_gold,
    captions_by_image,
    one_each,
)

__all__ = [
    "RetrievalRanks",
    "Ties",
    "annotation_ranks",
    "gold_ranks",
    "retrieval_ranks",
    "search_ranks",
]

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
    (ranks,) = ranks_of("scores", matrix, ties, n_threads, rows=as_gold(gold, matrix.shape))
    return ranks


def annotation_ranks(
    scores: npt.ArrayLike,
    caption_image: npt.ArrayLike | None = None,
    *,
    ties: Ties = "mean",
    n_threads: int | None = None,
) -> npt.NDArray[np.float64]:
    """Rank, for every image, of the best of its own captions among all captions.

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
    ndarray of float64, shape (n_images,)
        Ranks from 1 to n_captions.

    Raises
    ------
    TypeError, ValueError
        As `gold_ranks`.

    Examples
    --------
    >>> from kernelcore.evaluation.ranks import annotation_ranks
    >>> annotation_ranks([[0.9, 0.1, 0.4], [0.8, 0.2, 0.3]], [0, 1, 1])
    array([1., 2.])
    """
    matrix = as_scores("scores", scores)
    owner = as_caption_image(caption_image, matrix.shape)
    (ranks,) = ranks_of("scores", matrix, ties, n_threads, rows=captions_by_image(owner))
    return ranks


def search_ranks(
    scores: npt.ArrayLike,
    caption_image: npt.ArrayLike | None = None,
    *,
    ties: Ties = "mean",
    n_threads: int | None = None,
) -> npt.NDArray[np.float64]:
    """Rank, for every caption, of its own image among all images.

    Parameters
    ----------
    scores : array_like of shape (n_images, n_captions)
        Higher is better. The same orientation as for `annotation_ranks`.
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
    ndarray of float64, shape (n_captions,)
        Ranks from 1 to n_images.

    Raises
    ------
    TypeError, ValueError
        As `gold_ranks`.

    Examples
    --------
    >>> from kernelcore.evaluation.ranks import search_ranks
    >>> search_ranks([[0.9, 0.1, 0.4], [0.8, 0.2, 0.3]], [0, 1, 1])
    array([1., 1., 2.])
    """
    matrix = as_scores("scores", scores)
    owner = as_caption_image(caption_image, matrix.shape)
    (ranks,) = ranks_of("scores", matrix, ties, n_threads, columns=one_each(owner))
    return ranks


def retrieval_ranks(
    scores: npt.ArrayLike,
    caption_image: npt.ArrayLike | None = None,
    *,
    ties: Ties = "mean",
    n_threads: int | None = None,
) -> RetrievalRanks:
    """Compute the ranks of both tasks in one pass over the scores.

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
        What `annotation_ranks` and `search_ranks` return.

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
    matrix = as_scores("scores", scores)
    owner = as_caption_image(caption_image, matrix.shape)
    images, captions = captions_by_image(owner), one_each(owner)
    return RetrievalRanks(
        *ranks_of("scores", matrix, ties, n_threads, rows=images, columns=captions)
    )


def as_scores(name: str, scores: Any) -> Array:
    """Return `scores` as a C- or Fortran-contiguous matrix of float32 or float64."""
    fortran = isinstance(scores, np.ndarray) and scores.ndim == 2 and scores.flags.fnc
    matrix = as_real_array(name, scores.T if fortran else scores, ndim=2)
    if not matrix.size:
        raise ValueError(
            f"{name} must have at least one query and one candidate, got shape {matrix.shape}"
        )
    return matrix.T if fortran else matrix


def as_both_scores(
    annotation_scores: npt.ArrayLike, search_scores: npt.ArrayLike | None
) -> tuple[Array, Array, str]:
    """Return the scores of both tasks, and the name of the search scores in errors."""
    by_image = as_scores("annotation_scores", annotation_scores)
    if search_scores is None:
        return by_image, by_image, "annotation_scores"
    by_caption = as_scores("search_scores", search_scores)
    if by_caption.shape != by_image.shape:
        raise ValueError(
            f"search_scores must have the shape of annotation_scores, {by_image.shape}, "
            f"got {by_caption.shape}"
        )
    return by_image, by_caption, "search_scores"


def ranks_of(
    name: str,
    scores: Array,
    ties: str,
    n_threads: int | None,
    *,
    rows: GoldItems | None = None,
    columns: GoldItems | None = None,
) -> list[npt.NDArray[np.float64]]:
    """Rank the checked `scores`, called `name` in errors, along their rows, columns or both."""
    check_choice("ties", ties, TIE_RULES)
    step = 1 if scores.flags.c_contiguous else -1  # the columns of C-contiguous scores.T
    targets = [
        None if gold is None else targets_of(gold, _gold_scores(table, gold))
        for table, gold in ((scores, rows), (scores.T, columns))
    ]
    *counts, has_nan = count_candidates(
        scores if step == 1 else scores.T,
        *targets[::step],
        ties=ties,
        n_threads=resolve_n_threads(n_threads),
    )
    if has_nan:
        raise ValueError(f"{name} must not hold NaN, got NaN {place_of_nan(scores)}")
    return [
        ranks_from_counts(counted, target.n_best, ties)
        for counted, target in zip(counts[::step], targets, strict=True)
        if target is not None
    ]


class Targets(NamedTuple):
    """A gold candidate of every query: what the candidates are compared with.

    Several of each are layers, the first axis: the first of all queries, then the second, ...
    """

    scores: Array
    first: npt.NDArray[np.int64]  # index of the first gold candidate with that score
    n_best: npt.NDArray[np.int64]  # gold candidates with that score; 0 stands for no query

    def part(self, queries: slice, first_candidate: int) -> Targets:
        """Return those of some queries, among candidates that are counted from another one."""
        scores, first, n_best = (values[..., queries] for values in self)
        return Targets(scores, first - first_candidate, n_best)


def targets_of(gold: GoldItems, gold_scores: Array) -> Targets:
    """Return the targets, given the score of each of ``gold.candidates``."""
    starts = gold.offsets[:-1]
    best = np.maximum.reduceat(gold_scores, starts)
    is_best = gold_scores == np.repeat(best, np.diff(gold.offsets))
    outside = np.iinfo(np.int64).max
    return Targets(
        best,
        np.minimum.reduceat(np.where(is_best, gold.candidates, outside), starts),
        np.add.reduceat(is_best, starts, dtype=np.int64),
    )


def count_candidates(
    scores: Array,
    rows: Targets | None,
    columns: Targets | None,
    *,
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
        gold, first = map(np.atleast_2d, targets[:2])
        counts = np.empty((3 if ordered else 2, gold.size), dtype=np.int64)
        return np.ascontiguousarray(gold), np.ascontiguousarray(first), counts

    by_row, by_column = queries(rows), queries(columns)
    n_layers = max(len(side[0]) for side in (by_row, by_column) if side is not None)
    threads = threads_for(n_threads, n_layers * scores.size / 4)
    has_nan = _core.count_ranks(scores, by_row, by_column, ordered, threads, attentive(None))
    none = np.empty((0, 0), dtype=np.int64)
    return by_row[2] if by_row else none, by_column[2] if by_column else none, has_nan


def ranks_from_counts(
    counts: npt.NDArray[np.int64], n_best: npt.NDArray[np.int64], ties: str
) -> npt.NDArray[np.float64]:
    """Ranks of the best gold candidates, by the rules of `gold_ranks`."""
    greater, tied = counts[:2]
    if ties == "mean":
        ahead = (tied + 1) / (n_best + 1) - 1
    elif ties == "min":
        ahead = np.zeros(len(greater))
    else:
        ahead = counts[2] if ties == "ordinal" else tied - n_best
    return np.asarray(1 + greater + ahead, dtype=np.float64)


def place_of_nan(scores: Array, start: int = 0) -> str:
    """Say where the first NaN stands among scores whose first row has the number `start`."""
    for row, values in enumerate(scores, start):
        columns = np.flatnonzero(np.isnan(values))
        if columns.size:
            return f"at [{row}, {columns[0]}]"
    return "that is gone: they must not change during the call"


def _gold_scores(table: Array, gold: GoldItems) -> Array:
    queries = np.repeat(np.arange(len(table)), np.diff(gold.offsets))
    gold_scores: Array = table[queries, gold.candidates]
    return gold_scores
