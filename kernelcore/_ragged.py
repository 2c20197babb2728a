"""Ragged arrays, and records whose arrays are ragged.

A ragged array is a flat array with offsets: row i is ``flat[offsets[i]:offsets[i + 1]]``.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, fields
from functools import cache, partial
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from kernelcore._check import (
    Array,
    as_integer_array,
    as_real_array,
    check_indices,
    check_integer,
    owned,
    sealed,
)
from kernelcore._store import load_tensors, reading, save_tensors


def offsets_of(lengths: npt.ArrayLike) -> npt.NDArray[np.int64]:
    """Offsets of rows of these lengths: the start of each, and the end of the last."""
    return np.concatenate(([0], np.cumsum(lengths, dtype=np.int64)))


def take_ragged(
    offsets: npt.NDArray[np.int64], rows: npt.NDArray[np.intp]
) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.int64]]:
    """Positions of the elements of some rows of a ragged array, and the rows' new offsets."""
    new_offsets = offsets_of(offsets[rows + 1] - offsets[rows])
    shift = np.repeat(offsets[rows] - new_offsets[:-1], np.diff(new_offsets))
    return np.arange(new_offsets[-1]) + shift, new_offsets


def check_offsets(name: str, offsets: npt.NDArray[np.int64], total: int) -> None:
    """Raise unless `offsets` divide an array of this length into consecutive rows."""
    if (
        not offsets.size
        or offsets[0] != 0
        or (offsets[1:] < offsets[:-1]).any()  # a difference may not fit int64
        or offsets[-1] != total
    ):
        raise ValueError(f"{name} must start at 0, never fall and end at {total}")


class Column(NamedTuple):
    """Rules for an array of a record."""

    axis: str  # what the array has one entry for, "caption" say
    dtypes: tuple[Any, ...]  # those that are kept; other integers become the last
    ndim: int = 1
    minimum: int | None = None
    below: str | None = None  # the size that all values are below
    divides: str | None = None  # the axis that these offsets divide

    def checked(self, name: str, value: Any) -> Array:
        """Return a read-only copy of an array that may stand in this column."""
        if np.dtype(self.dtypes[-1]).kind == "f":
            array = as_real_array(name, value, ndim=self.ndim)
            if array.dtype != self.dtypes[-1]:
                raise TypeError(
                    f"{name} must hold {np.dtype(self.dtypes[-1])}, got {array.dtype}"
                )
            return owned(array)
        kept = isinstance(value, np.ndarray) and value.dtype in self.dtypes
        dtype = value.dtype if kept else self.dtypes[-1]
        array = owned(as_integer_array(name, value, ndim=self.ndim, dtype=dtype))
        if self.minimum is not None and array.min(initial=self.minimum) < self.minimum:
            raise ValueError(f"{name} must be >= {self.minimum}, got {array.min()}")
        return array

    def length(self, array: Array) -> int:
        """Length of the axis."""
        return len(array) - (self.divides is not None)


def column(
    axis: str,
    *dtypes: Any,
    ndim: int = 1,
    minimum: int | None = None,
    below: str | None = None,
) -> dict[str, Column]:
    """Metadata of a field: an array with one entry along an axis, see `Column`."""
    return {"column": Column(axis, dtypes, ndim, minimum, below)}


def row_offsets(axis: str, divides: str) -> dict[str, Column]:
    """Metadata of a field: the offsets at which the rows of an axis divide another."""
    return {"column": Column(axis, (np.int64,), divides=divides)}


def size(minimum: int = 0, maximum: int = 2**31) -> dict[str, tuple[int, int]]:
    """Metadata of a field: an integer between two bounds."""
    return {"size": (minimum, maximum)}


