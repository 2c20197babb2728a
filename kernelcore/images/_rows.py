"""Rows of several arrays, one row per photo: in memory, or mapped from files and resumable."""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from kernelcore._reading import npy_header, reading
from kernelcore._replacing import replacing
from kernelcore._validation import Array

_CHECKSUMS = "checksums"


class Rows:
    """Arrays whose rows are filled in any order; in a folder, what is there is kept.

    A folder holds one ``.npy`` file for each array and one of checksums, in which 0 stands
    for a row that is missing. A row is written before its checksum, so a run that is killed
    loses the rows in hand; rows that do not match their checksum count as missing.

    Parameters
    ----------
    folder : path or None
        Where the files are, made if missing; None keeps the rows in memory.
    n_rows : int
        Number of photos.
    kinds : mapping of str to (shape, dtype)
        Shape and type of one row of each array.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str] | None,
        n_rows: int,
        kinds: Mapping[str, tuple[tuple[int, ...], npt.DTypeLike]],
    ) -> None:
        shapes = {
            name: ((n_rows, *shape), np.dtype(dtype)) for name, (shape, dtype) in kinds.items()
        }
        if folder is None:
            self._arrays = {name: np.zeros(*kind) for name, kind in shapes.items()}
            self._checksums: Array = np.zeros(n_rows, np.uint32)
            return
        home = Path(folder)
        home.mkdir(parents=True, exist_ok=True)
        self._arrays = {name: _mapped(home, name, *kind) for name, kind in shapes.items()}
        self._checksums = _mapped(home, _CHECKSUMS, (n_rows,), np.dtype(np.uint32))
        for i in np.flatnonzero(self._checksums).tolist():
            if self._checksums[i] != self._checksum(i):
                self._checksums[i] = 0

    @property
    def missing(self) -> npt.NDArray[np.intp]:
        """Positions of the rows that are not there yet."""
        return np.flatnonzero(self._checksums == 0)

    def put(self, i: int, row: Mapping[str, npt.ArrayLike]) -> None:
        """Fill row `i` of every array; different rows may be filled at the same time."""
        for name, array in self._arrays.items():
            array[i] = row[name]
        self._checksums[i] = self._checksum(i)

    def arrays(self) -> dict[str, Array]:
        """Give the arrays, read-only; files keep growing no more."""
        for array in (*self._arrays.values(), self._checksums):
            if isinstance(array, np.memmap):
                with _naming(array.filename):
                    array.flush()
        views = {name: array.view() for name, array in self._arrays.items()}
        for view in views.values():
            view.flags.writeable = False
        return views

    def _checksum(self, i: int) -> int:
        checksum = 0
        for array in self._arrays.values():
            checksum = zlib.crc32(array[i].tobytes(), checksum)
        return checksum or 1


def _holds(path: Path, shape: tuple[int, ...], dtype: np.dtype[Any]) -> bool:
    """Whether a file says that it holds such an array; one cut off is lengthened by mapping."""
    try:
        with reading(path), path.open("rb") as file:
            return npy_header(file) == (shape, False, dtype)
    except (FileNotFoundError, ValueError):
        return False


@contextmanager
def _naming(path: str | os.PathLike[str] | None) -> Iterator[None]:
    """Give the errors of a mapped file its name: NumPy does not tell it."""
    try:
        yield
    except OSError as error:
        if error.filename is not None or error.errno is None or path is None:
            raise
        raise OSError(error.errno, error.strerror, os.fspath(path)) from error


def _mapped(folder: Path, name: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """Map a file for reading and writing; one that is not of this shape is made anew."""
    path = folder / f"{name}.npy"
    if _holds(path, shape, dtype):
        with _naming(path):
            return np.lib.format.open_memmap(path, mode="r+")
    with replacing(path) as temporary:
        np.lib.format.open_memmap(temporary, mode="w+", dtype=dtype, shape=shape)
        with temporary.open("r+b") as file:  # a full disk is an error here, later a crash
            os.posix_fallocate(file.fileno(), 0, temporary.stat().st_size)
    with _naming(path):
        return np.lib.format.open_memmap(path, mode="r+")
