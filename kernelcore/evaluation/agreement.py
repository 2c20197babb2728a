"""Agreement of raters beyond chance: Cohen's kappa and Krippendorff's alpha."""

from __future__ import annotations

from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from kernelcore._check import (
    Array,
    as_array,
    as_real_array,
    check_choice,
    check_finite,
    check_integer,
    check_real,
    check_rng,
)

__all__ = [
    "cohen_kappa",
    "krippendorff_alpha",
    "krippendorff_alpha_interval",
]

Level: TypeAlias = Literal["nominal", "ordinal", "interval"]

_LEVELS = ("nominal", "ordinal", "interval")
_POWERS = {"linear": 1, "quadratic": 2}
_Floats: TypeAlias = npt.NDArray[np.float64]


def cohen_kappa(
    first: npt.ArrayLike,
    second: npt.ArrayLike,
    *,
    weights: Literal["linear", "quadratic"] | None = None,
) -> float:
    r"""Cohen's kappa of two raters, plain or weighted.

    .. math:: \kappa = 1 - \frac{\sum_{ij} w_{ij} O_{ij}}{\sum_{ij} w_{ij} E_{ij}}

    where O holds the share of items that the first rater puts in category i and the second
    in j, E the product of the shares of both raters, and w the weight of a disagreement.

    Parameters
    ----------
    first, second : array_like of shape (n_items,)
        Category that each rater gives each item: numbers, booleans or strings.
    weights : {"linear", "quadratic"}, optional
        Weight of a disagreement between categories i and j: :math:`|i - j|` or
        :math:`(i - j)^2`, by the places of the categories that occur, ascending, not by
        their values. The default is 1 for each; strings have no other.

    Returns
    -------
    float
        1 for full agreement, 0 for that of chance, less if below. NaN where both raters put
        all items in one and the same category (more generally, where chance cannot
        disagree): 0 / 0, nothing can be said.

    Raises
    ------
    TypeError, ValueError
        If the ratings are not two vectors of the same length, a rating is NaN, or `weights`
        is none of these.

    References
    ----------
    .. [1] J. Cohen, "A coefficient of agreement for nominal scales", Educational and
       Psychological Measurement 20(1), 1960.
    .. [2] J. Cohen, "Weighted kappa", Psychological Bulletin 70(4), 1968.

    Examples
    --------
    >>> from kernelcore.evaluation.agreement import cohen_kappa
    >>> cohen_kappa([1, 1, 0, 0], [1, 0, 0, 0])
    0.5
    >>> round(cohen_kappa([1, 2, 3, 4], [1, 2, 4, 4], weights="quadratic"), 3)
    0.917
    """
    ours, theirs = _as_labels("first", first), _as_labels("second", second)
    if len(ours) != len(theirs) or not len(ours):
        raise ValueError(
            "first and second must rate the same items, at least one, "
            f"got {len(ours)} and {len(theirs)}"
        )
    is_text = ours.dtype.kind in "US"
    if is_text != (theirs.dtype.kind in "US"):
        raise TypeError(
            "first and second must both hold numbers or both strings, "
            f"got dtypes {ours.dtype} and {theirs.dtype}"
        )
    if weights is not None and is_text:
        raise TypeError("weights must be omitted for strings, which have no order but the ABC")
    values, codes = np.unique(np.concatenate((ours, theirs)), return_inverse=True)
    n_categories = len(values)
    if weights is not None:
        check_choice("weights", weights, _POWERS)
    places = np.arange(n_categories, dtype=np.float64)
    distance = abs(places[:, np.newaxis] - places)
    disagreement = np.minimum(distance, 1) if weights is None else distance ** _POWERS[weights]
    cells = codes[: len(ours)] * n_categories + codes[len(ours) :]
    table = np.bincount(cells, minlength=n_categories**2).reshape(n_categories, n_categories)
    # Counts, not shares: plain and linear weights then meet no rounding before the division.
    expected = table.sum(axis=1) @ disagreement @ table.sum(axis=0)
    if expected == 0:
        return float("nan")
    return float(1 - len(ours) * np.sum(disagreement * table) / expected)


