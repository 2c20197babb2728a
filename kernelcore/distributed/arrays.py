"""Matrices on disk: inputs that all workers read, and Zarr arrays that tasks write."""

from __future__ import annotations

import functools
import hashlib
import inspect
import json
import math
import os
import pickle
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

import kernelcore
from kernelcore import _extras
from kernelcore._check import Array, as_real_array, check_callable, check_finite
from kernelcore._store import (
    digest,
    is_folder,
    locked,
    make_folder,
    npy_header,
    reading,
    replacing,
)
from kernelcore._threads import (
    Progress,
    check_stopped,
    in_threads,
    one_blas_thread,
    reporting,
    resolve_n_threads,
)
from kernelcore.evaluation._inputs import Rows
from kernelcore.kernels.gram import as_gram
from kernelcore.kernels.prepared import COUNTS

if TYPE_CHECKING:
    import zarr

MatrixLike: TypeAlias = "npt.ArrayLike | os.PathLike[str] | str | zarr.Array[Any]"
"""An array of NumPy, Zarr or Dask, the path of a ``.npy`` file or of a Zarr array."""

_ATTEMPTS = 3
_CHECKSUM_BYTES = 4
_CHUNK_ROWS = 65_536  # of arrays of Dask that are written
_HASHED_BYTES = 1 << 24
_KEPT = {np.dtype(kind) for kind in (np.float32, np.float64, *COUNTS)}


@dataclass(frozen=True)
class Matrix:
    """Rows on disk, in a ``.npy`` file or a Zarr array.

    A file is mapped only while a part is copied: Dask counts mapped pages as memory of the
    worker, and pauses it.

    Attributes
    ----------
    name : str
        What errors call it.
    path : str
    shape : tuple of int
        Numbers of rows and of columns.
    stored : str
        Type of the numbers on disk.
    """

    name: str
    path: str
    shape: tuple[int, int]
    stored: str

    def __len__(self) -> int:
        return self.shape[0]

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the numbers that are read: half precision is read as float32."""
        stored = np.dtype(self.stored).newbyteorder("=")
        if stored == np.float16:
            return np.dtype(np.float32)
        return stored if stored in _KEPT else np.dtype(np.float64)

    @property
    def vector_dtype(self) -> np.dtype[Any]:
        """Type of `vectors`."""
        return self.dtype if self.dtype.kind == "f" else np.dtype(np.float64)

    def read(self, rows: slice | npt.NDArray[np.intp]) -> Array:
        """Return a copy of some rows."""
        return np.require(read_part(self.path, (rows,)), self.dtype, ["C", "O"])

    def vectors(self, rows: slice | npt.NDArray[np.intp]) -> Rows:
        """Return some rows as vectors; ValueError if a number is not finite."""
        part = self.read(rows).astype(self.vector_dtype, copy=False)
        if not np.isfinite(part).all():
            row, column = np.argwhere(~np.isfinite(part))[0]
            place = rows.start + row if isinstance(rows, slice) else rows[row]
            value = part[row, column]
            raise ValueError(f"{self.name} must be finite, got {value} at [{place}, {column}]")
        return Rows(self.name, [part])

    def digest(self) -> str:
        """Return a digest of the files."""
        return f"{self.shape} {self.stored} {files_digest(Path(self.path))}"


def as_matrix(name: str, value: Any, folder: Path) -> Matrix:
    """Return a matrix on disk; one in memory is written into `folder`, named by its digest."""
    if hasattr(value, "store_path"):  # of Zarr
        value = Path(value.store_path.store.root, value.store_path.path)
    if hasattr(value, "__dask_graph__"):
        value = _written_by_dask(value, folder)
    if not isinstance(value, (str, os.PathLike)):
        array = as_real_array(name, value, ndim=2, keep=(*COUNTS, np.float16))
        check_finite(name, array)
        value = folder / f"{array_digest(array)}.npy"
        if not value.exists():
            make_folder(folder)
            write_npy(value, array)
    path = Path(value).absolute()
    if not path.exists():
        raise FileNotFoundError(
            f"{name} must be an array, a .npy file or a Zarr array, got no file: {path}"
        )
    if is_folder(path):
        found = open_zarr(path)
        check_complete(found)
        shape, dtype = found.shape, found.dtype
    else:
        fault = "must be an array of NumPy, got a damaged file"
        with reading(path, fault), path.open("rb") as file:
            shape, _, dtype = npy_header(file)
    if len(shape) != 2 or dtype.kind not in "fiub" or 0 in shape:
        raise ValueError(f"{name} must hold rows of numbers, got {dtype} of shape {shape}")
    return Matrix(name, os.fspath(path), shape, dtype.str)


def write_npy(path: Path, array: Array) -> None:
    """Write an array, whole or not at all."""
    with replacing(path) as temporary, temporary.open("wb") as file:
        np.save(file, array, allow_pickle=False)


def read_part(path: str | os.PathLike[str], place: tuple[Any, ...]) -> Array:
    """Return a copy of a part of an array on disk: slices or positions by axis."""
    with reading(path):
        if not is_folder(Path(path)):
            return np.array(np.load(path, mmap_mode="r", allow_pickle=False)[place])
        array = open_zarr(path)
        try:
            return np.asarray(array.oindex[place])
        except ValueError as error:
            raise ValueError(f"{_first_damaged(array) or error}") from error


def open_zarr(path: str | os.PathLike[str], mode: str = "r") -> zarr.Array[Any]:
    """Open a Zarr array; ValueError if it is damaged."""
    with reading(path, "must be a Zarr array and is none or damaged"):
        array: zarr.Array[Any] = _extras.require("zarr").open_array(os.fspath(path), mode=mode)
        return array


def check_complete(array: zarr.Array[Any]) -> None:
    """Raise ValueError if chunks of an array of this package are missing."""
    if "kernelcore" in array.attrs:
        n_bytes = math.prod(array.chunks) * array.dtype.itemsize + _CHECKSUM_BYTES
        sizes = [file.stat().st_size for file in _chunk_files(array)]
        if len(sizes) != array.nchunks or set(sizes) != {n_bytes}:
            raise ValueError(
                f"{array.store_path} must hold {array.nchunks} chunks of {n_bytes} bytes, got "
                f"{len(sizes)} files of {sorted(set(sizes))[:3]} bytes"
            )


def chunk_file(path: str | os.PathLike[str], *index: int) -> Path:
    """Return the file of a chunk."""
    return Path(path, "c", *map(str, index))


class Output(NamedTuple):
    """Shape, chunks and type of an array that tasks write."""

    shape: tuple[int, ...]
    chunks: tuple[int, ...]
    dtype: Any


def begin(path: Path, output: Output, about: Mapping[str, Any]) -> None:
    """Create a Zarr array, or check that the same call began the one that is there.

    Elements that are not written are NaN, or -1, which no result is.
    """
    zarr, dtype = _extras.require("zarr"), np.dtype(output.dtype)
    plain = json.loads(json.dumps({"version": kernelcore.__version__, **about}))
    if not (path / "zarr.json").exists():
        zarr.create_array(
            os.fspath(path),
            shape=output.shape,
            chunks=output.chunks,
            dtype=dtype.newbyteorder("<"),
            compressors=[zarr.codecs.Crc32cCodec()],
            fill_value=np.nan if dtype.kind == "f" else -1,
            attributes={"kernelcore": plain},
        )
    found = open_zarr(path)
    if found.attrs.get("kernelcore") != plain or Output(
        found.shape, found.chunks, found.dtype.newbyteorder("=")
    ) != Output(output.shape, output.chunks, dtype):
        raise ValueError(
            f"{path} must be a new folder or one that the same call began, got the result of "
            f"other inputs, settings or of another version: {found.attrs.get('kernelcore')}"
        )


@contextmanager
def only_writer(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Make a folder and lock it; RuntimeError if another process writes into it.

    On file systems without locks it only makes the folder.
    """
    folder = Path(path).absolute()
    make_folder(folder)
    try:
        with locked(folder):
            yield folder
    except BlockingIOError:
        raise RuntimeError(f"another call is writing into {folder}") from None


