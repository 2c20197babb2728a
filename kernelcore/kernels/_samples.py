"""Collections of samples: length, selection and conversion."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from kernelcore._validation import as_array, as_csr, check_no_mask
from kernelcore.kernels.prepared import COUNTS, Prepared


def as_items(items: Any, name: str = "X") -> Any:
    """Return `items` in a form that `take` can index, the indices of sparse ones checked.

    Tables, tensors and nested lists of numbers become arrays. What has a method `select`, and
    any other sequence, stays what it is.
    """
    if isinstance(items, Prepared):
        return items
    check_no_mask(name, items)
    if hasattr(items, "tocsr"):
        rows = as_csr(name, items, counts=COUNTS)
        return rows.astype(np.uint32) if rows.dtype == np.uint64 else rows
    if isinstance(items, (list, tuple)):
        return _as_numbers(items)
    if hasattr(items, "__array__"):
        items = as_array(name, items, ndim=2)
    elif callable(getattr(items, "select", None)):
        return items
    is_sequence = hasattr(items, "__len__") and hasattr(items, "__getitem__")
    if not is_sequence or isinstance(items, (str, bytes, Mapping)) or np.ndim(items) == 0:
        raise TypeError(f"{name} must be a sequence of samples, got {type(items).__name__}")
    return items


def n_items(items: Any) -> int:
    """Count items; the rows of a sparse matrix too, which has no length."""
    return int(items.shape[0]) if hasattr(items, "shape") else len(items)


def take(items: Any, part: npt.NDArray[np.intp] | slice) -> Any:
    """Return the items at these positions, as a collection of their kind."""
    if isinstance(items, Prepared):
        return items.select(part)
    if hasattr(items, "select"):
        return items.select(
            np.arange(part.start, part.stop) if isinstance(part, slice) else part
        )
    if isinstance(part, slice) or hasattr(items, "shape"):
        return items[part]
    return [items[i] for i in part.tolist()]


def _as_numbers(items: list[Any] | tuple[Any, ...]) -> Any:
    """Return an array if the items are numbers, or equally many each; else what was given."""
    try:
        array = np.asarray(items)
    except ValueError:  # of different lengths
        return items
    return array if array.size and array.dtype.kind in "fiub" else items
