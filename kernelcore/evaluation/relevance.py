"""Evaluation with several relevant items for each query, from scores or ranked lists."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Sequence
from typing import Any, Unpack

import numpy as np
import numpy.typing as npt

from kernelcore._check import Array, as_list, check_choice, check_real
from kernelcore.datasets.judgments import RelevanceJudgments
from kernelcore.evaluation._inputs import Positions, as_gold, as_ks, as_rows
from kernelcore.evaluation.metrics import Integers, RankedRelevance, ranked_by_counts
from kernelcore.evaluation.ranks import TIE_RULES, Ties, check_same_shape
from kernelcore.evaluation.result import Labels, Result, checked_labels

_QUERIES_AT_ONCE = 256  # columns that are copied out of a matrix of rows together


def rank_relevant(
    scores: npt.ArrayLike,
    relevant: npt.ArrayLike | Sequence[Sequence[int]],
    *,
    ties: Ties = "mean",
) -> RankedRelevance:
    """Rank the relevant candidates of every query, from a matrix of scores.

    Parameters
    ----------
    scores : array_like of shape (n_queries, n_candidates)
        Higher is better. Infinite scores are allowed and tie with their equals.
    relevant : sequence of sequences of int, or array_like of bool or int
        The indices of the relevant candidates of each query, none or more; or a boolean
        matrix of the shape of `scores`; or one index per query. `RelevanceJudgments` gives
        such indices: ``relevant_captions(threshold)`` for rows that are images.
    ties : {"mean", "min", "max", "ordinal"}, default="mean"
        What equal scores mean: "mean" the expectation over their random orders; "min"
        relevant candidates before the others; "max" after them; "ordinal" the order of their
        index. Only the last depends on the order of the columns.

    Returns
    -------
    RankedRelevance

    Raises
    ------
    TypeError
        If `scores` does not hold real numbers or `relevant` does not hold integers or
        booleans.
    ValueError
        If `scores` is not 2-D, is empty or holds NaN, or `relevant` does not fit it: an index
        out of range or named twice, or no query with a relevant candidate.

    See Also
    --------
    gold_ranks : The rank of the first relevant candidate alone, without sorting.
    rank_lists : The same from ranked lists of ids.
    kernelcore.reference.evaluation.relevance_metrics : By listing all orders.

    Notes
    -----
    Sorts one row at a time, O(n_candidates) memory beyond the result; pass the transpose of a
    matrix to rank its columns, which is not copied as a whole.

    Examples
    --------
    >>> from kernelcore.evaluation import rank_relevant
    >>> tied = [[0.5, 0.5, 0.1]]
    >>> [float(rank_relevant(tied, [[0]], ties=rule).precision_at_k(1)[0])
    ...  for rule in ("mean", "min", "max", "ordinal")]
    [0.5, 1.0, 0.0, 1.0]
    """
    return _ranked("scores", as_rows("scores", scores).matrix(), relevant, ties)


def _ranked(name: str, matrix: Array, relevant: Any, ties: str) -> RankedRelevance:
    """Rank the rows of the checked `matrix`, which is called `name` in errors."""
    check_choice("ties", ties, TIE_RULES)
    items = as_gold(relevant, matrix.shape, name="relevant", allow_empty=True)
    greater, equal, before = np.zeros((3, len(items.candidates)), np.int64)
    for start in range(0, len(matrix), _QUERIES_AT_ONCE):
        rows = np.ascontiguousarray(matrix[start : start + _QUERIES_AT_ONCE])
        for query, row in enumerate(rows, start):
            if np.isnan(row.max()):
                raise ValueError(
                    f"{name} must not hold NaN, got NaN for query {query}, candidate "
                    f"{np.isnan(row).argmax()}"
                )
            span = slice(items.offsets[query], items.offsets[query + 1])
            greater[span], equal[span] = count_in_row(row, items.candidates[span])
            for place in span.start + np.flatnonzero(equal[span] > 1):
                candidate = items.candidates[place]
                before[place] = np.count_nonzero(row[:candidate] == row[candidate])
    counts = greater, equal, before
    return ranked_by_counts(items.n_gold, *counts, n_candidates=matrix.shape[1], ties=ties)


def count_in_row(row: Array, candidates: Positions) -> tuple[Integers, Integers]:
    """Count the scores that are greater than those of some candidates, and that are equal."""
    ordered, own = np.sort(row), row[candidates]
    not_greater = np.searchsorted(ordered, own, side="right")
    return len(row) - not_greater, not_greater - np.searchsorted(ordered, own, side="left")


def rank_lists(
    lists: Sequence[Sequence[Hashable]], relevant: Sequence[Collection[Hashable]]
) -> RankedRelevance:
    """Rank the relevant items of every query, from ranked lists of ids.

    Parameters
    ----------
    lists : sequence of sequences
        Ids that each query retrieved, the best first, none twice. Lists may be cut off.
    relevant : sequence of collections
        Ids that are relevant to each query. One that the list does not name was not found.

    Returns
    -------
    RankedRelevance
        With ``ties="ordinal"``: the lists say in which order tied items stand. There are as
        many candidates as the longest list has.

    Raises
    ------
    ValueError
        If there is not one collection per list, a list names an item twice, all lists are
        empty, or no query has a relevant item.

    Examples
    --------
    >>> from kernelcore.evaluation import rank_lists
    >>> rank_lists([["a", "b", "c"]], [{"b", "z"}]).average_precision()
    array([0.25])
    """
    lists = [as_list("lists", ids) for ids in as_list("lists", lists)]
    relevant = as_list("relevant", relevant)
    if len(lists) != len(relevant):
        raise ValueError(
            f"relevant must have one entry per list ({len(lists)}), got {len(relevant)}"
        )
    query, before, n_relevant = [], [], []
    for number, (ids, items) in enumerate(zip(lists, relevant, strict=True)):
        distinct, wanted = _as_set("lists", ids), _as_set("relevant", items)
        if len(distinct) != len(ids):
            raise ValueError(f"lists must name an item once, got one twice in list {number}")
        n_relevant.append(len(wanted))
        found = [place for place, entry in enumerate(ids) if entry in wanted]
        query += [number] * len(found)
        before += found
    if not any(lists) or not any(n_relevant):
        raise ValueError("lists and relevant must name an item of one of the queries")
    ones = np.ones(len(query), dtype=np.int64)
    queries, places = np.array([query, before], dtype=np.int64)
    n = np.array(n_relevant)
    return RankedRelevance(queries, places, ones, ones, n, max(map(len, lists)), "ordinal")


def _as_set(name: str, items: Any) -> set[Hashable]:
    """Return the distinct items of a collection."""
    try:
        return set(as_list(name, items))
    except TypeError as error:
        raise TypeError(f"{name} must hold collections of hashable items: {error}") from None


def evaluate_relevance(
    annotation_scores: npt.ArrayLike,
    search_scores: npt.ArrayLike | None = None,
    *,
    judgments: RelevanceJudgments,
    threshold: float,
    ties: Ties = "mean",
    ks: Sequence[int] = (1, 5, 10),
    **labels: Unpack[Labels],
) -> Result:
    """Evaluate image annotation and image search where many captions fit many images.

    Parameters
    ----------
    annotation_scores : array_like of shape (n_images, n_captions)
        Score of every caption for every image; higher is better.
    search_scores : array_like of shape (n_images, n_captions), optional
        Scores for image search where a model has others for that task, in the same
        orientation: rows are images.
    judgments : RelevanceJudgments
        Judgments of the pool, whose images are the rows and whose captions are the columns:
        what `RelevanceJudgments.select` gives.
    threshold : float
        Pairs with at least this score are relevant. All others are not, judged or unjudged.
    ties : {"mean", "min", "max", "ordinal"}, default="mean"
        The tie rule of `rank_relevant`.
    ks : sequence of int, default=(1, 5, 10)
        The k of success, precision, recall and F1.
    **labels : str or mapping, optional
        `system`, `protocol`, `dataset`, `split` and `pool`, one line of text each, and
        `settings`, a mapping of anything JSON can hold: they are stored in the result.

    Returns
    -------
    Result
        Of the tasks ``annotation`` and ``search``, with the metrics of
        `RankedRelevance.metrics`.

    Raises
    ------
    TypeError, ValueError
        If the scores are not a matrix of numbers, hold NaN or differ in shape, the judgments
        are of another pool, no query of a direction has a relevant item, or another argument
        is out of range.

    Notes
    -----
    A query without relevant items has the value NaN and is left out of the means. Relevance
    that nobody judged counts as none, so that systems which took part in choosing what was
    judged have an advantage over later ones.

    References
    ----------
    .. [1] M. Hodosh, P. Young and J. Hockenmaier, "Framing image description as a ranking
       task: data, models and evaluation metrics", JAIR 47, 2013, section 5.3.

    Examples
    --------
    >>> from kernelcore.datasets import RelevanceJudgments
    >>> from kernelcore.evaluation import evaluate_relevance
    >>> crowd = RelevanceJudgments.from_pairs(
    ...     "crowd", [("a", "a#0"), ("a", "b#0"), ("b", "b#0")], [1, 0.6, 1]
    ... )
    >>> pool = crowd.select(["a", "b"], ["a#0", "b#0"])
    >>> scores = [[0.2, 0.9], [0.8, 0.3]]
    >>> result = evaluate_relevance(scores, judgments=pool, threshold=0.5, ks=(1, 2))
    >>> result.mean["annotation"]["R-precision"]
    0.5
    >>> from kernelcore.evaluation import ResultTable
    >>> print(ResultTable([result], metrics=["S@1", "mAP@R"]))  # doctest: +ELLIPSIS
               - annotation -  -- search -
    system      S@1     mAP@R   S@1  mAP@R
    (unnamed)  50.0      50.0  50.0   50.0
    shares in percent; relevant by crowd >= 0.5, 2 images, 2 captions, ties mean, ...
    """
    checked = checked_labels(labels)
    by_image = as_rows("annotation_scores", annotation_scores)
    by_caption = by_image if search_scores is None else as_rows("search_scores", search_scores)
    check_same_shape(by_caption, by_image)
    check_pool("judgments", judgments, by_image.shape)
    threshold = check_real("threshold", threshold)
    captions = judgments.relevant_captions(threshold)
    images = judgments.relevant_images(threshold)
    ranked = {
        "annotation": _ranked(by_image.name, by_image.matrix(), captions, ties),
        "search": _ranked(by_caption.name, by_caption.matrix().T, images, ties),
    }
    cutoffs = as_ks(ks)
    return Result(
        {task: of.metrics(cutoffs) for task, of in ranked.items()},
        facts={
            "relevance": f"{judgments.name} >= {threshold:.6g}",
            "n_images": by_image.shape[0],
            "n_captions": by_image.shape[1],
            "ties": ties,
        },
        shown=(*(f"S@{k}" for k in cutoffs), "R-precision", "mean_average_precision", "mAP@R"),
        n_relevant={task: of.n_relevant for task, of in ranked.items()},
        n_candidates={
            task: np.full(of.n_queries, of.n_candidates) for task, of in ranked.items()
        },
        **checked,
    )


def check_pool(name: str, judgments: RelevanceJudgments, shape: tuple[int, ...]) -> None:
    """Refuse judgments of another number of images or captions than the scores have."""
    if not isinstance(judgments, RelevanceJudgments):
        raise TypeError(f"{name} must be RelevanceJudgments, got {type(judgments).__name__}")
    pool = len(judgments.image_ids), len(judgments.caption_ids)
    if pool != shape:
        raise ValueError(
            f"{name} must be of the pool of the scores, {shape[0]} images and {shape[1]} "
            f"captions, got {pool[0]} and {pool[1]}; RelevanceJudgments.select brings them "
            "into its order"
        )
