"""Visual words in the cells of a spatial pyramid, point by point and level by level."""

from __future__ import annotations

from fractions import Fraction
from math import floor

import numpy as np
import numpy.typing as npt


def count_words(
    words: npt.ArrayLike,
    y: npt.ArrayLike,
    x: npt.ArrayLike,
    image_shape: tuple[int, int],
    *,
    n_words: int,
    n_levels: int,
) -> npt.NDArray[np.int64]:
    """Count the words in the cells of every level, coarsest first: (n_cells, n_words).

    `words` holds the word at each point of the grid of pixel rows `y` and columns `x`. At
    level l a point is in the cell, of 2^l x 2^l, that its pixel's centre lies in.

    Examples
    --------
    >>> count_words([[0, 1]], [0], [0, 1], (1, 2), n_words=2, n_levels=1)
    array([[1, 1]])
    """
    word_map, height, width = np.asarray(words), image_shape[0], image_shape[1]
    levels = []
    for level in range(n_levels):
        side = 2**level
        counts = np.zeros((side, side, n_words), dtype=np.int64)
        for (i, j), word in np.ndenumerate(word_map):
            row = floor((int(np.asarray(y)[i]) + Fraction(1, 2)) / height * side)
            column = floor((int(np.asarray(x)[j]) + Fraction(1, 2)) / width * side)
            counts[row, column, word] += 1
        levels.append(counts.reshape(side * side, n_words))
    return np.concatenate(levels)
