"""Metrics of ranked relevant items, their chance, intervals, and means over folds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln, ndtri

from kernelcore._check import Array, check_integer
from kernelcore.evaluation._inputs import as_ks

Floats: TypeAlias = npt.NDArray[np.float64]
Integers: TypeAlias = npt.NDArray[np.int64]

_N_DRAWS = 1000  # of a bootstrap
_DRAWN_AT_ONCE = 1 << 20  # queries in them: 8 MiB


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

    @property
    def seen(self) -> Integers:
        """Relevant candidates of the query before each block."""
        seen = np.cumsum(self.count) - self.count
        return seen - seen[np.searchsorted(self.query, self.query)]

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
        return self._of_queries(self.hits(k) / k)

    def recall_at_k(self, k: int) -> Floats:
        """Share of the relevant candidates that stand among the first `k`.

        Not the recall at k of the cross-modal literature, which is `success_at_k`.
        """
        k = check_integer("k", k, minimum=1)
        return self._per_relevant(self.hits(k))

    def f1_at_k(self, k: int) -> Floats:
        """Harmonic mean of precision and recall at `k`; 0 where both are."""
        k = check_integer("k", k, minimum=1)
        return self._of_queries(2 * self.hits(k) / (k + self.n_relevant))

    def r_precision(self) -> Floats:
        """Precision at the number of relevant candidates of each query."""
        return self._per_relevant(self.hits(self.n_relevant))

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
        gains = self.sum(self.count * (gained[last] - gained[first]) / self.size)
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

    def hits(self, k: int | Integers) -> Floats:
        """Relevant candidates expected among the first `k`, which may differ by query."""
        limit = np.broadcast_to(k, self.n_queries)[self.query]
        places = np.clip(limit - self.before, 0, self.size)
        return self.sum(self.count * places / self.size)

    def _precision_sum(self, limit: Array) -> Floats:
        """Sum of the expected precision at the relevant places up to `limit`, by query."""
        # Place j of a block holds a relevant candidate with probability m / t; if it does,
        # (j - 1) r others are expected in the block before it, r = (m - 1) / (t - 1). With s
        # relevant ones before the block, b places, the precision there is
        # (s + 1 + (j - 1) r) / (b + j) = r + (s + 1 - r (b + 1)) / (b + j).
        places = np.clip(limit[self.query] - self.before, 0, self.size).astype(np.int64)
        rate = (self.count - 1) / np.maximum(self.size - 1, 1)
        harmonic = np.concatenate(([0.0], np.cumsum(1 / np.arange(1, self.n_candidates + 1))))
        reciprocals = np.where(
            self.size == 1,
            places / (self.before + 1),
            harmonic[self.before + places] - harmonic[self.before],
        )
        precisions = places * rate + (self.seen + 1 - rate * (self.before + 1)) * reciprocals
        return self.sum(self.count * precisions / self.size)

    def sum(self, values: Array) -> Floats:
        """Add up values of the blocks of each query."""
        sums: Floats = np.bincount(self.query, values, self.n_queries).astype(np.float64)
        return sums

    def _per_relevant(self, values: Floats) -> Floats:
        shares = values / np.maximum(self.n_relevant, 1)
        return self._of_queries(np.minimum(shares, 1))  # a sum may end a rounding above

    def _of_queries(self, values: Floats) -> Floats:
        return np.where(self.n_relevant > 0, values, self.without)


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


def chance_recall_at_k(
    n_candidates: npt.ArrayLike, k: npt.ArrayLike, *, n_relevant: npt.ArrayLike = 1
) -> Floats:
    r"""Recall at k that a random order of the candidates is expected to reach.

    .. math:: 1 - \binom{N - m}{k} \Big/ \binom{N}{k}

    for N candidates of which m are gold; k / N where there is one.

    Parameters
    ----------
    n_candidates : array_like of int
        Candidates per query, N.
    k : array_like of int
        Lengths of the list, at least 1. From N on the recall is 1.
    n_relevant : array_like of int, default=1
        Gold candidates per query, m, up to N.

    Returns
    -------
    ndarray of float64, the shape of all three broadcast
        NaN where nothing is relevant.

    Examples
    --------
    >>> from kernelcore.evaluation.metrics import chance_recall_at_k
    >>> chance_recall_at_k(1000, [1, 5, 10])
    array([0.001, 0.005, 0.01 ])
    """
    total, relevant = np.asarray(n_candidates), np.asarray(n_relevant)
    lengths = np.minimum(k, total)
    # No gold item among the first k: (N - m)! (N - k)! / (N! (N - m - k)!)
    rest = total - relevant - lengths
    log_miss = (
        gammaln(total - relevant + 1.0)
        + gammaln(total - lengths + 1.0)
        - gammaln(total + 1.0)
        - gammaln(np.maximum(rest, 0) + 1.0)
    )
    shares = np.where(rest < 0, 1.0, -np.expm1(log_miss))
    return np.where(relevant > 0, shares, np.nan)


def wilson_interval(share: float, n: int, confidence: float = 0.95) -> tuple[float, float]:
    r"""Wilson's score interval of a share of successes.

    With z the quantile of the normal distribution for the confidence and p the share,

    .. math::

        \frac{p + z^2 / 2n \pm z \sqrt{p (1 - p) / n + z^2 / 4n^2}}{1 + z^2 / n}

    which stays within [0, 1] and, unlike the interval around p itself, has about the stated
    coverage for shares near 0 and 1 too.

    Parameters
    ----------
    share : float
        Successes divided by trials, in [0, 1]. Half successes may be among them.
    n : int
        Number of trials, at least 1.
    confidence : float, default=0.95
        Share of such intervals that hold the true value, in (0, 1).

    Returns
    -------
    low, high : float

    References
    ----------
    .. [1] E. B. Wilson, "Probable inference, the law of succession, and statistical
       inference", Journal of the American Statistical Association 22(158), 1927.

    Examples
    --------
    >>> from kernelcore.evaluation.metrics import wilson_interval
    >>> low, high = wilson_interval(0.8, 100)
    >>> print(f"{low:.3f} {high:.3f}")
    0.711 0.867
    """
    z = float(ndtri((1 + confidence) / 2))
    middle = share + z * z / (2 * n)
    spread = z * np.sqrt(share * (1 - share) / n + (z / (2 * n)) ** 2)
    low, high = (middle - spread) / (1 + z * z / n), (middle + spread) / (1 + z * z / n)
    return max(0.0, float(low)), min(1.0, float(high))


def mean_over_folds(name: str, values: Floats, fold: Integers | None) -> float:
    """Return the mean over the folds of the mean, or of the median for ``median_rank``."""
    parts = [values] if fold is None else [values[fold == f] for f in range(fold.max() + 1)]
    known = [part[~np.isnan(part)] for part in parts]
    middle = np.median if name == "median_rank" else np.mean
    return float(np.mean([middle(part) for part in known if part.size]))


def resampled_means(
    of: Mapping[str, Floats], fold: Integers | None, rng: np.random.Generator
) -> Floats:
    """Return the means over queries drawn anew: one row per draw, one column per metric."""
    table = np.stack(list(of.values()))
    parts = [table] if fold is None else [table[:, fold == f] for f in range(fold.max() + 1)]
    drawn = np.zeros((_N_DRAWS, len(of)))
    for part in parts:
        n_queries = part.shape[1]
        step = max(1, _DRAWN_AT_ONCE // n_queries)
        for start in range(0, _N_DRAWS, step):
            here = drawn[start : start + step]
            times = np.zeros((len(here), n_queries))  # that each query is drawn
            for draw in range(len(here)):
                places = rng.integers(n_queries, size=n_queries)
                times[draw] = np.bincount(places, minlength=n_queries)
            for column, (name, values) in enumerate(zip(of, part, strict=True)):
                known = ~np.isnan(values)
                drawn_times = times if known.all() else times[:, known]
                middle = _weighted_medians if name == "median_rank" else _weighted_means
                here[:, column] += middle(values[known], drawn_times) / len(parts)
    return drawn


def _weighted_means(values: Floats, times: Floats) -> Floats:
    with np.errstate(invalid="ignore"):  # a draw may hold no query with a value
        return np.asarray(np.einsum("ij,j->i", times, values) / times.sum(axis=1))


def _weighted_medians(values: Floats, times: Floats) -> Floats:
    """Return the median of the values for each row of whole weights."""
    order = np.argsort(values, kind="stable")
    seen = np.cumsum(times[:, order], axis=1)
    medians = np.full(len(times), np.nan)
    for draw, total in enumerate(seen[:, -1]):
        if total:
            middle = np.searchsorted(seen[draw], ((total - 1) // 2, total // 2), side="right")
            medians[draw] = values[order[middle]].mean()
    return medians
