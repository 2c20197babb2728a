"""Eigen- and singular value decompositions: the same bits for all threads, without the GIL."""

from __future__ import annotations

import numpy as np

from kernelcore._blas import one_blas_thread
from kernelcore._parallel import check_stopped
from kernelcore._validation import Array
from kernelcore.kcca import _lapack

_SMALL = 200  # rank up to which a whole decomposition costs next to nothing
_FEW = 5  # ... or one in so many singular vectors is wanted
_STEEPEST = 0.1  # smallest singular value, in units of the largest, that a square may hold


def eigh(A: Array) -> tuple[Array, Array]:
    """Eigenvalues, descending, and eigenvectors, one a column, of a symmetric matrix."""
    vectors = np.array(A, order="F")
    eigenvalues = np.empty(len(A), dtype=A.dtype)
    check_stopped()
    with one_blas_thread():
        _lapack.eigh(vectors, eigenvalues)
    check_stopped()
    return eigenvalues[::-1], vectors[:, ::-1]


def thin_svd(A: Array) -> tuple[Array, Array, Array]:
    """U, singular values, descending, and V' with ``A == U * singular_values @ V'``."""
    m, n = A.shape
    k = min(m, n)
    U = np.empty((m, k), dtype=A.dtype, order="F")
    Vt = np.empty((k, n), dtype=A.dtype, order="F")
    singular_values = np.empty(k, dtype=A.dtype)
    check_stopped()
    with one_blas_thread():
        _lapack.svd(np.array(A, order="F"), U, singular_values, Vt)
    check_stopped()
    return U, singular_values, Vt


def leading_svd(A: Array, k: int) -> tuple[Array, Array, Array]:
    """First `k` columns, values and rows of `thin_svd`.

    Few of many come from eigenvectors of A A', which squares the singular values: those that
    are not much smaller than the largest lose next to nothing, for others the whole is
    decomposed.
    """
    if min(A.shape) > _SMALL and _FEW * k <= min(A.shape):
        if A.shape[0] > A.shape[1]:
            V, singular_values, Ut = leading_svd(A.T, k)
            return Ut.T, singular_values, V.T
        with one_blas_thread():
            eigenvalues = np.empty(len(A), A.dtype)
            vectors = np.empty((len(A), k), A.dtype, order="F")
            _lapack.eigh_largest((A @ A.T).T, eigenvalues, vectors)  # symmetric, in columns
            largest = eigenvalues[:k][::-1]
            if largest[-1] >= _STEEPEST**2 * largest[0] > 0.0:
                U, singular_values = vectors[:, ::-1], np.sqrt(largest)
                return U, singular_values, (A.T @ U / singular_values).T
    U, singular_values, Vt = thin_svd(A)
    return U[:, :k], singular_values[:k], Vt[:k]
