"""Ranking metrics of ranks, what chance reaches, and confidence intervals."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln, ndtri

from kernelcore._check import (
    as_array,
    as_integer_array,
    as_real_array,
    check_callable,
    check_finite,
    check_integer,
    check_real,
    check_rng,
)

__all__ = [
    "bootstrap_interval",
    "chance_recall_at_k",
    "mean_rank",
    "mean_reciprocal_rank",
    "median_rank",
    "recall_at_k",
    "wilson_interval",
]


def recall_at_k(ranks: npt.ArrayLike, k: int) -> float:
    r"""Share of the queries whose gold item stands among the first `k`.

    .. math:: R@k = \frac{1}{n} \left| \{ q : \mathrm{rank}_q \le k \} \right|

    Parameters
    ----------
    ranks : array_like of shape (n_queries,)
        Ranks from 1. They may be fractions: a gold item that shares positions 1 and 2 has
        the mean rank 1.5 and counts at k = 2, not at k = 1, so ties never help a system.
    k : int
        Length of the list that is looked at, at least 1.

    Returns
    -------
    float
        Share in [0, 1]. Tables print it in percent.

    Raises
    ------
    TypeError, ValueError
        If `ranks` are not numbers >= 1 in one dimension, or `k` is not an integer >= 1.

    Notes
    -----
    With several relevant items per query this is the success at k, counted on the rank of
    the best of them, which is what the retrieval literature reports as recall.

    Examples
    --------
    >>> from kernelcore.evaluation.metrics import recall_at_k
    >>> recall_at_k([1, 1.5, 7, 30], 5)
    0.5
    """
    k = check_integer("k", k, minimum=1)
    return float(np.mean(as_ranks("ranks", ranks) <= k))


def median_rank(ranks: npt.ArrayLike) -> float:
    """Plain median of the ranks: random order over 1,000 candidates gives 500.5.

    Parameters
    ----------
    ranks : array_like of shape (n_queries,)
        Ranks from 1.

    Returns
    -------
    float
        The middle rank, or the mean of the two middle ones.

    Raises
    ------
    TypeError, ValueError
        If `ranks` are not numbers >= 1 in one dimension.

    Examples
    --------
    >>> from kernelcore.evaluation.metrics import median_rank
    >>> median_rank([1, 2, 7, 30])
    4.5
    """
    return float(np.median(as_ranks("ranks", ranks)))


def mean_rank(ranks: npt.ArrayLike) -> float:
    """Mean of the ranks.

    Parameters
    ----------
    ranks : array_like of shape (n_queries,)
        Ranks from 1.

    Returns
    -------
    float

    Raises
    ------
    TypeError, ValueError
        If `ranks` are not numbers >= 1 in one dimension.

    Examples
    --------
    >>> from kernelcore.evaluation.metrics import mean_rank
    >>> mean_rank([1, 2, 7, 30])
    10.0
    """
    return float(np.mean(as_ranks("ranks", ranks)))


def mean_reciprocal_rank(ranks: npt.ArrayLike) -> float:
    r"""Mean of the reciprocal ranks, in (0, 1].

    .. math:: \mathrm{MRR} = \frac{1}{n} \sum_q \frac{1}{\mathrm{rank}_q}

    Parameters
    ----------
    ranks : array_like of shape (n_queries,)
        Ranks from 1. Of a fractional rank, the reciprocal of the fraction is taken.

    Returns
    -------
    float

    Raises
    ------
    TypeError, ValueError
        If `ranks` are not numbers >= 1 in one dimension.

    Examples
    --------
    >>> from kernelcore.evaluation.metrics import mean_reciprocal_rank
    >>> mean_reciprocal_rank([1, 2, 4, 4])
    0.5
    """
    return float(np.mean(1.0 / as_ranks("ranks", ranks)))


def chance_recall_at_k(
    n_candidates: int, k: npt.ArrayLike, *, n_relevant: npt.ArrayLike = 1
) -> npt.NDArray[np.float64]:
    r"""Recall at k that a random order of the candidates is expected to reach.

    .. math:: 1 - \binom{N - m}{k} \Big/ \binom{N}{k}

    for N candidates of which m are gold; k / N where there is one.

    Parameters
    ----------
    n_candidates : int
        Candidates per query, N.
    k : array_like of int
        Lengths of the list, at least 1. From N on the recall is 1.
    n_relevant : array_like of int, default=1
        Gold candidates per query, m, from 1 to N. Broadcast against `k`.

    Returns
    -------
    ndarray of float64, the shape of `k` and `n_relevant` broadcast

    Raises
    ------
    TypeError, ValueError
        If a value is not an integer or lies outside its range.

    Examples
    --------
    >>> from kernelcore.evaluation.metrics import chance_recall_at_k
    >>> chance_recall_at_k(1000, [1, 5, 10])
    array([0.001, 0.005, 0.01 ])
    """
    total = check_integer("n_candidates", n_candidates, minimum=1)
    lengths, relevant = as_array("k", k, ndim=1), as_array("n_relevant", n_relevant, ndim=1)
    lengths = as_integer_array("k", lengths, ndim=lengths.ndim, dtype=np.int64)
    relevant = as_integer_array("n_relevant", relevant, ndim=relevant.ndim, dtype=np.int64)
    if lengths.size and lengths.min() < 1:
        raise ValueError(f"k must be an integer >= 1, got {lengths.min()}")
    if relevant.size and not 1 <= relevant.min() <= relevant.max() <= total:
        raise ValueError(
            f"n_relevant must lie from 1 to n_candidates ({total}), "
            f"got values from {relevant.min()} to {relevant.max()}"
        )
    # No gold item among the first k: (N - m)! (N - k)! / (N! (N - m - k)!)
    rest = total - relevant - np.minimum(lengths, total)
    log_miss = (
        gammaln(total - relevant + 1.0)
        + gammaln(total - np.minimum(lengths, total) + 1.0)
        - gammaln(total + 1.0)
        - gammaln(np.maximum(rest, 0) + 1.0)
    )
    return np.where(rest < 0, 1.0, -np.expm1(log_miss))


def bootstrap_interval(
    metric: Callable[[npt.NDArray[np.float64]], float],
    ranks: npt.ArrayLike,
    *,
    n_resamples: int = 1000,
    confidence: float = 0.95,
    rng: np.random.Generator | int | None = None,
) -> tuple[float, float]:
    """Percentile bootstrap interval of a metric over the queries.

    Parameters
    ----------
    metric : callable
        Takes an array of ranks and returns a number: `median_rank`, say.
    ranks : array_like of shape (n_queries,)
        Ranks from 1.
    n_resamples : int, default=1000
        How many times the queries are drawn anew, with replacement.
    confidence : float, default=0.95
        Share of the resampled values inside the interval, between 0 and 1.
    rng : numpy.random.Generator, int or None
        Source of the draws; an int is a seed.

    Returns
    -------
    low, high : float

    Raises
    ------
    TypeError, ValueError
        If `ranks` are not numbers >= 1 in one dimension or an option is out of range.

    Notes
    -----
    The interval speaks of other queries from the same source, for one trained system and
    one pool of candidates. It says nothing of other training sets, and intervals of two
    systems may overlap although a paired test tells them apart.

    References
    ----------
    .. [1] B. Efron and R. J. Tibshirani, "An Introduction to the Bootstrap", 1993, ch. 13.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelcore.evaluation.metrics import bootstrap_interval, median_rank
    >>> low, high = bootstrap_interval(median_rank, np.arange(1, 101), rng=0)
    >>> bool(low < 50.5 < high)
    True
    """
    sample = as_ranks("ranks", ranks)
    n_resamples = check_integer("n_resamples", n_resamples, minimum=1)
    confidence = check_real("confidence", confidence, minimum=0.0, maximum=1.0)
    generator = check_rng("rng", rng)
    check_callable("metric", metric)
    values = [
        metric(sample[generator.integers(len(sample), size=len(sample))])
        for _ in range(n_resamples)
    ]
    low, high = np.quantile(values, [(1 - confidence) / 2, (1 + confidence) / 2])
    return float(low), float(high)


def wilson_interval(share: float, n: int, *, confidence: float = 0.95) -> tuple[float, float]:
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

    Raises
    ------
    TypeError, ValueError
        If an argument is not a number or lies outside its range.

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
    share = check_real("share", share, minimum=0.0, maximum=1.0)
    n = check_integer("n", n, minimum=1)
    confidence = check_real("confidence", confidence, minimum=0.0, maximum=1.0)
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must be between 0 and 1, got {confidence}")
    z = float(ndtri((1 + confidence) / 2))
    middle = share + z * z / (2 * n)
    spread = z * np.sqrt(share * (1 - share) / n + (z / (2 * n)) ** 2)
    low, high = (middle - spread) / (1 + z * z / n), (middle + spread) / (1 + z * z / n)
    return max(0.0, float(low)), min(1.0, float(high))


def as_ranks(name: str, ranks: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Return `ranks` as a non-empty vector of float64 >= 1."""
    array = check_finite(name, as_real_array(name, ranks, ndim=1)).astype(
        np.float64, copy=False
    )
    if not array.size:
        raise ValueError(f"{name} must hold at least one rank, got none")
    if array.min() < 1:
        raise ValueError(f"{name} must be >= 1, got {array.min()}")
    if array.max() > 2**53:
        raise ValueError(f"{name} must be at most 2**53, got {array.max()}")
    return array
