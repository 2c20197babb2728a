"""The spatial pyramid match kernel, in the telescoping form of its source."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt


def spatial_pyramid(
    X: npt.ArrayLike,
    Y: npt.ArrayLike,
    totals_X: npt.ArrayLike,
    totals_Y: npt.ArrayLike,
    n_levels: int,
) -> npt.NDArray[Any]:
    """K = I^L + sum over l < L of 2^-(L-l) (I^l - I^(l+1)), cells in whole-image fractions.

    `X` and `Y` hold counts, shape (n_images, n_cells, n_words), level after level.

    Examples
    --------
    >>> spatial_pyramid([[[3, 1]]], [[[2, 2]]], [4], [4], n_levels=1)
    array([[0.75]])
    """
    left = np.asarray(X, np.float64) / np.asarray(totals_X, np.float64)[:, None, None]
    right = np.asarray(Y, np.float64) / np.asarray(totals_Y, np.float64)[:, None, None]
    finest = n_levels - 1
    gram = np.zeros((len(left), len(right)))
    for i, x in enumerate(left):
        for j, y in enumerate(right):
            intersection, cell = [], 0
            for level in range(n_levels):
                cells = slice(cell, cell + 4**level)
                intersection.append(np.minimum(x[cells], y[cells]).sum())
                cell += 4**level
            gram[i, j] = intersection[finest]
            for level in range(finest):
                weight = 2.0 ** -(finest - level)
                gram[i, j] += weight * (intersection[level] - intersection[level + 1])
    return gram
