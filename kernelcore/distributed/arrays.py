"""Matrices on disk: inputs that all workers read, and Zarr arrays that tasks write."""

from __future__ import annotations

import functools
import hashlib
import inspect
import json
import math
import os
import pickle
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product, starmap
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import zarr
from zarr.codecs import Crc32cCodec

import kernelcore
from kernelcore._check import Array, as_real_array, check_callable, check_finite
from kernelcore._extras import require
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
    Report,
    check_stopped,
    in_threads,
    one_blas_thread,
    reporting,
    resolve_n_threads,
)
from kernelcore.evaluation._inputs import Rows
from kernelcore.evaluation.streaming import prepared_vectors
from kernelcore.kernels.prepared import COUNTS

MatrixLike: TypeAlias = "npt.ArrayLike | os.PathLike[str] | str | zarr.Array[Any]"
"""An array of NumPy, Zarr or Dask, the path of a ``.npy`` file or of a Zarr array."""

Part: TypeAlias = slice | npt.NDArray[np.intp]
"""Some rows: a run of them, or their positions."""

Shape: TypeAlias = tuple[int, ...]

_ATTEMPTS = 3
_CHECKSUM_BYTES = 4
_GRAPH_BYTES = 8 << 20  # tasks that are sent at once: Dask warns of more than 10 MB
_CHUNK_ROWS = 65_536  # of arrays of Dask that are written
_FEWEST_ROWS = 1024  # of a block that is worth a task
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
    dtype : dtype
        Type of the numbers that are read: half precision is read as float32.
    """

    name: str
    path: str
    shape: tuple[int, int]
    dtype: np.dtype[Any]

    def __len__(self) -> int:
        return self.shape[0]

    @property
    def vector_dtype(self) -> np.dtype[Any]:
        """Type of `vectors`."""
        return self.dtype if self.dtype.kind == "f" else np.dtype(np.float64)

    def read(self, rows: Part) -> Array:
        """Return a copy of some rows."""
        return np.require(read_part(self.path, rows), self.dtype, ["C", "O"])

    def vectors(self, rows: Part) -> Rows:
        """Return some rows as vectors; ValueError if a number is not finite."""
        part = self.read(rows).astype(self.vector_dtype, copy=False)
        if not np.isfinite(part).all():
            row, column = np.argwhere(~np.isfinite(part))[0]
            place = rows.start + row if isinstance(rows, slice) else rows[row]
            value = part[row, column]
            raise ValueError(f"{self.name} must be finite, got {value} at [{place}, {column}]")
        return Rows(self.name, [part])

    def digest(self) -> str:
        """Return the digest of the file, or of all files in the folder."""
        path, found = Path(self.path), []
        for file in sorted(path.rglob("*")) if is_folder(path) else [path]:
            if file.is_file():
                with file.open("rb") as content:
                    state = hashlib.file_digest(content, "sha256")
                found.append((file.relative_to(path).as_posix(), state.hexdigest()))
        return digest(repr(found).encode())


class Pool(NamedTuple):
    """Two sets of vectors on disk, and how they are compared."""

    left: Matrix
    right: Matrix
    similarity: str

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the scores."""
        return np.result_type(self.left.vector_dtype, self.right.vector_dtype)

    def digests(self) -> dict[str, Any]:
        """Return the digest of each set by its name."""
        return {one.name: one.digest() for one in (self.left, self.right)}

    def prepared(self, left: Part, right: Part) -> tuple[Array, Array]:
        """Read some vectors of each set as their products need them."""
        rows = self.left.vectors(left), self.right.vectors(right)
        return prepared_vectors(*rows, self.similarity, 1)


def write_npy(path: Path, array: Array) -> None:
    """Write an array, whole or not at all."""
    with replacing(path) as temporary, temporary.open("wb") as file:
        np.save(file, array, allow_pickle=False)


def read_part(path: str | os.PathLike[str], rows: Any) -> Array:
    """Return a copy of some rows, a slice or positions, of an array on disk."""
    with reading(path):
        if not is_folder(Path(path)):
            return np.array(np.load(path, mmap_mode="r", allow_pickle=False)[rows])
        array = open_zarr(path)
        try:
            return np.asarray(array.oindex[rows])
        except ValueError as error:
            raise ValueError(f"{_first_damaged(array) or error}") from error


def open_zarr(path: str | os.PathLike[str], mode: str = "r") -> zarr.Array[Any]:
    """Open a Zarr array; ValueError if it is damaged."""
    with reading(path, "must be a Zarr array and is none or damaged"):
        array: zarr.Array[Any] = zarr.open_array(os.fspath(path), mode=mode)
        return array