@dataclass(frozen=True, eq=False, repr=False)
class Record:
    """Base of frozen dataclasses of arrays that compiled code trusts.

    Fields declare their rules as metadata: `column`, `row_offsets` and `size`. Arrays are
    copied, checked once and then read-only. Pickles and deep copies are checked again: if they
    were restored field by field, their arrays would be writeable and unchecked.
    """

    _kind: ClassVar[str]  # in the file of `save`
    _axis: ClassVar[str]  # of the items that `select` takes, and that `len` counts

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if "column" in field.metadata:
                self._set(field.name, field.metadata["column"].checked(field.name, value))
            elif "size" in field.metadata:
                minimum, maximum = field.metadata["size"]
                number = check_integer(field.name, value, minimum=minimum, maximum=maximum)
                self._set(field.name, number)
        lengths = self._lengths()
        for name, rules in self._columns().items():
            self._check_column(name, rules, lengths)
        self._check()

    def __reduce__(self) -> tuple[Any, tuple[()]]:
        """Restore through the constructor, which checks."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return partial(type(self), **values), ()

    def __repr__(self) -> str:
        parts = [f"{length} {axis}s" for axis, length in reversed(self._lengths().items())]
        sizes = (field.name for field in fields(self) if "size" in field.metadata)
        parts += [f"{name}={getattr(self, name)}" for name in sizes]
        return f"{type(self).__name__}({', '.join(parts)})"

    def select(self, indices: npt.ArrayLike) -> Self:
        """Return the items at these positions, in that order; one may come repeatedly."""
        rows = check_indices("indices", indices, self._lengths()[self._axis])
        return self._replaced(**self._taken(self._axis, rows))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a safetensors file, whole or not at all."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        arrays = {name: values.pop(name) for name in self._columns()}
        save_tensors(path, self._kind, arrays, values)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a file of `save`; raise ValueError if it is damaged."""
        columns = cls._columns()
        others = [field.name for field in fields(cls) if field.name not in columns]
        with reading(path):
            arrays, metadata = load_tensors(path, cls._kind)
            return cls(**arrays.exactly(*columns), **metadata.exactly(*others))

    @classmethod
    @cache
    def _columns(cls) -> dict[str, Column]:
        return {
            field.name: field.metadata["column"]
            for field in fields(cls)
            if "column" in field.metadata
        }

    def _lengths(self) -> dict[str, int]:
        """Length of each axis: that of its first column."""
        lengths: dict[str, int] = {}
        for name, rules in self._columns().items():
            lengths.setdefault(rules.axis, rules.length(getattr(self, name)))
        return lengths

    def _check(self) -> None:
        """Check rules across columns."""

    def _check_column(self, name: str, rules: Column, lengths: dict[str, int]) -> None:
        array = getattr(self, name)
        if rules.divides is not None:
            check_offsets(name, array, lengths[rules.divides])
        if rules.length(array) != lengths[rules.axis]:
            raise ValueError(
                f"{name} must have one entry per {rules.axis} ({lengths[rules.axis]}), "
                f"got {rules.length(array)}"
            )
        if rules.below is not None:
            limit = getattr(self, rules.below)
            if array.size and array.max() >= limit:
                raise ValueError(
                    f"{name} must be below {rules.below} ({limit}), got {array.max()}"
                )

    def _taken(self, axis: str, rows: npt.NDArray[np.intp]) -> dict[str, Array]:
        """Columns of these rows of an axis, and of the axes that its offsets divide."""
        taken: dict[str, Array] = {}
        for name, rules in self._columns().items():
            if rules.axis == axis and rules.divides is not None:
                inner, taken[name] = take_ragged(getattr(self, name), rows)
                taken |= self._taken(rules.divides, inner)
            elif rules.axis == axis:
                taken[name] = getattr(self, name)[rows]
        return taken

    def _replaced(self, **changes: Any) -> Self:
        """Return a record with other values, which are trusted."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return self._trusted(**values | changes)

    @classmethod
    def _trusted(cls, **values: Any) -> Self:
        """Make a record of values that need no check; nobody may write into its arrays."""
        record = object.__new__(cls)
        for name, value in values.items():
            record._set(name, sealed(value) if name in cls._columns() else value)
        return record

    def _set(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)
