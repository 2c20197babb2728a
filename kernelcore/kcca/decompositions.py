"""Eigen- and singular value decompositions: the same bits everywhere, without Python's lock."""

from __future__ import annotations

import numpy as np

from kernelcore._blas import one_blas_thread
from kernelcore._validation import Array
from kernelcore.kcca import _lapack


def eigh(A: Array) -> tuple[Array, Array]:
    """Eigenvalues, descending, and eigenvectors, one a column, of a symmetric matrix."""
    vectors = np.array(A, order="F")
    eigenvalues = np.empty(len(A), dtype=A.dtype)
    with one_blas_thread():
        _lapack.eigh(vectors, eigenvalues)
    return eigenvalues[::-1], vectors[:, ::-1]


def thin_svd(A: Array) -> tuple[Array, Array, Array]:
    """U, singular values, descending, and V' with ``A == U * singular_values @ V'``."""
    m, n = A.shape
    k = min(m, n)
    U = np.empty((m, k), dtype=A.dtype, order="F")
    Vt = np.empty((k, n), dtype=A.dtype, order="F")
    singular_values = np.empty(k, dtype=A.dtype)
    with one_blas_thread():
        _lapack.svd(np.array(A, order="F"), U, singular_values, Vt)
    return U, singular_values, Vt
