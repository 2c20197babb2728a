"""Checked input: matrices in memory or on disk, and the gold candidates of every query.

A matrix may be an array, a tensor, a memory map, or shards on disk. It is read in pieces. Half
precision becomes float32 piece by piece, so that the whole matrix is never copied.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from kernelcore._check import (
    Array,
    as_array,
    as_list,
    as_real_array,
    check_indices,
    check_integer,
)
from kernelcore._store import is_file, npy_header, reading
from kernelcore._threads import cached_property

MatrixLike: TypeAlias = npt.ArrayLike | os.PathLike[str] | Sequence[Any]
"""An array, a tensor on the CPU, the path of a ``.npy`` file, or a list of these."""

Positions: TypeAlias = npt.NDArray[np.intp]

_BFLOAT16 = np.dtype("V2")  # how the bits of bfloat16 are kept: NumPy has no such type
_FLOATS = [np.dtype(name) for name in ("f2", "f4", "f8")]
_PIECE_BYTES = 1 << 24


class Rows:
    """Rows of float32 or float64, of one or more shards that follow each other.

    Attributes
    ----------
    name : str
        What errors call it.
    shape : tuple of int
    dtype : numpy.dtype
        float32 where all shards are of float32 or half precision, float64 otherwise.
    """

    def __init__(self, name: str, shards: list[Array]) -> None:
        self.name = name
        self._shards = shards
        self._starts = np.cumsum([0, *map(len, shards)])
        self.shape = (int(self._starts[-1]), shards[0].shape[1])
        self.dtype = np.result_type(*(_widened(shard[:0]) for shard in shards))

    def whole(self) -> Array | None:
        """Return the matrix if it needs no copy, in C or Fortran order."""
        first = self._shards[0]
        fits = first.dtype == self.dtype and first.flags.aligned and first.flags.forc
        return first if len(self._shards) == 1 and fits and first.dtype.isnative else None

    def matrix(self) -> Array:
        """Return all rows, in C or Fortran order; they are copied only if they must be."""
        whole = self.whole()
        return self.take(np.arange(self.shape[0])) if whole is None else whole

    def pieces(self) -> Iterator[tuple[slice, Array]]:
        """Give all rows, some megabytes at a time, C-contiguous."""
        step = max(1, _PIECE_BYTES // (self.shape[1] * self.dtype.itemsize))
        for start in range(0, self.shape[0], step):
            rows = slice(start, min(start + step, self.shape[0]))
            yield rows, self.take(np.arange(rows.start, rows.stop))

    def take(self, rows: Positions) -> Array:
        """Return some rows, in ascending order, C-contiguous."""
        cuts = np.searchsorted(rows, self._starts)
        parts = [
            _widened(shard[_span(rows[first:last] - start)])
            for shard, start, first, last in zip(
                self._shards, self._starts[:-1], cuts[:-1], cuts[1:], strict=True
            )
            if last > first
        ]
        one = parts[0] if len(parts) == 1 else np.concatenate(parts)
        return np.require(one, self.dtype, ["C", "ALIGNED", "ENSUREARRAY"])

    def block(self, rows: Positions, columns: Positions | None = None) -> Rows:
        """Copy some rows, or some columns of them."""
        taken = self.take(rows)
        return Rows(self.name, [taken if columns is None else taken[:, columns]])

    def at(self, rows: Positions, columns: Positions) -> Array:
        """Return single elements."""
        values = np.empty(len(rows), dtype=self.dtype)
        shard_of = np.searchsorted(self._starts, rows, side="right") - 1
        for number, shard in enumerate(self._shards):
            here = np.flatnonzero(shard_of == number)
            found = shard[rows[here] - self._starts[number], columns[here]]
            values[here] = _widened(found)
        return values


def as_rows(name: str, value: Any) -> Rows:
    """Return what can be read as a matrix of real numbers; rows stay as they are.

    Parameters
    ----------
    name : str
        What errors call it.
    value : array_like, tensor on the CPU, path of a ``.npy`` file, or a list of these
        Shards in a list follow each other row by row. Files are mapped, not read. float32
        and float64 stay what they are, float16 and bfloat16 are read as float32, every other
        real dtype becomes float64.

    Raises
    ------
    TypeError, ValueError, OSError
        If it does not hold real numbers in two dimensions, shards differ in columns, nothing
        is there, or a tensor is on another device.
    """
    if isinstance(value, Rows):
        return value
    is_list = isinstance(value, (list, tuple)) and bool(value)
    if is_list and all(_is_path(part) or getattr(part, "ndim", 0) == 2 for part in value):
        shards = [_as_shard(f"{name}[{k}]", part) for k, part in enumerate(value)]
    else:
        shards = [_as_shard(name, value)]
    widths = {shard.shape[1] for shard in shards}
    if len(widths) > 1:
        raise ValueError(
            f"{name} must have shards of equally many columns, got {sorted(widths)}"
        )
    if not sum(shard.size for shard in shards):
        raise ValueError(
            f"{name} must not be empty, got shape {(sum(map(len, shards)), *widths)}"
        )
    return Rows(name, shards)


def _as_shard(name: str, value: Any) -> Array:
    array = _mapped(name, Path(value)) if _is_path(value) else _as_array(name, value)
    if array.dtype != _BFLOAT16 and array.dtype.newbyteorder("=") not in _FLOATS:
        return as_real_array(name, array, ndim=2)
    if array.ndim != 2:
        raise ValueError(f"{name} must be a 2-D array, got shape {array.shape}")
    return array


def _is_path(value: Any) -> bool:
    return isinstance(value, (str, os.PathLike))


def _mapped(name: str, path: Path) -> Array:
    """Map a ``.npy`` file into memory; one of bfloat16, which NumPy cannot name, is refused."""
    if not is_file(path):
        raise FileNotFoundError(f"{name} must be an array or a .npy file, got no file: {path}")
    with reading(path, "must be an array of NumPy, got a damaged file"):
        with path.open("rb") as file:
            shape, is_fortran, dtype = npy_header(file)
            offset = file.tell()
        if dtype.kind not in "fiub":
            raise ValueError(f"{path} must hold real numbers, got dtype {dtype}")
        n_bytes = math.prod(shape) * dtype.itemsize
        if not n_bytes:
            return np.empty(shape, dtype)
        if offset + n_bytes > path.stat().st_size:
            raise ValueError(f"{path} is truncated: it must hold {n_bytes} bytes of numbers")
        return np.asarray(
            np.memmap(path, dtype, "r", offset, shape, "F" if is_fortran else "C")
        )


def _as_array(name: str, value: Any) -> Array:
    """Return an array that shares the memory of `value`, which may be a tensor on the CPU."""
    torch: Any = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        value = value.detach()
        if value.dtype == torch.bfloat16:
            return as_array(name, value.view(torch.int16), ndim=2).view(_BFLOAT16)
    array = as_array(name, value, ndim=2)
    if array.dtype == _BFLOAT16:  # two bytes of anything
        raise TypeError(f"{name} must hold real numbers, got dtype {array.dtype}")
    return array.view(_BFLOAT16) if array.dtype.name == "bfloat16" else array


def _widened(array: Array) -> Array:
    """Return half precision as float32; bfloat16 is the upper half of its bits."""
    if array.dtype == _BFLOAT16:
        bits = np.ascontiguousarray(array).view(np.uint16).astype(np.uint32) << 16
        return bits.view(np.float32)
    if array.dtype == np.float16:
        return array.astype(np.float32)
    return array


def _span(rows: Positions) -> slice | Positions:
    """Return a slice where rows follow each other: it copies nothing."""
    first, last = int(rows[0]), int(rows[-1])
    return slice(first, last + 1) if last - first == len(rows) - 1 else rows


def as_ks(ks: Sequence[int]) -> tuple[int, ...]:
    """Return the k of the metrics, ascending and each once."""
    return tuple(sorted({check_integer("ks", k, minimum=1) for k in as_list("ks", ks)}))


@dataclass(frozen=True, eq=False)
class GoldItems:
    """Gold candidates of query q: ``candidates[offsets[q]:offsets[q + 1]]``, ascending."""

    candidates: Positions
    offsets: Positions

    @cached_property
    def n_gold(self) -> Positions:
        """Number of gold candidates of each query."""
        return np.diff(self.offsets)

    @cached_property
    def query(self) -> Positions:
        """Query of each gold candidate."""
        return np.repeat(np.arange(len(self.offsets) - 1), self.n_gold)


def as_caption_image(
    caption_image: Any, shape: tuple[int, ...], captions_per_image: int | None = None
) -> Positions:
    """Return the row of each caption's image, checked against the shape of the scores."""
    n_images, n_captions = shape
    if captions_per_image is not None:
        if caption_image is not None:
            raise ValueError("captions_per_image must not be given beside caption_image")
        per_image = check_integer("captions_per_image", captions_per_image, minimum=1)
        if n_images * per_image != n_captions:
            raise ValueError(
                f"captions_per_image must give {n_captions} captions to {n_images} images, "
                f"got {per_image}"
            )
        return np.repeat(np.arange(n_images), per_image)
    if caption_image is None:
        if n_images != n_captions:
            raise ValueError(
                "caption_image or captions_per_image (--captions-per-image) must be given "
                f"unless there is one caption per image, got {n_images} images and "
                f"{n_captions} captions"
            )
        return np.arange(n_images)
    owner = check_indices("caption_image", caption_image, n_images)
    if len(owner) != n_captions:
        raise ValueError(
            f"caption_image must have one entry per caption ({n_captions}), got {len(owner)}"
        )
    lonely = np.flatnonzero(np.bincount(owner, minlength=n_images) == 0)
    if lonely.size:
        raise ValueError(
            f"caption_image must name every image at least once, and {lonely.size} have no "
            f"caption, the first is image {lonely[0]}"
        )
    return owner


