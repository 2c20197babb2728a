"""The histogram intersection kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from kernelcore import _core
from kernelcore._parallel import resolve_n_threads
from kernelcore._progress import Progress, reporting
from kernelcore._validation import Array, as_real_array, check_non_negative, check_out

_COUNTS = (np.uint8, np.uint16, np.uint32)


def histogram_intersection(
    X: npt.ArrayLike,
    Y: npt.ArrayLike | None = None,
    *,
    out: Array | None = None,
    n_threads: int | None = None,
    progress: Progress = False,
) -> npt.NDArray[Any]:
    r"""Gram matrix of the histogram intersection kernel.

    .. math:: K_{ij} = \sum_{b=1}^{d} \min(X_{ib}, Y_{jb})

    Parameters
    ----------
    X : array_like of shape (n_samples_X, n_bins)
        Non-negative histograms, one per row, in any unit of mass (counts or fractions).
        Nothing is normalised here: rows that sum to 1 give values in [0, 1], raw counts give
        values in counts.
    Y : array_like of shape (n_samples_Y, n_bins), optional
        Histograms in the same unit as `X`. Omit it for the symmetric Gram matrix of `X`,
        which does half the work.
    out : ndarray of shape (n_samples_X, n_samples_Y), optional
        Where to put the result (a memory map, say): C-contiguous, of the dtype that would be
        returned. A call that is interrupted leaves it unusable.
    n_threads : int, optional
        Threads to use; the default is every core this process may run on. The result is the
        same, bit for bit, for every value and on every instruction set.
    progress : bool or callable, default False
        True draws a bar (extra ``cli``); a callable is called with (tiles done, tiles).

    Returns
    -------
    ndarray of shape (n_samples_X, n_samples_Y)
        Gram matrix in the unit of the input: float32 for float32 input, uint64 for unsigned
        integer counts of up to 32 bits (exact), float64 otherwise. Its diagonal is the mass
        of each row when `Y` is omitted.

    Raises
    ------
    TypeError
        If an input does not hold real numbers, or `out` has the wrong dtype.
    ValueError
        If an input is not 2-D, the numbers of bins differ, a bin is negative, NaN or
        infinite, or `out` has the wrong shape or layout or overlaps an input.

    See Also
    --------
    kernelcore.kernels.spatial_pyramid : The same kernel over the cells of a pyramid.
    kernelcore.reference.histogram_intersection : The definition in NumPy.

    Notes
    -----
    Float32 input adds up blocks of 1,024 bins in float32, in a fixed order, and the blocks in
    float64: the error is below ``70 * eps * K``, however many bins there are. float32,
    float64 and unsigned integers are used in place when C-contiguous; when `X` and `Y` differ
    in dtype, or hold another real dtype, they are copied to float64. A sum beyond the largest
    number of the dtype is infinite. Takes
    O(n_samples_X * n_samples_Y * n_bins) time and, beyond the result, no memory that grows
    with the input. The kernel is positive semi-definite for non-negative input [2]_.

    References
    ----------
    .. [1] M. J. Swain and D. H. Ballard, "Color indexing", International Journal of Computer
       Vision 7(1), 1991.
    .. [2] A. Barla, F. Odone and A. Verri, "Histogram intersection kernel for image
       classification", ICIP 2003.

    Examples
    --------
    >>> from kernelcore.kernels import histogram_intersection
    >>> histogram_intersection([[3, 1, 0], [1, 1, 2]])
    array([[4., 2.],
           [2., 4.]])
    """
    left = check_non_negative("X", as_real_array("X", X, ndim=2, keep=_COUNTS))
    right = left
    if Y is not None:
        right = check_non_negative("Y", as_real_array("Y", Y, ndim=2, keep=_COUNTS))
        if right.shape[1] != left.shape[1]:
            raise ValueError(
                f"Y must have as many bins as X ({left.shape[1]}), got {right.shape[1]}"
            )
        if right.dtype != left.dtype:
            left, right = left.astype(np.float64), right.astype(np.float64)
    shape = (left.shape[0], right.shape[0])
    dtype = np.uint64 if left.dtype.kind == "u" else left.dtype
    result = (
        np.empty(shape, dtype)
        if out is None
        else check_out("out", out, shape, dtype, (left, right))
    )
    with reporting(progress, "histogram intersection") as report:
        _core.histogram_intersection(left, right, result, resolve_n_threads(n_threads), report)
    return result
