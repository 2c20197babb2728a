"""Gram matrices in tiles, for matrices larger than memory."""

from __future__ import annotations

import io
import json
import math
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from kernelcore._check import check_callable, check_float_dtype, check_integer
from kernelcore._store import locked, remove_leftovers, replacing, sync
from kernelcore._threads import Progress, reporting
from kernelcore.kernels.prepared import as_items, n_items, take

Kernel: TypeAlias = Callable[..., npt.NDArray[Any]]
"""Called as ``kernel(X)`` for a symmetric Gram matrix and as ``kernel(X, Y)`` for others."""

_AGREEMENT = 1e-4  # of a tile in the file and the same tile computed, by its largest value


class GramBlock(NamedTuple):
    """A tile of a Gram matrix: ``K[rows, columns]`` is `values`."""

    rows: slice
    columns: slice
    values: npt.NDArray[Any]


def gram_blocks(
    kernel: Kernel, X: Any, Y: Any = None, *, block_size: int = 2048
) -> Iterator[GramBlock]:
    """Compute a Gram matrix tile by tile.

    Parameters
    ----------
    kernel : callable
        Any Gram function of this package, its options bound by `functools.partial`, or one
        of your own: ``kernel(A, B)`` returns the matrix of shape (len(A), len(B)),
        ``kernel(A)`` the symmetric one. Each value may depend on its pair only.
    X : sequence of n_samples_X samples
        Samples for `kernel`: an array, a sparse array (copied, its indices checked), a table or
        tensor (read as an array), `SpatialHistograms`, `EncodedCaptions`, a list, or anything
        with a method ``select(indices)``.
    Y : sequence of n_samples_Y samples, optional
        The columns. Omit it for the symmetric Gram matrix of `X`.
    block_size : int, default 2048
        Rows and columns of a tile; those at the end may be smaller.

    Yields
    ------
    GramBlock
        ``(rows, columns, values)``, row of tiles by row of tiles. Of a symmetric matrix the
        tiles on and above the diagonal; those below are their transposes.

    Raises
    ------
    TypeError
        If `kernel` is not callable, `block_size` not an integer, or `X` or `Y` no sequence.
    ValueError
        If `block_size` is below 1, the indices of a sparse input are damaged, or `kernel`
        returns another shape.

    See Also
    --------
    write_gram : Writes the tiles into a file, and resumes where it was stopped.

    Notes
    -----
    One tile is in memory at a time. Tiles have the bits of one whole call where the kernel's
    arithmetic depends on the pair alone; `spatial_pyramid` compares integers only among
    images of one size, so its last bits may differ.

    Examples
    --------
    The nearest other sample of each, without the whole matrix:

    >>> import numpy as np
    >>> from kernelcore.kernels import gram_blocks, histogram_intersection
    >>> X = np.array([[3.0, 1.0], [0.0, 4.0], [2.0, 2.0]])
    >>> for rows, columns, values in gram_blocks(histogram_intersection, X, block_size=2):
    ...     print(rows.start, columns.start, values.tolist())
    0 0 [[4.0, 1.0], [1.0, 4.0]]
    0 2 [[3.0], [2.0]]
    2 2 [[4.0]]
    """
    tiles = _Tiles(kernel, X, Y, block_size)
    return (tiles.compute(rows, columns) for rows, columns in tiles.ranges())


