"""Products of two sets of vectors in tiles of one shape, so that a score has one value.

BLAS may round products of another shape differently. In tiles of one shape a score depends on
its two vectors alone, not on where they are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np

from kernelcore._check import Array, check_choice, scan_values
from kernelcore._threads import (
    Report,
    check_stopped,
    in_threads,
    one_blas_thread,
    resolve_n_threads,
)
from kernelcore.evaluation._inputs import Rows

_Task = TypeVar("_Task")

# Every product is of this many images by this many captions: all have one shape because BLAS
# may round another one differently. The shape is large enough for what BLAS does beside the
# products, which is to copy both sides, to take little time, and small enough for the tiles
# with gold scores to be kept. Pools of 1,000 and 5,000 images, the most common ones, fill whole
# tiles but for 1 %.
TILE = (504, 1008)
_ROWS = 256  # vectors that are read at once: they stay in a second-level cache
_UNITS = 64  # vectors that are scaled at once


class Vectors(NamedTuple):
    """Rows, padded with zeros to whole tiles.

    Attributes
    ----------
    padded : ndarray
    size : int
        Number of rows before they were padded.
    step : int
        Rows in a tile.
    """

    padded: Array
    size: int
    step: int

    def tiles(self) -> list[slice]:
        """Return the rows of each tile."""
        return [slice(k, min(k + self.step, self.size)) for k in range(0, self.size, self.step)]

    def gather(self, rows: Array) -> Array:
        """Return one tile with these rows, and zeros below them."""
        tile = np.zeros((self.step, self.padded.shape[1]), dtype=self.padded.dtype)
        tile[: len(rows)] = self.padded[rows]
        return tile


def prepared_vectors(
    left: Rows, right: Rows, similarity: str, n_threads: int | None
) -> tuple[Vectors, Vectors]:
    """Copy images and captions into whole tiles, of length 1 for the cosine."""
    check_choice("similarity", similarity, ("cosine", "dot"))
    if left.shape[1] != right.shape[1]:
        raise ValueError(
            f"{right.name} must have as many dimensions as {left.name} ({left.shape[1]}), "
            f"got {right.shape[1]}"
        )
    dtype = np.result_type(left.dtype, right.dtype)
    (images, largest), (captions, other) = (
        _padded(vectors, step, dtype, similarity, n_threads)
        for vectors, step in zip((left, right), TILE, strict=True)
    )
    largest *= left.shape[1] * other
    if similarity == "dot" and largest > float(np.finfo(dtype).max):
        raise ValueError(
            f"{left.name} and {right.name} must have products within {dtype}, "
            f"which {largest:.3g} exceeds"
        )
    return images, captions


def _padded(
    vectors: Rows, step: int, dtype: np.dtype[Any], similarity: str, n_threads: int | None
) -> tuple[Vectors, float]:
    """Copy the rows, which keeps BLAS from taking a product with itself for a symmetric one.

    Returns the largest magnitude of the rows as they came, too.
    """
    size, n_dimensions = vectors.shape
    padded = np.zeros((-(-size // step) * step, n_dimensions), dtype=dtype)
    largest = np.zeros(-(-size // _ROWS))

    def copy(number: int) -> None:
        check_stopped()
        span = slice(number * _ROWS, min((number + 1) * _ROWS, size))
        rows = vectors.take(np.arange(span.start, span.stop))
        found = scan_values(rows, 1)
        if not found.is_finite:
            row, column = np.argwhere(~np.isfinite(rows))[0]
            raise ValueError(
                f"{vectors.name} must be finite, got {rows[row, column]} at "
                f"[{span.start + row}, {column}]"
            )
        largest[number] = max(found.largest, -found.smallest)
        if similarity == "dot":
            padded[span] = rows
            return
        for start in range(0, len(rows), _UNITS):  # in a second-level cache as float64, too
            part = rows[start : start + _UNITS]
            padded[span.start + start : span.start + start + len(part)] = _unit(part)

    run(copy, range(len(largest)), n_threads)
    return Vectors(padded, size, step), float(largest.max())


def _unit(rows: Array) -> Array:
    """Scale rows to length 1 in float64; powers of two keep their squares in range."""
    unit = rows.astype(np.float64)
    if rows.dtype == np.float64:  # of float32 they are
        np.ldexp(unit, -np.frexp(np.abs(rows).max(axis=1, keepdims=True))[1], out=unit)
    lengths = np.sqrt(np.square(unit).sum(axis=1, keepdims=True))
    unit /= np.where(lengths > 0, lengths, 1.0)
    return unit


def run(
    work: Callable[[_Task], None],
    tasks: Sequence[_Task],
    n_threads: int | None,
    report: Report | None = None,
) -> None:
    """Do the work of all tasks in threads, each with one thread of BLAS."""
    with one_blas_thread():
        in_threads(
            work, tasks, resolve_n_threads(n_threads), setting=one_blas_thread, report=report
        )


def own_scores(
    images: Vectors, captions: Vectors, owner: Array, n_threads: int | None
) -> Array:
    """Score each caption with its own image; both are gathered into tiles."""
    order = np.argsort(owner, kind="stable")
    scores = np.empty(captions.size, dtype=captions.padded.dtype)

    def look_up(span: slice) -> None:
        members = order[span]
        own, row = np.unique(owner[members], return_inverse=True)
        tile = images.gather(own) @ captions.gather(members).T
        scores[members] = tile[row, np.arange(len(members))]

    run(look_up, _fitting(owner[order], images.step, captions.step), n_threads)
    return scores


def _fitting(owner: Array, n_images: int, n_captions: int) -> list[slice]:
    """Cut captions that are sorted by image into runs that fit into a tile."""
    image = np.cumsum(np.diff(owner, prepend=owner[:1]) != 0)
    spans: list[slice] = []
    start = 0
    while start < len(owner):
        end = int(np.searchsorted(image, image[start] + n_images))
        spans.append(slice(start, min(start + n_captions, end)))
        start = spans[-1].stop
    return spans


def product(
    images: Vectors, captions: Vectors, row: int, column: int, out: Array | None = None
) -> Array:
    """Scores of the tile that begins at this row and column."""
    left = images.padded[row : row + images.step]
    right = captions.padded[column : column + captions.step]
    scores: Array = np.matmul(left, right.T, out=out)
    return scores
