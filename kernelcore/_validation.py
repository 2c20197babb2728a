"""Checks of user input. Every message names the argument, the rule and what came.

``TypeError`` is for the wrong kind of thing, ``ValueError`` for the wrong value or shape.
"""

from __future__ import annotations

import numbers
import operator
from collections.abc import Collection, Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


def check_integer(
    name: str, value: Any, *, minimum: int | None = None, maximum: int | None = None
) -> int:
    """Return `value` as an int between the bounds, both included."""
    if isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} must be an integer, got {value!r}")
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} must be an integer, got {_describe(value)}") from None
    _check_bounds(name, number, minimum, maximum, "an integer")
    return number


def check_real(
    name: str,
    value: Any,
    *,
    minimum: float | None = None,
    maximum: float | None = None,
    exclusive: bool = False,
) -> float:
    """Return `value` as a finite float; `exclusive` shuts out the minimum itself."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, numbers.Real):
        raise TypeError(f"{name} must be a real number, got {_describe(value)}")
    number = float(value)
    if not np.isfinite(number):
        raise ValueError(f"{name} must be finite, got {number}")
    if exclusive and minimum is not None and number == minimum:
        raise ValueError(f"{name} must be a number > {minimum}, got {number}")
    _check_bounds(name, number, minimum, maximum, "a number")
    return number


def check_flag(name: str, value: Any) -> bool:
    """Return `value` if it is True or False."""
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} must be True or False, got {value!r}")
    return bool(value)


def check_choice(name: str, value: Any, choices: Collection[str]) -> str:
    """Return `value` if it is one of `choices`."""
    if not isinstance(value, str) or value not in choices:
        allowed = ", ".join(repr(choice) for choice in choices)
        raise ValueError(f"{name} must be one of {allowed}, got {value!r}")
    return value


def as_real_array(name: str, value: Any, *, ndim: int, keep: Iterable[Any] = ()) -> Array:
    """Return `value` as a C-contiguous array of `ndim` dimensions in the machine's byte order.

    float32, float64 and the dtypes in `keep` stay what they are; every other real dtype is
    copied to float64, which must hold its integers exactly.
    """
    try:
        array = np.asarray(value)
    except ValueError:  # ragged nested lists
        raise ValueError(
            f"{name} must be a {ndim}-D array, got rows of unequal length"
        ) from None
    if array.dtype.kind not in "fiub":
        raise TypeError(f"{name} must hold real numbers, got dtype {array.dtype}")
    if array.ndim != ndim:
        raise ValueError(f"{name} must be a {ndim}-D array, got shape {array.shape}")
    dtype = array.dtype.newbyteorder("=")
    if dtype not in {np.dtype(np.float32), np.dtype(np.float64), *map(np.dtype, keep)}:
        if (
            dtype.kind in "iu"
            and array.size
            and max(-int(array.min()), int(array.max())) > 2**53
        ):
            raise ValueError(f"{name} must hold integers of at most 2**53, got larger ones")
        dtype = np.dtype(np.float64)
    return np.ascontiguousarray(array, dtype=dtype)


def as_integer_array(name: str, value: Any, *, ndim: int, dtype: Any) -> Array:
    """Return `value`, integers that all fit into `dtype`, as a C-contiguous array of it."""
    try:
        array = np.asarray(value)
    except ValueError:  # ragged nested lists
        raise ValueError(
            f"{name} must be a {ndim}-D array, got rows of unequal length"
        ) from None
    if array.ndim != ndim:
        raise ValueError(f"{name} must be a {ndim}-D array, got shape {array.shape}")
    if array.size == 0 and not isinstance(value, np.ndarray):
        array = array.astype(dtype)  # an empty list says nothing of its kind
    if array.dtype.kind not in "iu":
        raise TypeError(f"{name} must hold integers, got dtype {array.dtype}")
    limits = np.iinfo(dtype)
    if array.size and (int(array.min()) < limits.min or int(array.max()) > limits.max):
        raise ValueError(
            f"{name} must fit into {np.dtype(dtype)}, "
            f"got values from {array.min()} to {array.max()}"
        )
    return np.ascontiguousarray(array, dtype=dtype)


def check_indices(name: str, value: Any, length: int) -> npt.NDArray[np.intp]:
    """Return `value` as positions in a sequence of this length, counted from its start."""
    indices: npt.NDArray[np.intp] = as_integer_array(name, value, ndim=1, dtype=np.intp)
    if indices.size and (indices.min() < 0 or indices.max() >= length):
        raise ValueError(
            f"{name} must lie in [0, {length}), "
            f"got values from {indices.min()} to {indices.max()}"
        )
    return indices


def check_float_dtype(name: str, dtype: npt.DTypeLike) -> np.dtype[Any]:
    """Return `dtype` if it is float32 or float64."""
    kind = np.dtype(dtype)
    if kind not in (np.dtype(np.float32), np.dtype(np.float64)):
        raise TypeError(f"{name} must be float32 or float64, got {kind}")
    return kind


def check_finite(name: str, array: Array) -> Array:
    """Return `array` if it holds neither NaN nor infinity."""
    if array.dtype.kind == "f" and array.size and not np.isfinite(array).all():
        where = tuple(int(axis[0]) for axis in np.nonzero(~np.isfinite(array)))
        raise ValueError(f"{name} must be finite, got {array[where]} at {_index(where)}")
    return array


def check_non_negative(name: str, array: Array) -> Array:
    """Return `array` if it holds finite numbers >= 0 only."""
    check_finite(name, array)
    if array.dtype.kind in "fi" and array.size and array.min() < 0:
        where = tuple(int(axis[0]) for axis in np.nonzero(array < 0))
        raise ValueError(f"{name} must be non-negative, got {array[where]} at {_index(where)}")
    return array


def check_out(
    name: str, out: Any, shape: tuple[int, ...], dtype: Any, inputs: Iterable[Array]
) -> Array:
    """Return `out` if a result of this shape and dtype can be written into it in place."""
    if not isinstance(out, np.ndarray):
        raise TypeError(f"{name} must be a NumPy array, got {_describe(out)}")
    if out.dtype != dtype:
        raise TypeError(f"{name} must have dtype {np.dtype(dtype)}, got {out.dtype}")
    if out.shape != shape:
        raise ValueError(f"{name} must have shape {shape}, got {out.shape}")
    if not (out.flags.c_contiguous and out.flags.writeable):
        raise ValueError(f"{name} must be writeable and C-contiguous")
    if any(np.may_share_memory(out, array) for array in inputs):
        raise ValueError(f"{name} must not overlap an input")
    return out


def _check_bounds(
    name: str, number: float, minimum: float | None, maximum: float | None, kind: str
) -> None:
    if minimum is not None and number < minimum:
        raise ValueError(f"{name} must be {kind} >= {minimum}, got {number}")
    if maximum is not None and number > maximum:
        raise ValueError(f"{name} must be {kind} <= {maximum}, got {number}")


def _describe(value: Any) -> str:
    return f"{value!r} of type {type(value).__name__}"


def _index(where: tuple[int, ...]) -> str:
    return "[" + ", ".join(map(str, where)) + "]"
