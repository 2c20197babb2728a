"""Correction of scores for hubs, one score at a time."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean


def hub_corrected(
    scores: Sequence[Sequence[float]],
    bank: Sequence[Sequence[float]],
    *,
    task: str,
    n_neighbors: int = 30,
) -> list[list[float]]:
    """Corrected scores of every image (rows) and every caption (columns).

    The bank has one row for each of its images for annotation, and one column for each of its
    captions for search.
    """
    corrected: list[list[float]] = []
    for i, row in enumerate(scores):
        corrected.append([])
        for j, score in enumerate(row):
            known = [other[j] for other in bank] if task == "annotation" else list(bank[i])
            nearest = sorted(known, reverse=True)[:n_neighbors]
            corrected[-1].append(2 * score - fmean(nearest))
    return corrected
