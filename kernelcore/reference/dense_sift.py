"""Dense SIFT, one descriptor and one pixel at a time."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt


def dense_sift(
    grey: npt.ArrayLike, y: Iterable[int], x: Iterable[int], bin_size: float
) -> npt.NDArray[np.float64]:
    """Descriptors at the points of a grid: (n_y, n_x, 128).

    Examples
    --------
    >>> dense_sift(np.eye(8), y=[4], x=[4], bin_size=2.0).shape
    (1, 1, 128)
    """
    image = np.asarray(grey, np.float64)
    columns = list(x)
    return np.array([[_descriptor(image, row, col, bin_size) for col in columns] for row in y])


def _descriptor(
    image: npt.NDArray[np.float64], row: int, col: int, bin_size: float
) -> npt.NDArray[np.float64]:
    histogram = np.zeros((4, 4, 8))
    height, width = image.shape
    for r in range(1, height - 1):
        for c in range(1, width - 1):
            dx = image[r, c + 1] - image[r, c - 1]
            dy = image[r - 1, c] - image[r + 1, c]
            u, v = (r - row) / bin_size, (c - col) / bin_size
            angle = np.arctan2(dy, dx) / (2 * np.pi) * 8
            for i, j, k in np.ndindex(4, 4, 8):
                turn = (angle - k + 4) % 8 - 4
                share = _hat(u - (i - 1.5)) * _hat(v - (j - 1.5)) * _hat(turn)
                histogram[i, j, k] += np.hypot(dx, dy) * np.exp(-(u**2 + v**2) / 8) * share
    vector = histogram.ravel()
    if not vector.any():
        return vector
    cut = np.minimum(vector, 0.2 * np.linalg.norm(vector))
    unit: npt.NDArray[np.float64] = cut / np.linalg.norm(cut)
    return unit


def _hat(t: float) -> float:
    return max(0.0, 1 - abs(t))
