"""Agreement of raters by the definitions: every pair of ratings is compared."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations
from math import isnan


def cohen_kappa(
    first: Sequence[int], second: Sequence[int], weights: list[list[float]]
) -> float:
    """Cohen's kappa of two raters; a rating is the position of its category."""
    observed = [weights[a][b] for a, b in zip(first, second, strict=True)]
    expected = [weights[a][b] for a in first for b in second]
    if not any(expected):
        return float("nan")
    return 1 - (sum(observed) / len(observed)) / (sum(expected) / len(expected))


def krippendorff_alpha(ratings: Sequence[Sequence[float]], *, level: str = "nominal") -> float:
    """Krippendorff's alpha from all ordered pairs of ratings, within units and overall."""
    given = [[value for value in unit if not isnan(value)] for unit in ratings]
    units = [unit for unit in given if len(unit) > 1]
    pooled = [value for unit in units for value in unit]

    def difference(c: float, d: float) -> float:
        if level == "nominal":
            return float(c != d)
        if level == "interval":
            return (c - d) ** 2
        low, high = min(c, d), max(c, d)
        between = sum(low <= value <= high for value in pooled)
        return (between - (pooled.count(c) + pooled.count(d)) / 2) ** 2

    observed = sum(
        sum(difference(c, d) for c, d in permutations(unit, 2)) / (len(unit) - 1)
        for unit in units
    ) / len(pooled)
    expected = sum(difference(c, d) for c, d in permutations(pooled, 2))
    if not expected:
        return float("nan")
    return 1 - observed / (expected / (len(pooled) * (len(pooled) - 1)))
