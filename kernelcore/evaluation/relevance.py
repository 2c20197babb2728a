"""Evaluation with several relevant items for each query, from scores or ranked lists."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, Unpack

import numpy as np
import numpy.typing as npt

from kernelcore._check import Array, as_list, check_choice, check_integer, check_real
from kernelcore.datasets.judgments import RelevanceJudgments
from kernelcore.evaluation._inputs import GoldItems, as_gold, as_rows
from kernelcore.evaluation.ranks import TIE_RULES, Ties, as_scores, check_same_shape
from kernelcore.evaluation.result import Labels, Result, checked_labels

Floats: TypeAlias = npt.NDArray[np.float64]
Integers: TypeAlias = npt.NDArray[np.int64]

_QUERIES_AT_ONCE = 256  # columns that are copied out of a matrix of rows together


@dataclass(frozen=True, eq=False, repr=False)
class RankedRelevance:
    r"""Ranks of the relevant candidates of every query.

    Made by `rank_relevant` from scores or by `rank_lists` from lists. Its methods give one
    value per query, which paired significance tests compare.

    A *block* is a run of places that share :math:`m \ge 1` relevant candidates: a single
    place with one, or all places of tied candidates where ``ties="mean"``.

    Attributes
    ----------
    query, before, size, count : ndarray of int64, shape (n_blocks,)
        The query of each block, ascending; how many candidates stand before the block,
        ascending within a query; its places :math:`t`; its relevant candidates :math:`m`.
    n_relevant : ndarray of int64, shape (n_queries,)
        Relevant candidates of each query, ranked or not.
    n_candidates : int
        Candidates that each query ranks.
    ties : str
        The tie rule of `rank_relevant`.
    without : float, default NaN
        Value of queries without relevant candidates: NaN leaves them out of means, 0 counts
        them as failures, as trec_eval does.

    Notes
    -----
    Which queries have no relevant candidates does not depend on the system, so that systems
    stay comparable query by query.

    With :math:`R` relevant candidates, :math:`\mathrm{hits}(k)` of them among the first k and
    :math:`P(i) = \mathrm{hits}(i) / i`, the methods compute

    ============================ ==========================================================
    `success_at_k`               1 if the rank of the first relevant candidate is <= k
    `precision_at_k`             :math:`\mathrm{hits}(k) / k`
    `recall_at_k`                :math:`\mathrm{hits}(k) / R`
    `f1_at_k`                    :math:`2\,\mathrm{hits}(k) / (k + R)`
    `r_precision`                :math:`\mathrm{hits}(R) / R`
    `average_precision`          :math:`\frac{1}{R} \sum_{i \text{ relevant}} P(i)`
    `average_precision_at_r`     the same sum over the first R places only
    `reciprocal_rank`            1 / rank of the first relevant candidate
    `ndcg_at_k`                  :math:`\sum_{i \text{ relevant}, i \le k} d_i \Big/
                                 \sum_{i \le \min(R, k)} d_i,\; d_i = 1 / \log_2(i + 1)`
    ============================ ==========================================================

    Under ``ties="mean"`` they are exact expectations over random orders of tied candidates
    [2]_, except for the two that look at the first relevant candidate alone: these take its
    mean rank as `gold_ranks` does, so that success is 0 or 1, as McNemar's test needs it, and
    equals ``R@k`` of `evaluate` where every query has one relevant item.

    References
    ----------
    .. [1] C. D. Manning, P. Raghavan and H. Schuetze, "Introduction to Information
       Retrieval", 2008, ch. 8.
    .. [2] F. McSherry and M. Najork, "Computing information retrieval performance measures
       efficiently in the presence of tied scores", ECIR 2008.
    .. [3] K. Musgrave, S. Belongie and S.-N. Lim, "A metric learning reality check", ECCV
       2020 (mean average precision at R).
    .. [4] K. Jarvelin and J. Kekalainen, "Cumulated gain-based evaluation of IR techniques",
       ACM Transactions on Information Systems 20(4), 2002.

    Examples
    --------
    >>> from kernelcore.evaluation import rank_relevant
    >>> ranked = rank_relevant([[0.9, 0.8, 0.7, 0.6], [0.1, 0.2, 0.3, 0.4]], [[0, 2], [0]])
    >>> ranked
    RankedRelevance(2 queries, 3 relevant items among 4 candidates, ties mean)
    >>> ranked.r_precision(), ranked.average_precision()
    (array([0.5, 0. ]), array([0.83333333, 0.25      ]))
    """

    query: Integers
    before: Integers
    size: Integers
    count: Integers
    n_relevant: Integers
    n_candidates: int
    ties: str
    without: float = np.nan

    def __repr__(self) -> str:
        return (
            f"RankedRelevance({self.n_queries} queries, {self.n_relevant.sum()} relevant items "
            f"among {self.n_candidates} candidates, ties {self.ties})"
        )

    @property
    def n_queries(self) -> int:
        """Number of queries, with relevant candidates or without."""
        return len(self.n_relevant)

    def first_rank(self) -> Floats:
        """Rank of the first relevant candidate as `gold_ranks` has it; inf if not ranked."""
        ranks = np.full(self.n_queries, np.inf)
        queries, first = np.unique(self.query, return_index=True)
        ranks[queries] = self.before[first] + (self.size[first] + 1) / (self.count[first] + 1)
        return np.where(self.n_relevant > 0, ranks, np.nan)

    def reciprocal_rank(self) -> Floats:
        """Reciprocal of `first_rank`; 0 if no relevant candidate is ranked."""
        return self._of_queries(1 / self.first_rank())

    def success_at_k(self, k: int) -> Floats:
        """1 where the first relevant candidate has a rank of at most `k`, else 0."""
        k = check_integer("k", k, minimum=1)
        return self._of_queries((self.first_rank() <= k).astype(np.float64))

    def precision_at_k(self, k: int) -> Floats:
        """Share of relevant candidates among the first `k` places, filled or not."""
        k = check_integer("k", k, minimum=1)
        return self._of_queries(self._hits(k) / k)

    def recall_at_k(self, k: int) -> Floats:
        """Share of the relevant candidates that stand among the first `k`.

        Not the recall at k of the cross-modal literature, which is `success_at_k`.
        """
        k = check_integer("k", k, minimum=1)
        return self._per_relevant(self._hits(k))

    def f1_at_k(self, k: int) -> Floats:
        """Harmonic mean of precision and recall at `k`; 0 where both are."""
        k = check_integer("k", k, minimum=1)
        return self._of_queries(2 * self._hits(k) / (k + self.n_relevant))

    def r_precision(self) -> Floats:
        """Precision at the number of relevant candidates of each query."""
        return self._per_relevant(self._hits(self.n_relevant))

    def average_precision(self) -> Floats:
        """Mean, over the relevant candidates, of the precision at their places."""
        return self._per_relevant(self._precision_sum(np.full(self.n_queries, np.inf)))

    def average_precision_at_r(self) -> Floats:
        """Like `average_precision`, over the first R places only, R being the relevant ones."""
        return self._per_relevant(self._precision_sum(self.n_relevant))

    def ndcg_at_k(self, k: int) -> Floats:
        """Normalised discounted cumulative gain of the first `k` places, gains 0 and 1."""
        k = check_integer("k", k, minimum=1)
        length = min(k, max(self.n_candidates, int(self.n_relevant.max())))
        discounts = 1 / np.log2(np.arange(2, length + 2))
        gained = np.concatenate(([0.0], np.cumsum(discounts)))
        first, last = (
            np.minimum(place, length) for place in (self.before, self.before + self.size)
        )
        gains = self._sum(self.count * (gained[last] - gained[first]) / self.size)
        best = gained[np.clip(self.n_relevant, 1, length)]
        return self._of_queries(np.minimum(gains / best, 1))

    def metrics(self, ks: Sequence[int] = (1, 5, 10)) -> dict[str, Floats]:
        """Values of every query by metric.

        Parameters
        ----------
        ks : sequence of int, default=(1, 5, 10)
            The k of success, precision, recall and F1.

        Returns
        -------
        dict of str to ndarray of float64, shape (n_queries,)
            ``S@k``, ``P@k``, ``recall@k`` and ``F1@k`` for each k, then ``R-precision``,
            ``mean_average_precision``, ``mAP@R`` and ``mean_reciprocal_rank``.

        Examples
        --------
        >>> from kernelcore.evaluation import rank_lists
        >>> rank_lists([["a", "b", "c", "d"]], [{"b", "c"}]).metrics(ks=[2])
        {'S@2': array([1.]), 'P@2': array([0.5]), 'recall@2': array([0.5]), ...}
        """
        at_k = {
            "S": self.success_at_k,
            "P": self.precision_at_k,
            "recall": self.recall_at_k,
            "F1": self.f1_at_k,
        }
        cutoffs = as_ks(ks)
        return {
            **{f"{name}@{k}": of(k) for name, of in at_k.items() for k in cutoffs},
            "R-precision": self.r_precision(),
            "mean_average_precision": self.average_precision(),
            "mAP@R": self.average_precision_at_r(),
            "mean_reciprocal_rank": self.reciprocal_rank(),
        }

    def _hits(self, k: int | Integers) -> Floats:
        """Relevant candidates expected among the first `k`, which may differ by query."""
        limit = np.broadcast_to(k, self.n_queries)[self.query]
        places = np.clip(limit - self.before, 0, self.size)
        return self._sum(self.count * places / self.size)

    def _precision_sum(self, limit: Array) -> Floats:
        """Sum of the expected precision at the relevant places up to `limit`, by query."""
        # Place j of a block holds a relevant candidate with probability m / t; if it does,
        # (j - 1) r others are expected in the block before it, r = (m - 1) / (t - 1). With s
        # relevant ones before the block, b places, the precision there is
        # (s + 1 + (j - 1) r) / (b + j) = r + (s + 1 - r (b + 1)) / (b + j).
        seen = np.cumsum(self.count) - self.count
        seen -= seen[np.searchsorted(self.query, self.query)]
        places = np.clip(limit[self.query] - self.before, 0, self.size).astype(np.int64)
        rate = (self.count - 1) / np.maximum(self.size - 1, 1)
        harmonic = np.concatenate(([0.0], np.cumsum(1 / np.arange(1, self.n_candidates + 1))))
        reciprocals = np.where(
            self.size == 1,
            places / (self.before + 1),
            harmonic[self.before + places] - harmonic[self.before],
        )
        precisions = places * rate + (seen + 1 - rate * (self.before + 1)) * reciprocals
        return self._sum(self.count * precisions / self.size)

    def _sum(self, values: Floats) -> Floats:
        sums: Floats = np.bincount(self.query, values, self.n_queries).astype(np.float64)
        return sums

    def _per_relevant(self, values: Floats) -> Floats:
        shares = values / np.maximum(self.n_relevant, 1)
        return self._of_queries(np.minimum(shares, 1))  # a sum may end a rounding above

    def _of_queries(self, values: Floats) -> Floats:
        return np.where(self.n_relevant > 0, values, self.without)


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
    return _ranked("scores", as_scores("scores", scores), relevant, ties)


def _ranked(name: str, matrix: Array, relevant: Any, ties: str) -> RankedRelevance:
    """Rank the rows of the checked `matrix`, which is called `name` in errors."""
    check_choice("ties", ties, TIE_RULES)
    items = as_gold(relevant, matrix.shape, name="relevant", allow_empty=True)
    counts = _places(name, matrix, items)
    return ranked_by_counts(
        np.diff(items.offsets), *counts, n_candidates=matrix.shape[1], ties=ties
    )


def ranked_by_counts(
    n_relevant: Integers,
    before: Integers,
    size: Integers,
    before_tied: Integers | None,
    *,
    n_candidates: int,
    ties: str,
) -> RankedRelevance:
    """Rank by the `GoldPlaces` of the relevant candidates; a query may have none."""
    if before_tied is None:
        before_tied = np.zeros_like(before)
    query = np.repeat(np.arange(len(n_relevant)), n_relevant)
    if n_relevant.max(initial=0) > 1:  # else in order already
        order = np.lexsort((before, query))
        query, before, size, before_tied = (
            part[order] for part in (query, before, size, before_tied)
        )
    starts = np.flatnonzero(
        np.concatenate(([True], (np.diff(query) != 0) | (np.diff(before) != 0)))
    )
    count = np.diff(np.append(starts, len(query)))
    if ties == "mean":
        query, before, size = query[starts], before[starts], size[starts]
    else:  # every relevant candidate has a place of its own
        place = np.arange(len(query)) - np.repeat(starts, count)
        others = size - np.repeat(count, count)
        before = before + {"min": place, "max": place + others, "ordinal": before_tied}[ties]
        order = np.lexsort((before, query))
        before, size, count = before[order], np.ones_like(size), np.ones_like(size)
    return RankedRelevance(query, before, size, count, n_relevant, n_candidates, ties)


def _places(name: str, matrix: Array, items: GoldItems) -> tuple[Integers, Integers, Integers]:
    """Count greater scores, equal ones, and those before it, for each relevant candidate."""
    greater, equal, before = (np.empty(len(items.candidates), np.int64) for _ in range(3))
    for start in range(0, len(matrix), _QUERIES_AT_ONCE):
        rows = np.ascontiguousarray(matrix[start : start + _QUERIES_AT_ONCE])
        for query, row in enumerate(rows, start):
            ordered = np.sort(row)
            if np.isnan(ordered[-1]):
                column = int(np.flatnonzero(np.isnan(row))[0])
                raise ValueError(
                    f"{name} must not hold NaN, got NaN for query {query}, candidate {column}"
                )
            span = slice(items.offsets[query], items.offsets[query + 1])
            candidates = items.candidates[span]
            above = np.searchsorted(ordered, row[candidates], side="right")
            greater[span] = len(row) - above
            equal[span] = above - np.searchsorted(ordered, row[candidates], side="left")
            before[span] = 0
            for place in np.flatnonzero(equal[span] > 1):
                candidate = candidates[place]
                before[span.start + place] = np.count_nonzero(row[:candidate] == row[candidate])
    return greater, equal, before


def rank_lists(
    lists: Sequence[Sequence[Hashable]],
    relevant: Sequence[Collection[Hashable]],
    *,
    n_candidates: int | None = None,
) -> RankedRelevance:
    """Rank the relevant items of every query, from ranked lists of ids.

    Parameters
    ----------
    lists : sequence of sequences
        Ids that each query retrieved, the best first, none twice. Lists may be cut off.
    relevant : sequence of collections
        Ids that are relevant to each query. One that the list does not name was not found.
    n_candidates : int, optional
        Candidates that there were; by default the length of the longest list.

    Returns
    -------
    RankedRelevance
        With ``ties="ordinal"``: the lists say in which order tied items stand.

    Raises
    ------
    ValueError
        If there is not one collection per list, a list names an item twice or is longer than
        `n_candidates`, all lists are empty, or no query has a relevant item.

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
    longest = max((len(ids) for ids in lists), default=0)
    n_candidates = check_integer(
        "n_candidates", longest if n_candidates is None else n_candidates, minimum=1
    )
    if longest > n_candidates:
        raise ValueError(f"lists must have at most {n_candidates} ids, got one of {longest}")
    query, before, n_relevant = [], [], []
    for number, (ids, items) in enumerate(zip(lists, relevant, strict=True)):
        distinct, wanted = as_set("lists", ids), as_set("relevant", items)
        if len(distinct) != len(ids):
            raise ValueError(f"lists must name an item once, got one twice in list {number}")
        n_relevant.append(len(wanted))
        found = [place for place, entry in enumerate(ids) if entry in wanted]
        query += [number] * len(found)
        before += found
    if not any(n_relevant):
        raise ValueError("relevant must name at least one item for one of the queries")
    ones = np.ones(len(query), dtype=np.int64)
    return RankedRelevance(
        np.array(query, dtype=np.int64),
        np.array(before, dtype=np.int64),
        ones,
        ones,
        np.array(n_relevant, dtype=np.int64),
        n_candidates,
        "ordinal",
    )