def write_gram(
    path: str | os.PathLike[str],
    kernel: Kernel,
    X: Any,
    Y: Any = None,
    *,
    block_size: int = 2048,
    dtype: npt.DTypeLike = np.float32,
    progress: Progress = False,
) -> npt.NDArray[Any]:
    """Write a Gram matrix into a ``.npy`` file tile by tile; a second call resumes the first.

    Parameters
    ----------
    path : path
        File to write. While it grows it is called ``path + ".partial"``, beside a small
        JSON file that counts its tiles.
    kernel : callable
        As for `gram_blocks`.
    X : sequence of n_samples_X samples
        As for `gram_blocks`.
    Y : sequence of n_samples_Y samples, optional
        As for `gram_blocks`.
    block_size : int, default 2048
        Rows and columns of a tile.
    dtype : {float32, float64}, default float32
        Type of the elements of the file, to which values are rounded.
    progress : bool or callable, default False
        True draws a bar (extra ``cli``); a callable is called with (tiles done, tiles).

    Returns
    -------
    memmap of shape (n_samples_X, n_samples_Y)
        The finished file, read-only; ``numpy.load(path, mmap_mode="r")`` gives it again.

    Raises
    ------
    TypeError
        If `kernel` is not callable, `block_size` not an integer or `dtype` not a float dtype.
    OSError
        If the folder of `path` does not exist, or a tile cannot be written.
    RuntimeError
        If another call is writing this file.
    ValueError
        If there are no samples, `block_size` is below 1, `kernel` returns another shape, or
        an unfinished file lies there that is damaged or was begun with other samples,
        options, `dtype` or `block_size`.

    See Also
    --------
    gram_blocks : Hands out the tiles.

    Notes
    -----
    A stop at any time, Ctrl-C, a crash, a full disk or a power cut, loses the tile under way:
    each tile is on the disk before it is counted. The next call with the same arguments
    computes the first tile and the last finished one again, compares both with the file and
    goes on if they agree to 1e-4 of their largest value; samples that changed elsewhere go
    unnoticed. A file that is already there under `path` itself is replaced.

    Examples
    --------
    >>> import tempfile
    >>> from functools import partial
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from kernelcore.kernels import histogram_intersection, write_gram
    >>> kernel = partial(histogram_intersection, n_threads=1)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_gram(Path(folder) / "K.npy", kernel, np.eye(3), block_size=2).tolist()
    [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """
    tiles = _Tiles(kernel, X, Y, block_size)
    kind = check_float_dtype("dtype", dtype)
    target = Path(path)
    if 0 in tiles.shape:
        raise ValueError(f"X and Y must hold samples, got a matrix of shape {tiles.shape}")
    if not target.parent.is_dir():
        raise FileNotFoundError(f"no such folder to write {target.name} into: {target.parent}")
    ranges = list(tiles.ranges())
    with _only_writer(target), reporting(progress, "Gram matrix") as report:
        growing = _GrowingFile(target, tiles, kind)
        for number, (rows, columns) in enumerate(ranges):
            if number >= growing.n_finished:
                growing.put(tiles.compute(rows, columns))
            if report is not None:
                report(number + 1, len(ranges))
        growing.finish()
    finished: npt.NDArray[Any] = np.load(target, mmap_mode="r")
    return finished


class _Tiles:
    """The tiles of one Gram matrix, in order."""

    def __init__(self, kernel: Kernel, X: Any, Y: Any, block_size: int) -> None:
        check_callable("kernel", kernel)
        self.block_size = check_integer("block_size", block_size, minimum=1)
        self.symmetric = Y is None
        self._kernel = kernel
        self._X = as_items(X, "X")
        self._Y = self._X if Y is None else as_items(Y, "Y")
        self.shape = (n_items(self._X), n_items(self._Y))

    def ranges(self) -> Tiling:
        return Tiling(*self.shape, self.block_size, self.symmetric)

    def compute(self, rows: slice, columns: slice) -> GramBlock:
        X = take(self._X, rows)
        if self.symmetric and rows == columns:
            values = self._kernel(X)
        else:
            values = self._kernel(X, take(self._Y, columns))
        expected = (rows.stop - rows.start, columns.stop - columns.start)
        if np.shape(values) != expected:
            raise ValueError(
                f"kernel must return a matrix of shape {expected} for a tile of that size, "
                f"got shape {np.shape(values)}"
            )
        return GramBlock(rows, columns, values)


@contextmanager
def _only_writer(target: Path) -> Iterator[None]:
    """Keep other writers off a file by a locked folder; RuntimeError if one is at work.

    The system ends this with the process. On file systems without locks it does nothing.
    """
    lock = target.with_name(f"{target.name}.lock")
    with ExitStack() as stack:
        try:
            lock.mkdir(exist_ok=True)
            stack.enter_context(locked(lock))
        except (BlockingIOError, FileNotFoundError):  # held, or removed since it was made
            raise RuntimeError(
                f"another call is writing {target}; wait until it has ended"
            ) from None
        stack.callback(lock.rmdir)
        yield


