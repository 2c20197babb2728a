"""Kernel matrices of which columns are computed when they are asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from kernelcore._records import owned
from kernelcore._validation import (
    as_real_array,
    check_finite,
    check_indices,
    check_non_negative,
)
from kernelcore.kernels._samples import as_items, n_items, take
from kernelcore.kernels.gram import as_gram
from kernelcore.kernels.prepared import prepared_for

_DIAGONAL_BLOCK = 64  # rows whose kernel with one another is computed to read its diagonal


class KernelColumns:
    """A symmetric kernel matrix that is never held: its diagonal, and columns on demand.

    Parameters
    ----------
    columns : callable
        ``columns(indices)`` returns the kernel of all training samples with those at
        `indices`, an array of intp, as an array of shape (n_training, len(indices)).
    diagonal : array_like of shape (n_training,)
        Kernel of every training sample with itself. The matrix is float32 if this is, and
        float64 otherwise.

    Raises
    ------
    TypeError
        If `columns` is not callable or `diagonal` does not hold real numbers.
    ValueError
        If `diagonal` is not 1-D, is empty, or an element is negative, NaN or infinite.

    See Also
    --------
    partial_gram_schmidt : Takes one in place of a Gram matrix.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelcore.kcca import KernelColumns, partial_gram_schmidt
    >>> X = np.array([[2.0], [1.0], [3.0]])
    >>> K = KernelColumns(lambda indices: X @ X[indices].T, (X**2).sum(axis=1))
    >>> partial_gram_schmidt(K, max_rank=2).features
    array([[2.],
           [1.],
           [3.]])
    """

    def __init__(
        self, columns: Callable[[npt.NDArray[np.intp]], npt.ArrayLike], diagonal: npt.ArrayLike
    ) -> None:
        if not callable(columns):
            raise TypeError(f"columns must be callable, got {columns!r}")
        own = owned(as_real_array("diagonal", diagonal, ndim=1))
        self.diagonal = check_non_negative("diagonal", own)
        if not self.diagonal.size:
            raise ValueError("diagonal must have at least one element, got none")
        self._columns = columns

    @classmethod
    def of(
        cls, kernel: Callable[..., npt.ArrayLike], items: Any, *, diagonal: Any = None
    ) -> KernelColumns:
        """Return the kernel matrix of items, on demand.

        Parameters
        ----------
        kernel : callable
            ``kernel(X, Y)`` returns the matrix of kernel values of the items X, one row each,
            with the items Y: `kernelcore.kernels.histogram_intersection`, say.
        items : array_like, SpatialHistograms, EncodedCaptions, sparse matrix or Prepared
            The training samples: indexed by an array of positions, or with a method `select`.
            Kernels of this package that gain from it are given them prepared; others are where
            `items` come from `kernelcore.kernels.prepare`. Leave them as they are meanwhile.
        diagonal : array_like of shape (n_training,), optional
            Kernel of every item with itself; the default asks `kernel`.

        Returns
        -------
        KernelColumns

        Examples
        --------
        >>> from kernelcore.kcca import KernelColumns
        >>> from kernelcore.kernels import histogram_intersection
        >>> K = KernelColumns.of(histogram_intersection, [[3, 1, 0], [1, 1, 2]])
        >>> K.diagonal, K.columns([1])
        (array([4., 4.]), array([[2.],
               [4.]]))
        """
        held = prepared_for(kernel, as_items(items, "items"))
        n = n_items(held)
        if diagonal is None:
            parts = (
                take(held, np.arange(k, min(k + _DIAGONAL_BLOCK, n)))
                for k in range(0, n, _DIAGONAL_BLOCK)
            )
            grams = [as_gram("kernel(X, Y)", kernel(part, part)).diagonal() for part in parts]
            diagonal = np.concatenate(grams) if grams else []
        return cls(lambda indices: kernel(held, take(held, indices)), diagonal)

    def __len__(self) -> int:
        """Return the number of training samples."""
        return len(self.diagonal)

    def columns(self, indices: npt.ArrayLike) -> npt.NDArray[Any]:
        """Kernel of all training samples with those at `indices`, one a column."""
        where = check_indices("indices", indices, len(self))
        values = check_finite(
            "columns(indices)", as_real_array("columns(indices)", self._columns(where), ndim=2)
        )
        if values.shape != (len(self), len(where)):
            raise ValueError(
                f"columns(indices) must have shape {(len(self), len(where))} for "
                f"{len(where)} indices, got {values.shape}"
            )
        return values.astype(self.diagonal.dtype, copy=False)