def as_set(name: str, items: Any) -> set[Hashable]:
    """Return the distinct items of a collection."""
    try:
        return set(as_list(name, items))
    except TypeError as error:
        raise TypeError(f"{name} must hold collections of hashable items: {error}") from None


def as_ks(ks: Sequence[int]) -> tuple[int, ...]:
    """Return the k of the metrics, ascending and each once."""
    return tuple(sorted({check_integer("ks", k, minimum=1) for k in as_list("ks", ks)}))


def evaluate_relevance(
    annotation_scores: npt.ArrayLike,
    search_scores: npt.ArrayLike | None = None,
    *,
    judgments: RelevanceJudgments,
    threshold: float,
    search_judgments: RelevanceJudgments | None = None,
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
    search_judgments : RelevanceJudgments, optional
        Judgments for search where they were collected apart, on the same pool.
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
    by_image = as_scores("annotation_scores", annotation_scores)
    by_caption, search_name = by_image, "annotation_scores"
    if search_scores is not None:
        by_caption, search_name = as_scores("search_scores", search_scores), "search_scores"
        check_same_shape(
            as_rows(search_name, by_caption), as_rows("annotation_scores", by_image)
        )
    by_search = judgments if search_judgments is None else search_judgments
    check_pool("judgments", judgments, by_image.shape)
    check_pool("search_judgments", by_search, by_image.shape)
    threshold = check_real("threshold", threshold)
    relevant = judgments.relevant_captions(threshold), by_search.relevant_images(threshold)
    ranked = {
        "annotation": _ranked("annotation_scores", by_image, relevant[0], ties),
        "search": _ranked(search_name, by_caption.T, relevant[1], ties),
    }
    names = dict.fromkeys((judgments.name, by_search.name))
    cutoffs = as_ks(ks)
    return Result(
        {task: of.metrics(cutoffs) for task, of in ranked.items()},
        facts={
            "relevance": f"{' and '.join(names)} >= {threshold:.6g}",
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
