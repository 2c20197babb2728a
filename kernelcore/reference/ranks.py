"""Rank of the gold item, by the definition: sort, and average over orders of ties."""

from __future__ import annotations

from collections.abc import Sequence
from math import comb


def gold_ranks(
    scores: Sequence[Sequence[float]], gold: Sequence[Sequence[int]], *, ties: str = "mean"
) -> list[float]:
    """Rank, from 1, of the best gold candidate of each row; `gold` lists them by row."""
    return [
        _first_gold_rank(list(row), set(relevant), ties)
        for row, relevant in zip(scores, gold, strict=True)
    ]


def _first_gold_rank(row: list[float], relevant: set[int], ties: str) -> float:
    order = sorted(range(len(row)), key=lambda candidate: -row[candidate])  # stable
    ordinal = next(p for p, candidate in enumerate(order, start=1) if candidate in relevant)
    value = row[order[ordinal - 1]]
    tied = [position for position, candidate in enumerate(order, 1) if row[candidate] == value]
    n_tied, n_gold = len(tied), sum(row[candidate] == value for candidate in relevant)
    if ties == "ordinal":
        return ordinal
    if ties == "min":
        return tied[0]
    if ties == "max":  # every other tied candidate stands before the first gold one
        return tied[n_tied - n_gold]
    # Of all ways to place n_gold items on n_tied positions, comb(n_tied - 1 - i, n_gold - 1)
    # have the first one on position i.
    ways = [comb(n_tied - 1 - i, n_gold - 1) for i in range(n_tied)]
    return sum(n * position for n, position in zip(ways, tied, strict=True)) / sum(ways)
