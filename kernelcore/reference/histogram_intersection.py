"""The histogram intersection kernel, by its definition."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt


def histogram_intersection(X: npt.ArrayLike, Y: npt.ArrayLike) -> npt.NDArray[Any]:
    """K[i, j] = sum over bins b of min(X[i, b], Y[j, b]); counts are summed as integers.

    Examples
    --------
    >>> histogram_intersection([[3, 1, 0]], [[1, 1, 2]])
    array([[2]])
    """
    left, right = np.asarray(X), np.asarray(Y)
    total = np.uint64 if left.dtype.kind == "u" else None
    rows = [[np.minimum(x, y).sum(dtype=total) for y in right] for x in left]
    return np.array(rows).reshape(len(left), len(right))
