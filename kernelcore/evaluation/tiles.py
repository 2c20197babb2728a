"""Products of two sets of vectors in tiles of one shape, so that a score has one value.

BLAS may round products of another shape differently. In tiles of one shape a score depends on
its two vectors alone, not on where they are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple, TypeAlias, TypeVar

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

_Kept: TypeAlias = dict[tuple[int, int], Array]  # scores of tiles by their first row and column

# Every product is of this many images by this many captions: all have one shape because BLAS
# may round another one differently. The shape is large enough for what BLAS does beside the
# products, which is to copy both sides, to take little time, and small enough for the tiles
# with gold scores to be kept. Pools of 1,000 and 5,000 images, the most common ones, fill whole
# tiles but for 1 %.
TILE = (504, 1008)
_ROWS = 256  # vectors that are read at once: they stay in a second-level cache
_UNITS = 64  # vectors that are scaled at once
_TILES_PER_TASK = 16
_KEPT_BYTES = 80 * 2**20  # of tiles with gold scores that are kept until they are counted in


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
        tile = _multiply(images.gather(own), captions.gather(members))
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


def gold_scores(
    images: Vectors, captions: Vectors, owner: Array, n_threads: int | None
) -> tuple[Array, _Kept]:
    """Score all captions with their own images.

    Where captions stand in about the order of their images, few tiles hold all of these, and
    are returned, so that none is computed twice. Elsewhere they are gathered into tiles.
    """
    n_rows, n_columns = images.step, captions.step
    n_across = len(captions.padded) // n_columns
    tiles = owner // n_rows * n_across + np.arange(captions.size) // n_columns
    numbers, inverse = np.unique(tiles, return_inverse=True)
    n_bytes = len(numbers) * n_rows * n_columns * captions.padded.itemsize
    if n_bytes > _KEPT_BYTES:
        return own_scores(images, captions, owner, n_threads), {}
    found = np.empty(captions.size, dtype=captions.padded.dtype)
    members_of = np.split(np.argsort(inverse, kind="stable"), np.cumsum(np.bincount(inverse)))
    kept: _Kept = {}

    def compute(number: int) -> None:
        check_stopped()
        down, across = divmod(int(numbers[number]), n_across)
        row, column = down * n_rows, across * n_columns
        scores = product(images, captions, row, column)
        members = members_of[number]
        found[members] = scores[owner[members] - row, members - column]
        kept[row, column] = scores

    run(compute, range(len(numbers)), n_threads)
    return found, kept


def product(
    images: Vectors, captions: Vectors, row: int, column: int, out: Array | None = None
) -> Array:
    """Scores of the tile that begins at this row and column."""
    left = images.padded[row : row + images.step]
    right = captions.padded[column : column + captions.step]
    return _multiply(left, right, out)


def _multiply(left: Array, right: Array, out: Array | None = None) -> Array:
    """Multiply the vectors of a tile."""
    if left.dtype == np.float64 or _rounds_alike(left.shape[1]):
        return np.asarray(np.matmul(left, right.T, out=out))
    scores = np.empty((len(left), len(right)), np.float32) if out is None else out
    scores[...] = left.astype(np.float64) @ right.T.astype(np.float64)
    return scores


@cache
def _rounds_alike(n_dimensions: int) -> bool:
    """Whether BLAS gives a product in float32 the same bits everywhere in a tile.

    The kernels of OpenBLAS for Haswell do not. Copies of a few vectors stand in all places
    of its blocks, whose sides have no divisor in common with the number of copies.
    """
    rng = np.random.default_rng(0)
    left, right = (
        np.resize(rng.normal(size=(n, n_dimensions)), (side, n_dimensions)).astype(np.float32)
        for n, side in zip((7, 5), TILE, strict=True)
    )
    tile = left @ right.T
    rows, columns = (np.arange(side) % n for n, side in zip((7, 5), TILE, strict=True))
    return bool((tile == tile[np.ix_(rows, columns)]).all())


def for_each_tile(
    images: Vectors,
    captions: Vectors,
    body: Callable[[slice, slice, Array], object],
    n_threads: int | None,
    *,
    kept: _Kept | None = None,
    report: Report | None = None,
) -> None:
    """Call ``body(rows, columns, scores)`` for every tile of the matrix of scores, row by row.

    Those that are `kept` are taken from there.
    """
    columns, known = captions.tiles(), kept or {}
    tasks = [
        (rows, columns[k : k + _TILES_PER_TASK])
        for rows in images.tiles()
        for k in range(0, len(columns), _TILES_PER_TASK)
    ]

    def fill(task: tuple[slice, list[slice]]) -> None:
        rows, spans = task
        own = np.empty((images.step, captions.step), dtype=images.padded.dtype)
        for span in spans:
            check_stopped()
            scores = known.pop((rows.start, span.start), None)
            if scores is None:
                scores = product(images, captions, rows.start, span.start, own)
            n_rows, n_columns = rows.stop - rows.start, span.stop - span.start
            body(rows, span, np.ascontiguousarray(scores[:n_rows, :n_columns]))

    run(fill, tasks, n_threads, report)
