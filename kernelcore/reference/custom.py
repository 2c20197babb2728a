"""Gram matrix of any pair function, one call per pair."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt


def custom(
    fn: Callable[[Any, Any], float], X: Sequence[Sequence[Any]], Y: Sequence[Sequence[Any]]
) -> npt.NDArray[np.float64]:
    """K[x, y] = mean of `fn` over the items of x and of y, 0 if one of them has no item.

    Examples
    --------
    >>> custom(max, [[1], [2, 4]], [[3], []])
    array([[3. , 0. ],
           [3.5, 0. ]])
    """
    values = [[fn(s, t) for s in x for t in y] for x in X for y in Y]
    means = [sum(pairs) / len(pairs) if pairs else 0.0 for pairs in values]
    return np.array(means, dtype=np.float64).reshape(len(X), len(Y))
