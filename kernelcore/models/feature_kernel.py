"""A kernel of feature vectors whose width follows from the training photos."""

from __future__ import annotations

from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from kernelcore._blas import one_blas_thread
from kernelcore.images import square_roots
from kernelcore.images.cnn import of_length_one

Scaling: TypeAlias = Literal["square_roots", "length"]
"""What is done to feature vectors: `kernelcore.images.square_roots`, or length 1 alone."""

SCALINGS: tuple[Scaling, ...] = ("square_roots", "length")
_LEAST_SPREAD = 1e-12  # rows of length 1 that are equal differ by rounding less than this


class FeatureKernel:
    r"""Radial basis function of rows, with a width from the training rows.

    .. math:: k(x, y) = \exp(-\lVert x - y \rVert^2 / s)

    with s the mean squared distance of the training rows.

    Parameters
    ----------
    rows : ndarray of float32, shape (n_training, n_features)
        Training rows.

    Raises
    ------
    ValueError
        If all training rows are alike: they compare nothing.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelcore.models.feature_kernel import FeatureKernel
    >>> kernel = FeatureKernel(np.array([[1.0, 0.0], [0.0, 1.0]], np.float32))
    >>> kernel.gram().round(3)
    array([[1.   , 0.135],
           [0.135, 1.   ]], dtype=float32)
    """

    def __init__(self, rows: npt.NDArray[np.float32]) -> None:
        self._mean = rows.mean(axis=0, dtype=np.float64).astype(np.float32)
        self._rows, self._squares = self._centred(rows)
        self.spread = 2.0 * float(self._squares.mean(dtype=np.float64))
        if self.spread < _LEAST_SPREAD:
            raise ValueError(
                "images must differ in their features once these are scaled, and all are alike"
            )

    def gram(self, X: npt.NDArray[np.float32] | None = None) -> npt.NDArray[np.float32]:
        """Compare rows with the training rows; these with each other by default.

        Parameters
        ----------
        X : ndarray of float32, shape (n_rows, n_features), optional

        Returns
        -------
        ndarray of float32, shape (n_rows, n_training)
        """
        rows, squares = (self._rows, self._squares) if X is None else self._centred(X)
        with one_blas_thread():
            products = rows @ self._rows.T
        squared = squares[:, np.newaxis] + self._squares - np.float32(2.0) * products
        squared = np.maximum(squared, np.float32(0.0))
        kernel: npt.NDArray[np.float32] = np.exp(-squared / np.float32(self.spread))
        if X is None:
            np.fill_diagonal(kernel, 1.0)  # without the rounding of the difference
        return kernel

    def _centred(
        self, rows: npt.NDArray[np.float32]
    ) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
        """Take the mean of the training rows off, which no distance sees; and the squares.

        What all rows have in common would cancel in the distances, with its rounding left.
        """
        centred = rows - self._mean
        return centred, np.einsum("ij,ij->i", centred, centred)


def scaled(features: npt.NDArray[np.float32], scaling: Scaling) -> npt.NDArray[np.float32]:
    """Return the rows scaled to length 1, of their square roots or as they are.

    A row of zeros stays zeros.
    """
    return square_roots(features) if scaling == "square_roots" else of_length_one(features)
