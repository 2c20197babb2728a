"""CIELAB colour of sRGB pixels, by the formulas of the two standards."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

_XYZ_OF_RGB = [
    [0.4124564, 0.3575761, 0.1804375],
    [0.2126729, 0.7151522, 0.0721750],
    [0.0193339, 0.1191920, 0.9503041],
]
_WHITE_D65 = [0.95047, 1.0, 1.08883]


def cielab(rgb: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """L*, a* and b* of pixels of shape (..., 3) with levels 0 .. 255.

    Examples
    --------
    >>> cielab([255, 0, 0]).round(1)
    array([53.2, 80.1, 67.2])
    """
    levels = np.asarray(rgb, np.float64) / 255
    linear = np.where(levels <= 0.04045, levels / 12.92, ((levels + 0.055) / 1.055) ** 2.4)
    t = linear @ np.transpose(_XYZ_OF_RGB) / _WHITE_D65
    delta = 6 / 29
    f = np.where(t > delta**3, np.cbrt(t), t / (3 * delta**2) + 4 / 29)
    x, y, z = np.moveaxis(f, -1, 0)
    return np.stack([116 * y - 16, 500 * (x - y), 200 * (y - z)], axis=-1)
