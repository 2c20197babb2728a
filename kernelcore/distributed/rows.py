"""Rows on disk: vectors or histograms in ``.npy`` files that follow each other.

Workers read the rows that they need into memory of their own. They map no files: Dask counts
mapped pages as memory of the worker, and pauses it.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from kernelcore._check import (
    Array,
    as_array,
    as_real_array,
    check_finite,
    check_indices,
    check_integer,
)
from kernelcore._store import check_is_file, digest, npy_header, reading
from kernelcore._threads import cached_property, check_stopped
from kernelcore.distributed.store import ABOUT, Piece, Store, digest_of_file, working_on
from kernelcore.evaluation._inputs import Rows
from kernelcore.kernels.prepared import COUNTS

RowsLike: TypeAlias = "npt.ArrayLike | os.PathLike[str] | str | Sequence[Any] | RowFiles"
"""An array, a store of rows, a ``.npy`` file, or a list of such files."""

BLOCK = 4096
"""Rows that are worked on at once. Arrays of one shape give one result, wherever they are."""

SHARD_ROWS = 65_536
_READ_BYTES = 1 << 16  # that single rows which are near each other are read by
_KEPT = {np.dtype(kind) for kind in (np.float32, np.float64, *COUNTS)}
_PUT = "rows"


@dataclass(frozen=True)
class RowFiles:
    """Rows of one or more ``.npy`` files.

    Attributes
    ----------
    files : tuple of (str, int)
        Path and number of rows of each file.
    n_columns : int
    stored : str
        Type of the numbers in the files, as NumPy writes it.
    digest : str
        Digest of the contents.
    """

    files: tuple[tuple[str, int], ...]
    n_columns: int
    stored: str
    digest: str

    def __len__(self) -> int:
        return self._starts[-1]

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and of columns."""
        return len(self), self.n_columns

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the numbers that `read` returns: half precision is read as float32."""
        stored = np.dtype(self.stored).newbyteorder("=")
        if stored == np.float16:
            return np.dtype(np.float32)
        return stored if stored in _KEPT else np.dtype(np.float64)

    @property
    def row_bytes(self) -> int:
        """Bytes of a row in memory."""
        return self.n_columns * max(self.dtype.itemsize, np.dtype(self.stored).itemsize)

    def read(self, start: int, stop: int) -> Array:
        """Return the rows from `start` to before `stop`; ValueError if there are fewer."""
        if not 0 <= start <= stop <= len(self):
            raise ValueError(
                f"start and stop must be in order and within 0 and {len(self)}, got {start} "
                f"and {stop}"
            )
        rows = np.empty((stop - start, self.n_columns), np.dtype(self.stored))
        number, low = bisect_right(self._starts, start) - 1, start
        while low < stop:
            first, end = self._starts[number : number + 2]
            high = min(stop, end)
            path, n_rows = self.files[number]
            self._read_into(rows[low - start : high - start], path, n_rows, low - first)
            number, low = number + 1, high
        return rows.astype(self.dtype, copy=False)

    def blocks(self, start: int, stop: int, step: int = BLOCK) -> Iterator[tuple[slice, Array]]:
        """Give the rows of a span, `step` at a time, each with its place in all rows."""
        for low in range(start, stop, step):
            check_stopped()
            high = min(low + step, stop)
            yield slice(low, high), self.read(low, high)

    def take(self, positions: npt.ArrayLike) -> Array:
        """Return single rows, in this order; those that are near each other are read at once.

        Raises
        ------
        TypeError, ValueError
            If a position is no integer, or not one of a row.
        """
        places = check_indices("positions", positions, len(self))
        rows = np.empty((len(places), self.n_columns), self.dtype)
        order = np.argsort(places, kind="stable")
        window = places[order] // max(1, _READ_BYTES // self.row_bytes)
        for near in np.split(order, np.flatnonzero(np.diff(window)) + 1):
            if len(near):
                low, high = int(places[near[0]]), int(places[near[-1]]) + 1
                rows[near] = self.read(low, high)[places[near] - low]
        return rows

    def to_json(self) -> dict[str, Any]:
        """Return plain values that `from_json` turns into this again."""
        return {
            "files": [list(file) for file in self.files],
            "n_columns": self.n_columns,
            "stored": self.stored,
            "digest": self.digest,
        }

    @classmethod
    def from_json(cls, about: Any) -> RowFiles:
        """Return the rows of a store's inputs."""
        files = tuple((str(path), int(n_rows)) for path, n_rows in about["files"])
        stored = np.dtype(about["stored"]).str
        return cls(files, int(about["n_columns"]), stored, str(about["digest"]))

    @cached_property
    def _starts(self) -> list[int]:
        """First row of each file, and the number of all rows."""
        return [0, *accumulate(n_rows for _, n_rows in self.files)]

    def _read_into(self, rows: Array, path: str, n_rows: int, first: int) -> None:
        offset = _offset(path, n_rows, self.n_columns, self.stored)
        with reading(path), Path(path).open("rb", buffering=0) as file:
            file.seek(offset + first * rows.dtype.itemsize * self.n_columns)
            left = rows.reshape(-1).view(np.uint8).data  # rows are contiguous
            while left:
                n_bytes = file.readinto(left)
                if not n_bytes:
                    raise ValueError(f"it lacks {len(left)} bytes of numbers")
                left = left[n_bytes:]


