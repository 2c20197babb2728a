"""When two answers agree."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt


def same(actual: npt.ArrayLike, expected: npt.ArrayLike, what: str) -> None:
    """Raise unless both have one dtype, one shape and equal bits, but for the sign of 0."""
    left, right = np.asarray(actual), np.asarray(expected)
    if left.dtype != right.dtype or left.shape != right.shape:
        raise AssertionError(
            f"{what}: {left.dtype}{left.shape} instead of {right.dtype}{right.shape}"
        )
    different = left != right
    if different.any():
        at = tuple(int(axis[0]) for axis in np.nonzero(different))
        raise AssertionError(
            f"{what}: {np.count_nonzero(different)} of {left.size} differ, first at {at}: "
            f"{left[at]!r} instead of {right[at]!r}"
        )


def close(
    actual: npt.ArrayLike,
    expected: npt.ArrayLike,
    what: str,
    *,
    relative: npt.ArrayLike = 0.0,
    absolute: npt.ArrayLike = 0.0,
) -> None:
    """Raise unless ``|actual - expected| <= absolute + relative * |expected|`` everywhere."""
    left = np.asarray(actual, np.longdouble)
    right = np.asarray(expected, np.longdouble)
    if left.shape != right.shape:
        raise AssertionError(f"{what}: shape {left.shape} instead of {right.shape}")
    gap = abs(left - right)
    allowed = np.asarray(absolute) + np.asarray(relative) * abs(right)
    allowed = np.broadcast_to(allowed, left.shape)
    wrong = ~(gap <= allowed)  # NaN is wrong, too
    if wrong.any():
        at = tuple(int(axis[0]) for axis in np.nonzero(wrong))
        raise AssertionError(
            f"{what}: {np.count_nonzero(wrong)} of {left.size} differ, first at {at}: "
            f"{left[at]!r} instead of {right[at]!r}, {float(gap[at]):.3g} apart where "
            f"{float(allowed[at]):.3g} is allowed"
        )


def finite(values: Any, what: str) -> None:
    """Raise where a value is NaN or infinite."""
    array = np.asarray(values)
    bad = ~np.isfinite(array)
    if bad.any():
        at = tuple(int(axis[0]) for axis in np.nonzero(bad))
        raise AssertionError(f"{what}: {array[at]!r} at {at} from finite input")
