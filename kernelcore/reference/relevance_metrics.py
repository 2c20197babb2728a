"""Metrics of rankings with many relevant items, by listing every order of ties."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from fractions import Fraction
from itertools import combinations, groupby, product


def relevance_metrics(
    scores: Sequence[Sequence[float]],
    relevant: Sequence[Collection[int]],
    *,
    ks: Sequence[int],
    ties: str = "mean",
) -> list[dict[str, float] | None]:
    """Metrics of each row by name; None for a row without relevant candidates."""
    return [
        _of_query(list(row), set(items), ks, ties) if items else None
        for row, items in zip(scores, relevant, strict=True)
    ]


def _of_query(
    row: list[float], relevant: set[int], ks: Sequence[int], ties: str
) -> dict[str, float]:
    rankings = list(_rankings(row, relevant, ties))  # all equally likely
    first = Fraction(sum(1 + flags.index(True) for flags in rankings), len(rankings))
    values: dict[str, Fraction] = {}
    for k in ks:
        hits = _mean([Fraction(sum(flags[:k])) for flags in rankings])
        precision, recall = hits / k, hits / len(relevant)
        values[f"S@{k}"] = Fraction(first <= k)
        values[f"P@{k}"] = precision
        values[f"recall@{k}"] = recall
        values[f"F1@{k}"] = (
            2 * precision * recall / (precision + recall) if hits else Fraction(0)
        )
    n = len(relevant)
    values["R-precision"] = _mean([Fraction(sum(flags[:n]), n) for flags in rankings])
    values["MAP"] = _mean([_precision_sum(flags) / n for flags in rankings])
    values["mAP@R"] = _mean([_precision_sum(flags[:n]) / n for flags in rankings])
    values["MRR"] = 1 / first
    return {name: float(value) for name, value in values.items()}


def _rankings(row: list[float], relevant: set[int], ties: str) -> Iterator[list[bool]]:
    """Every order that the tie rule allows, as a list of flags: relevant or not."""
    order = sorted(range(len(row)), key=lambda candidate: -row[candidate])  # stable
    blocks = [
        [candidate in relevant for candidate in block]
        for _, block in groupby(order, key=lambda candidate: row[candidate])
    ]
    if ties == "ordinal":
        choices = [[block] for block in blocks]
    elif ties in {"min", "max"}:
        choices = [[sorted(block, reverse=ties == "min")] for block in blocks]
    else:
        choices = [
            [[place in chosen for place in range(len(block))] for chosen in chosen_places]
            for block in blocks
            for chosen_places in [combinations(range(len(block)), sum(block))]
        ]
    for parts in product(*choices):
        yield [flag for part in parts for flag in part]


def _precision_sum(flags: Sequence[bool]) -> Fraction:
    """Sum of the precisions at the ranks of relevant items."""
    return sum(
        (Fraction(sum(flags[:i]), i) for i in range(1, len(flags) + 1) if flags[i - 1]),
        Fraction(0),
    )


def _mean(values: Sequence[Fraction]) -> Fraction:
    return sum(values, Fraction(0)) / len(values)
