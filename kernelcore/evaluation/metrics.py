"""Intervals and chance of metrics, and their means over queries, folds and resamples."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln, ndtri

from kernelcore._check import check_real

Floats: TypeAlias = npt.NDArray[np.float64]
Integers: TypeAlias = npt.NDArray[np.int64]

_DRAWN_AT_ONCE = 1 << 20  # queries in the draws of a bootstrap: 8 MiB


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

    Examples
    --------
    >>> from kernelcore.evaluation.metrics import chance_recall_at_k
    >>> chance_recall_at_k(1000, [1, 5, 10])
    array([0.001, 0.005, 0.01 ])
    """
    total, relevant = n_candidates, np.asarray(n_relevant)
    lengths = np.minimum(k, total)
    # No gold item among the first k: (N - m)! (N - k)! / (N! (N - m - k)!)
    rest = total - relevant - lengths
    log_miss = (
        gammaln(total - relevant + 1.0)
        + gammaln(total - lengths + 1.0)
        - gammaln(total + 1.0)
        - gammaln(np.maximum(rest, 0) + 1.0)
    )
    return np.where(rest < 0, 1.0, -np.expm1(log_miss))


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
    ValueError
        If the confidence is not between 0 and 1.

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
    confidence = check_real("confidence", confidence, minimum=0.0, maximum=1.0)
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must be between 0 and 1, got {confidence}")
    z = float(ndtri((1 + confidence) / 2))
    middle = share + z * z / (2 * n)
    spread = z * np.sqrt(share * (1 - share) / n + (z / (2 * n)) ** 2)
    low, high = (middle - spread) / (1 + z * z / n), (middle + spread) / (1 + z * z / n)
    return max(0.0, float(low)), min(1.0, float(high))


def chance_by_query(n_candidates: Integers, n_relevant: Integers, k: npt.ArrayLike) -> Floats:
    """Return the recall at k of a random order for each query; NaN if nothing is relevant."""
    pairs = n_candidates * (int(n_relevant.max()) + 1) + n_relevant
    _, first, place = np.unique(pairs, return_index=True, return_inverse=True)
    shares = [
        chance_recall_at_k(int(n_candidates[i]), k, n_relevant=int(n_relevant[i]))
        if n_relevant[i]
        else np.full(np.shape(k), np.nan)
        for i in first
    ]
    return np.asarray(np.array(shares)[place], np.float64)


def mean_over_folds(name: str, values: Floats, fold: Integers | None) -> float:
    """Return the mean over the folds of the mean, or of the median for ``median_rank``."""
    parts = [values] if fold is None else [values[fold == f] for f in range(fold.max() + 1)]
    known = [part[~np.isnan(part)] for part in parts]
    middle = np.median if name == "median_rank" else np.mean
    return float(np.mean([middle(part) for part in known if part.size]))


def resampled_means(
    of: Mapping[str, Floats],
    fold: Integers | None,
    n_resamples: int,
    rng: np.random.Generator,
) -> Floats:
    """Return the means over resampled queries, one row per draw, one column per metric."""
    table = np.stack(list(of.values()))
    parts = [table] if fold is None else [table[:, fold == f] for f in range(fold.max() + 1)]
    drawn = np.zeros((n_resamples, len(of)))
    for part in parts:
        n_queries = part.shape[1]
        step = max(1, _DRAWN_AT_ONCE // n_queries)
        for start in range(0, n_resamples, step):
            here = drawn[start : start + step]
            times = np.zeros((len(here), n_queries))  # that each query is drawn
            for row in range(len(here)):
                places = rng.integers(n_queries, size=n_queries)
                times[row] = np.bincount(places, minlength=n_queries)
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
    medians = np.full(len(times), np.nan)
    for row, counts in enumerate(np.cumsum(times[:, order], axis=1)):
        total = counts[-1]
        if total:
            middle = np.searchsorted(counts, ((total - 1) // 2, total // 2), side="right")
            medians[row] = values[order[middle]].mean()
    return medians
