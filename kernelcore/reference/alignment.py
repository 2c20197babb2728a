"""Weights of kernels by centred alignment, from all sets of kernels that may have a weight."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


def centred_alignment(K: Array, T: Array) -> float:
    """Cosine of two centred Gram matrices."""
    H = np.eye(len(K)) - 1 / len(K)
    A, B = H @ K @ H, H @ T @ H
    return float((A * B).sum() / np.sqrt((A * A).sum() * (B * B).sum()))


def centred_alignment_weights(matrices: Sequence[Array], target: Array) -> Array:
    """Return the weights of the best set; those on one set solve a linear system."""
    H = np.eye(len(target)) - 1 / len(target)
    centred = [H @ K @ H for K in matrices]
    a = np.array([(K * (H @ target @ H)).sum() for K in centred])
    M = np.array([[(K * L).sum() for L in centred] for K in centred])
    best, found = 0.0, np.zeros(len(a))
    for size in range(1, len(a) + 1):
        for kept in map(list, combinations(range(len(a)), size)):
            weights = np.zeros(len(a))
            weights[kept] = np.linalg.solve(M[np.ix_(kept, kept)], a[kept])
            value = weights @ M @ weights - 2 * weights @ a
            if (weights >= 0).all() and value < best:
                best, found = value, weights
    shares: Array = found / found.sum()
    return shares