def krippendorff_alpha(ratings: npt.ArrayLike, *, level: Level = "nominal") -> float:
    r"""Krippendorff's alpha of any number of raters, not all of whom rate every unit.

    .. math:: \alpha = 1 - \frac{D_o}{D_e}
        = 1 - (n - 1) \frac{\sum_{cd} o_{cd} \delta_{cd}}{\sum_{cd} n_c n_d \delta_{cd}}

    A unit u with :math:`m_u \ge 2` ratings adds each ordered pair of them to the coincidences
    o with weight :math:`1 / (m_u - 1)`; :math:`n_c` are the sums of its rows and n is their
    sum. The difference of two values is

    =============  ==========================================================================
    ``level``      :math:`\delta_{cd}`
    =============  ==========================================================================
    ``nominal``    1 where they differ
    ``ordinal``    square of the ratings between them, half of those of c and d counted
    ``interval``   :math:`(c - d)^2`
    =============  ==========================================================================

    Parameters
    ----------
    ratings : array_like of shape (n_units, n_raters)
        Rating of each unit (for example a picture with a caption) by each rater; NaN where a
        rater gave none. The order within a row does not matter: if only the counts of the
        ratings are known, fill the row in any order.
    level : {"nominal", "ordinal", "interval"}, default="nominal"
        What the values mean.

    Returns
    -------
    float
        1 for full agreement, 0 for that of chance, less if below. NaN where only one value
        occurs: 0 / 0, nothing can be said.

    Raises
    ------
    TypeError, ValueError
        If `ratings` is not a matrix of numbers, one is infinite, or no unit has two.

    References
    ----------
    .. [1] K. Krippendorff, "Content Analysis: An Introduction to Its Methodology", 2nd ed.,
       2004, ch. 11.

    Examples
    --------
    >>> from kernelcore.evaluation.agreement import krippendorff_alpha
    >>> ratings = [[1, 1, 1], [2, 2, 3], [4, 4, 4], [3, 3, float("nan")]]
    >>> round(krippendorff_alpha(ratings, level="ordinal"), 3)
    0.945
    """
    counts, values, _ = _count_values(ratings)
    check_choice("level", level, _LEVELS)
    return _alpha(counts, values, level)


def krippendorff_alpha_interval(
    ratings: npt.ArrayLike,
    *,
    level: Level = "nominal",
    groups: npt.ArrayLike | None = None,
    n_resamples: int = 1000,
    confidence: float = 0.95,
    rng: np.random.Generator | int | None = None,
) -> tuple[float, float]:
    """Percentile bootstrap interval of Krippendorff's alpha over the units.

    Parameters
    ----------
    ratings : array_like of shape (n_units, n_raters)
        As for `krippendorff_alpha`. Units with fewer than two ratings are never drawn.
    level : {"nominal", "ordinal", "interval"}, default="nominal"
        What the values mean.
    groups : array_like of shape (n_units,), optional
        Group of each unit (for example the picture of a pair): numbers or strings. Units of
        one group are drawn together. By default each unit is drawn alone.
    n_resamples : int, default=1000
        How many times the units are drawn anew, with replacement, each with its ratings.
    confidence : float, default=0.95
        Share of the resampled values inside the interval, between 0 and 1.
    rng : numpy.random.Generator, int or None
        Source of the draws; an int is a seed.

    Returns
    -------
    low, high : float
        Draws in which a single value occurs have no alpha and are left out; both ends are
        NaN if no other remain.

    Raises
    ------
    TypeError, ValueError
        If `ratings` do not fit `krippendorff_alpha`, `groups` are not one for each unit, or
        an option is out of range.

    Notes
    -----
    The interval speaks of other units judged by the same kind of raters. Krippendorff's own
    algorithm draws pairs of values from the coincidences as if they were independent; this
    one keeps together what was said of one unit.

    References
    ----------
    .. [1] A. Zapf, S. Castell, L. Morawietz and A. Karch, "Measuring inter-rater reliability
       for nominal data: which coefficients and confidence intervals are appropriate?", BMC
       Medical Research Methodology 16:93, 2016.

    Examples
    --------
    >>> from kernelcore.evaluation.agreement import krippendorff_alpha_interval
    >>> ratings = [[1, 1], [2, 2], [1, 2], [2, 2]] * 10
    >>> low, high = krippendorff_alpha_interval(ratings, rng=0)
    >>> 0.1 < low < 0.5 < high < 0.9
    True
    """
    counts, values, is_counted = _count_values(ratings)
    check_choice("level", level, _LEVELS)
    members = None if groups is None else _members(groups, is_counted)
    n_resamples = check_integer("n_resamples", n_resamples, minimum=1)
    confidence = check_real("confidence", confidence, minimum=0.0, maximum=1.0)
    generator = check_rng("rng", rng)
    n_drawn = len(counts) if members is None else len(members)

    def draw() -> npt.NDArray[np.intp]:
        drawn = generator.integers(n_drawn, size=n_drawn)
        return drawn if members is None else np.concatenate([members[i] for i in drawn])

    alphas = np.array([_alpha(counts[draw()], values, level) for _ in range(n_resamples)])
    alphas = alphas[~np.isnan(alphas)]
    if not alphas.size:
        return float("nan"), float("nan")
    low, high = np.quantile(alphas, [(1 - confidence) / 2, (1 + confidence) / 2])
    return float(low), float(high)


