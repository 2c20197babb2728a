"""The checks of an input, by their definitions."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt


def scan_values(values: npt.NDArray[Any]) -> tuple[float, float, bool]:
    """Return the smallest and the largest value (0 if empty), and whether all are finite.

    Examples
    --------
    >>> import numpy as np
    >>> scan_values(np.array([2.0, -1.0]))
    (-1.0, 2.0, True)
    """
    if not values.size:
        return 0.0, 0.0, True
    return float(values.min()), float(values.max()), bool(np.isfinite(values).all())


def scan_gram(K: npt.NDArray[Any]) -> tuple[float, float, bool, float]:
    """Return the result of `scan_values`, and the largest difference from the transpose.

    Examples
    --------
    >>> import numpy as np
    >>> scan_gram(np.array([[1.0, 0.5], [0.25, 1.0]]))
    (0.25, 1.0, True, 0.25)
    """
    return (*scan_values(K), float(np.abs(K - K.T).max(initial=0.0)))
