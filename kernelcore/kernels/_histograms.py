"""Checks of histograms, and the types in which they are compared."""

from __future__ import annotations

from typing import Any

import numpy as np

from kernelcore._validation import Array, as_real_array, check_non_negative, check_out

COUNTS = (np.uint8, np.uint16, np.uint32)


def as_dense_pair(X: Any, Y: Any, out: Array | None) -> tuple[Array, Array, Array]:
    """Return both inputs in one dtype, `X` twice if there is one, and the result to fill."""
    left = right = check_non_negative("X", as_real_array("X", X, ndim=2, keep=COUNTS))
    if Y is not None:
        right = check_non_negative("Y", as_real_array("Y", Y, ndim=2, keep=COUNTS))
        check_bins(left.shape[1], right.shape[1])
    result = result_of(out, (len(left), len(right)), left, right)
    return *of_one_type(left, right), result


def check_bins(n_bins_X: int, n_bins_Y: int) -> None:
    """Refuse two inputs of different widths."""
    if n_bins_Y != n_bins_X:
        raise ValueError(f"Y must have as many bins as X ({n_bins_X}), got {n_bins_Y}")


def check_sums(result: Array, n_bins: int, left: Array, right: Array) -> None:
    """Refuse bins whose intersections add up to more than a float dtype holds."""
    if result.dtype.kind != "f":
        return
    largest = min(float(part.max(initial=0)) for part in (left, right))  # of any minimum
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


def of_one_type(left: Array, right: Array) -> tuple[Array, Array]:
    """Put counts into the narrowest type that holds both: more of them fit into a vector."""
    if left.dtype.kind == right.dtype.kind == "u":
        largest = max(int(left.max(initial=0)), int(right.max(initial=0)))
        dtype = np.min_scalar_type(largest)
    else:
        dtype = _common_float(left, right)
    narrow = left.astype(dtype, copy=False)
    return narrow, narrow if right is left else right.astype(dtype, copy=False)


def _common_float(left: Array, right: Array) -> np.dtype[Any]:
    return left.dtype if left.dtype == right.dtype else np.dtype(np.float64)