class _GrowingFile:
    """A Gram matrix on disk whose first `n_finished` tiles are written."""

    def __init__(self, target: Path, tiles: _Tiles, dtype: np.dtype[Any]) -> None:
        self.n_finished = 0
        self._target, self._tiles, self._dtype = target, tiles, dtype
        self._file = target.with_name(target.name + ".partial")
        self._notes = target.with_name(target.name + ".partial.json")
        self._header = _npy_header(tiles.shape, dtype)
        self._n_bytes = len(self._header) + math.prod(tiles.shape) * dtype.itemsize
        self._about = {
            "shape": list(tiles.shape),
            "symmetric": tiles.symmetric,
            "block_size": tiles.block_size,
            "dtype": dtype.name,
        }
        if self._notes.is_file():
            self.n_finished = self._read_notes()
        if self.n_finished > 0:
            self._compare()
        else:
            self._begin()

    def put(self, block: GramBlock) -> None:
        """Write a tile; count it when it is on the disk."""
        with self._writing() as file:
            self._write(file, block.rows, block.columns, block.values)
            if self._tiles.symmetric:
                self._write(file, block.columns, block.rows, block.values.T)
        self.n_finished += 1
        self._note()

    def finish(self) -> None:
        self._file.replace(self._target)
        sync(self._target.parent)
        self._notes.unlink()
        remove_leftovers(self._notes.parent, self._notes.name)

    def _begin(self) -> None:
        if self._notes.exists():  # they must not speak of the file that begins here
            self._notes.unlink()
            sync(self._notes.parent)
        with self._writing("wb") as file:
            file.write(self._header)
            file.truncate(self._n_bytes)
        self._note()

    @contextmanager
    def _writing(self, mode: Literal["r+b", "wb"] = "r+b") -> Iterator[BinaryIO]:
        """Open the file; force its content to the disk at the end of the block."""
        try:
            with self._file.open(mode) as file:
                yield file
            sync(self._file)
        except OSError as error:  # writing does not name the file
            raise OSError(error.errno, error.strerror, os.fspath(self._file)) from error

    def _write(
        self, file: BinaryIO, rows: slice, columns: slice, values: npt.NDArray[Any]
    ) -> None:
        # Not through a memory map, in which a full disk is a signal that kills the process.
        for row, row_values in zip(range(rows.start, rows.stop), values, strict=True):
            place = row * self._tiles.shape[1] + columns.start
            file.seek(len(self._header) + place * self._dtype.itemsize)
            file.write(np.ascontiguousarray(row_values, self._dtype).data)

    def _note(self) -> None:
        with replacing(self._notes) as temporary:
            notes = self._about | {"n_finished": self.n_finished, "n_bytes": self._n_bytes}
            temporary.write_text(json.dumps(notes), encoding="utf-8")

    def _read_notes(self) -> int:
        try:
            notes = json.loads(self._notes.read_text(encoding="utf-8"))
            n_finished, n_bytes = int(notes.pop("n_finished")), int(notes.pop("n_bytes"))
        except (
            AttributeError,
            KeyError,
            OverflowError,
            RecursionError,
            TypeError,
            ValueError,
        ) as error:
            raise self._other(f"{self._notes.name} is damaged: {error!r}") from None
        n_tiles = len(self._tiles.ranges())
        if n_finished == n_tiles and not self._file.exists():
            return 0  # stopped after the last rename: the notes are left over
        if not self._file.is_file() or self._file.stat().st_size != n_bytes:
            raise self._other(f"it must have {n_bytes} bytes")
        if notes != self._about:
            raise self._other(f"it says {notes}, the call says {self._about}")
        if n_finished > n_tiles:
            raise self._other(f"{n_finished} tiles are finished of {n_tiles}")
        return n_finished

    def _compare(self) -> None:
        """Raise unless the first and the last tile of the file equal the computed ones."""
        with self._file.open("rb") as file:
            if file.read(len(self._header)) != self._header:
                raise self._other("its header is damaged")
        K: npt.NDArray[Any] = np.load(self._file, mmap_mode="r")
        ranges = list(self._tiles.ranges())
        for rows, columns in (ranges[0], ranges[self.n_finished - 1]):
            values = self._tiles.compute(rows, columns).values
            difference = np.abs(K[rows, columns] - values).max()
            if not difference <= _AGREEMENT * np.abs(values).max():  # NaN is no agreement
                raise self._other(
                    f"other values in rows from {rows.start}, columns from {columns.start}"
                )

    def _other(self, how: str) -> ValueError:
        return ValueError(
            f"{self._file} must be the beginning of this Gram matrix to go on with it: {how}; "
            f"remove it and {self._notes.name} to start anew"
        )


def _npy_header(shape: tuple[int, ...], dtype: np.dtype[Any]) -> bytes:
    header = io.BytesIO()
    about = {"shape": shape, "fortran_order": False, "descr": dtype.str}
    np.lib.format.write_array_header_1_0(header, about)
    return header.getvalue()


@dataclass(frozen=True)
class Tiling:
    """Square tiles, smaller at the ends, row of tiles by row of tiles.

    Of a mirrored matrix only the tiles on and above the diagonal are listed: those below are
    their transposes.
    """

    n_rows: int
    n_columns: int
    side: int
    mirrored: bool

    def __len__(self) -> int:
        n_down, n_across = (-(-n // self.side) for n in (self.n_rows, self.n_columns))
        return n_down * (n_down + 1) // 2 if self.mirrored else n_down * n_across

    def __iter__(self) -> Iterator[tuple[slice, slice]]:
        for row in range(0, self.n_rows, self.side):
            rows = slice(row, min(row + self.side, self.n_rows))
            for column in range(row if self.mirrored else 0, self.n_columns, self.side):
                yield rows, slice(column, min(column + self.side, self.n_columns))
