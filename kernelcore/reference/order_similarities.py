"""Penalties of pairs that are out of order, slow and obvious."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt


def order_similarities(images: npt.ArrayLike, texts: npt.ArrayLike) -> npt.NDArray[Any]:
    """Less the squared length of what an image's vector has in excess of a text's.

    Examples
    --------
    >>> order_similarities([[1.0, 0.0], [2.0, 2.0]], [[1.0, 3.0], [0.0, 1.0]])
    array([[ 0., -1.],
           [-1., -5.]])
    """
    pairs = [
        [-sum(max(0.0, v - t) ** 2 for v, t in zip(image, text, strict=True)) for text in texts]
        for image, texts in ((row, np.asarray(texts)) for row in np.asarray(images))
    ]
    return np.array(pairs)
