"""Smallest and largest value of an array, NaN and asymmetry, in one compiled pass."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kernelcore import _core

_DTYPES = {np.dtype(kind) for kind in (np.float32, np.float64, np.uint8, np.uint16, np.uint32)}
_BYTES_PER_THREAD = 2**22  # fewer are read in less time than a thread takes to start


class Extremes(NamedTuple):
    """Result of one pass over an array; the other values are undefined if it is not finite.

    Attributes
    ----------
    smallest, largest : float
        Smallest and largest value; 0 for an empty array.
    is_finite : bool
        Whether no value is NaN or infinite.
    gap : float or None
        Largest difference between a square matrix and its transpose, if it was computed.
    """

    smallest: float
    largest: float
    is_finite: bool
    gap: float | None = None


def can_scan(array: npt.NDArray[Any]) -> bool:
    """Whether the compiled pass reads arrays of this dtype and layout."""
    flags = array.flags
    return (
        array.dtype in _DTYPES and array.dtype.isnative and flags.c_contiguous and flags.aligned
    )


def scan_values(array: npt.NDArray[Any], n_threads: int) -> Extremes:
    """Scan the values of an array, in one compiled pass if `can_scan`."""
    if not can_scan(array):
        if not array.size:
            return Extremes(0.0, 0.0, True)
        is_finite = array.dtype.kind != "f" or bool(np.isfinite(array).all())
        return Extremes(float(array.min()), float(array.max()), is_finite)
    return Extremes(*_core.scan_values(array, _bounded(array, n_threads)))


def scan_gram(K: npt.NDArray[Any], n_threads: int) -> Extremes:
    """Scan the values and the asymmetry of a square matrix of floats."""
    return Extremes(*_core.scan_gram(K, _bounded(K, n_threads)))


def _bounded(array: npt.NDArray[Any], n_threads: int) -> int:
    return min(n_threads, 1 + array.nbytes // _BYTES_PER_THREAD)
