"""Partial Gram-Schmidt orthogonalisation in feature space, in plain NumPy."""

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


def partial_gram_schmidt(
    K: Array, *, tolerance: float, max_rank: int
) -> tuple[Array, Array, Array]:
    """Return features R with K ~ R R', the pivots in order, and the residual diagonal.

    The pivot is the training row with the largest squared distance from the span of those
    before it. It stops when the sum of these squares is at most `tolerance` times their sum
    at the start, at `max_rank`, or when no square exceeds the rounding of the first ones: one
    unit for each step before, and ten for the kernel's own entries.
    """
    K = np.asarray(K)
    n = len(K)
    residual = np.maximum(K.diagonal().astype(np.float64), 0.0)
    target = tolerance * residual.sum()
    unit = np.finfo(K.dtype).eps * np.abs(K.diagonal()).max()
    R = np.zeros((n, max_rank), dtype=K.dtype)
    pivots: list[int] = []
    while len(pivots) < max_rank:
        pivot, rank = int(residual.argmax()), len(pivots)
        if residual.sum() <= target or residual[pivot] <= (rank + 10) * unit:
            break
        column = (K[pivot] - R[:, :rank] @ R[pivot, :rank]) / np.sqrt(residual[pivot])
        column[pivots] = 0.0
        column[pivot] = np.sqrt(residual[pivot])
        R[:, rank] = column
        residual = np.maximum(residual - column.astype(np.float64) ** 2, 0.0)
        residual[pivot] = 0.0
        pivots.append(pivot)
    return R[:, : len(pivots)], np.array(pivots, dtype=np.intp), residual
