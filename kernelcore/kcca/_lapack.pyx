# cython: boundscheck=False, wraparound=False
"""Three LAPACK decompositions that release the GIL, so that both views run side by side.

scipy.linalg (1.17) has the same functions, with the same bits, and holds the GIL. numpy.linalg
releases it, but its own BLAS gives other bits in float32 and took 1.5 to 3.7 times as long there
(eigh and svd of 300 and 800 columns).
"""

import numpy as np

from scipy.linalg.cython_lapack cimport dgesdd, dsyevd, dsyevr, sgesdd, ssyevd, ssyevr

ctypedef fused real:
    float
    double

cdef double LARGEST = 2.0**31 - 1  # LAPACK counts its workspace in int


def eigh(real[::1, :] A, real[::1] eigenvalues):
    """Decompose a symmetric matrix by divide and conquer.

    Input    symmetric A (n, n), column-major; its lower triangle is read.
    Output   A becomes the eigenvectors, one a column; eigenvalues (n,), ascending.
    Cost     O(n^3) time and 2 n^2 further elements.
    Threads  those of BLAS; the caller sets one.
    Errors   numpy.linalg.LinAlgError if it does not converge, MemoryError if n > 32766.
    Same as  numpy.linalg.eigh.
    """
    cdef int n = <int>A.shape[0], info = 0
    cdef int n_work = _work_size(1 + 6.0 * n + 2.0 * n * n), n_iwork = 3 + 5 * n
    cdef real[::1] work = np.empty(n_work, np.asarray(A).dtype)
    cdef int[::1] iwork = np.empty(n_iwork, np.intc)
    with nogil:
        if real is float:
            ssyevd(
                b"V", b"L", &n, &A[0, 0], &n, &eigenvalues[0],
                &work[0], &n_work, &iwork[0], &n_iwork, &info,
            )
        else:
            dsyevd(
                b"V", b"L", &n, &A[0, 0], &n, &eigenvalues[0],
                &work[0], &n_work, &iwork[0], &n_iwork, &info,
            )
    _raise_unless_converged(info)


def eigh_largest(real[::1, :] A, real[::1] eigenvalues, real[::1, :] vectors):
    """Find the largest eigenvalues of a symmetric matrix by relatively robust representations.

    Input    symmetric A (n, n), column-major; its lower triangle is read and destroyed.
    Output   vectors (n, k), one eigenvector a column, and the first k of eigenvalues (n,),
             ascending.
    Cost     4 n^3 / 3 + 2 n^2 k multiplications and 50 n further elements.
    Threads  those of BLAS; the caller sets one.
    Errors   numpy.linalg.LinAlgError if it does not converge.
    Same as  the last k of numpy.linalg.eigh.
    """
    cdef int n = <int>A.shape[0], k = <int>vectors.shape[1], info = 0, n_found = 0
    cdef int first = n - k + 1, n_work = 40 * n, n_iwork = 10 * n
    cdef real nothing = 0
    cdef real[::1] work = np.empty(n_work, np.asarray(A).dtype)
    cdef int[::1] iwork = np.empty(n_iwork, np.intc), support = np.empty(2 * k, np.intc)
    with nogil:
        if real is float:
            ssyevr(
                b"V", b"I", b"L", &n, &A[0, 0], &n, &nothing, &nothing, &first, &n, &nothing,
                &n_found, &eigenvalues[0], &vectors[0, 0], &n, &support[0],
                &work[0], &n_work, &iwork[0], &n_iwork, &info,
            )
        else:
            dsyevr(
                b"V", b"I", b"L", &n, &A[0, 0], &n, &nothing, &nothing, &first, &n, &nothing,
                &n_found, &eigenvalues[0], &vectors[0, 0], &n, &support[0],
                &work[0], &n_work, &iwork[0], &n_iwork, &info,
            )
    _raise_unless_converged(info)


def svd(real[::1, :] A, real[::1, :] U, real[::1] singular_values, real[::1, :] Vt):
    """Decompose a matrix by divide and conquer into its thin singular vectors.

    Input    A (m, n), column-major; it is destroyed.
    Output   U (m, k), singular_values (k,), descending, and Vt (k, n) for k = min(m, n).
    Cost     O(m n k) time and about 4 k^2 further elements.
    Threads  those of BLAS; the caller sets one.
    Errors   numpy.linalg.LinAlgError if it does not converge, MemoryError if k is beyond
             about 23000.
    Same as  numpy.linalg.svd with full_matrices=False.
    """
    cdef int m = <int>A.shape[0], n = <int>A.shape[1], k = min(m, n), info = 0
    cdef int n_work = -1
    cdef real best = 0
    cdef real[::1] work
    cdef int[::1] iwork = np.empty(8 * k, np.intc)
    if real is float:
        sgesdd(
            b"S", &m, &n, &A[0, 0], &m, &singular_values[0], &U[0, 0], &m, &Vt[0, 0], &k,
            &best, &n_work, &iwork[0], &info,
        )
    else:
        dgesdd(
            b"S", &m, &n, &A[0, 0], &m, &singular_values[0], &U[0, 0], &m, &Vt[0, 0], &k,
            &best, &n_work, &iwork[0], &info,
        )
    # The size comes back as a float, which may have been rounded down.
    n_work = _work_size(best * (1 + 2.0 ** -22) + 1)
    work = np.empty(n_work, np.asarray(A).dtype)
    with nogil:
        if real is float:
            sgesdd(
                b"S", &m, &n, &A[0, 0], &m, &singular_values[0], &U[0, 0], &m, &Vt[0, 0], &k,
                &work[0], &n_work, &iwork[0], &info,
            )
        else:
            dgesdd(
                b"S", &m, &n, &A[0, 0], &m, &singular_values[0], &U[0, 0], &m, &Vt[0, 0], &k,
                &work[0], &n_work, &iwork[0], &info,
            )
    _raise_unless_converged(info)


cdef int _work_size(double n_elements) except -1:
    if n_elements > LARGEST:
        raise MemoryError(f"LAPACK cannot address a workspace of {n_elements:.0f} elements")
    return <int>n_elements


cdef int _raise_unless_converged(int info) except -1:
    if info != 0:
        raise np.linalg.LinAlgError("the decomposition did not converge")
    return 0