class Task(NamedTuple):
    """A call that writes chunks; it is done when their files are there."""

    name: str
    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    files: tuple[Path, ...]


def complete(
    tasks: list[Task],
    client: Any,
    *,
    n_threads: int | None,
    progress: Progress,
    description: str,
) -> list[Any]:
    """Run the tasks that are not done, by a client of Dask or by threads of this process.

    Each is tried three times. The others go on when one fails; then a RuntimeError names the
    first of those that failed. Returns what the tasks that ran returned.
    """
    threads = resolve_n_threads(n_threads)
    waiting = [task for task in tasks if not all(map(_is_written, task.files))]
    n_done = len(tasks) - len(waiting)
    with reporting(progress, description) as report:

        def tell(n_new: int, _: int) -> None:
            if report is not None:
                report(n_done + n_new, len(tasks))

        if not waiting:
            return []
        found: list[tuple[str | None, Any]]
        if client is None:
            found = in_threads(_tried, waiting, threads, setting=one_blas_thread, report=tell)
        else:
            found = _by_dask(client, waiting, tell)
    errors = [error for error, _ in found if error is not None]
    if errors:
        raise RuntimeError(
            f"{len(errors)} of {len(tasks)} tasks failed {_ATTEMPTS} times, the first is "
            f"{errors[0]}"
        )
    return [result for _, result in found]


