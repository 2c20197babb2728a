"""Oriented energy, one two-dimensional filter at a time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from scipy import ndimage


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
