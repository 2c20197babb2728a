"""Features on a grid of pixels: what colour, texture and SIFT have in common."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt


class DenseFeatures(NamedTuple):
    """One feature vector at every point of a grid of pixels.

    Attributes
    ----------
    values : ndarray of float32, shape (n_dims, n_y, n_x)
        Dimension d of all points is the plane ``values[d]``.
    y, x : ndarray of intp, shapes (n_y,) and (n_x,)
        Pixel rows and pixel columns of the grid.
    """

    values: npt.NDArray[np.float32]
    y: npt.NDArray[np.intp]
    x: npt.NDArray[np.intp]

    @property
    def points(self) -> npt.NDArray[np.float32]:
        """The same values as rows, shape (n_y * n_x, n_dims), without a copy."""
        points: npt.NDArray[np.float32] = self.values.reshape(len(self.values), -1).T
        return points

    @classmethod
    def of_all_pixels(cls, values: npt.NDArray[np.float32]) -> DenseFeatures:
        """Features of every pixel of an image."""
        return cls(values, np.arange(values.shape[1]), np.arange(values.shape[2]))
