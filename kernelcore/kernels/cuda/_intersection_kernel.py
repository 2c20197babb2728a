"""Device code of `histogram_intersection`; imported only with Numba."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np

from kernelcore import _extras

cuda = _extras.require("numba.cuda")  # a global, which Numba's simulator replaces


class Block(NamedTuple):
    """Division of a tile of the matrix among `side` x `side` threads."""

    side: int
    outputs: int  # rows, and as many columns, of each thread
    bins: int  # of both inputs in shared memory at a time
    chunk: int  # bins added in the narrow type; 256 keep 16-bit counts exact in float32

    @property
    def width(self) -> int:
        """Rows, and as many columns, of the tile."""
        return self.side * self.outputs


# Sums of float64 take twice the registers and shared memory.
BLOCKS = {
    np.float32: Block(side=16, outputs=8, bins=32, chunk=256),
    np.float64: Block(side=16, outputs=4, bins=32, chunk=256),
}


def _smaller(real: Any) -> Any:
    """Return the minimum as one instruction; the simulator has only Python's `min`."""
    if _extras.require("numba").config.ENABLE_CUDASIM:
        return min
    libdevice = _extras.require("numba.cuda.libdevice")
    return libdevice.fminf if real is np.float32 else libdevice.fmin


@cache
def intersection_kernels(real: Any, wide: Any, block: Block) -> tuple[Any, Any]:
    """Make ``fill(X, Y, mirrored, sums)`` and ``unpack(sums, mirrored, out)``.

    Chunks of bins are added in `real`, and to one another in `wide`. A thread has the rows
    ``ty + side * r`` and the columns ``tx + side * c`` of its block's tile: neighbours read
    neighbouring words of shared memory. Bins are read with the threads of a warp along a
    row and stored transposed, in rows one word longer than needed so that no two of them
    meet in a bank. With `mirrored` nothing below the diagonal is computed, but written.

    Of `sums` each block has a part of its own, output by output and thread by thread. Indices
    are unsigned, as Numba would look for negative ones, and what lies beyond the matrix
    reads its last row and is left there: a branch would wait for every load by itself.
    """
    side, outputs, bins, chunk = block
    width, pitch = block.width, block.width + 1
    n_threads, n_outputs = side * side, width * width
    items_at_once = n_threads // bins
    n_steps = width // items_at_once
    smaller = _smaller(real)

    def fill(X: Any, Y: Any, mirrored: bool, sums: Any) -> None:
        tile_X = cuda.shared.array((bins, pitch), real)
        tile_Y = cuda.shared.array((bins, pitch), real)
        total = cuda.local.array((outputs, outputs), real)
        x = cuda.local.array(outputs, real)
        tx, ty = np.uint32(cuda.threadIdx.x), np.uint32(cuda.threadIdx.y)
        block_x, block_y = np.uint32(cuda.blockIdx.x), np.uint32(cuda.blockIdx.y)
        if mirrored and block_x < block_y:
            return
        thread = ty * side + tx
        item_read, bin_read = thread // np.uint32(bins), thread % np.uint32(bins)
        first_row, first_column = block_y * width, block_x * width
        first_sum = (block_y * np.uint32(cuda.gridDim.x) + block_x) * n_outputs
        own = sums[first_sum : first_sum + n_outputs]
        n_rows, n_columns, n_bins = X.shape[0], Y.shape[0], X.shape[1]
        for chunk_start in range(0, n_bins if n_bins > 0 else 1, chunk):
            chunk_end = chunk_start + chunk if chunk_start + chunk < n_bins else n_bins
            for r in range(outputs):
                for c in range(outputs):
                    total[r, c] = real(0)
            for first_bin in range(chunk_start, chunk_end, bins):
                is_beyond = first_bin + bin_read >= chunk_end
                b = 0 if is_beyond else first_bin + bin_read
                for step in range(n_steps):
                    item = item_read + step * items_at_once
                    i, j = first_row + item, first_column + item
                    read = real(X[i if i < n_rows else n_rows - 1, b])
                    tile_X[bin_read, item] = real(0) if is_beyond else read
                    tile_Y[bin_read, item] = real(Y[j if j < n_columns else n_columns - 1, b])
                cuda.syncthreads()
                for k in range(bins):
                    for r in range(outputs):
                        x[r] = tile_X[k, ty + side * r]
                    for c in range(outputs):
                        y = tile_Y[k, tx + side * c]
                        for r in range(outputs):
                            total[r, c] += smaller(x[r], y)
                cuda.syncthreads()
            for r in range(outputs):
                for c in range(outputs):
                    at = (r * outputs + c) * n_threads + thread
                    before = own[at] if chunk_start > 0 else wide(0)
                    own[at] = before + wide(total[r, c])

    def unpack(sums: Any, mirrored: bool, out: Any) -> None:
        tx, ty = np.uint32(cuda.threadIdx.x), np.uint32(cuda.threadIdx.y)
        block_x, block_y = np.uint32(cuda.blockIdx.x), np.uint32(cuda.blockIdx.y)
        first_sum = (block_y * np.uint32(cuda.gridDim.x) + block_x) * n_outputs
        for r in range(outputs):
            for c in range(outputs):
                i, j = block_y * width + ty + side * r, block_x * width + tx + side * c
                if i < out.shape[0] and j < out.shape[1] and not (mirrored and j < i):
                    at = (r * outputs + c) * n_threads + ty * side + tx
                    out[i, j] = sums[first_sum + at]
                    if mirrored:
                        out[j, i] = sums[first_sum + at]

    return cuda.jit(fill), cuda.jit(unpack)
