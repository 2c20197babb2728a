"""Gram matrices as Zarr arrays, tile by tile."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from kernelcore._check import Array, check_integer, no_overflow
from kernelcore._ragged import n_items, take
from kernelcore._store import digest
from kernelcore._threads import Progress
from kernelcore.distributed.arrays import (
    Folder,
    Matrix,
    Output,
    Task,
    kernel_name,
    one_thread_kernel,
    open_zarr,
    writing,
)
from kernelcore.kernels.blocks import square_tiles
from kernelcore.kernels.gram import as_gram
from kernelcore.kernels.prepared import as_items

if TYPE_CHECKING:
    import zarr


def gram_to_zarr(
    kernel: Callable[..., Any],
    X: Any,
    Y: Any,
    path: str | os.PathLike[str],
    *,
    tile: int = 4096,
    client: Any = None,
    n_threads: int | None = None,
    progress: Progress = False,
) -> zarr.Array[Any]:
    """Compute a Gram matrix tile by tile, and write it as a Zarr array.

    Parameters
    ----------
    kernel : callable
        ``kernel(A, B)`` returns the matrix of shape (len(A), len(B)). It is known by its name
        and its options, which `functools.partial` binds.
    X : array_like of shape (n_samples_X, n_features), path, or sequence of samples
        Rows in memory, in a ``.npy`` file or in a Zarr array, or an array of Dask; or other
        samples in memory that `kernelcore.kernels.gram_blocks` takes.
    Y : like `X`, or None
        The columns. None stands for the symmetric matrix of `X`.
    path : path
        Folder of the array. A second call with the same arguments computes what is missing.
    tile : int, default 4096
        Rows and columns of a tile, and of a chunk of the array.
    client : distributed.Client, optional
        Its workers compute the tiles, which see the same files under the same paths. The
        default is threads of this process.
    n_threads : int, optional
        Threads without a client; the default is every core this process may run on.
    progress : bool or callable, default False
        True draws a bar (extra ``cli``); a callable is called with (tiles done, tiles).

    Returns
    -------
    zarr.Array of float32, shape (n_samples_X, n_samples_Y)
        Read-only, both triangles, with a checksum (CRC-32C) for each chunk. Tiles that are
        not computed yet are NaN in the file.

    Raises
    ------
    TypeError, ValueError
        If an argument is out of range, or the folder holds the result of another call.
    RuntimeError
        If a tile failed three times, or another call is writing into the folder.

    See Also
    --------
    kernelcore.kernels.gram_blocks : The tiles one after another, for any use.

    Notes
    -----
    Bytes are the same for every number of workers and threads. A chunk is renamed into place
    when it is written. Remove the file of a damaged one to have it computed again.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from kernelcore.distributed import gram_to_zarr
    >>> from kernelcore.kernels import histogram_intersection
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     K = gram_to_zarr(histogram_intersection, np.eye(3), None, folder, tile=2)
    ...     K[:]
    array([[1., 0., 0.],
           [0., 1., 0.],
           [0., 0., 1.]], dtype=float32)
    """
    function = one_thread_kernel(kernel)
    side = check_integer("tile", tile, minimum=1)
    with writing(path, client, n_threads, progress) as folder:
        left = _as_samples("X", X, folder)
        right = left if Y is None else _as_samples("Y", Y, folder)
        shape = n_items(left), n_items(right)
        side = min(side, max(shape))
        about = {
            "kernel": kernel_name(kernel),
            "X": _digest(left),
            "Y": None if Y is None else _digest(right),
        }
        output = folder.begin("", shape, (side, side), np.float32, about)
        tasks = []
        for rows, columns in square_tiles(*shape, side, mirrored=Y is None):
            index = rows.start // side, columns.start // side
            files = [output.chunk(*index)]
            if Y is None and rows != columns:
                files.append(output.chunk(*index[::-1]))
            parts = [
                partial(one.read, place) if isinstance(one, Matrix) else take(one, place)
                for one, place in ((left, rows), (right, columns))
            ]
            arguments = function, parts, output, (rows, columns), len(files) == 2
            tasks.append(Task(_write_tile, arguments, tuple(files)))
        folder.complete("tiles", tasks)
        return open_zarr(output.path)


def _write_tile(
    kernel: Callable[[Any, Any], Array],
    parts: list[Any],
    output: Output,
    place: tuple[slice, slice],
    is_mirrored: bool,
) -> None:
    X, Y = (part() if isinstance(part, partial) else part for part in parts)
    values = as_gram("kernel(X, Y)", kernel(X, Y))
    if values.shape != (n_items(X), n_items(Y)):
        raise ValueError(
            f"kernel(X, Y) must have shape {(n_items(X), n_items(Y))}, got {values.shape}"
        )
    with no_overflow("kernel(X, Y)", "fit into float32"):
        values = values.astype(np.float32, copy=False)
    output.write(place, values)
    if is_mirrored:
        output.write(place[::-1], values.T)


def _as_samples(name: str, value: Any, folder: Folder) -> Any:
    """Return rows on disk, or other samples in memory."""
    if isinstance(value, (str, os.PathLike)) or getattr(value, "ndim", 0) == 2:
        return folder.matrix(name, value)
    return as_items(value, name)


def _digest(samples: Any) -> str:
    if isinstance(samples, Matrix):
        return samples.digest()
    return digest(pickle.dumps(samples))  # it is not stored
