"""Similarities of order embeddings, by their definition."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt


def order_similarities(images: npt.ArrayLike, texts: npt.ArrayLike) -> npt.NDArray[Any]:
    """Minus the squared length of the positive part of image vector minus text vector.

    Examples
    --------
    >>> order_similarities([[1.0, 0.0], [2.0, 2.0]], [[1.0, 3.0], [0.0, 1.0]])
    array([[ 0., -1.],
           [-1., -5.]])
    """
    v, t = np.asarray(images), np.asarray(texts)
    penalties = np.zeros((len(v), len(t)))
    for i, image in enumerate(v):
        for j, text in enumerate(t):
            penalties[i, j] = sum(
                max(0.0, a - b) ** 2 for a, b in zip(image, text, strict=True)
            )
    return 0 - penalties
