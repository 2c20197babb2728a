"""The word-sequence kernel, by its definition: every pair of index tuples."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

Caption = Sequence[Any]


def word_sequence(
    X: Sequence[Sequence[Caption]],
    Y: Sequence[Sequence[Caption]],
    similarity: Callable[[Any, Any], float] = operator.eq,
    *,
    max_length: int = 3,
    match_decay: float = 0.5,
    gap_decay: float = 1.0,
    normalize: bool = False,
) -> npt.NDArray[np.float64]:
    """K[x, y] = sum of `caption_kernel` over the captions of image x and of image y.

    Examples
    --------
    >>> word_sequence([[["a", "b"]]], [[["a", "b"]], [["b", "a"]]], match_decay=1.0)
    array([[3., 2.]])
    """
    options: Any = {
        "max_length": max_length,
        "match_decay": match_decay,
        "gap_decay": gap_decay,
    }

    def gram(left: Any, right: Any) -> float:
        return sum(caption_kernel(s, t, similarity, **options) for s in left for t in right)

    K = np.array([gram(x, y) for x in X for y in Y], dtype=np.float64)
    K = K.reshape(len(X), len(Y))
    if not normalize:
        return K
    squares = np.outer([gram(x, x) for x in X], [gram(y, y) for y in Y])
    return np.asarray(np.where(squares > 0, K / np.sqrt(np.where(squares > 0, squares, 1)), 0))


def caption_kernel(
    s: Caption,
    t: Caption,
    similarity: Callable[[Any, Any], float] = operator.eq,
    *,
    max_length: int = 3,
    match_decay: float = 0.5,
    gap_decay: float = 1.0,
) -> float:
    """Sum over all index tuples i_1 < .. < i_l in s, j_1 < .. < j_l in t of their weight.

    Examples
    --------
    >>> caption_kernel("ab", "axb", max_length=2, match_decay=1.0, gap_decay=0.5)
    2.5
    """
    matches = np.array([[similarity(a, b) for b in t] for a in s], dtype=float)
    total = 0.0
    for length in range(1, min(max_length, len(s), len(t)) + 1):
        in_s = np.array(list(combinations(range(len(s)), length)))
        in_t = np.array(list(combinations(range(len(t)), length)))
        products = np.ones((len(in_s), len(in_t)))
        for k in range(length):
            products *= matches[np.ix_(in_s[:, k], in_t[:, k])]
        gaps_s, gaps_t = (rows[:, -1] - rows[:, 0] + 1 - length for rows in (in_s, in_t))
        weights = np.outer(gap_decay**gaps_s, gap_decay**gaps_t)
        total += match_decay ** (2 * length) * float((products * weights).sum())
    return total