def _check_complete(array: zarr.Array[Any], path: Path) -> None:
    """Raise ValueError if chunks of an array of this package are missing."""
    if "kernelcore" in array.attrs:
        n_bytes = math.prod(array.chunks) * array.dtype.itemsize + _CHECKSUM_BYTES
        files = (file for file in (path / "c").rglob("*") if file.name.isdigit())
        sizes = [file.stat().st_size for file in files if file.is_file()]
        if len(sizes) != array.nchunks or set(sizes) != {n_bytes}:
            raise ValueError(
                f"{path} must hold {array.nchunks} chunks of {n_bytes} bytes, got "
                f"{len(sizes)} files of {sorted(set(sizes))[:3]} bytes"
            )


class Output(NamedTuple):
    """Zarr array that tasks write, chunk by chunk."""

    path: str
    n_dimensions: int

    def chunk(self, *index: int) -> Path:
        """Return the file of a chunk; the rest of its index is 0."""
        rest = [0] * (self.n_dimensions - len(index))
        return Path(self.path, "c", *map(str, [*index, *rest]))

    def read(self, rows: Any = slice(None)) -> Array:
        """Return a copy of some rows."""
        return read_part(self.path, rows)

    def write(self, place: Any, values: Array) -> None:
        """Write whole chunks."""
        open_zarr(self.path, "r+")[place] = values


