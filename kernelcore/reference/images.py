"""Colour, texture, SIFT and counts of visual words by their definitions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from math import floor

import numpy as np
import numpy.typing as npt
from scipy import ndimage

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


def oriented_energy(
    grey: npt.ArrayLike, n_orientations: int, scales: Sequence[float]
) -> npt.NDArray[np.float64]:
    """Square root of the sum of squared edge and bar responses: (n_filters, h, w).

    Both are derivatives across the direction theta of a Gaussian that is cut off at four
    standard deviations, divided by the integral of their absolute value.

    Examples
    --------
    >>> bool(oriented_energy(np.ones((3, 3)), n_orientations=2, scales=[1.0]).max() < 1e-9)
    True
    """
    image = np.asarray(grey, np.float64)
    energies = []
    for sigma in scales:
        radius = int(np.ceil(4 * sigma))
        y, x = np.mgrid[-radius : radius + 1, -radius : radius + 1]
        gauss = np.exp(-(x**2 + y**2) / (2 * sigma**2))
        gauss /= gauss.sum()
        for k in range(n_orientations):
            theta = np.pi * k / n_orientations
            u = x * np.cos(theta) + y * np.sin(theta)
            edge = -u / sigma**2 * gauss * (sigma / np.sqrt(2 / np.pi))
            bar = (u**2 - (u**2 * gauss).sum()) / sigma**4 * gauss
            bar *= sigma**2 * np.sqrt(2 * np.pi * np.e) / 4
            mirrored = np.pad(image, radius, mode="symmetric")
            inside = tuple(slice(radius, radius + length) for length in image.shape)
            responses = [ndimage.convolve(mirrored, f)[inside] for f in (edge, bar)]
            energies.append(np.hypot(*responses))
    return np.array(energies)


def dense_sift(
    grey: npt.ArrayLike, y: Iterable[int], x: Iterable[int], bin_size: float
) -> npt.NDArray[np.float64]:
    """Descriptors at the points of a grid: (n_y, n_x, 128).

    Examples
    --------
    >>> dense_sift(np.eye(8), y=[4], x=[4], bin_size=2.0).shape
    (1, 1, 128)
    """
    image = np.asarray(grey, np.float64)
    columns = list(x)
    return np.array([[_descriptor(image, row, col, bin_size) for col in columns] for row in y])


def _descriptor(
    image: npt.NDArray[np.float64], row: int, col: int, bin_size: float
) -> npt.NDArray[np.float64]:
    histogram = np.zeros((4, 4, 8))
    height, width = image.shape
    for r in range(1, height - 1):
        for c in range(1, width - 1):
            dx = image[r, c + 1] - image[r, c - 1]
            dy = image[r - 1, c] - image[r + 1, c]
            u, v = (r - row) / bin_size, (c - col) / bin_size
            angle = np.arctan2(dy, dx) / (2 * np.pi) * 8
            for i, j, k in np.ndindex(4, 4, 8):
                turn = (angle - k + 4) % 8 - 4
                share = _hat(u - (i - 1.5)) * _hat(v - (j - 1.5)) * _hat(turn)
                histogram[i, j, k] += np.hypot(dx, dy) * np.exp(-(u**2 + v**2) / 8) * share
    vector = histogram.ravel()
    if not vector.any():
        return vector
    cut = np.minimum(vector, 0.2 * np.linalg.norm(vector))
    unit: npt.NDArray[np.float64] = cut / np.linalg.norm(cut)
    return unit


def _hat(t: float) -> float:
    return max(0.0, 1 - abs(t))


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
