"""Checks of histograms, and the dtypes that kernels compare."""

from __future__ import annotations

from typing import Any

import numpy as np

from kernelcore._scan import scan_values
from kernelcore._validation import (
    Array,
    as_real_array,
    check_finite,
    check_non_negative,
    check_out,
)
from kernelcore.kernels.prepared import COUNTS, Prepared


def as_dense_pair(
    X: Any, Y: Any, out: Array | None, n_threads: int = 1
) -> tuple[Prepared, Prepared, Array]:
    """Return both inputs, `X` twice if there is one, and the result to fill."""
    left = right = as_histograms("X", X, n_threads)
    if Y is not None and Y is not X:
        right = as_histograms("Y", Y, n_threads)
        check_bins(left.shape[1], right.shape[1])
    result = result_of(out, (len(left), len(right)), left.samples, right.samples)
    return left, right, result


def as_histograms(name: str, value: Any, n_threads: int) -> Prepared:
    """Return a matrix of finite numbers >= 0, with what one pass over it told."""
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


def check_bins(n_bins_X: int, n_bins_Y: int) -> None:
    """Refuse two inputs of different widths."""
    if n_bins_Y != n_bins_X:
        raise ValueError(f"Y must have as many bins as X ({n_bins_X}), got {n_bins_Y}")


def check_sums(result: Array, n_bins: int, largest: float) -> None:
    """Refuse bins whose intersections, each at most `largest`, exceed a float dtype."""
    if result.dtype.kind != "f":
        return
    is_safe = largest <= float(np.finfo(result.dtype).max) / (2 * max(n_bins, 1))
    if not is_safe and not np.isfinite(result).all():
        raise ValueError(
            f"X must have intersections that {result.dtype} holds, got infinite sums of bins "
            f"as large as {largest:.3g}"
        )


def result_of(out: Array | None, shape: tuple[int, int], left: Array, right: Array) -> Array:
    """Return `out` if the result fits into it, or a new array."""
    kinds = {left.dtype.kind, right.dtype.kind}
    dtype = np.dtype(np.uint64) if kinds == {"u"} else _common_float(left, right)
    if out is None:
        return np.empty(shape, dtype)
    return check_out("out", out, shape, dtype, (left, right))


def of_one_type(left: Prepared, right: Prepared) -> tuple[Array, Array]:
    """Put counts into the narrowest type that holds both: more of them fit into a vector."""
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
