"""Paired significance tests and Holm's correction."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.special import bdtr

from kernelcore._check import (
    Array,
    as_array,
    as_integer_array,
    as_real_array,
    check_choice,
    check_finite,
    check_flag,
    check_integer,
    check_real,
    check_rng,
)
from kernelcore._threads import in_threads, one_blas_thread, resolve_n_threads
from kernelcore.evaluation import _median_differences

__all__ = [
    "fisher_randomization",
    "holm",
    "mcnemar",
    "paired_bootstrap",
]


@dataclass(frozen=True, eq=False)
class PairedTest:
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


def mcnemar(
    systems: npt.ArrayLike,
    baseline: npt.ArrayLike,
    *,
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
    baseline : array_like of bool, shape (n_queries,)
        The same for the system to compare with.
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
        If the input is not boolean, or shapes do not fit.

    References
    ----------
    .. [1] Q. McNemar, "Note on the sampling error of the difference between correlated
       proportions or percentages", Psychometrika 12(2), 1947.
    .. [2] M. W. Fagerland, S. Lydersen and P. Laake, "The McNemar test for binary
       matched-pairs data: mid-p and asymptotic are better than exact conditional", BMC
       Medical Research Methodology 13:91, 2013.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelcore.evaluation.significance import mcnemar
    >>> ours, theirs = np.array([1, 2, 3, 4, 9, 1]), np.array([9, 8, 7, 6, 9, 6])
    >>> test = mcnemar(ours <= 5, theirs <= 5)
    >>> print(test.difference, test.p_value)
    0.8333333333333334 0.0625
    """
    ours, theirs = _as_successes("systems", systems), _as_successes("baseline", baseline)
    _check_shapes(ours, theirs)
    n_wins = np.count_nonzero(ours & ~theirs, axis=-1)
    n_losses = np.count_nonzero(theirs & ~ours, axis=-1)
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
    >>> from kernelcore.evaluation.significance import holm
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


