"""The nearest visual word, by computing every distance."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt


def nearest_word(points: npt.ArrayLike, centers: npt.ArrayLike) -> npt.NDArray[np.intp]:
    """Index of the centre at the smallest Euclidean distance; the first one of ties.

    Examples
    --------
    >>> nearest_word([[0.0], [5.0]], [[1.0], [-1.0], [6.0]])
    array([0, 2])
    """
    words = [
        np.argmin([np.sum((point - centre) ** 2) for centre in np.asarray(centers, np.float64)])
        for point in np.asarray(points, np.float64)
    ]
    return np.array(words, dtype=np.intp)
