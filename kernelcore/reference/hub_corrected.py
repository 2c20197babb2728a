"""Corrections of scores for hubs, one score at a time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean, pstdev


def hub_corrected(
    scores: Sequence[Sequence[float]],
    bank: Sequence[Sequence[float]],
    *,
    task: str,
    method: str,
    n_neighbors: int = 30,
    inverse_temperature: float = 10.0,
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
            if method == "csls":
                value = 2 * score - fmean(sorted(known, reverse=True)[:n_neighbors])
            elif method == "z_score":
                value = (score - fmean(known)) / (pstdev(known) or 1.0)
            else:
                mean = fmean(math.exp(inverse_temperature * other) for other in known)
                value = score - math.log(mean) / inverse_temperature
            corrected[-1].append(value)
    return corrected
