"""A kernel of feature vectors whose width follows from the training photos."""

from __future__ import annotations

from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from kernelcore._blas import one_blas_thread
from kernelcore.images import square_roots
from kernelcore.images.roots import of_length_one

Scaling: TypeAlias = Literal["square_roots", "length"]
"""What is done to feature vectors: `kernelcore.images.square_roots`, or length 1 alone."""

SCALINGS: tuple[Scaling, ...] = ("square_roots", "length")
_LEAST_SPREAD = 1e-6  # below it, the mean squared distance of equal rows is rounding


class FeatureKernel:
    r"""Radial basis function of rows of length 1, with a width from the training rows.

    .. math:: k(x, y) = \exp(-\lVert x - y \rVert^2 / s)

    with s the mean squared distance of the training rows.

    Parameters
    ----------
    rows : ndarray of float32, shape (n_training, n_features)
        Training rows, of length 1 each.

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
        self.rows = rows
        mean = rows.mean(axis=0, dtype=np.float64)
        self.spread = 2.0 * (1.0 - float(mean @ mean))
        if self.spread < _LEAST_SPREAD:
            raise ValueError(
                "images must differ from each other in their features, and all are alike"
            )

    def gram(self, X: npt.NDArray[np.float32] | None = None) -> npt.NDArray[np.float32]:
        """Compare rows of length 1 with the training rows; these with each other by default.

        Returns
        -------
        ndarray of float32, shape (n_rows, n_training)
        """
        with one_blas_thread():
            cosines = (self.rows if X is None else X) @ self.rows.T
        squared = np.maximum(np.float32(2.0) - np.float32(2.0) * cosines, np.float32(0.0))
        kernel: npt.NDArray[np.float32] = np.exp(-squared / np.float32(self.spread))
        return kernel


def scaled(features: npt.NDArray[np.float32], scaling: Scaling) -> npt.NDArray[np.float32]:
    """Return the rows scaled to length 1, of their square roots or as they are.

    A row of zeros stays zeros, which is equally far from all rows.
    """
    return square_roots(features) if scaling == "square_roots" else of_length_one(features)
