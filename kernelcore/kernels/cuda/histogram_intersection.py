"""The histogram intersection kernel on a GPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from kernelcore._progress import Progress, reporting
from kernelcore._validation import Array
from kernelcore.kernels.blocks import Tiling
from kernelcore.kernels.cuda._device import launch, usable_cuda
from kernelcore.kernels.histogram_intersection import as_dense_pair, check_sums, of_one_type
from kernelcore.kernels.prepared import is_sparse

_TILE_SIDE = 4096  # rows, and as many columns, of the matrix on the GPU at a time
_TILE_BYTES = 2**27  # of the histograms of either side


def histogram_intersection(
    X: npt.ArrayLike,
    Y: npt.ArrayLike | None = None,
    *,
    out: Array | None = None,
    progress: Progress = False,
) -> npt.NDArray[Any]:
    r"""Gram matrix of the histogram intersection kernel, computed on the GPU.

    .. math:: K_{ij} = \sum_{b=1}^{d} \min(X_{ib}, Y_{jb})

    Parameters
    ----------
    X : array_like of shape (n_samples_X, n_bins)
        Non-negative histograms, one per row, in any unit of mass (counts or fractions).
    Y : array_like of shape (n_samples_Y, n_bins), optional
        Histograms in the same unit as `X`. Omit it for the symmetric Gram matrix of `X`,
        which does half the work.
    out : ndarray of shape (n_samples_X, n_samples_Y), optional
        Where to put the result (a memory map, say): C-contiguous, of the dtype that would be
        returned. A call that is interrupted leaves it unusable.
    progress : bool or callable, default False
        True draws a bar (extra ``cli``); a callable is called with (tiles done, tiles).

    Returns
    -------
    ndarray of shape (n_samples_X, n_samples_Y)
        float32 for float32 input, uint64 for unsigned integer counts of up to 32 bits
        (exact), float64 otherwise, in the memory of the host.

    Raises
    ------
    MissingExtraError
        If Numba is not installed.
    RuntimeError
        If there is no GPU that Numba can use; the message says what is missing.
    TypeError
        If an input is sparse or does not hold real numbers, or `out` has the wrong dtype.
    ValueError
        As `kernelcore.kernels.histogram_intersection`.

    See Also
    --------
    kernelcore.kernels.histogram_intersection : The same on the CPU, and of sparse input.
    kernelcore.reference.histogram_intersection : The definition in NumPy.

    Notes
    -----
    Float32 input and counts of up to 16 bits are added in float32, which holds sums of 256
    such counts exactly; float64 input and larger counts in float64. Blocks of 256 bins are
    added up in float64, those of counts in uint64. The relative error of float32 is below
    ``130 * eps``, that of float64 below ``(n_bins / 512 + 130) * eps``. Sums are in an order
    fixed by n_bins alone, so results are repeatable; they may differ from the CPU's in the
    last bits.

    Tiles of the matrix and their inputs take at most 800 MB of the GPU's
    memory, more only where 128 rows have more than 128 MB.

    Examples
    --------
    >>> from kernelcore.kernels import cuda
    >>> cuda.histogram_intersection([[3, 1, 0], [1, 1, 2]])  # doctest: +SKIP
    array([[4., 2.],
           [2., 4.]])
    """
    cuda = usable_cuda("histogram_intersection")
    if is_sparse(X) or is_sparse(Y):
        raise TypeError(
            "X and Y must be dense arrays here; "
            "kernelcore.kernels.histogram_intersection takes sparse ones"
        )
    operands = as_dense_pair(X, Y, out)
    result = operands[2]
    left, right = of_one_type(*operands[:2])
    tile = _Tile(cuda, left.dtype, result.dtype)
    row_bytes = max(left.itemsize * left.shape[1], 1)
    tiles = Tiling(len(left), len(right), tile.side(row_bytes), mirrored=Y is None)
    with reporting(progress, "histogram intersection") as report:
        at = None
        for done, (rows, columns) in enumerate(tiles, start=1):
            if rows != at:
                X_there, at = cuda.to_device(left[rows]), rows
            on_diagonal = tiles.mirrored and columns == rows
            Y_there = X_there if on_diagonal else cuda.to_device(right[columns])
            result[rows, columns] = tile.compute(X_there, Y_there, mirrored=on_diagonal)
            if tiles.mirrored and not on_diagonal:
                result[columns, rows] = result[rows, columns].T
            if report is not None:
                report(done, len(tiles))
    largest = min(side.extremes.largest for side in operands[:2])
    check_sums(result, left.shape[1], largest)
    return result


class _Tile:
    """Computes tiles of the matrix, for given dtypes of inputs and result."""

    def __init__(self, cuda: Any, dtype: np.dtype[Any], out_dtype: np.dtype[Any]) -> None:
        from kernelcore.kernels.cuda._intersection_kernel import BLOCKS, intersection_kernels

        real = np.float64 if dtype in (np.float64, np.uint32) else np.float32
        self._wide = np.uint64 if out_dtype == np.uint64 else np.float64
        self._cuda, self._out_dtype, self._block = cuda, out_dtype, BLOCKS[real]
        self._fill, self._unpack = intersection_kernels(real, self._wide, self._block)

    def side(self, row_bytes: int) -> int:
        """Rows of a tile that fit into the GPU's memory, in whole blocks."""
        n_blocks = min(_TILE_SIDE, _TILE_BYTES // row_bytes) // self._block.width
        return max(n_blocks, 1) * self._block.width

    def compute(self, X: Any, Y: Any, *, mirrored: bool) -> Array:
        """Return the tile of two arrays on the GPU."""
        n_rows, n_columns = X.shape[0], Y.shape[0]
        grid = (-(-n_columns // self._block.width), -(-n_rows // self._block.width))
        threads = (self._block.side, self._block.side)
        n_sums = grid[0] * grid[1] * self._block.width**2
        sums = self._cuda.device_array(n_sums, self._wide)
        out = self._cuda.device_array((n_rows, n_columns), self._out_dtype)
        launch(self._fill, grid, threads, X, Y, mirrored, sums)
        launch(self._unpack, grid, threads, sums, mirrored, out)
        tile: Array = out.copy_to_host()
        return tile
