"""Gram matrices in Zarr arrays on disk, tile by tile."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from kernelcore._check import check_float_dtype, check_integer, no_overflow
from kernelcore._store import make_folder, reading, replacing
from kernelcore._threads import Progress
from kernelcore.distributed.functions import KernelLike, describe_kernel, kernel_of
from kernelcore.distributed.rows import RowFiles, RowsLike, as_row_files
from kernelcore.distributed.store import ABOUT, Piece, Store, working_on
from kernelcore.distributed.tasks import ExecutorLike, complete
from kernelcore.kernels.blocks import Tiling

_ARRAY = "gram.zarr"


def gram_to_store(
    kernel: KernelLike,
    X: RowsLike,
    Y: RowsLike | None,
    store: str | os.PathLike[str],
    *,
    executor: ExecutorLike = None,
    tile: int = 2048,
    dtype: npt.DTypeLike = np.float32,
    n_threads: int | None = None,
    progress: Progress = False,
) -> Path:
    """Compute a Gram matrix tile by tile, and write it as a Zarr array.

    Parameters
    ----------
    kernel : callable or str
        A function that other processes can import, its options bound by `functools.partial`;
        its name, ``"module:function"``; or the name of a function of `kernelcore.kernels`.
        ``kernel(A, B)`` returns the matrix of shape (len(A), len(B)).
    X : array_like of shape (n_samples_X, n_features), path or list of paths
        Samples: a store of rows, one or more ``.npy`` files, or an array, which is written
        into the store first.
    Y : like `X`, or None
        The columns. None stands for the symmetric matrix of `X`.
    store : path
        Folder to write into. A second call with the same arguments computes what is missing.
    executor : distributed.Client or concurrent.futures.Executor, optional
        Who computes tiles; by default threads of this process.
    tile : int, default 2048
        Rows and columns of a tile, and of a chunk of the array, at most all.
    dtype : {float32, float64}, default float32
        Type of the values in the store, to which they are rounded.
    n_threads : int, optional
        Threads without an executor; the default is every core this process may run on.
    progress : bool or callable, default False
        True draws a bar (extra ``cli``); a callable is called with (tiles done, tiles).

    Returns
    -------
    Path
        Folder ``gram.zarr`` in the store: an array of Zarr version 3 of shape (n_samples_X,
        n_samples_Y), uncompressed, with both triangles. It can be opened when it is complete.

    Raises
    ------
    TypeError, ValueError
        If an argument is out of range, the kernel cannot be imported, or the folder holds
        another store.
    PiecesFailedError
        If a tile failed three times, for instance because values do not fit into `dtype` or
        the kernel returned another shape. All others are written.
    ClusterLostError
        If the workers are gone.

    See Also
    --------
    kernelcore.kernels.write_gram : A ``.npy`` file on one machine, for any samples.

    Notes
    -----
    The values are the same, bit for bit, for every executor and number of workers, and for
    every `tile` where the kernel depends on the pair alone. A tile takes two slices of samples
    and ``2 tile ** 2`` values of memory. A tile counts when it and its mark are on the disk.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from kernelcore.distributed import gram_to_store, read_gram
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = gram_to_store("histogram_intersection", np.eye(3), None, folder, tile=2)
    ...     read_gram(folder)
    array([[1., 0., 0.],
           [0., 1., 0.],
           [0., 0., 1.]], dtype=float32)
    """
    about = describe_kernel("kernel", kernel)
    side = check_integer("tile", tile, minimum=1)
    kind = check_float_dtype("dtype", dtype)
    folder = Path(store)
    with working_on(folder):
        inputs = {"X": as_row_files("X", X, folder / "X")}
        if Y is not None:
            inputs["Y"] = as_row_files("Y", Y, folder / "Y")
            if inputs["Y"].n_columns != inputs["X"].n_columns:
                raise ValueError(
                    f"Y must have as many columns as X ({inputs['X'].n_columns}), "
                    f"got {inputs['Y'].n_columns}"
                )
        shape = len(inputs["X"]), len(inputs.get("Y", inputs["X"]))
        side = min(side, max(shape))
        settings = {"kernel": about, "shape": list(shape), "tile": side, "dtype": kind.name}
        target = Store.begin(
            folder,
            "gram",
            len(Tiling(*shape, side, Y is None)),
            settings,
            {name: rows.to_json() for name, rows in inputs.items()},
        )
        complete(target, executor, n_threads=n_threads, progress=progress)
        _write_metadata(target)
    return target.folder / _ARRAY


def read_gram(
    store: str | os.PathLike[str], rows: slice = slice(None), columns: slice = slice(None)
) -> npt.NDArray[Any]:
    """Read a part of a Gram matrix that `gram_to_store` has completed.

    Parameters
    ----------
    store : path
        Folder of the store.
    rows, columns : slice, default all
        The part, with steps of 1.

    Returns
    -------
    ndarray of shape (n_rows, n_columns)

    Raises
    ------
    FileNotFoundError, ValueError
        If the folder holds no Gram matrix, one that is not complete, or a damaged tile.
    TypeError
        If `rows` or `columns` is no slice with a step of 1.

    Examples
    --------
    See `gram_to_store`.
    """
    found = Store.open(store)
    if found.kind != "gram":
        raise ValueError(f"{found.folder} must hold a Gram matrix, got {found.kind}")
    found.check_complete()
    side, dtype, shape = _layout(found)
    spans = []
    for name, part, n in zip(("rows", "columns"), (rows, columns), shape, strict=True):
        if not isinstance(part, slice) or part.step not in (None, 1):
            raise TypeError(f"{name} must be a slice with a step of 1, got {part!r:.80}")
        start, stop, _ = part.indices(n)
        spans.append((start, max(start, stop)))
    (top, bottom), (left, right) = spans
    result = np.empty((bottom - top, right - left), dtype.newbyteorder("="))
    for i in range(top // side, -(-bottom // side)):
        for j in range(left // side, -(-right // side)):
            path = found.folder / _chunk_name(i, j)
            chunk = np.fromfile(path, dtype)
            if chunk.size != side * side:
                raise ValueError(f"{path} is damaged: it must hold {side * side} numbers")
            low, high = max(top, i * side), min(bottom, (i + 1) * side)
            first, last = max(left, j * side), min(right, (j + 1) * side)
            result[low - top : high - top, first - left : last - left] = chunk.reshape(
                side, side
            )[low - i * side : high - i * side, first - j * side : last - j * side]
    return result


def make(store: Store, number: int) -> Piece:
    """Compute a tile, and the tile on the other side of the diagonal."""
    X = RowFiles.from_json(store.inputs["X"])
    symmetric = "Y" not in store.inputs
    Y = X if symmetric else RowFiles.from_json(store.inputs["Y"])
    side = int(store.settings["tile"])
    n_rows, n_columns = store.settings["shape"]
    i, j = place_of(number, n_rows, n_columns, side, symmetric)
    left = X.read(i * side, min((i + 1) * side, n_rows))
    right = left if symmetric and i == j else Y.read(j * side, min((j + 1) * side, n_columns))
    values = kernel_of(store.settings["kernel"])(left, right)
    chunk = np.zeros((side, side), _stored_type(store))  # all chunks of Zarr have one size
    with no_overflow("kernel(X, Y)", f"fit into {chunk.dtype.name}"):
        chunk[: values.shape[0], : values.shape[1]] = values
    files = {_chunk_name(i, j): chunk}
    if symmetric and i != j:
        files[_chunk_name(j, i)] = np.ascontiguousarray(chunk.T)
    return Piece(files)


def need(store: Store) -> int:
    """Estimate the memory of a tile: samples, kernel values, and both chunks."""
    side = int(store.settings["tile"])
    inputs = [RowFiles.from_json(about) for about in store.inputs.values()]
    both = inputs * 2 if len(inputs) == 1 else inputs
    samples = sum(2 * side * rows.row_bytes for rows in both)  # read, and compared
    kernel_bytes = max(one.dtype.itemsize if one.dtype.kind == "f" else 8 for one in both)
    return samples + side * side * (kernel_bytes + 2 * _stored_type(store).itemsize)


def place_of(
    number: int, n_rows: int, n_columns: int, side: int, symmetric: bool
) -> tuple[int, int]:
    """Return the row and the column of a tile in the order of `Tiling`."""
    n_down, n_across = -(-n_rows // side), -(-n_columns // side)
    if not symmetric:
        return divmod(number, n_across)
    row = 0
    while number >= n_down - row:  # rows of tiles get shorter
        number -= n_down - row
        row += 1
    return row, row + number


def _layout(store: Store) -> tuple[int, np.dtype[Any], tuple[int, int]]:
    """Return side and type of tiles and the shape of the matrix, checked against files."""
    side, path = store.read_setting("tile"), store.folder / _chunk_name(0, 0)
    with reading(store.folder / ABOUT):
        dtype = _stored_type(store)
        n_rows, n_columns = (store.read_setting("shape", n) for n in store.settings["shape"])
        tilings = (Tiling(n_rows, n_columns, side, mirrored) for mirrored in (False, True))
        if store.n_pieces not in map(len, tilings):
            raise ValueError(f"n_pieces must fit shape and tile, got {store.n_pieces}")
    if path.stat().st_size != side * side * dtype.itemsize:
        raise ValueError(f"{path} is damaged: it must hold {side * side} numbers")
    return side, dtype, (n_rows, n_columns)


def _metadata_file(store: Store) -> Path:
    return store.folder / _ARRAY / "zarr.json"


def _stored_type(store: Store) -> np.dtype[Any]:
    dtype: np.dtype[Any] = np.dtype(str(store.settings["dtype"])).newbyteorder("<")
    return dtype


def _chunk_name(i: int, j: int) -> str:
    return f"{_ARRAY}/c/{i}/{j}"


def _write_metadata(store: Store) -> None:
    """Write the metadata of Zarr last: an array that can be opened is complete."""
    path = _metadata_file(store)
    side = int(store.settings["tile"])
    about: dict[str, Any] = {
        "zarr_format": 3,
        "node_type": "array",
        "shape": store.settings["shape"],
        "data_type": store.settings["dtype"],
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [side, side]}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "fill_value": 0.0,
        "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
        "attributes": {"kernel": store.settings["kernel"]},
    }
    text = json.dumps(about, indent=1) + "\n"
    if path.is_file() and path.read_text(encoding="utf-8") == text:
        return
    make_folder(path.parent)
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")
