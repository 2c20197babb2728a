"""Similarities of bags of words, by their definitions."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

Bag = Mapping[int, float]


def bag_of_words(
    X: Sequence[Bag], Y: Sequence[Bag], weights: Mapping[int, float]
) -> npt.NDArray[np.float64]:
    """Cosine of the weighted counts of words; 0 for a bag without weight.

    Examples
    --------
    >>> bag_of_words([{0: 1, 1: 1}], [{1: 2}], {0: 1.0, 1: 1.0})
    array([[0.70710678]])
    """

    def product(x: Bag, y: Bag) -> float:
        return sum(weights[word] ** 2 * x[word] * y.get(word, 0) for word in sorted(x))

    def cosine(x: Bag, y: Bag) -> float:
        length = math.sqrt(product(x, x) * product(y, y))
        return product(x, y) / length if length else 0.0

    return np.array([[cosine(x, y) for y in Y] for x in X]).reshape(len(X), len(Y))


def bag_of_words_f1(
    X: Sequence[Bag], Y: Sequence[Bag], weights: Mapping[int, float]
) -> npt.NDArray[np.float64]:
    """Twice the shared weight of two bags over their total weight; 0 if no word is shared.

    Examples
    --------
    >>> bag_of_words_f1([{0: 1, 1: 1}], [{1: 2}], {0: 1.0, 1: 1.0})
    array([[0.5]])
    """

    def f1(x: Bag, y: Bag) -> float:
        shared = sum(weights[word] * min(x[word], y.get(word, 0)) for word in x)
        mass = sum(weights[w] * n for w, n in x.items())
        mass += sum(weights[w] * n for w, n in y.items())
        return 2 * shared / mass if mass else 0.0

    return np.array([[f1(x, y) for y in Y] for x in X]).reshape(len(X), len(Y))