def as_paired(
    systems: npt.ArrayLike, baseline: npt.ArrayLike
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return per-query values of one or more systems and of the baseline as float64."""
    ours, theirs = _as_numbers("systems", systems), _as_numbers("baseline", baseline)
    _check_shapes(ours, theirs)
    for name, values in (("systems", ours), ("baseline", theirs)):
        largest = float(max(values.max(), -values.min()))
        if largest > float(np.finfo(np.float64).max) / (4 * theirs.size):
            raise ValueError(f"{name} must have sums that float64 holds, got {largest:.3g}")
    return ours, theirs


def _as_numbers(name: str, values: npt.ArrayLike) -> npt.NDArray[np.float64]:
    array = as_array(name, values, ndim=1)
    numbers = as_real_array(name, array, ndim=array.ndim)
    return check_finite(name, numbers).astype(np.float64, copy=False)


def _as_successes(name: str, values: npt.ArrayLike) -> npt.NDArray[np.bool_]:
    array = as_array(name, values, ndim=1)
    if array.dtype != bool:
        raise TypeError(
            f"{name} must hold booleans, such as ranks <= k, got dtype {array.dtype}"
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


Statistic: TypeAlias = Literal["mean", "median"]

_STATISTICS: dict[str, Callable[..., Any]] = {"mean": np.mean, "median": np.median}
_Floats: TypeAlias = npt.NDArray[np.float64]
_Bits: TypeAlias = npt.NDArray[np.uint64]
# Bits or queries drawn by one task: 8 MiB as the floats of a matrix product.
_TASK = 1 << 20
# Prefixes of the sorted values whose bits the median's binary search looks at.
_N_BLOCKS = 128


@dataclass(frozen=True, eq=False)
class PairedBootstrap(PairedTest):
    """Difference between systems and a baseline, its interval and how surprising it is.

    Attributes
    ----------
    difference, p_value : ndarray of float64, shape (n_systems,)
        As in `PairedTest`.
    low, high : ndarray of float64, shape (n_systems,)
        Ends of the percentile interval of the difference.
    """

    low: npt.NDArray[np.float64]
    high: npt.NDArray[np.float64]


def fisher_randomization(
    systems: npt.ArrayLike,
    baseline: npt.ArrayLike,
    *,
    statistic: Statistic = "mean",
    groups: npt.ArrayLike | None = None,
    n_reassignments: int = 100_000,
    rng: np.random.Generator | int | None = None,
    n_threads: int | None = None,
) -> PairedTest:
    r"""Fisher's randomisation test for paired results.

    If a system and the baseline are equally good, either could have given either result of a
    query. So the two results of every query are swapped or not, at random, and the p-value
    is the share of such reassignments, the observed one included, whose difference is at
    least the observed one:

    .. math:: p = \frac{1 + |\{ r : |T_r| \ge |T| \}|}{1 + \mathrm{n\_reassignments}}

    Parameters
    ----------
    systems : array_like of shape (n_queries,) or (n_systems, n_queries)
        A number per query: its rank, its precision, a judgment.
    baseline : array_like of shape (n_queries,)
        The same for the system to compare with.
    statistic : {"mean", "median"}, default="mean"
        T is the difference of the means or of the medians of the two systems. The median is
        taken of all queries of a reassigned system; it is not the median difference.
    groups : array_like of int, shape (n_queries,), optional
        Group of each query, such as the image of each caption. Queries of a group depend on
        each other: all of its results are swapped, or none. By default each is on its own.
    n_reassignments : int, default=100_000
        How many are drawn. Where all :math:`2^{\mathrm{n\_groups}}` are no more than that,
        each is made once and the p-value is exact.
    rng : numpy.random.Generator, int or None
        Source of the draws; an int is a seed. All systems share the reassignments, so the
        result of one does not depend on which others stand beside it.
    n_threads : int, optional
        Threads to use; the default is every core this process may run on. The result is the
        same, bit for bit, for every value.

    Returns
    -------
    PairedTest
        Equal systems have a p-value of 1; none is 0.

    Raises
    ------
    TypeError, ValueError
        If the input does not hold finite numbers, shapes do not fit or an option is wrong.

    See Also
    --------
    holm : Corrects the p-values of several systems.

    Notes
    -----
    Values are brought to multiples of a power of two so small that a sum over all queries
    is exact in float64. For ranks this changes nothing; for other values, differences that
    rounding may have set apart count as equal.

    The mean takes a matrix product of bits with differences. The median is found without
    sorting: bits are counted in a binary search over both systems' sorted values, about
    O(n_queries / 16) per reassignment and system. Memory is O(n_systems * n_queries) and
    some megabytes per thread.

    References
    ----------
    .. [1] R. A. Fisher, "The Design of Experiments", 1935, section 21.
    .. [2] M. D. Smucker, J. Allan and B. Carterette, "A comparison of statistical
       significance tests for information retrieval evaluation", CIKM 2007.

    Examples
    --------
    >>> from kernelcore.evaluation.significance import fisher_randomization
    >>> test = fisher_randomization([3, 1, 2, 1, 4, 1], [9, 2, 7, 8, 5, 6])
    >>> print(test.difference.round(2), test.p_value)
    -4.17 0.03125
    """
    ours, theirs = as_paired(systems, baseline)
    check_choice("statistic", statistic, _STATISTICS)
    n_reassignments = check_integer("n_reassignments", n_reassignments, minimum=1)
    key = _draw_key(rng)
    n_groups, group_of = theirs.size, None
    if groups is not None:
        given = as_integer_array("groups", groups, ndim=1, dtype=np.int64)
        if len(given) != theirs.size:
            raise ValueError(
                f"groups must have one entry per query ({theirs.size}), got {len(given)}"
            )
        known, group_of = np.unique(given, return_inverse=True)
        n_groups = len(known)
    is_exact = n_groups < 63 and 2**n_groups <= n_reassignments
    if is_exact:
        n_reassignments = 2**n_groups
    n_words = (n_groups + 63) // 64
    step = max(1, _TASK // (64 * n_words))
    rows = np.atleast_2d(ours)
    count = (_count_means if statistic == "mean" else _count_medians)(rows, theirs, group_of)

    def count_extreme(task: int) -> Array:
        start, stop = task * step, min((task + 1) * step, n_reassignments)
        if is_exact:
            return count(np.arange(start, stop, dtype=np.uint64)[:, np.newaxis])
        bits = np.random.Philox(key=key, counter=[0, 0, 0, task])
        return count(bits.random_raw((stop - start) * n_words).reshape(-1, n_words))

    extreme = np.sum(_run(count_extreme, -(-n_reassignments // step), n_threads), axis=0)
    p_values = extreme / n_reassignments if is_exact else (extreme + 1) / (n_reassignments + 1)
    measure = _STATISTICS[statistic]
    return PairedTest(
        np.asarray(measure(ours, axis=-1) - measure(theirs)),
        np.asarray(p_values).reshape(ours.shape[:-1]),
    )


def paired_bootstrap(
    systems: npt.ArrayLike,
    baseline: npt.ArrayLike,
    *,
    statistic: Statistic = "mean",
    n_resamples: int = 10_000,
    confidence: float = 0.95,
    rng: np.random.Generator | int | None = None,
    n_threads: int | None = None,
) -> PairedBootstrap:
    r"""Bootstrap of the difference between systems on the same queries.

    Queries are drawn anew, with replacement, the same for the system and the baseline. The
    interval holds the middle of the differences :math:`T_b` found; the p-value is the share
    of draws, the sample itself included, that lie as far from the observed difference T as T
    lies from zero:

    .. math:: p = \frac{1 + |\{ b : |T_b - T| \ge |T| \}|}{1 + \mathrm{n\_resamples}}

    Parameters
    ----------
    systems : array_like of shape (n_queries,) or (n_systems, n_queries)
        A number per query.
    baseline : array_like of shape (n_queries,)
        The same for the system to compare with.
    statistic : {"mean", "median"}, default="mean"
        T is the difference of the means or of the medians.
    n_resamples : int, default=10_000
        How many times the queries are drawn.
    confidence : float, default=0.95
        Share of the differences inside the interval, between 0 and 1.
    rng : numpy.random.Generator, int or None
        Source of the draws, which all systems share; an int is a seed.
    n_threads : int, optional
        Threads to use; the default is every core this process may run on. The result is the
        same, bit for bit, for every value.

    Returns
    -------
    PairedBootstrap
        Equal systems have the interval (0, 0) and a p-value of 1; none is 0.

    Raises
    ------
    TypeError, ValueError
        If the input does not hold finite numbers, shapes do not fit or an option is wrong.

    References
    ----------
    .. [1] B. Efron and R. J. Tibshirani, "An Introduction to the Bootstrap", 1993, ch. 13
       and 16.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelcore.evaluation.significance import paired_bootstrap
    >>> test = paired_bootstrap(np.arange(100) + 2, np.arange(100) + np.tile([0, 2], 50), rng=0)
    >>> bool(test.low < test.difference < test.high), bool(test.p_value < 0.001)
    (True, True)
    """
    ours, theirs = as_paired(systems, baseline)
    measure = _STATISTICS[check_choice("statistic", statistic, _STATISTICS)]
    n_resamples = check_integer("n_resamples", n_resamples, minimum=1)
    confidence = check_real("confidence", confidence, minimum=0.0, maximum=1.0)
    key = _draw_key(rng)
    rows, n_queries = np.atleast_2d(ours), theirs.size
    step = max(1, _TASK // n_queries)

    def differences(task: int) -> _Floats:
        n_draws = min((task + 1) * step, n_resamples) - task * step
        generator = np.random.Generator(np.random.Philox(key=key, counter=[0, 0, 0, task]))
        draws = generator.integers(n_queries, size=(n_draws, n_queries))
        of_baseline = measure(theirs[draws], axis=1)
        return np.stack([measure(row[draws], axis=1) - of_baseline for row in rows])

    drawn = np.concatenate(_run(differences, -(-n_resamples // step), n_threads), axis=1)
    observed = measure(rows, axis=1) - measure(theirs)
    distance = abs(drawn - observed[:, np.newaxis])
    threshold = abs(observed) - _rounding(rows, theirs)
    extreme = np.count_nonzero(distance >= threshold[:, np.newaxis], axis=1)
    low, high = np.quantile(drawn, [(1 - confidence) / 2, (1 + confidence) / 2], axis=1)
    shape = ours.shape[:-1]
    return PairedBootstrap(
        difference=observed.reshape(shape),
        p_value=((extreme + 1) / (n_resamples + 1)).reshape(shape),
        low=low.reshape(shape),
        high=high.reshape(shape),
    )


def _draw_key(rng: np.random.Generator | int | None) -> _Bits:
    """Draw the key of all later draws, so that tasks may run in any order."""
    return check_rng("rng", rng).integers(2**64, size=2, dtype=np.uint64)


def _run(task: Callable[[int], Array], n_tasks: int, n_threads: int | None) -> list[Array]:
    """Return the results of all tasks in their order, whichever thread ran them."""
    with one_blas_thread():
        threads = resolve_n_threads(n_threads)
        return in_threads(task, range(n_tasks), threads, setting=one_blas_thread)


def _count_means(
    rows: _Floats, theirs: _Floats, group_of: Array | None
) -> Callable[[_Bits], Array]:
    """Prepare to count the swaps with means at least as far apart as the observed ones."""
    # No sum of 2 n values reaches 2 ** 52 steps of the grid: none of them is ever rounded.
    largest = np.maximum(abs(rows).max(axis=1), abs(theirs).max())
    exponent = 52 - np.frexp(2.0 * theirs.size * largest)[1][:, np.newaxis]
    exact = np.ldexp(rows, exponent) - np.ldexp(theirs, exponent)
    differences = np.rint(exact)
    # Two sums of rounded differences may be this far apart where the true ones are equal.
    slack = np.count_nonzero(differences != exact, axis=1)
    total = differences.sum(axis=1)
    threshold = abs(total) - slack
    if group_of is not None:
        differences = np.array([np.bincount(group_of, row) for row in differences])

    def count(swaps: _Bits) -> Array:
        octets = swaps.astype("<u8", copy=False).view(np.uint8)
        bits = np.unpackbits(octets, axis=1, count=differences.shape[1], bitorder="little")
        swapped = total - 2 * (bits.astype(np.float64) @ differences.T)
        return np.asarray(np.count_nonzero(abs(swapped) >= threshold, axis=0))

    return count


def _count_medians(
    rows: _Floats, theirs: _Floats, group_of: Array | None
) -> Callable[[_Bits], Array]:
    """Prepare to count the swaps with medians at least as far apart as the observed ones."""
    observed = abs(np.median(rows, axis=1) - np.median(theirs))
    threshold = observed - _rounding(rows, theirs)
    pairs_by_value = [_sorted_pairs(row, theirs) for row in rows]

    def count(swaps: _Bits) -> Array:
        if group_of is not None:
            swaps = _spread_out(swaps, group_of)
        differences = np.empty((len(rows), len(swaps)))
        for prepared, out in zip(pairs_by_value, differences, strict=True):
            _median_differences.median_differences(swaps, *prepared, out)
        extreme = abs(differences) >= threshold[:, np.newaxis]
        return np.asarray(np.count_nonzero(extreme, axis=1))

    return count


def _spread_out(swaps: _Bits, group_of: Array) -> _Bits:
    """Repeat the bit of each group for its queries."""
    octets = swaps.astype("<u8", copy=False).view(np.uint8)
    bits = np.unpackbits(octets, axis=1, bitorder="little")[:, group_of]
    spread = np.zeros((len(swaps), (len(group_of) + 63) // 64 * 8), np.uint8)
    packed = np.packbits(bits, axis=1, bitorder="little")
    spread[:, : packed.shape[1]] = packed
    return spread.view("<u8").astype(np.uint64, copy=False)


def _sorted_pairs(first: _Floats, second: _Floats) -> tuple[Array, Array, Array, Array, int]:
    """Sort the values of both samples, and mark the pairs before each block."""
    n = len(first)
    order = np.argsort(np.concatenate((first, second)), kind="stable")
    place = np.empty(2 * n, dtype=np.intp)
    place[order] = np.arange(2 * n)
    block_size = -(-2 * n // _N_BLOCKS)
    starts = np.arange(0, 2 * n, block_size)[:, np.newaxis]
    first_before, second_before = place[:n] < starts, place[n:] < starts
    octets = np.zeros((len(starts), 2, (n + 63) // 64 * 8), dtype=np.uint8)
    for which, is_before in enumerate((first_before, first_before ^ second_before)):
        packed = np.packbits(is_before, axis=1, bitorder="little")
        octets[:, which, : packed.shape[1]] = packed
    return (
        np.concatenate((first, second))[order],
        (order % n).astype(np.intc),
        (order >= n).astype(np.uint8),
        octets.view("<u8").astype(np.uint64, copy=False),
        block_size,
    )


def _rounding(rows: _Floats, theirs: _Floats) -> _Floats:
    """Largest difference that rounding may make between two equal statistics."""
    largest = np.maximum(abs(rows).max(axis=1), abs(theirs).max())
    return np.asarray(64 * np.finfo(np.float64).eps * largest)
