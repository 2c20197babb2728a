"""Paired tests by their definitions: all reassignments, and sums of binomials."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import product
from math import comb
from statistics import fmean, median
from typing import Any


def median_differences(
    first: Sequence[float], second: Sequence[float], swaps: Sequence[Sequence[bool]]
) -> list[float]:
    """Median of `first` minus median of `second`, after each of the swaps."""
    return [_difference(median, first, second, swap) for swap in swaps]


def fisher_randomization(
    first: Sequence[float], second: Sequence[float], *, statistic: str = "mean"
) -> float:
    """P-value over all 2^n reassignments; exact if the values are fractions."""
    measure = _MEASURES[statistic]
    observed = abs(measure(first) - measure(second))
    swaps = list(product([False, True], repeat=len(first)))
    extreme = [s for s in swaps if abs(_difference(measure, first, second, s)) >= observed]
    return len(extreme) / len(swaps)


def paired_bootstrap(
    first: Sequence[float],
    second: Sequence[float],
    draws: Sequence[Sequence[int]],
    *,
    statistic: str = "mean",
) -> list[float]:
    """Difference of the statistic in each resample of queries in `draws`."""
    measure = _MEASURES[statistic]
    return [
        float(measure([first[q] for q in d]) - measure([second[q] for q in d])) for d in draws
    ]


def mcnemar(first: Sequence[bool], second: Sequence[bool], *, mid_p: bool = False) -> float:
    """Two-sided binomial probability of the discordant pairs, summed in fractions."""
    wins = sum(a and not b for a, b in zip(first, second, strict=True))
    losses = sum(b and not a for a, b in zip(first, second, strict=True))
    n, fewer = wins + losses, min(wins, losses)
    tail = Fraction(sum(comb(n, i) for i in range(fewer + 1)), 2**n)
    if mid_p:
        return float(2 * tail - Fraction(comb(n, fewer), 2**n))
    return float(min(Fraction(1), 2 * tail))


def holm(p_values: Sequence[float]) -> list[float]:
    """For each hypothesis, the smallest level at which Holm's procedure rejects it."""
    m = len(p_values)
    order = sorted(range(m), key=lambda i: p_values[i])
    adjusted = [0.0] * m
    for place, i in enumerate(order):
        adjusted[i] = min(1.0, max((m - j) * p_values[order[j]] for j in range(place + 1)))
    return adjusted


def rank_correlation(first: Sequence[float], second: Sequence[float]) -> tuple[float, float]:
    """Spearman's rho and Kendall's tau-b, pair by pair."""

    def ranks(values: Sequence[float]) -> list[float]:
        return [sum((b < a) + (b == a) / 2 for b in values) for a in values]

    def sign(a: float, b: float) -> int:
        return (a > b) - (a < b)

    def cosine(x: Sequence[float], y: Sequence[float]) -> float:
        dot = sum(a * b for a, b in zip(x, y, strict=True))
        return float(dot / (sum(a * a for a in x) * sum(b * b for b in y)) ** 0.5)

    by_rank = [[r - fmean(of) for r in of] for of in (ranks(first), ranks(second))]
    by_pair = [[sign(a, b) for a in of for b in of] for of in (first, second)]
    return cosine(*by_rank), cosine(*by_pair)


def _difference(
    measure: Callable[..., Any],
    first: Sequence[float],
    second: Sequence[float],
    swap: Sequence[bool],
) -> Any:
    pairs = list(zip(first, second, swap, strict=True))
    return measure([b if moved else a for a, b, moved in pairs]) - measure(
        [a if moved else b for a, b, moved in pairs]
    )


def _exact_mean(values: Sequence[float]) -> Fraction:
    return sum(map(Fraction, values), Fraction(0)) / len(values)


_MEASURES: dict[str, Callable[..., Any]] = {"mean": _exact_mean, "median": median}
