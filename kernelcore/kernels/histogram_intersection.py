"""The histogram intersection kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from kernelcore import _core
from kernelcore._check import (
    Array,
    as_csr,
    as_real_array,
    check_finite,
    check_non_negative,
    check_out,
    scan_values,
)
from kernelcore._threads import Progress, Report, reporting, resolve_n_threads, threads_for
from kernelcore.kernels.prepared import COUNTS, Prepared, is_sparse, takes_prepared

if TYPE_CHECKING:
    from scipy.sparse import csr_array, sparray, spmatrix


Histograms: TypeAlias = "npt.ArrayLike | sparray | spmatrix | Prepared"
Rows: TypeAlias = tuple[Array, Array, Array]  # sparse rows: offsets, bins, values

# If at most one count in 256 exceeds a byte, counts are split into bytes and sparse remainders:
# their minima take less time than minima of wider integers.
_BINS_PER_LARGE = 256
_BYTE = np.uint8(255)
_BYTES_PER_NANOSECOND = 64  # compared


@takes_prepared
def histogram_intersection(
    X: Histograms,
    Y: Histograms | None = None,
    *,
    out: Array | None = None,
    n_threads: int | None = None,
    progress: Progress = False,
) -> npt.NDArray[Any]:
    r"""Gram matrix of the histogram intersection kernel.

    .. math:: K_{ij} = \sum_{b=1}^{d} \min(X_{ib}, Y_{jb})

    Parameters
    ----------
    X : array_like or sparse array of shape (n_samples_X, n_bins)
        Non-negative histograms, one per row, in any unit of mass (counts or fractions).
        Nothing is normalised here: rows that sum to 1 give values in [0, 1], raw counts give
        values in counts. The output of `prepare` is accepted too.
    Y : array_like or sparse array of shape (n_samples_Y, n_bins), optional
        Histograms in the same unit as `X`, sparse if and only if `X` is. Omit it for the
        symmetric Gram matrix of `X`, which does half the work.
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
        If an input does not hold real numbers, only one of two is sparse, or `out` has the
        wrong dtype.
    ValueError
        If an input is not 2-D, the numbers of bins differ, a bin is negative, NaN or
        infinite, so large that sums may exceed the dtype of the result, the indices of a
        sparse input are damaged, or `out` has the wrong shape or layout or overlaps an input.

    See Also
    --------
    kernelcore.kernels.spatial_pyramid : The same kernel over the cells of a pyramid.
    kernelcore.reference.kernels.histogram_intersection : The definition in NumPy.

    Notes
    -----
    Float32 input adds up blocks of 1,024 bins in float32, in a fixed order, and the blocks in
    float64: the error is below ``70 * eps * K``, however many bins there are. float32,
    float64 and unsigned integers are used in place when C-contiguous; when only one of `X` and
    `Y` holds counts, or they hold another real dtype, they are copied to float64. Counts that
    all fit into a narrower type are copied into it, which is up to four times as fast, and so
    are those of which at most one in 256 exceeds 255. Takes O(n_samples_X * n_samples_Y *
    n_bins) time and, beyond the result and such copies, no memory that grows with the input.
    The kernel is positive semi-definite for non-negative input [2]_.

    Sparse input (any format of SciPy's) costs one minimum for each bin that two rows share,
    added up in float64, and a copy of `Y`; the result is dense.

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
    sparse = is_sparse(X)
    if Y is not None and is_sparse(Y) != sparse:
        raise TypeError("X and Y must both be sparse or both be dense")
    intersect = _sparse_intersection if sparse else _dense_intersection
    with reporting(progress, "histogram intersection") as report:
        return intersect(X, Y, out, resolve_n_threads(n_threads), report)


def _dense_intersection(
    X: Any, Y: Any, out: Array | None, n_threads: int, report: Report | None
) -> Array:
    given_X = given_Y = _as_histograms("X", X, n_threads)
    if Y is not None and Y is not X:
        given_Y = _as_histograms("Y", Y, n_threads)
        _check_bins(given_X.shape[1], given_Y.shape[1])
    operands = given_X, given_Y
    shape = (len(given_X), len(given_Y))
    result = _result_of(out, shape, given_X.samples, given_Y.samples)
    left, right = _of_one_type(*operands)
    remainders = None
    if left.dtype in (np.uint16, np.uint32) and all(map(_few_large, operands)):
        (left, high_left), (right, high_right) = map(_split, operands)
        remainders = high_left, high_right
    n_compared = float(result.size) * left.shape[1]
    threads = threads_for(n_threads, n_compared * left.itemsize / _BYTES_PER_NANOSECOND)
    _core.histogram_intersection(left, right, result, threads, report)
    largest = min(side.extremes.largest for side in operands)
    _check_sums(result, left.shape[1], largest)
    if remainders is not None:  # they take too little time for a report
        _add_sparse_intersection(remainders, left.shape[1], result, n_threads, None)
    return result


def _add_sparse_intersection(
    sides: tuple[Rows, Rows],
    n_bins: int,
    result: Array,
    n_threads: int,
    report: Report | None,
) -> None:
    """Add the intersections of sparse rows to `result`."""
    _core.sparse_intersection(*sides, n_bins, result, n_threads, report)


def _few_large(given: Prepared) -> bool:
    counts: Array = given.samples
    if given.extremes.largest <= _BYTE:
        return True
    n_large = given.once("n large", lambda: int(np.count_nonzero(counts > _BYTE)))
    return n_large * _BINS_PER_LARGE <= counts.size


def _split(given: Prepared) -> tuple[Array, Rows]:
    """Split counts into bytes and sparse remainders, whose minima add up."""

    def split() -> tuple[Array, Rows]:
        counts: Array = given.samples
        large = np.flatnonzero(counts > _BYTE)
        rows, bins = np.divmod(large, counts.shape[1])
        offsets = np.searchsorted(rows, np.arange(len(counts) + 1))
        over = counts.flat[large].astype(np.uint32) - _BYTE
        low = counts.astype(np.uint8)
        low.flat[large] = _BYTE
        return low, (offsets.astype(np.int64), bins.astype(np.int32), over)

    return given.once("split", split)


def _sparse_intersection(
    X: Any, Y: Any, out: Array | None, n_threads: int, report: Report | None
) -> Array:
    rows_X = rows_Y = _as_csr("X", X)
    if Y is not None and Y is not X:
        rows_Y = _as_csr("Y", Y)
        _check_bins(rows_X.shape[1], rows_Y.shape[1])
    shape = (rows_X.shape[0], rows_Y.shape[0])
    result = _result_of(out, shape, rows_X.data, rows_Y.data)
    for row in result:  # one at a time, so that Ctrl-C stops the loop
        row[...] = 0
    operands = [
        Prepared.trusting(rows.data, scan_values(rows.data, n_threads))
        for rows in ((rows_X,) if rows_Y is rows_X else (rows_X, rows_Y))
    ]
    left, right = _of_one_type(operands[0], operands[-1])
    sides = _as_rows(rows_X, left), _as_rows(rows_Y, right)
    _add_sparse_intersection(sides, rows_X.shape[1], result, n_threads, report)
    _check_sums(result, rows_X.shape[1], min(side.extremes.largest for side in operands))
    return result


def _as_rows(rows: csr_array, values: Array) -> Rows:
    return rows.indptr.astype(np.int64), rows.indices.astype(np.int32), values


def _as_csr(name: str, histograms: Any) -> csr_array:
    """Check rows and put their bins in ascending order, each once; counts become uint64."""
    if isinstance(histograms, Prepared):
        rows: csr_array = histograms.samples
    else:
        rows = as_csr(name, histograms, counts=COUNTS)
    if rows.shape[1] > np.iinfo(np.int32).max:
        raise ValueError(f"{name} must have less than 2**31 bins, got {rows.shape[1]}")
    check_non_negative(name, rows.data)
    return rows


def _as_histograms(name: str, value: Any, n_threads: int) -> Prepared:
    """Return a matrix of finite numbers >= 0 with its smallest and largest value."""
    if isinstance(value, Prepared):
        if not value.is_matrix:
            raise TypeError(f"{name} must hold histograms, got {value!r}")
        given = value
    else:
        array = as_real_array(name, value, ndim=2, keep=COUNTS)
        extremes = scan_values(array, n_threads)
        if not extremes.is_finite:
            check_finite(name, array)
        given = Prepared.trusting(array, extremes)
    if given.extremes.smallest < 0:
        check_non_negative(name, given.samples)
    return given


def _check_bins(n_bins_X: int, n_bins_Y: int) -> None:
    """Refuse two inputs of different widths."""
    if n_bins_Y != n_bins_X:
        raise ValueError(f"Y must have as many bins as X ({n_bins_X}), got {n_bins_Y}")


def _check_sums(result: Array, n_bins: int, largest: float) -> None:
    """Refuse bins whose intersections, each at most `largest`, exceed a float dtype."""
    if result.dtype.kind != "f":
        return
    is_safe = largest <= float(np.finfo(result.dtype).max) / (2 * max(n_bins, 1))
    if not is_safe and not np.isfinite(result).all():
        raise ValueError(
            f"X must have intersections that {result.dtype} holds, got infinite sums of bins "
            f"as large as {largest:.3g}"
        )


def _result_of(out: Array | None, shape: tuple[int, int], left: Array, right: Array) -> Array:
    """Return `out` if the result fits into it, or a new array."""
    kinds = {left.dtype.kind, right.dtype.kind}
    dtype = np.dtype(np.uint64) if kinds == {"u"} else _common_float(left, right)
    if out is None:
        return np.empty(shape, dtype)
    return check_out("out", out, shape, dtype, (left, right))


def _of_one_type(left: Prepared, right: Prepared) -> tuple[Array, Array]:
    """Convert counts to the narrowest type that holds both: more of them fit into a vector."""
    if left.dtype.kind == right.dtype.kind == "u":
        largest = max(left.extremes.largest, right.extremes.largest)
        dtype = np.min_scalar_type(int(largest))
    else:
        dtype = _common_float(left.samples, right.samples)
    narrow = _as_type(left, dtype)
    return narrow, narrow if right is left else _as_type(right, dtype)


def _as_type(given: Prepared, dtype: np.dtype[Any]) -> Array:
    if given.dtype == dtype:
        array: Array = given.samples
        return array
    return given.once(dtype, lambda: given.samples.astype(dtype))


def _common_float(left: Array, right: Array) -> np.dtype[Any]:
    return left.dtype if left.dtype == right.dtype else np.dtype(np.float64)
