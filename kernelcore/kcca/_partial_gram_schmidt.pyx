# cython: boundscheck=False, wraparound=False, cdivision=True
"""Partial Gram-Schmidt: a chain of matrix-vector products in BLAS, one per column."""

from cpython.exc cimport PyErr_CheckSignals
from libc.math cimport sqrt
from scipy.linalg.cython_blas cimport dgemv, sgemv

ctypedef fused real:
    float
    double


cdef void subtract_product(
    real* features, int n, int rank, const real* weights, real* column
) noexcept nogil:
    """column -= features' weights, where weights stands every n-th element."""
    cdef real minus_one = -1
    cdef real one = 1
    cdef int step = 1
    if real is float:
        sgemv(b"N", &n, &rank, &minus_one, features, &n, <float*>weights, &n, &one, column, &step)
    else:
        dgemv(b"N", &n, &rank, &minus_one, features, &n, <double*>weights, &n, &one, column, &step)


def partial_gram_schmidt(
    const real[:, ::1] K,
    const double[::1] means,
    real[:, ::1] features,
    Py_ssize_t[::1] pivots,
    double[::1] residual,
    double target,
    double floor,
):
    """Fill the rows of `features` (transposed R) and return how many were needed.

    Input    symmetric K (n, n); means (n,), of which K[i, j] - means[i] - means[j] is what is
             factorised; residual (n,), the diagonal of that without negatives.
    Output   features (max_rank, n), pivots (max_rank,): the first `rank` rows and elements.
             residual becomes its diagonal less that of R R'.
    Cost     n * rank^2 multiplications and reads of rank rows of K; allocates nothing.
    Order    that of gemv: the same bits for the same BLAS on one thread.
    Threads  those of BLAS; the facade sets one.
    Python   holds the lock only to look for signals, once a column.
    Errors   none: the facade has checked shapes and values.
    Source   Hardoon, Szedmak & Shawe-Taylor, Neural Computation 16 (2004), algorithm in
             section 4.3; it is the pivoted Cholesky decomposition, stopped early.
    Same as  kernelcore/reference/partial_gram_schmidt.py::partial_gram_schmidt.
    """
    cdef int n = <int>K.shape[0]
    cdef int max_rank = <int>features.shape[0]
    cdef int rank = 0
    cdef int i, k, pivot
    cdef double trace, length
    cdef real scale
    cdef real* column
    with nogil:
        while rank < max_rank:
            pivot = 0
            trace = 0
            for i in range(n):
                trace += residual[i]
                if residual[i] > residual[pivot]:
                    pivot = i
            if trace <= target or residual[pivot] <= floor:
                break
            with gil:
                PyErr_CheckSignals()
            column = &features[rank, 0]
            for i in range(n):
                column[i] = <real>(K[pivot, i] - means[pivot] - means[i])
            if rank > 0:
                subtract_product(&features[0, 0], n, rank, &features[0, pivot], column)
            length = sqrt(residual[pivot])
            scale = <real>(1.0 / length)
            for i in range(n):
                column[i] *= scale
                residual[i] = max(residual[i] - <double>column[i] * column[i], 0.0)
            for k in range(rank):
                column[pivots[k]] = 0
            column[pivot] = <real>length
            residual[pivot] = 0
            pivots[rank] = pivot
            rank += 1
    return rank
