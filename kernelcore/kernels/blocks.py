"""Gram matrices in tiles, for matrices larger than memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from kernelcore._check import check_callable, check_integer
from kernelcore._ragged import n_items, take
from kernelcore.kernels.prepared import as_items

Kernel: TypeAlias = Callable[..., npt.NDArray[Any]]
"""Called as ``kernel(X)`` for a symmetric Gram matrix and as ``kernel(X, Y)`` for others."""


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
    kernelcore.distributed.gram_to_zarr : Writes the tiles to disk; interrupted runs resume.

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
    check_callable("kernel", kernel)
    side = check_integer("block_size", block_size, minimum=1)
    left = as_items(X, "X")
    right = left if Y is None else as_items(Y, "Y")

    def tile(rows: slice, columns: slice) -> GramBlock:
        inputs = [take(left, rows)]
        if Y is not None or rows != columns:
            inputs.append(take(right, columns))
        values = kernel(*inputs)
        expected = (rows.stop - rows.start, columns.stop - columns.start)
        if np.shape(values) != expected:
            raise ValueError(
                f"kernel must return a matrix of shape {expected} for a tile of that size, "
                f"got shape {np.shape(values)}"
            )
        return GramBlock(rows, columns, values)

    places = square_tiles(n_items(left), n_items(right), side, mirrored=Y is None)
    return (tile(rows, columns) for rows, columns in places)


def square_tiles(
    n_rows: int, n_columns: int, side: int, *, mirrored: bool
) -> Iterator[tuple[slice, slice]]:
    """Give square tiles, smaller at the ends, row of tiles by row of tiles.

    Of a mirrored matrix they are those on and above the diagonal: those below are their
    transposes.
    """
    for row in range(0, n_rows, side):
        rows = slice(row, min(row + side, n_rows))
        for column in range(row if mirrored else 0, n_columns, side):
            yield rows, slice(column, min(column + side, n_columns))