def captions_by_image(caption_image: Positions) -> GoldItems:
    """Gold items of the images: their captions."""
    return _of_queries(np.argsort(caption_image, kind="stable"), np.bincount(caption_image))


def one_each(candidates: Positions) -> GoldItems:
    """Gold items where every query has one."""
    return GoldItems(candidates, np.arange(len(candidates) + 1))


def as_gold(
    gold: Any, shape: tuple[int, ...], *, name: str = "gold", allow_empty: bool = False
) -> GoldItems:
    """Bring the three forms of `gold` into one and check it against the shape of the scores.

    It is called `name` in errors. Queries may have no gold candidate if `allow_empty`, but
    not all of them.
    """
    n_queries, n_candidates = shape
    if hasattr(gold, "__array__"):
        gold = as_array(name, gold, ndim=1)
    if not isinstance(gold, np.ndarray) or gold.ndim == 0:
        gold = as_list(name, gold, "be an array or a sequence")
    if len(gold) != n_queries:
        raise ValueError(f"{name} must have one entry per query ({n_queries}), got {len(gold)}")
    if np.ndim(gold[0]) == 0:
        return one_each(check_indices(name, gold, n_candidates))
    if np.asarray(gold[0]).dtype == bool:
        mask = np.asarray(gold)
        if mask.shape != shape:
            raise ValueError(f"{name} must have the shape of scores, {shape}, got {mask.shape}")
        query, candidates = np.nonzero(mask)
    else:
        members = [check_indices(name, own, n_candidates) for own in gold]
        query = np.repeat(np.arange(n_queries), list(map(len, members)))
        candidates = np.concatenate(members)
        candidates = candidates[np.lexsort((candidates, query))]
        again = (np.diff(query) == 0) & (np.diff(candidates) == 0)
        if again.any():
            raise ValueError(
                f"{name} must name a candidate once, got one twice in query "
                f"{query[again.argmax()]}"
            )
    counts = np.bincount(query, minlength=n_queries)
    if not (counts.any() if allow_empty else counts.all()):
        raise ValueError(
            f"{name} must name at least one candidate per query, got none for query "
            f"{counts.argmin()}"
        )
    return _of_queries(candidates, counts)


def _of_queries(candidates: Positions, n_gold: Positions) -> GoldItems:
    return GoldItems(candidates, np.concatenate(([0], np.cumsum(n_gold))))
