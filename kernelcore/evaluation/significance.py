"""Tests that tell a difference between two systems on the same queries from luck."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import bdtr

from kernelcore._validation import (
    Array,
    as_array,
    as_real_array,
    check_finite,
    check_flag,
    check_integer,
)
from kernelcore.evaluation.shown import Shown


@dataclass(frozen=True, eq=False)
class PairedTest(Shown):
    """Difference between systems and a baseline, and how surprising it is.

    Attributes
    ----------
    difference : ndarray of float64, shape (n_systems,)
        Statistic of each system less that of the baseline; shape () for one system.
    p_value : ndarray of float64, shape (n_systems,)
        Two-sided, in (0, 1], not corrected for the number of systems.
    """

    difference: npt.NDArray[np.float64]
    p_value: npt.NDArray[np.float64]

    def _rows(self) -> list[dict[str, Any]]:
        """Return one row for each system."""
        columns = {own.name: np.atleast_1d(getattr(self, own.name)) for own in fields(self)}
        return [
            {name: float(values[i]) for name, values in columns.items()}
            for i in range(len(columns["difference"]))
        ]


class RankCorrelation(NamedTuple):
    """Agreement of two orders of the same systems, each in [-1, 1].

    Attributes
    ----------
    spearman : float
        Spearman's rho.
    kendall : float
        Kendall's tau-b.
    """

    spearman: float
    kendall: float


def mcnemar(
    systems: npt.ArrayLike,
    baseline: npt.ArrayLike,
    *,
    k: int | None = None,
    mid_p: bool = False,
) -> PairedTest:
    r"""McNemar's test for successes and failures on the same queries.

    Of the n queries on which the two differ, a system wins w. If neither is better, w is
    binomial with probability one half; the p-value is

    .. math:: p = \min\Bigl(1, 2 \sum_{i \le \min(w, n - w)} \binom{n}{i} 2^{-n}\Bigr).

    Parameters
    ----------
    systems : array_like of bool, shape (n_queries,) or (n_systems, n_queries)
        Whether each query succeeded: recall or success at k, a judgment above a threshold.
        With `k`, the ranks from 1 instead.
    baseline : array_like of bool, shape (n_queries,)
        The same for the system to compare with.
    k : int, optional
        A rank of at most `k` is a success.
    mid_p : bool, default=False
        Count half of the probability of the observed split, as befits a discrete test whose
        exact p-values are too large on average.

    Returns
    -------
    PairedTest
        ``difference`` is one of shares of successes. Where no query differs, p is 1.

    Raises
    ------
    TypeError, ValueError
        If the input is not boolean (or, with `k`, not real), or shapes do not fit.

    References
    ----------
    .. [1] Q. McNemar, "Note on the sampling error of the difference between correlated
       proportions or percentages", Psychometrika 12(2), 1947.
    .. [2] M. W. Fagerland, S. Lydersen and P. Laake, "The McNemar test for binary
       matched-pairs data: mid-p and asymptotic are better than exact conditional", BMC
       Medical Research Methodology 13:91, 2013.

    Examples
    --------
    >>> from kernelcore.evaluation import mcnemar
    >>> test = mcnemar([1, 2, 3, 4, 9, 1], [9, 8, 7, 6, 9, 6], k=5)
    >>> print(test.difference, test.p_value)
    0.8333333333333334 0.0625
    """
    if k is not None:
        k = check_integer("k", k, minimum=1)
        ranks, baseline_ranks = as_paired(systems, baseline)
        wins, ours = baseline_ranks <= k, ranks <= k
    else:
        ours, wins = (
            _as_successes(name, values)
            for name, values in (("systems", systems), ("baseline", baseline))
        )
        _check_shapes(ours, wins)
    n_wins = np.count_nonzero(ours & ~wins, axis=-1)
    n_losses = np.count_nonzero(wins & ~ours, axis=-1)
    n_discordant, fewer = n_wins + n_losses, np.minimum(n_wins, n_losses)
    tail = bdtr(fewer.astype(float), n_discordant, 0.5)
    if check_flag("mid_p", mid_p):
        below = np.where(fewer > 0, bdtr(np.maximum(fewer - 1.0, 0), n_discordant, 0.5), 0)
        p_values = tail + below
    else:
        p_values = np.minimum(1.0, 2 * tail)
    return PairedTest(
        np.asarray((n_wins - n_losses) / ours.shape[-1]), np.asarray(p_values, dtype=np.float64)
    )


def holm(p_values: npt.ArrayLike) -> npt.NDArray[np.float64]:
    r"""P-values adjusted for their number by Holm's method.

    .. math:: \tilde p_{(i)} = \min\Bigl(1, \max_{j \le i} (m - j + 1) p_{(j)}\Bigr)

    for the m p-values in ascending order. To call significant what is at most alpha after
    the adjustment keeps the probability of any false alarm at alpha, whatever the dependence
    of the tests.

    Parameters
    ----------
    p_values : array_like of shape (n_hypotheses,)
        In [0, 1].

    Returns
    -------
    ndarray of float64, shape (n_hypotheses,)
        In the order given.

    Raises
    ------
    TypeError, ValueError
        If `p_values` is not a vector of numbers in [0, 1].

    References
    ----------
    .. [1] S. Holm, "A simple sequentially rejective multiple test procedure", Scandinavian
       Journal of Statistics 6(2), 1979.

    Examples
    --------
    >>> from kernelcore.evaluation import holm
    >>> holm([0.01, 0.04, 0.03])
    array([0.03, 0.06, 0.06])
    """
    values = check_finite("p_values", as_real_array("p_values", p_values, ndim=1)).astype(
        np.float64, copy=False
    )
    if values.size and not 0 <= values.min() <= values.max() <= 1:
        raise ValueError(
            f"p_values must lie in [0, 1], got values from {values.min()} to {values.max()}"
        )
    order = np.argsort(values, kind="stable")
    steps = values[order] * np.arange(len(values), 0, -1)
    adjusted = np.empty_like(values)
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(steps))
    return adjusted


def rank_correlation(first: npt.ArrayLike, second: npt.ArrayLike) -> RankCorrelation:
    r"""Spearman's and Kendall's correlation of two metrics over the same systems.

    Spearman's rho is the correlation of the ranks, ties at their mean rank. Kendall's tau-b
    counts pairs of systems in the same order, C, and in opposite orders, D:

    .. math:: \tau_b = \frac{C - D}{\sqrt{(P - T_1)(P - T_2)}}

    for P pairs of which :math:`T_1` and :math:`T_2` are ties in the one and the other.

    Parameters
    ----------
    first, second : array_like of shape (n_systems,)
        What two metrics say of each system. Give both the same direction: the median rank,
        of which less is better, agrees with recall when it is negated.

    Returns
    -------
    RankCorrelation
        ``spearman`` and ``kendall``, both NaN where a metric ties all systems: there is no
        order to agree with.

    Raises
    ------
    TypeError, ValueError
        If the input is not two vectors of finite numbers of the same length, at least 2.

    Notes
    -----
    Takes O(n_systems ** 2) memory.

    References
    ----------
    .. [1] M. G. Kendall, "The treatment of ties in ranking problems", Biometrika 33(3), 1945.

    Examples
    --------
    >>> from kernelcore.evaluation import rank_correlation
    >>> rank_correlation([8.3, 6.1, 5.0, 1.2], [34.0, 40.0, 38.0, 95.0])
    RankCorrelation(spearman=-0.8, kendall=-0.6666666666666666)
    """
    values = [
        check_finite(name, as_real_array(name, metric, ndim=1))
        for name, metric in (("first", first), ("second", second))
    ]
    if len(values[0]) != len(values[1]) or len(values[0]) < 2:
        raise ValueError(
            "first and second must have one value for each of the same systems, at least 2, "
            f"got {len(values[0])} and {len(values[1])}"
        )
    orders = [np.sign(metric[:, np.newaxis] - metric) for metric in values]
    if not all(order.any() for order in orders):
        return RankCorrelation(np.nan, np.nan)
    # A system's rank, from the middle, is half of what it beats less what beats it.
    return RankCorrelation(
        spearman=_cosine(*(order.sum(axis=1) for order in orders)), kendall=_cosine(*orders)
    )


def as_paired(
    systems: npt.ArrayLike, baseline: npt.ArrayLike
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return per-query values of one or more systems and of the baseline as float64."""
    ours, theirs = (
        check_finite(name, as_real_array(name, values, ndim=_ndim(values))).astype(
            np.float64, copy=False
        )
        for name, values in (("systems", systems), ("baseline", baseline))
    )
    _check_shapes(ours, theirs)
    for name, values in (("systems", ours), ("baseline", theirs)):
        largest = float(max(values.max(), -values.min()))
        if largest > float(np.finfo(np.float64).max) / (4 * theirs.size):
            raise ValueError(f"{name} must have sums that float64 holds, got {largest:.3g}")
    return ours, theirs


def _ndim(values: npt.ArrayLike) -> int:
    try:
        return np.ndim(values)
    except ValueError:  # ragged nested lists
        return 2


def _as_successes(name: str, values: npt.ArrayLike) -> npt.NDArray[np.bool_]:
    array = as_array(name, values, ndim=1)
    if array.dtype != bool:
        raise TypeError(
            f"{name} must hold booleans, or ranks together with k, got dtype {array.dtype}"
        )
    return array


def _check_shapes(systems: Array, baseline: Array) -> None:
    if baseline.ndim != 1 or not baseline.size:
        raise ValueError(
            f"baseline must be a 1-D array of at least one query, got shape {baseline.shape}"
        )
    if systems.ndim not in (1, 2) or not systems.size or systems.shape[-1] != baseline.size:
        raise ValueError(
            f"systems must have one value for each query of baseline ({baseline.size}) "
            f"in one row per system, at least one, got shape {systems.shape}"
        )


def _cosine(x: Array, y: Array) -> float:
    return float(np.sum(x * y) / np.sqrt(np.sum(x * x) * np.sum(y * y)))