def _as_labels(name: str, labels: npt.ArrayLike) -> Array:
    array = as_array(name, labels, ndim=1)
    if array.dtype.kind not in "biufUS":
        raise TypeError(f"{name} must hold numbers, booleans or strings, got {array.dtype}")
    if array.ndim != 1:
        raise ValueError(f"{name} must be a 1-D array, got shape {array.shape}")
    return check_finite(name, array)


def _members(
    groups: npt.ArrayLike, is_counted: npt.NDArray[np.bool_]
) -> list[npt.NDArray[np.intp]]:
    """Places of the units of each group, among the units that count."""
    labels = _as_labels("groups", groups)
    if len(labels) != len(is_counted):
        raise ValueError(
            f"groups must have one label for each of {len(is_counted)} units, got {len(labels)}"
        )
    _, codes, sizes = np.unique(labels[is_counted], return_inverse=True, return_counts=True)
    return np.split(np.argsort(codes, kind="stable"), np.cumsum(sizes)[:-1])


def _count_values(
    ratings: npt.ArrayLike,
) -> tuple[_Floats, _Floats, npt.NDArray[np.bool_]]:
    """Count the ratings of each value, in columns, for units with at least two ratings."""
    matrix = as_real_array("ratings", ratings, ndim=2).astype(np.float64, copy=False)
    given = ~np.isnan(matrix)
    check_finite("ratings", np.where(given, matrix, 0.0))
    is_counted = given.sum(axis=1) >= 2
    matrix, given = matrix[is_counted], given[is_counted]
    if not len(matrix):
        raise ValueError("ratings must have a unit with at least two ratings, got none")
    values, codes = np.unique(matrix[given], return_inverse=True)
    cells = np.nonzero(given)[0] * len(values) + codes
    counts = np.bincount(cells, minlength=len(matrix) * len(values)).astype(np.float64)
    return counts.reshape(len(matrix), len(values)), values, is_counted


def _alpha(counts: _Floats, values: _Floats, level: str) -> float:
    """Alpha of units by the number of their ratings of each value."""
    weights = 1 / (counts.sum(axis=1) - 1)
    weighted = counts * weights[:, np.newaxis]
    coincidences = counts.T @ weighted
    coincidences -= np.diag(weighted.sum(axis=0))
    totals = counts.sum(axis=0)
    if level == "nominal":
        difference = 1 - np.eye(len(values))
    else:
        # On an ordinal scale, the place of a value is in the middle of the ratings with it. On
        # an interval scale only ratios matter: the largest is brought into [1/2, 1).
        middles = np.cumsum(totals) - totals / 2
        in_range = np.ldexp(values, -np.frexp(abs(values).max())[1])
        scale = in_range if level == "interval" else middles
        difference = (scale[:, np.newaxis] - scale) ** 2
    expected = totals @ difference @ totals
    if expected == 0:
        return float("nan")
    return float(1 - (totals.sum() - 1) * np.sum(coincidences * difference) / expected)
