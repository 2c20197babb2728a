"""Linear assignment with a given number of links, by SciPy on a larger matrix."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import linear_sum_assignment


def linear_assignments(
    costs: Sequence[npt.ArrayLike],
    *,
    maximize: bool = False,
    k: int | None = None,
    threshold: float | None = None,
) -> list[list[tuple[int, int]]]:
    """Links of each problem: exactly k, or at most k with a threshold.

    Examples
    --------
    >>> linear_assignments([[[1, 2], [3, 9]]])
    [[(0, 1), (1, 0)]]
    """
    return [
        _linear_assignment(np.asarray(cost, dtype=float), maximize, k, threshold)
        for cost in costs
    ]


def k_cardinality_assignments(
    cost: npt.ArrayLike, *, maximize: bool = False
) -> list[list[tuple[int, int]]]:
    """Links of the best assignments of 1, 2, ... links, up to the largest possible number.

    Examples
    --------
    >>> k_cardinality_assignments([[1, 2], [3, 9]])
    [[(0, 0)], [(0, 1), (1, 0)]]
    """
    matrix = np.asarray(cost, dtype=float)
    found = [
        _exactly(-matrix if maximize else matrix, k) for k in range(1, min(matrix.shape) + 1)
    ]
    return [links for links in found if links is not None]


def _linear_assignment(
    cost: npt.NDArray[Any], maximize: bool, k: int | None, threshold: float | None
) -> list[tuple[int, int]]:
    sign = -1.0 if maximize else 1.0
    c = sign * cost
    most = min(cost.shape) if k is None else min(k, *cost.shape)
    if threshold is None:
        links = _exactly(c, most)
        if links is None:
            raise ValueError("too much is forbidden")
        return links
    t = sign * threshold
    c = np.where(c > t, np.inf, c)
    best: list[tuple[int, int]] = []
    for n_links in range(1, most + 1):
        links = _exactly(c, n_links)
        if links is None:
            break
        gain = sum(c[link] for link in links) - sum(c[link] for link in best)
        if gain > t:
            break
        best = links
    return best


def _exactly(cost: npt.NDArray[Any], k: int) -> list[tuple[int, int]] | None:
    """Solve a larger problem, in which all but k rows and columns get dummies of cost 0."""
    n, m = cost.shape
    larger = np.full((n + m - k, n + m - k), np.inf)
    larger[:n, :m] = cost
    larger[n:, :m] = larger[:n, m:] = 0
    try:
        rows, cols = linear_sum_assignment(larger)
    except ValueError:
        return None
    return [(int(i), int(j)) for i, j in zip(rows, cols, strict=True) if i < n and j < m]