def write_rows(
    store: str | os.PathLike[str], rows: npt.ArrayLike, *, shard_rows: int = SHARD_ROWS
) -> RowFiles:
    """Write a matrix as a store of rows.

    Parameters
    ----------
    store : path
        Folder of the store. If it holds these rows already, what is missing is written.
    rows : array_like of shape (n_rows, n_columns)
        float32, float64, float16 and unsigned integers of up to 32 bits are kept. Other real
        numbers become float64.
    shard_rows : int, default 65536
        Rows of a file.

    Returns
    -------
    RowFiles

    Raises
    ------
    TypeError, ValueError
        If `rows` is not a matrix of finite real numbers, `shard_rows` is no positive integer,
        or the folder holds another store.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from kernelcore.distributed import open_rows, write_rows
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = write_rows(folder, np.arange(6.0).reshape(3, 2), shard_rows=2)
    ...     open_rows(folder).read(1, 3)
    array([[2., 3.],
           [4., 5.]])
    """
    matrix = as_real_array("rows", rows, ndim=2, keep=(*COUNTS, np.float16))
    check_finite("rows", matrix)
    if not matrix.size:
        raise ValueError(f"rows must not be empty, got shape {matrix.shape}")
    step = check_integer("shard_rows", shard_rows, minimum=1)
    settings = {"content": digest(matrix.reshape(-1).view(np.uint8).data)}
    with working_on(Path(store)):
        target = begin_rows(
            store, _PUT, matrix.shape, matrix.dtype, shard_rows=step, settings=settings
        )
        for number in target.missing():
            part = matrix[number * step : (number + 1) * step]
            target.put(number, Piece({shard_name(number): part}))
    return open_rows(target.folder)