class Task(NamedTuple):
    """A call that writes chunks; it is done when their files are there."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    files: tuple[Path, ...]


@dataclass(frozen=True)
class Folder:
    """A folder that one call writes into, and the workers of that call."""

    path: Path
    client: Any
    n_threads: int
    progress: Progress

    def matrix(self, name: str, value: Any) -> Matrix:
        """Return an input on disk; one in memory is written there, named by its digest."""
        folder = self.path / "inputs"
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
            _check_complete(found, path)
            shape, dtype = found.shape, found.dtype
        else:
            fault = "must be an array of NumPy, got a damaged file"
            with reading(path, fault), path.open("rb") as file:
                shape, _, dtype = npy_header(file)
        if len(shape) != 2 or dtype.kind not in "fiub" or 0 in shape:
            raise ValueError(f"{name} must hold rows of numbers, got {dtype} of shape {shape}")
        kind = dtype.newbyteorder("=")
        if kind not in _KEPT:
            kind = np.dtype(np.float32 if kind == np.float16 else np.float64)
        return Matrix(name, os.fspath(path), shape, kind)

    def pool(self, similarity: str, **vectors: Any) -> Pool:
        """Return two sets of vectors on disk, each given by its name."""
        left, right = starmap(self.matrix, vectors.items())
        pool = Pool(left, right, similarity)
        pool.prepared(slice(0, 1), slice(0, 1))  # else each task would refuse them
        return pool

    def begin(
        self, name: str, shape: Shape, chunks: Shape, kind: npt.DTypeLike, about: dict[str, Any]
    ) -> Output:
        """Create a Zarr array, or check that the same call began the one that is there.

        Elements that are not written are NaN, or -1, which no result is.
        """
        dtype, path = np.dtype(kind), self.path / name
        plain = json.loads(json.dumps({"version": kernelcore.__version__, **about}))
        if not (path / "zarr.json").exists():
            zarr.create_array(
                os.fspath(path),
                shape=shape,
                chunks=chunks,
                dtype=dtype.newbyteorder("<"),
                compressors=[Crc32cCodec()],
                fill_value=np.nan if dtype.kind == "f" else -1,
                attributes={"kernelcore": plain},
            )
        found = open_zarr(path)
        own = found.shape, found.chunks, found.dtype.newbyteorder("=")
        if found.attrs.get("kernelcore") != plain or own != (shape, chunks, dtype):
            raise ValueError(
                f"{path} must be a new folder or one that the same call began, got the result "
                "of other inputs, settings or of another version: "
                f"{found.attrs.get('kernelcore')}"
            )
        return Output(os.fspath(path), len(shape))

    def fill(
        self, what: str, outputs: Sequence[Output], function: Callable[..., Any], calls: Any
    ) -> list[Any]:
        """Run a task for each chunk along the first axis, with these outputs and arguments."""
        tasks = [
            Task(function, (*outputs, *own), tuple(output.chunk(k) for output in outputs))
            for k, own in enumerate(calls)
        ]
        return self.complete(what, tasks)

    def complete(self, what: str, tasks: Sequence[Task]) -> list[Any]:
        """Run the tasks that are not done, by a client of Dask or by threads of this process.

        Each is tried three times. The others go on when one fails; then a RuntimeError names
        the chunk of the first of those that failed. Returns what the tasks that ran returned.
        """
        waiting = [
            task
            for task in tasks  # a power cut may leave an empty file
            if not all(file.exists() and file.stat().st_size for file in task.files)
        ]
        with reporting(self.progress, what) as report:
            if self.client is not None:
                found = _by_dask(self.client, waiting, report)
            else:
                found = in_threads(_tried, waiting, self.n_threads, report=report)
        errors = [error for error, _ in found if error is not None]
        if errors:
            raise RuntimeError(
                f"{len(errors)} of {len(tasks)} {what} failed {_ATTEMPTS} times, the first is "
                f"{errors[0]}"
            )
        return [result for _, result in found]


@contextmanager
def writing(
    path: str | os.PathLike[str], client: Any, n_threads: int | None, progress: Progress
) -> Iterator[Folder]:
    """Make a folder and lock it; RuntimeError if another process writes into it.

    On file systems without locks it only makes the folder.
    """
    folder = Folder(Path(path).absolute(), client, resolve_n_threads(n_threads), progress)
    make_folder(folder.path)
    try:
        with locked(folder.path):
            yield folder
    except BlockingIOError:
        raise RuntimeError(f"another call is writing into {folder.path}") from None


def one_thread_kernel(kernel: Any) -> Callable[[Any, Any], Any]:
    """Return a kernel that takes one thread, where it can be told."""
    check_callable("kernel", kernel)
    try:
        takes_threads = "n_threads" in inspect.signature(kernel).parameters
    except ValueError:  # some builtins have no signature
        takes_threads = False
    return functools.partial(kernel, n_threads=1) if takes_threads else kernel


def kernel_name(kernel: Any) -> str:
    """Name a function, and its options by a digest."""
    if isinstance(kernel, functools.partial):
        options = pickle.dumps((kernel.args, sorted(kernel.keywords.items())))
        return f"{kernel_name(kernel.func)}, options {digest(options)}"
    kind = kernel if hasattr(kernel, "__qualname__") else type(kernel)
    return f"{kind.__module__}:{kind.__qualname__}"


def array_digest(array: Array) -> str:
    """Return the digest of an array in memory."""
    about = f"{array.dtype} {array.shape}".encode()
    return digest(about, np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)


def spans(stop: int, step: int, start: int = 0) -> list[slice]:
    """Cut positions into runs."""
    return [slice(k, min(k + step, stop)) for k in range(start, stop, step)]


def block_step(n: int, most: int) -> int:
    """Rows of a block: two blocks or more, but not of few rows."""
    n_blocks = max(2, -(-n // most))
    return min(most, n, max(_FEWEST_ROWS, -(-n // n_blocks)))


def _unpacked(content: bytes) -> tuple[str | None, Any]:
    """Run a task of another process, which must have the same version of this package."""
    task, version = pickle.loads(content)  # of the client; Dask sends its own pickles, too
    if version != kernelcore.__version__:
        return f"workers must have kernelcore {version}, got {kernelcore.__version__}", None
    return _tried(task)


def _tried(task: Task) -> tuple[str | None, Any]:
    """Run a task up to three times; return its last error, or what it returned."""
    for _ in range(_ATTEMPTS):
        check_stopped()
        try:
            with one_blas_thread():
                return None, task.function(*task.arguments)
        except Exception as error:
            message = f"{task.files[0]}: {type(error).__name__}: {error}"
    return message, None


def _by_dask(
    client: Any, tasks: list[Task], report: Report | None
) -> list[tuple[str | None, Any]]:
    distributed = require("distributed")
    # Dask waits forever for a worker that cannot unpickle a task: tasks unpickle themselves.
    pack = require("cloudpickle").dumps
    packed = [pack((task, kernelcore.__version__)) for task in tasks]
    n_at_once = max(1, _GRAPH_BYTES // max(map(len, packed), default=1))
    futures = client.map(_unpacked, packed, pure=False, batch_size=n_at_once)
    chunks = {future.key: task.files[0] for future, task in zip(futures, tasks, strict=True)}
    found: list[tuple[str | None, Any]] = []
    try:
        for future in distributed.as_completed(futures):
            if future.cancelled():
                raise RuntimeError("the scheduler of Dask is gone, or has cancelled the tasks")
            error = future.exception()
            found.append(
                (f"{chunks[future.key]}: {error!r}", None) if error else future.result()
            )
            if report is not None:
                report(len(found), len(tasks))
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