def one_thread_kernel(kernel: Any) -> Callable[[Any, Any], Array]:
    """Return a kernel that takes one thread and whose values are checked."""
    check_callable("kernel", kernel)
    try:
        takes_threads = "n_threads" in inspect.signature(kernel).parameters
    except ValueError:  # some builtins have no signature
        takes_threads = False
    return functools.partial(
        _checked_kernel, functools.partial(kernel, n_threads=1) if takes_threads else kernel
    )


def kernel_name(kernel: Any) -> str:
    """Name a function, and its options by a digest."""
    if isinstance(kernel, functools.partial) and kernel.func is _checked_kernel:
        return kernel_name(kernel.args[0])
    if isinstance(kernel, functools.partial):
        options = pickle.dumps((kernel.args, sorted(kernel.keywords.items())))
        return f"{kernel_name(kernel.func)}, options {digest(options)}"
    kind = kernel if hasattr(kernel, "__qualname__") else type(kernel)
    return f"{kind.__module__}:{kind.__qualname__}"


def array_digest(array: Array) -> str:
    """Return the digest of an array in memory."""
    about = f"{array.dtype} {array.shape}".encode()
    return digest(about, np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)


def files_digest(path: Path) -> str:
    """Return the digest of a file, or of all files in a folder."""
    state = hashlib.blake2b(digest_size=20)
    files = sorted(path.rglob("*")) if is_folder(path) else [path]
    for file in files:
        if file.is_file():
            state.update(file.relative_to(path).as_posix().encode())
            with file.open("rb") as content:
                while part := content.read(_HASHED_BYTES):
                    check_stopped()
                    state.update(part)
    return state.hexdigest()


def spans(size: int, step: int) -> list[slice]:
    """Cut positions into runs."""
    return [slice(k, min(k + step, size)) for k in range(0, size, step)]


def _checked_kernel(kernel: Callable[..., Any], X: Any, Y: Any) -> Array:
    values = as_gram("kernel(X, Y)", kernel(X, Y))
    if values.shape != (len(X), len(Y)):
        raise ValueError(f"kernel(X, Y) must have shape {(len(X), len(Y))}, got {values.shape}")
    return values


def _is_written(file: Path) -> bool:
    """Whether there is a file that is not empty, as a power cut may leave it."""
    return file.exists() and file.stat().st_size > 0


def _unpacked(content: bytes) -> tuple[str | None, Any]:
    """Run a task of another process, which must have the same version of this package."""
    task, version = pickle.loads(content)  # of the client; Dask sends its own pickles, too
    if version != kernelcore.__version__:
        return f"workers must have kernelcore {version}, got {kernelcore.__version__}", None
    return _tried(task)


def _tried(task: Task) -> tuple[str | None, Any]:
    """Run a task up to three times; return its error, or what it returned."""
    for attempt in range(1, _ATTEMPTS + 1):
        check_stopped()
        try:
            with one_blas_thread():
                return None, task.function(*task.arguments)
        except Exception as error:
            if attempt == _ATTEMPTS:
                return f"{task.name}: {type(error).__name__}: {error}", None
    raise AssertionError


def _by_dask(
    client: Any, tasks: list[Task], tell: Callable[[int, int], None]
) -> list[tuple[str | None, Any]]:
    distributed = _extras.require("distributed")
    # Dask waits forever for a worker that cannot unpickle a task: tasks unpickle themselves.
    pack = _extras.require("cloudpickle").dumps
    packed = [pack((task, kernelcore.__version__)) for task in tasks]
    futures = client.map(_unpacked, packed, pure=False)
    names = {future.key: task.name for future, task in zip(futures, tasks, strict=True)}
    found: list[tuple[str | None, Any]] = []
    try:
        for future in distributed.as_completed(futures):
            error = future.exception() if future.status == "error" else None
            if future.cancelled():
                raise RuntimeError("the scheduler of Dask is gone, or has cancelled the tasks")
            found.append(
                (f"{names[future.key]}: {error!r}", None) if error else future.result()
            )
            tell(len(found), len(tasks))
    finally:
        client.cancel(futures)
    return found


def _written_by_dask(array: Any, folder: Path) -> Path:
    """Write an array of Dask as a Zarr array, named by its token, unless it is there."""
    path = folder / str(array.name)
    if not path.exists():
        temporary = folder / f".{array.name}"
        chunked = array.rechunk((_CHUNK_ROWS, -1))
        chunked.to_zarr(os.fspath(temporary), overwrite=True)
        temporary.rename(path)
    return path


def _first_damaged(array: zarr.Array[Any]) -> str | None:
    for index in product(*(range(n) for n in array.cdata_shape)):
        try:
            array.blocks[index]
        except ValueError as error:
            return f"chunk {'/'.join(map(str, index))}: {error}"
    return None


def _chunk_files(array: zarr.Array[Any]) -> Iterator[Path]:
    place = Path(array.store_path.store.root, array.store_path.path, "c")  # type: ignore[attr-defined]
    return (file for file in place.rglob("*") if file.is_file() and file.name.isdigit())