def open_rows(store: str | os.PathLike[str]) -> RowFiles:
    """Open a complete store of rows.

    Parameters
    ----------
    store : path
        Folder that `write_rows`, `extract_features`, `landmark_features` or `embed` made.

    Returns
    -------
    RowFiles
        Its `read` returns rows. The files are in the folder ``rows`` of the store.

    Raises
    ------
    FileNotFoundError, ValueError
        If the folder holds no store, one of another kind or one that is not complete.

    Examples
    --------
    See `write_rows`.
    """
    found = Store.open(store)
    settings = found.settings
    if not {"n_rows", "n_columns", "dtype", "shard_rows"} <= settings.keys():
        raise ValueError(f"{found.folder} must be a store of rows, got one of {found.kind}")
    found.check_complete()
    n_rows, n_columns, step = map(found.read_setting, ("n_rows", "n_columns", "shard_rows"))
    with reading(found.folder / ABOUT):
        stored = np.dtype(str(settings["dtype"])).newbyteorder("<").str
        if found.n_pieces != -(-n_rows // step):
            raise ValueError(f"n_pieces must fit n_rows and shard_rows, got {found.n_pieces}")
    files = tuple(
        (os.fspath(found.folder / shard_name(k)), min(step, n_rows - k * step))
        for k in range(found.n_pieces)
    )
    _offset(*files[0], n_columns, stored)  # n_columns is true
    return RowFiles(files, n_columns, stored, found.content())


def begin_rows(
    folder: str | os.PathLike[str],
    kind: str,
    shape: tuple[int, ...],
    dtype: Any,
    *,
    shard_rows: int,
    settings: dict[str, Any],
    inputs: dict[str, Any] | None = None,
) -> Store:
    """Make a store whose pieces are shards of rows, or go on with one."""
    n_rows, n_columns = shape
    about = {
        "n_rows": n_rows,
        "n_columns": n_columns,
        "dtype": np.dtype(dtype).name,
        "shard_rows": shard_rows,
    }
    return Store.begin(folder, kind, -(-n_rows // shard_rows), settings | about, inputs)


def shard_name(number: int) -> str:
    """Return the name of a file of rows in its store."""
    return f"rows/{number:06d}.npy"


def shard_span(store: Store, number: int) -> tuple[int, int]:
    """Return the first row of a shard, and the row after its last one."""
    step = int(store.settings["shard_rows"])
    return number * step, min((number + 1) * step, int(store.settings["n_rows"]))


def as_row_files(
    name: str, value: Any, folder: Path, *, shard_rows: int = SHARD_ROWS
) -> RowFiles:
    """Return rows on disk; those in memory are written into `folder` first."""
    if isinstance(value, RowFiles):
        return value
    if isinstance(value, (str, os.PathLike)):
        path = Path(value)
        return open_rows(path) if path.is_dir() else _of_files(name, [path])
    is_list = isinstance(value, (list, tuple)) and bool(value)
    if is_list and all(isinstance(part, (str, os.PathLike)) for part in value):
        return _of_files(name, [Path(part) for part in value])
    matrix = as_real_array(
        name, as_array(name, value, ndim=2), ndim=2, keep=(*COUNTS, np.float16)
    )
    check_finite(name, matrix)
    if not matrix.size:
        raise ValueError(f"{name} must not be empty, got shape {matrix.shape}")
    return write_rows(folder, matrix, shard_rows=shard_rows)


def as_vectors(name: str, rows: Array, positions: Sequence[int] | Array) -> Rows:
    """Return rows that were read as vectors of floats.

    Raises
    ------
    ValueError
        If a number is not finite; it is named by the position of its row.
    """
    if not np.isfinite(rows).all():
        row, column = np.argwhere(~np.isfinite(rows))[0]
        raise ValueError(
            f"{name} must be finite, got {rows[row, column]} at [{positions[row]}, {column}]"
        )
    is_float = rows.dtype.kind == "f"
    return Rows(name, [rows if is_float else rows.astype(np.float64)])


def vector_bytes(rows: RowFiles) -> int:
    """Return the bytes of a vector that `as_vectors` makes of a row."""
    return rows.n_columns * (rows.dtype.itemsize if rows.dtype.kind == "f" else 8)


def check_shard_rows(value: Any) -> int:
    """Return a number of rows that is a power of two and at least `BLOCK`.

    Then blocks, and the pairs of blocks that are combined first, lie within one shard.
    """
    rows = check_integer("shard_rows", value, minimum=BLOCK)
    if rows & (rows - 1):
        raise ValueError(f"shard_rows must be a power of two, got {rows}")
    return rows


@lru_cache(maxsize=1 << 16)
def _offset(path: str, n_rows: int, n_columns: int, stored: str) -> int:
    """Return where the numbers of a file begin, whose header must be as it was."""
    with reading(path), Path(path).open("rb") as file:
        found = npy_header(file)
        expected = ((n_rows, n_columns), False, np.dtype(stored))
        if found != expected:
            raise ValueError(f"it must hold {expected}, got {found}: another file")
        return file.tell()


def _of_files(name: str, paths: Sequence[Path]) -> RowFiles:
    headers = [_header(name, path) for path in paths]
    kinds = {(shape[1], dtype) for shape, dtype in headers}
    if len(kinds) > 1:
        raise ValueError(
            f"{name} must have files of one width and type, got "
            f"{sorted((width, dtype.name) for width, dtype in kinds)}"
        )
    ((n_columns, dtype),) = kinds
    files = tuple(
        (os.fspath(path.absolute()), shape[0])
        for path, (shape, _) in zip(paths, headers, strict=True)
    )
    if not sum(n for _, n in files) or not n_columns:
        raise ValueError(f"{name} must not be empty, got files of {headers}")
    content = digest(*(digest_of_file(path).encode() for path in paths))
    return RowFiles(files, n_columns, dtype.str, content)


def _header(name: str, path: Path) -> tuple[tuple[int, ...], np.dtype[Any]]:
    check_is_file(path)
    fault = "must be an array of NumPy, got a damaged file"
    with reading(path, fault), path.open("rb") as file:
        shape, is_fortran, dtype = npy_header(file)
    if len(shape) != 2 or is_fortran:
        raise ValueError(f"{name}: {path} must hold rows in C order, got shape {shape}")
    if dtype.kind not in "fiub":
        raise ValueError(f"{name}: {path} must hold real numbers, got dtype {dtype}")
    return shape, dtype
