"""Checks of the arguments of operations on Gram matrices."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from kernelcore._validation import Array, as_real_array, check_non_negative, check_out


def as_diagonal(name: str, value: Any, length: int) -> Array:
    diagonal = check_non_negative(name, as_real_array(name, value, ndim=1))
    if len(diagonal) != length:
        raise ValueError(f"{name} must have length {length}, got {len(diagonal)}")
    return diagonal


def split_squares(squares: Array) -> tuple[Array, Array]:
    """Squares as ``part * power**2`` with parts in [1/4, 1), whose products stay in range.

    Zeros become ones, which leaves the zeros of such a sample in the Gram matrix as they are.
    """
    lengths = np.where(squares > 0, squares.astype(np.float64), 1.0)
    halves = (np.frexp(lengths)[1] + 1) // 2
    return np.ldexp(lengths, -2 * halves), np.ldexp(1.0, halves)


def as_shares(weights: npt.ArrayLike | None, n_matrices: int) -> list[float]:
    if weights is None:
        return [1.0 / n_matrices] * n_matrices
    values = check_non_negative("weights", as_real_array("weights", weights, ndim=1))
    if len(values) != n_matrices:
        raise ValueError(
            f"weights must have one entry per matrix ({n_matrices}), got {len(values)}"
        )
    if not values.any():
        raise ValueError("weights must not all be zero")
    # A power of two changes no share, and the sum stays in range.
    values = np.ldexp(values.astype(np.float64), -math.frexp(values.max())[1])
    total = math.fsum(values)
    return [float(value) / total for value in values]


def result_for(out: Array | None, given: Any, matrix: Array, *others: Array) -> Array:
    """Where the result goes: a new matrix, or `out`, which may be the input as it was given."""
    if out is None:
        return np.empty_like(matrix)
    inputs = others if out is given else (matrix, *others)
    return check_out("out", out, matrix.shape, matrix.dtype, inputs)
