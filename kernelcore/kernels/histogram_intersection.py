"""The histogram intersection kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from kernelcore import _core
from kernelcore._check import (
    Array,
    Extremes,
    as_csr,
    as_real_array,
    check_choice,
    check_non_negative,
    result_for,
    scan_values,
)
from kernelcore._threads import Progress, reporting, threads_for
from kernelcore.kernels.prepared import COUNTS, Prepared, Rows

if TYPE_CHECKING:
    from scipy.sparse import csr_array, sparray, spmatrix


Histograms: TypeAlias = "npt.ArrayLike | sparray | spmatrix | Prepared"

BYTES_PER_NANOSECOND = 64  # compared
_SAFE_BIN = 2.0**64  # sums of no larger bins leave float32


def histogram_intersection(
    X: Histograms,
    Y: Histograms | None = None,
    *,
    similarity: Literal["sum", "jaccard", "bray_curtis"] = "sum",
    out: Array | None = None,
    n_threads: int | None = None,
    progress: Progress = False,
) -> npt.NDArray[Any]:
    r"""Gram matrix of the histogram intersection kernel, or of its ratio to all mass.

    .. math:: K_{ij} = \sum_{b=1}^{d} \min(X_{ib}, Y_{jb}), \qquad
        J_{ij} = \frac{K_{ij}}{\sum_b X_{ib} + \sum_b Y_{jb} - K_{ij}}, \qquad
        B_{ij} = \frac{2 K_{ij}}{\sum_b X_{ib} + \sum_b Y_{jb}}

    Parameters
    ----------
    X : array_like or sparse array of shape (n_samples_X, n_bins)
        Non-negative histograms, one per row, in any unit of mass (counts or fractions).
        Nothing is normalised here: rows that sum to 1 give values in [0, 1], raw counts give
        values in counts. The output of `prepare` is accepted too.
    Y : array_like or sparse array of shape (n_samples_Y, n_bins), optional
        Histograms in the same unit as `X`, sparse if and only if `X` is. Omit it for the
        symmetric Gram matrix of `X`, which does half the work.
    similarity : {"sum", "jaccard", "bray_curtis"}, default "sum"
        The intersection K, the weighted Jaccard similarity J (Ruzicka's, min-max kernel), or
        B, which is 1 less the Bray-Curtis dissimilarity. Both ratios lie in [0, 1]: 1 for
        equal rows, and 0 where both rows are 0.
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
        of each row when `Y` is omitted. Ratios of counts are float64, rounded once.

    Raises
    ------
    TypeError
        If an input does not hold real numbers, only one of two is sparse, or `out` has the
        wrong dtype.
    ValueError
        If an input is not 2-D, the numbers of bins differ, a bin is negative, NaN or
        infinite, so large that sums may exceed the dtype of the result, the indices of a
        sparse input are damaged, `similarity` is none of the three, or `out` has the wrong
        shape or layout or overlaps an input.

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
    The kernel is positive semi-definite for non-negative input [2]_, and so are both ratios: B
    is its product with the kernel 2 / (a + b) of the masses, and J the power series
    :math:`\sum_{p \ge 1} (B / 2)^p` with positive coefficients [3]_. They take one more pass
    over the result.

    Sparse input (any format of SciPy's) costs one minimum for each bin that two rows share,
    added up in float64, and a copy of `Y`; the result is dense.

    References
    ----------
    .. [1] M. J. Swain and D. H. Ballard, "Color indexing", International Journal of Computer
       Vision 7(1), 1991.
    .. [2] A. Barla, F. Odone and A. Verri, "Histogram intersection kernel for image
       classification", ICIP 2003.
    .. [3] L. Ralaivola, S. J. Swamidass, H. Saigo and P. Baldi, "Graph kernels for chemical
       informatics", Neural Networks 18(8), 2005.

    Examples
    --------
    >>> from kernelcore.kernels import histogram_intersection
    >>> histogram_intersection([[3, 1, 0], [1, 1, 2]])
    array([[4., 2.],
           [2., 4.]])
    >>> histogram_intersection([[3, 1, 0], [1, 1, 2]], similarity="bray_curtis")
    array([[1. , 0.5],
           [0.5, 1. ]])
    """
    check_choice("similarity", similarity, ("sum", "jaccard", "bray_curtis"))
    if _is_sparse(X) or _is_sparse(Y):
        return _intersect_sparse(X, Y, similarity, out, n_threads=n_threads, progress=progress)
    left = right = as_histograms("X", X)
    if Y is not None and Y is not X:
        right = as_histograms("Y", Y)
        _check_bins(left, right)
    threads = threads_for(
        n_threads, float(len(left)) * right.size * right.itemsize / BYTES_PER_NANOSECOND
    )
    largest_X = largest_Y = _largest_bin("X", X, left, threads)
    if right is not left:
        largest_Y = _largest_bin("Y", Y, right, threads)
    dtype = _sum_dtype(left, right)
    result = _result_for(out, (len(left), len(right)), dtype, similarity, (left, right))
    sums, remainders, sides = result.view(dtype), None, (left, right)
    if dtype == np.uint64:
        held_X = held_Y = _prepared(X, left, largest_X)
        if right is not left:
            held_Y = _prepared(Y, right, largest_Y)
        left, right, remainders = _narrowed(held_X, held_Y)
    elif left.dtype != right.dtype:
        left, right = sides = left.astype(dtype), right.astype(dtype)
    with reporting(progress, "histogram intersection") as report:
        _core.histogram_intersection(left, right, sums, threads, report)
        if remainders is not None:  # they take too little time for a report
            _core.sparse_intersection(*remainders, left.shape[1], sums, threads, None)
    if min(largest_X, largest_Y) > _SAFE_BIN:
        _check_sums(sums)
    if similarity != "sum":
        masses = _masses(sides[0], threads), _masses(sides[1], threads)
        _divide(result, masses, similarity, threads)
    return result


def as_histograms(name: str, value: Any) -> Array:
    """Return the matrix of an argument, in a dtype that the compiled kernel takes."""
    if isinstance(value, Prepared):
        if not value.is_matrix:
            raise TypeError(f"{name} must hold histograms, got {value!r}")
        rows: Array = value.samples
        return rows
    return as_real_array(name, value, ndim=2, keep=COUNTS)


def _largest_bin(name: str, given: Any, rows: Array, n_threads: int) -> float:
    """Return the largest bin; raise if one is negative or not finite."""
    found = given.extremes if isinstance(given, Prepared) else scan_values(rows, n_threads)
    if found.smallest < 0 or not found.is_finite:
        check_non_negative(name, rows)
    return found.largest


def _prepared(given: Any, rows: Array, largest: float) -> Prepared:
    if isinstance(given, Prepared):
        return given
    return Prepared.trusting(rows, Extremes(0.0, largest, is_finite=True))


def _narrowed(X: Prepared, Y: Prepared) -> tuple[Array, Array, tuple[Rows, Rows] | None]:
    """Return counts in the narrowest type that holds both, and sparse remainders if any."""
    left, right = X.narrow, Y.narrow
    if max(left.itemsize, right.itemsize) > 1:
        split_X, split_Y = X.bytes_and_rest, Y.bytes_and_rest
        if split_X is not None and split_Y is not None:
            return split_X[0], split_Y[0], (split_X[1], split_Y[1])
    if left.dtype != right.dtype:
        dtype = np.result_type(left, right)
        left, right = left.astype(dtype, copy=False), right.astype(dtype, copy=False)
    return left, right, None


def _result_for(
    out: Array | None, shape: tuple[int, int], dtype: Any, similarity: str, inputs: Any
) -> Array:
    """Return the memory of the result: sums of counts stand in that of their ratios."""
    is_ratio = similarity != "sum" and dtype == np.uint64
    return result_for(out, shape, np.float64 if is_ratio else dtype, inputs)


def _masses(rows: Array, n_threads: int) -> Array:
    """Sum each row as the kernel does: as its intersection with a row that has more of all."""
    if rows.dtype.kind == "u":
        counts: Array = rows.sum(axis=1, dtype=np.uint64)
        return counts
    most = np.full((1, rows.shape[1]), np.finfo(rows.dtype).max, rows.dtype)
    masses = np.empty((len(rows), 1), rows.dtype)
    _core.histogram_intersection(rows, most, masses, n_threads, None)
    return masses[:, 0]


def _divide(K: Array, masses: tuple[Array, Array], similarity: str, n_threads: int) -> None:
    """Make ratios of intersections, in place."""
    left, right = (np.ascontiguousarray(own, np.float64) for own in masses)
    kind = masses[0].dtype
    if not np.isfinite(float(left.max(initial=0)) + float(right.max(initial=0))):
        raise ValueError(f"X must have rows whose sums {kind} holds, got infinite sums of bins")
    _core.divide_by_masses(K, left, right, kind.kind == "u", similarity == "jaccard", n_threads)


def _intersect_sparse(
    X: Any,
    Y: Any,
    similarity: str,
    out: Array | None,
    *,
    n_threads: int | None,
    progress: Progress,
) -> Array:
    """Compute the kernel of sparse rows."""
    rows_X = rows_Y = _as_csr("X", X)
    if Y is not None and Y is not X:
        rows_Y = _as_csr("Y", Y)
        _check_bins(rows_X, rows_Y)
    left, right = rows_X.data, rows_Y.data
    dtype = _sum_dtype(left, right)
    shape = (rows_X.shape[0], rows_Y.shape[0])
    result = _result_for(out, shape, dtype, similarity, (left, right))
    sums = result.view(dtype)
    for row in sums:  # one at a time, so that Ctrl-C stops the loop
        row[...] = 0
    threads = threads_for(
        n_threads, float(left.size) * right.size / max(1, rows_X.shape[1]) + result.size
    )
    largest = [scan_values(values, threads).largest for values in (left, right)]
    narrow = np.min_scalar_type(int(max(largest))) if dtype == np.uint64 else dtype
    sides = [
        (
            rows.indptr.astype(np.int64),
            rows.indices.astype(np.int32),
            rows.data.astype(narrow, copy=False),
        )
        for rows in ((rows_X,) if rows_Y is rows_X else (rows_X, rows_Y))
    ]
    with reporting(progress, "histogram intersection") as report:
        _core.sparse_intersection(sides[0], sides[-1], rows_X.shape[1], sums, threads, report)
    if min(largest) > _SAFE_BIN:
        _check_sums(sums)
    if similarity != "sum":
        masses = _sparse_masses(rows_X, dtype), _sparse_masses(rows_Y, dtype)
        _divide(result, masses, similarity, threads)
    return result


def _sparse_masses(rows: csr_array, dtype: np.dtype[Any]) -> Array:
    """Sum each row as the kernel does: in the order of its bins."""
    if dtype == np.uint64:
        counts: Array = rows.sum(axis=1)
        return counts
    owners = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
    with np.errstate(over="ignore"):
        return np.bincount(owners, rows.data, minlength=rows.shape[0]).astype(dtype)


def _is_sparse(value: Any) -> bool:
    return hasattr(value.samples if isinstance(value, Prepared) else value, "tocsr")


def _as_csr(name: str, histograms: Any) -> csr_array:
    """Check rows and put their bins in ascending order, each once; counts become uint64."""
    if not _is_sparse(histograms):
        raise TypeError("X and Y must both be sparse or both be dense")
    rows: csr_array = (
        histograms.samples
        if isinstance(histograms, Prepared)
        else as_csr(name, histograms, counts=COUNTS)
    )
    if rows.shape[1] > np.iinfo(np.int32).max:
        raise ValueError(f"{name} must have less than 2**31 bins, got {rows.shape[1]}")
    check_non_negative(name, rows.data)
    return rows


def _check_bins(X: Any, Y: Any) -> None:
    """Refuse two inputs of different widths."""
    if Y.shape[1] != X.shape[1]:
        raise ValueError(f"Y must have as many bins as X ({X.shape[1]}), got {Y.shape[1]}")


def _sum_dtype(left: Array, right: Array) -> np.dtype[Any]:
    """Return the dtype of sums: uint64 of counts, else the common one or float64."""
    if left.dtype.kind == right.dtype.kind == "u":
        return np.dtype(np.uint64)
    return left.dtype if left.dtype == right.dtype else np.dtype(np.float64)


def _check_sums(result: Array) -> None:
    """Refuse bins whose intersections exceed a float dtype."""
    if result.dtype.kind == "f" and not np.isfinite(result).all():
        raise ValueError(
            f"X must have intersections that {result.dtype} holds, got infinite sums of bins"
        )
