r"""Eigen- and singular value decompositions, and bounds of their rounding.

Decompositions give the same bits for every number of threads and release the GIL.

Each floor follows the sums that its algorithm makes. Below, :math:`\epsilon` is the machine
epsilon of the dtype. Measurements are of float32 against float64.

**Partial Gram-Schmidt.** After r steps the residual of a row is its :math:`K_{ii}` less r
squares in the kernel's dtype. Each is wrong by at most :math:`\epsilon K_{ii}`, and the
entries of K were rounded before. No sum runs over the samples. Where the true rank is r, the
largest residual that is left measured at most :math:`(0.6 r + 5) \epsilon \max K_{ii}`, for n
from 10^3 to 10^7. The floor is :math:`(r + 10) \epsilon \max K_{ii}`. Only the means
of a centred kernel are sums over the samples; they are taken in float64, and n of its epsilons
are added.

**Singular values of features.** A thin decomposition is backward stable: its values are those
of a matrix that differs by a small multiple of :math:`\epsilon \sigma_1`. It measured at most
5, for n from 10^3 to 10^7: BLAS sums long columns in short pieces. Features were rounded when
they were given, too, by :math:`\epsilon / 2` of their size, which moves a singular value by
at most half of :math:`\epsilon \lVert F \rVert_F`. The floor of the squares is
:math:`\epsilon^2 (100 \lVert HF \rVert_F^2 + n \lVert \bar f \rVert^2)`, where :math:`\bar f`
is the mean.

**Eigenvalues of a Gram matrix.** Its entries were rounded by :math:`\epsilon / 2`, and as
much again in either subtraction of means: by Weyl's inequality none of this moves an
eigenvalue by more than :math:`2 \epsilon \lVert K \rVert_F`. The solver adds a multiple of
:math:`\sqrt n \epsilon \lVert HKH \rVert_F` (the constant vector, which is moved aside, has
twice that norm): it measured 1.2 where all eigenvalues but those of a null space are equal,
and less than 0.1 elsewhere. The floor is :math:`\epsilon (4 \lVert K \rVert_F + 2 \sqrt n
\lVert HKH \rVert_F)`. A smaller eigenvalue cannot be known from a Gram matrix of this dtype.
Features reach further down, because their rounding is squared.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from kernelcore._check import Array
from kernelcore._threads import check_stopped, one_blas_thread

_SMALL = 200  # rank up to which a whole decomposition is cheap
_FEW = 5  # a partial decomposition pays if at most a fifth of the vectors is needed
_STEEPEST = 0.1  # smallest ratio of singular values that survives squaring
# Factors of the bounds above: Gram-Schmidt, singular values, given entries, eigenvalue solver
_GRAM_SCHMIDT = 10.0
_SINGULAR = 10.0
_GIVEN = 4.0
_SOLVER = 2.0
_ROWS = 256  # rows of a matrix that are converted to float64 at once


def eigh(A: Array) -> tuple[Array, Array]:
    """Eigenvalues, descending, and eigenvectors, one a column, of a symmetric matrix."""
    from kernelcore.kcca import _lapack

    vectors = np.array(A, order="F")
    eigenvalues = np.empty(len(A), dtype=A.dtype)
    check_stopped()
    with one_blas_thread():
        _lapack.eigh(vectors, eigenvalues)
    check_stopped()
    return eigenvalues[::-1], vectors[:, ::-1]


def thin_svd(A: Array) -> tuple[Array, Array, Array]:
    """U, singular values, descending, and V' with ``A == U * singular_values @ V'``."""
    from kernelcore.kcca import _lapack

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
    """Compute a truncated SVD: the `k` largest singular values and their vectors.

    A few of many are computed from eigenvectors of A A'. This squares the singular values,
    which is accurate if the smallest is not much smaller than the largest; otherwise the whole
    matrix is decomposed.
    """
    from kernelcore.kcca import _lapack

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


def residual_rounding(diagonal: Array, *, centred: bool) -> tuple[float, float]:
    """Return the unit of rounding of residuals, and their number before the first step."""
    eps = float(np.finfo(diagonal.dtype).eps)
    lost = len(diagonal) * float(np.finfo(np.float64).eps) / eps if centred else 0.0
    return eps * float(np.abs(diagonal).max()), _GRAM_SCHMIDT + lost


def feature_rounding(lengths: Array, means: npt.NDArray[np.float64], n: int) -> float:
    """Return the floor of squared singular values of n centred rows of features."""
    eps = float(np.finfo(lengths.dtype).eps)
    solver = _SINGULAR * float(np.linalg.norm(lengths.astype(np.float64)))
    given = math.sqrt(n) * float(np.linalg.norm(means))
    return (eps * solver) ** 2 + (eps * given) ** 2


def gram_rounding(K: Array, eigenvalues: Array) -> float:
    """Return the floor of the eigenvalues of the centred Gram matrix `K`."""
    eps = float(np.finfo(K.dtype).eps)
    solver = math.sqrt(len(K)) * float(np.linalg.norm(eigenvalues.astype(np.float64)))
    squares = (
        float(np.square(K[start : start + _ROWS], dtype=np.float64).sum())
        for start in range(0, len(K), _ROWS)
    )
    return eps * (_GIVEN * math.sqrt(math.fsum(squares)) + _SOLVER * solver)


def check_size(name: str, values: Array, limit: float) -> None:
    """Raise if an element exceeds the limit beyond which computations would overflow."""
    largest = max(float(values.max()), -float(values.min()))
    if largest > limit:
        raise ValueError(
            f"{name} must have no element beyond {limit:.2g} as {values.dtype}, got {largest}"
        )
