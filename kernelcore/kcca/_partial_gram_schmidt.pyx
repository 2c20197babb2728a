# cython: boundscheck=False, wraparound=False, cdivision=True
"""Partial Gram-Schmidt within a block of kernel columns; between blocks it is one product."""

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


cpdef Py_ssize_t next_pivot(
    const double[::1] residual, Py_ssize_t rank, double target, double unit, double slack
) noexcept:
    """Row with the largest residual, or -1 where so little is left that it is time to stop.

    Every one of `rank` steps before may have moved a residual by `unit`, and `slack` units were
    lost before the first; see `residual_rounding`.
    """
    cdef Py_ssize_t i, pivot = 0
    cdef double trace = 0, floor = (rank + slack) * unit
    for i in range(residual.shape[0]):
        trace += residual[i]
        if residual[i] > residual[pivot]:
            pivot = i
    return -1 if trace <= target or residual[pivot] <= floor else pivot


def orthogonalize_block(
    const real[:, ::1] block,
    const Py_ssize_t[::1] candidates,
    real[:, ::1] features,
    Py_ssize_t[::1] pivots,
    Py_ssize_t first,
    double[::1] residual,
    double target,
    double unit,
    double slack,
    const unsigned char[::1] stop,
):
    """Fill rows of `features` (transposed R) from `first` on; return how many there are now.

    Input    block (n_candidates, n): kernel columns of the candidates, less their product with
             the first rows of features; residual (n,), the diagonal that is left.
    Output   features (max_rank, n) and pivots (max_rank,), as long as the row with the largest
             residual is among the candidates; residual becomes the diagonal that is left.
    Cost     n * n_candidates^2 multiplications; allocates nothing.
    Order    that of gemv: the same bits for the same BLAS on one thread.
    Threads  those of BLAS; the facade sets one.
    Python   holds the lock only to choose a pivot and to look for signals, once a column; in
             a thread that hears none it returns as soon as stop[0] is not 0.
    Errors   none: the facade has checked shapes and values.
    Source   Hardoon, Szedmak & Shawe-Taylor, Neural Computation 16 (2004), algorithm in
             section 4.3; it is the pivoted Cholesky decomposition, stopped early.
    Same as  kernelcore/reference/matching.py::partial_gram_schmidt.
    """
    cdef int n = <int>block.shape[1]
    cdef Py_ssize_t n_candidates = block.shape[0], max_rank = features.shape[0]
    cdef Py_ssize_t rank = first, pivot, place, i, k
    cdef double length
    cdef real scale
    cdef real* column
    while rank < max_rank:
        PyErr_CheckSignals()
        if stop[0]:
            break
        pivot = next_pivot(residual, rank, target, unit, slack)
        place = 0
        while place < n_candidates and candidates[place] != pivot:
            place += 1
        if place == n_candidates:
            break
        with nogil:
            column = &features[rank, 0]
            for i in range(n):
                column[i] = block[place, i]
            if rank > first:
                subtract_product(
                    &features[first, 0], n, <int>(rank - first), &features[first, pivot], column
                )
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
