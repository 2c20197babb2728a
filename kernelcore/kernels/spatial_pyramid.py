"""The spatial pyramid match kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from kernelcore import _core
from kernelcore._check import (
    Array,
    as_real_array,
    check_flag,
    check_float_dtype,
    check_non_negative,
    result_for,
)
from kernelcore._threads import Progress, Report, reporting, threads_for
from kernelcore.images.pyramid import SpatialHistograms
from kernelcore.kernels.blocks import square_tiles
from kernelcore.kernels.histogram_intersection import BYTES_PER_NANOSECOND
from kernelcore.kernels.prepared import Prepared

_FRACTION_BYTES = 2**26  # of counts as fractions that are held, for each side


def spatial_pyramid(
    X: SpatialHistograms | Prepared,
    Y: SpatialHistograms | Prepared | None = None,
    *,
    level_weights: npt.ArrayLike | None = None,
    mirror: bool = False,
    dtype: npt.DTypeLike = np.float64,
    out: Array | None = None,
    n_threads: int | None = None,
    progress: Progress = False,
) -> npt.NDArray[Any]:
    r"""Gram matrix of the spatial pyramid match kernel.

    With :math:`I^l` the histogram intersection summed over the cells of level l, in fractions
    of the whole image, and L the finest level,

    .. math:: K = I^L + \sum_{l<L} 2^{-(L-l)} (I^l - I^{l+1})
                = 2^{-L} I^0 + \sum_{l=1}^{L} 2^{-(L-l+1)} I^l

    Parameters
    ----------
    X : SpatialHistograms of n_images_X images
        Counts of visual words by cell.
    Y : SpatialHistograms of n_images_Y images, optional
        Counts over the same words and levels. Omit it for the symmetric Gram matrix of `X`.
    level_weights : array_like of shape (n_levels,), optional
        Weight of each level's intersection, coarsest first, finite and non-negative. The
        default is the formula above: 1/4, 1/4, 1/2 for three levels.
    mirror : bool, default False
        Take the mean of K(x, y) and K(x, y'), where y' is y with left and right exchanged
        (`SpatialHistograms.mirrored`): photos count as similar also where one shows the
        scene reversed.
    dtype : {float64, float32}, default float64
        Type of the result.
    out : ndarray of shape (n_images_X, n_images_Y), optional
        Where to put the result: C-contiguous, of type `dtype`.
    n_threads : int, optional
        Threads to use; the default is every core this process may run on. The result is the
        same, bit for bit, for every value and on every instruction set.
    progress : bool or callable, default False
        True draws a bar (extra ``cli``); a callable is called with (tiles done, tiles).

    Returns
    -------
    ndarray of shape (n_images_X, n_images_Y)
        Values in [0, 1] with the default weights; the diagonal is then 1, up to rounding,
        unless `mirror` is set.

    Raises
    ------
    TypeError
        If `X` or `Y` is not a SpatialHistograms, `mirror` is not a bool, or `out` has the wrong
        dtype.
    ValueError
        If `X` and `Y` differ in levels or words, `level_weights` does not fit the levels,
        `dtype` is not a float type, or `out` has the wrong shape or layout.

    See Also
    --------
    kernelcore.kernels.histogram_intersection : The kernel without cells.
    kernelcore.reference.kernels.spatial_pyramid : The definition in NumPy.

    Notes
    -----
    Where all images have the same number of pixels, counts are compared as integers: each
    level's intersection is exact and only the weighted sum is rounded. Where the numbers
    differ, counts are first divided by them, in `dtype`, which may change the last bits; at
    most 64 MB of such fractions are held for each side. One pass over the cells, one histogram
    intersection's worth of work, no matrix per level.

    K(x, y') = K(x', y), so that `mirror` keeps the matrix of one input symmetric. It takes two
    passes, of half the work each for one input, and a second matrix meanwhile; the mean over
    a group of such exchanges is a kernel again.

    References
    ----------
    .. [1] S. Lazebnik, C. Schmid and J. Ponce, "Beyond bags of features: spatial pyramid
       matching for recognizing natural scene categories", CVPR 2006.

    Examples
    --------
    Two images of four pixels, one word on the left half, another on the right; the second
    image is the first one mirrored, so that only the whole-image histograms agree:

    >>> import numpy as np
    >>> from kernelcore.images.pyramid import SpatialHistograms
    >>> from kernelcore.kernels import spatial_pyramid
    >>> left, right = [1, 0], [0, 1]
    >>> counts = [[[2, 2], left, right, left, right], [[2, 2], right, left, right, left]]
    >>> images = SpatialHistograms(np.array(counts, np.uint16), np.array([4, 4]), n_levels=2)
    >>> spatial_pyramid(images)
    array([[1. , 0.5],
           [0.5, 1. ]])
    """
    left = _as_spatial("X", X)
    other = left if Y is None else _as_spatial("Y", Y)
    n_words = left.counts.shape[2]
    if (other.n_levels, other.counts.shape[2]) != (left.n_levels, n_words):
        raise ValueError(
            f"Y must have the levels and words of X ({left.n_levels} and {n_words}), "
            f"got {other.n_levels} and {other.counts.shape[2]}"
        )
    weights = _check_level_weights(level_weights, left.n_levels)
    kind = check_float_dtype("dtype", dtype)
    if weights.max() > np.finfo(kind).max / (2 * weights.size):
        raise ValueError(
            f"level_weights must have a sum that {kind} holds, got {weights.tolist()}"
        )
    shape = (len(left), len(other))
    out = result_for(out, shape, kind, (left.counts, other.counts, level_weights))
    work = float(len(left)) * other.counts.size * other.counts.itemsize
    threads = threads_for(n_threads, work / BYTES_PER_NANOSECOND)
    views = [other, other.mirrored()] if check_flag("mirror", mirror) else [other]
    with reporting(progress, "spatial pyramid") as report:
        for number, view in enumerate(views):
            part = np.empty(shape, kind) if number else out
            _segmented_intersection(
                left,
                view,
                weights / len(views),
                part,
                symmetric=other is left,
                n_threads=threads,
                report=_stage(report, number, len(views)),
            )
            if number:
                out += part
    return out


def _as_spatial(name: str, value: Any) -> SpatialHistograms:
    held = value.samples if isinstance(value, Prepared) else value
    if not isinstance(held, SpatialHistograms):
        raise TypeError(f"{name} must be a SpatialHistograms, got {type(held).__name__}")
    return held


def _segmented_intersection(
    X: SpatialHistograms,
    Y: SpatialHistograms,
    weights: Array,
    out: Array,
    *,
    symmetric: bool,
    n_threads: int,
    report: Report | None,
) -> None:
    totals = np.union1d(X.totals, Y.totals)
    dtype, side = out.dtype, max(out.shape)
    if totals.size == 1:  # one size of image: integers, and one division at the end
        dtype = np.result_type(X.counts, Y.counts)
        weights = weights / totals[0]
    elif X.counts.size:
        side = max(1, _FRACTION_BYTES // (X.n_cells * X.n_words * dtype.itemsize))
    ends = np.cumsum([X.n_words * 4**level for level in range(weights.size)]).tolist()
    segments = list(zip([0, *ends], ends, weights.tolist(), strict=False))  # a level each
    tiles = list(square_tiles(len(X), len(Y), max(1, side), mirrored=symmetric))
    for number, (rows, columns) in enumerate(tiles):
        if columns.start == (rows.start if symmetric else 0):
            left = _operand(X, rows, dtype)
        on_diagonal = symmetric and rows == columns
        right = left if on_diagonal and Y is X else _operand(Y, columns, dtype)
        tile = out if len(tiles) == 1 else np.empty((len(left), len(right)), out.dtype)
        step = report if tile is out else None
        _core.segmented_intersection(left, right, segments, on_diagonal, tile, n_threads, step)
        if tile is out:
            return
        out[rows, columns] = tile
        if symmetric and not on_diagonal:
            out[columns, rows] = tile.T
        if report is not None:
            report(number + 1, len(tiles))


def _stage(report: Report | None, number: int, n_stages: int) -> Report | None:
    """Report one of several equal stages as part of the whole."""
    if report is None:
        return None
    return lambda done, total: report(number * total + done, n_stages * total)


def _check_level_weights(weights: npt.ArrayLike | None, n_levels: int) -> Array:
    if weights is None:
        finest = n_levels - 1
        return np.array([2.0 ** -min(finest, finest - level + 1) for level in range(n_levels)])
    array = as_real_array("level_weights", weights, ndim=1).astype(np.float64)
    if array.size != n_levels:
        raise ValueError(
            f"level_weights must have one entry per level ({n_levels}), got {array.size}"
        )
    return check_non_negative("level_weights", array)


def _operand(histograms: SpatialHistograms, images: slice, dtype: np.dtype[Any]) -> Array:
    """Return the counts of some images; for a float dtype as fractions of the whole image."""
    counts = histograms.counts[images]
    if dtype.kind == "u":
        counts = counts.astype(dtype, copy=False)
    else:
        totals = histograms.totals[images].astype(dtype)[:, None, None]
        counts = np.divide(counts, totals, dtype=dtype, casting="same_kind")
    return np.ascontiguousarray(counts).reshape(len(counts), -1)
