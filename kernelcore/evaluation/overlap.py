"""Standard errors, t tests and equivalence tests, also over documents that share items."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.special import stdtr

from kernelcore._check import Array, as_list, as_real_array, check_finite, check_real
from kernelcore.evaluation.significance import PairedTest, as_paired

Items = Sequence[Sequence[Hashable]]
"""The items of each document, such as the ids of its images."""


def overlap_standard_error(values: npt.ArrayLike, items: Items) -> float:
    r"""Estimate the standard error of a mean over documents that share items [1]_.

    .. math::

        s^2 = \frac{1}{n (n - \bar o)} \sum_{d, d'} o_{dd'} (x_d - \bar x)(x_{d'} - \bar x)

    :math:`o_{dd'}` is 1 if the documents d and d' share an item, so for d = d', and 0
    otherwise; :math:`\bar o` is the mean number of documents that a document shares an item
    with. Documents that share an item may depend on each other in any way; others are
    independent.

    The sum may be small by chance. The result is therefore never less than the standard error
    of independent documents, which it equals if no item is shared.

    Parameters
    ----------
    values : array_like of shape (n_documents,)
        A number for each document.
    items : sequence of sequence
        Items of each document; none of a document depends on other documents.

    Returns
    -------
    float
        NaN if each document shares an item with each other one: then nothing is known.

    Raises
    ------
    TypeError, ValueError
        If the values are not finite, or there is not one sequence of items per document.

    References
    ----------
    .. [1] P. M. Aronow, C. Samii and V. A. Assenova, "Cluster-robust variance estimation for
       dyadic data", Political Analysis 23(4), 2015. The divisor makes the square unbiased for
       independent values.

    Examples
    --------
    >>> from kernelcore.evaluation.overlap import overlap_standard_error
    >>> values = [0.9, 0.8, 0.2, 0.3]
    >>> apart = overlap_standard_error(values, [["a"], ["b"], ["c"], ["d"]])
    >>> shared = overlap_standard_error(values, [["a"], ["a"], ["b"], ["b"]])
    >>> print(f"{apart:.3f} {shared:.3f}")
    0.176 0.300
    """
    numbers = check_finite("values", as_real_array("values", values, ndim=1))
    return float(_standard_errors(numbers[np.newaxis], items)[0])


def overlap_test(systems: npt.ArrayLike, baseline: npt.ArrayLike, items: Items) -> PairedTest:
    """Test differences between systems and a baseline over documents that share items.

    The mean difference over its `overlap_standard_error` is compared with Student's t. Its
    degrees of freedom are the `effective_number` of documents less 1, and 1 at least.

    Parameters
    ----------
    systems : array_like of shape (n_documents,) or (n_systems, n_documents)
        A number for each document.
    baseline : array_like of shape (n_documents,)
        The same for the system to compare with.
    items : sequence of sequence
        Items of each document, see `overlap_standard_error`.

    Returns
    -------
    PairedTest
        The p-value is 1 for equal systems, and NaN if the standard error is.

    Raises
    ------
    TypeError, ValueError
        If the input does not hold finite numbers, or shapes do not fit.

    See Also
    --------
    kernelcore.evaluation.significance.fisher_randomization : For independent queries.
    kernelcore.evaluation.significance.holm : Corrects the p-values of several systems.

    Examples
    --------
    >>> from kernelcore.evaluation.overlap import overlap_test
    >>> photos = [("a", "b"), ("b", "c"), ("d",), ("e",), ("f",), ("g",)]
    >>> test = overlap_test([3, 4, 2, 3, 5, 4], [1, 2, 1, 2, 2, 2], photos)
    >>> print(f"{test.difference:.2f} {test.p_value:.3f}")
    1.83 0.003
    """
    means, errors, freedom = _mean_gains(systems, baseline, items)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.where(means == 0, 0.0, -np.abs(means) / errors)
    p_values = 2 * stdtr(freedom, ratios)
    p_values = np.where(np.isnan(errors), np.nan, np.maximum(p_values, np.finfo(float).tiny))
    return PairedTest(means, np.asarray(p_values))


def equivalence_test(
    systems: npt.ArrayLike,
    baseline: npt.ArrayLike,
    margin: float,
    *,
    items: Items | None = None,
) -> PairedTest:
    r"""Two one-sided t tests that systems and a baseline differ by less than a margin [1]_.

    .. math::

        p = \max\bigl(P(T \ge (d + m) / s),\; P(T \ge (m - d) / s)\bigr)

    for the mean difference d, its standard error s and the margin m. A small p-value shows
    that the means are equal but for a difference that does not matter; a large p-value of
    another test does not show it.

    Parameters
    ----------
    systems : array_like of shape (n_queries,) or (n_systems, n_queries)
        A number for each query.
    baseline : array_like of shape (n_queries,)
        The same for the system to compare with.
    margin : float
        The smallest difference that matters, at least 0.
    items : sequence of sequence, optional
        Items of each query that others may share, as for `overlap_test`.

    Returns
    -------
    PairedTest
        Degrees of freedom are those of `overlap_test`. The p-value is NaN if the standard
        error is, as for a single query.

    Raises
    ------
    TypeError, ValueError
        If the input does not hold finite numbers, or shapes do not fit.

    References
    ----------
    .. [1] D. J. Schuirmann, "A comparison of the two one-sided tests procedure and the power
       approach for assessing the equivalence of average bioavailability", Journal of
       Pharmacokinetics and Biopharmaceutics 15(6), 1987.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelcore.evaluation.overlap import equivalence_test
    >>> noise = np.random.default_rng(0).normal(size=(2, 100))
    >>> close, far = (equivalence_test(noise[0], noise[1], margin) for margin in (1, 0.1))
    >>> bool(close.p_value < 0.001), bool(far.p_value < 0.05)
    (True, False)
    """
    margin = check_real("margin", margin, minimum=0.0)
    means, errors, freedom = _mean_gains(systems, baseline, items)
    nearest = margin - np.abs(means)  # to the closer end of the margin
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.where(nearest == 0, 0.0, nearest / errors)
    p_values = np.maximum(stdtr(freedom, -ratios), np.finfo(float).tiny)
    return PairedTest(means, np.asarray(p_values))


def effective_number(values: npt.ArrayLike, items: Items) -> float:
    """Count the independent documents whose mean would have the same standard error.

    Parameters
    ----------
    values : array_like of shape (n_documents,)
        A number for each document.
    items : sequence of sequence
        Items of each document, see `overlap_standard_error`.

    Returns
    -------
    float
        At most the number of documents, which it is if no item is shared. NaN if the standard
        error is, or all values are equal.

    Examples
    --------
    >>> from kernelcore.evaluation.overlap import effective_number
    >>> round(effective_number([0.9, 0.8, 0.2, 0.3], [["a"], ["a"], ["b"], ["b"]]), 2)
    1.37
    """
    numbers = check_finite("values", as_real_array("values", values, ndim=1))
    apart = numbers.std(ddof=1) / np.sqrt(len(numbers)) if len(numbers) > 1 else np.nan
    shared = overlap_standard_error(numbers, items)
    return float(len(numbers) * (apart / shared) ** 2) if shared > 0 else float("nan")


def _mean_gains(
    systems: npt.ArrayLike, baseline: npt.ArrayLike, items: Items | None
) -> tuple[Array, Array, Array]:
    """Return mean differences, their standard errors and degrees of freedom."""
    ours, theirs = as_paired(systems, baseline)
    gains = np.atleast_2d(ours - theirs)
    n = gains.shape[1]
    means = gains.mean(axis=1)
    own = [[i] for i in range(n)] if items is None else items
    errors = _standard_errors(gains, own)
    spread = np.square(gains - means[:, np.newaxis]).sum(axis=1) / max(n - 1, 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        n_independent = np.nan_to_num(spread / errors**2, nan=n)
    freedom = np.clip(n_independent - 1, 1, max(n - 1, 1))
    shape = ours.shape[:-1]
    return means.reshape(shape), errors.reshape(shape), freedom.reshape(shape)


def _standard_errors(rows: Array, items: Items) -> npt.NDArray[np.float64]:
    """Return the standard error of the mean of each row."""
    n = rows.shape[1]
    if n == 0:
        raise ValueError("values must hold a number for at least one document, got none")
    overlaps = _overlaps(items, n)
    n_sharing = overlaps.sum() / n
    if n_sharing >= n:
        return np.full(len(rows), np.nan)
    deviations = rows - rows.mean(axis=1, keepdims=True)
    shared = np.sum(deviations * (overlaps @ deviations.T).T, axis=1) / (n * (n - n_sharing))
    apart = np.sum(deviations**2, axis=1) / (n * (n - 1))
    return np.asarray(np.sqrt(np.maximum(shared, apart)), np.float64)


def as_items(
    name: str, items: Any, n_queries: int, kind: type = object
) -> tuple[tuple[Any, ...], ...]:
    """Return the items of each query, such as the photos of each document."""
    given = as_list(name, items)
    if len(given) != n_queries:
        raise ValueError(
            f"{name} must have one entry per query ({n_queries}), got {len(given)}"
        )
    for own in given:
        if isinstance(own, str) or not isinstance(own, Iterable):
            raise TypeError(f"{name} must hold a sequence for each query, got {own!r}")
        if not all(isinstance(item, kind) for item in own):
            raise TypeError(f"{name} must hold sequences of strings, got {own!r}")
    return tuple(map(tuple, given))


def _overlaps(items: Items, n_documents: int) -> sparse.csr_array:
    """Return a matrix that is 1 for documents that share an item, and on the diagonal."""
    given = as_items("items", items, n_documents)
    index = {item: i for i, item in enumerate(dict.fromkeys(chain(*given)))}
    # Each document has an item of its own too, so that it always shares one with itself.
    members = [[*{index[item] for item in own}, len(index) + d] for d, own in enumerate(given)]
    rows = np.repeat(np.arange(n_documents), [len(own) for own in members])
    columns = np.fromiter(chain(*members), np.int64, len(rows))
    shape = (n_documents, len(index) + n_documents)
    holds = sparse.csr_array((np.ones(len(rows)), (rows, columns)), shape=shape)
    shared = sparse.csr_array(holds @ holds.T)
    shared.data[:] = 1.0
    return shared
