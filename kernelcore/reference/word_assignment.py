"""The word-assignment similarity, by its definition."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import linear_sum_assignment

Image = Sequence[Sequence[Any]]


def word_assignment(
    X: Sequence[Image],
    Y: Sequence[Image],
    *,
    kappa: Callable[[Any, Any], float],
    normalize: bool = True,
) -> npt.NDArray[Any]:
    """Sum over pairs of captions of the maximum assignment between their words.

    Examples
    --------
    >>> images = [[["dog", "chase", "cat"]], [["cat", "dog", "dog"]]]
    >>> word_assignment(images, images, kappa=lambda a, b: a == b, normalize=False)
    array([[3., 2.],
           [2., 3.]])
    """

    def similarity(x: Image, y: Image) -> float:
        return float(sum(_link(s, t, kappa) for s in x for t in y))

    K = np.array([[similarity(x, y) for y in Y] for x in X]).reshape(len(X), len(Y))
    if normalize:
        self_X, self_Y = ([similarity(x, x) for x in side] for side in (X, Y))
        length = np.sqrt(np.outer(self_X, self_Y))
        K = np.divide(K, length, out=np.zeros_like(K), where=length > 0)
    return K


def _link(s: Sequence[Any], t: Sequence[Any], kappa: Callable[[Any, Any], float]) -> float:
    gains = np.array([[max(0.0, kappa(a, b)) for b in t] for a in s]).reshape(len(s), len(t))
    return float(gains[linear_sum_assignment(gains, maximize=True)].sum())
