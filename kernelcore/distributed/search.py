"""Exact search: the best candidates of each query, block by block."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kernelcore._check import Array, check_choice, check_integer
from kernelcore._threads import Progress, check_stopped
from kernelcore.distributed.arrays import (
    Matrix,
    MatrixLike,
    Output,
    Task,
    as_matrix,
    begin,
    chunk_file,
    complete,
    only_writer,
    open_zarr,
    read_part,
    spans,
)
from kernelcore.evaluation.streaming import VectorSimilarity
from kernelcore.evaluation.tiles import prepared_vectors, product

_CANDIDATES = 32_768  # that a task reads at once
_FEW = 8  # better candidates of a tile for each query that are merged one by one


class Best(NamedTuple):
    """The best candidates of each query, best first.

    Attributes
    ----------
    positions : ndarray of int64, shape (n_queries, k)
        Rows of the candidates.
    scores : ndarray of shape (n_queries, k)
    """

    positions: npt.NDArray[np.int64]
    scores: Array


def best_candidates(
    queries: MatrixLike,
    candidates: MatrixLike,
    path: str | os.PathLike[str],
    *,
    k: int = 10,
    similarity: VectorSimilarity = "cosine",
    block_rows: int = 8192,
    client: Any = None,
    n_threads: int | None = None,
    progress: Progress = False,
) -> Best:
    """Find the k candidates with the highest scores for each query.

    Parameters
    ----------
    queries, candidates : array_like of shape (n, n_dimensions), or path
        Vectors, as for `gram_to_zarr`.
    path : path
        Folder of two Zarr arrays, ``positions`` and ``scores``. A second call with the same
        arguments computes what is missing.
    k : int, default 10
        Candidates of each query, at most all.
    similarity : {"cosine", "dot"}, default "cosine"
        How vectors are compared.
    block_rows : int, default 8192
        Queries of a task, which reads all candidates.
    client, n_threads, progress
        As for `gram_to_zarr`.

    Returns
    -------
    Best
        Of equal scores the candidate with the smaller row comes first.

    Raises
    ------
    TypeError, ValueError, RuntimeError
        As `streamed_ranks`.

    Notes
    -----
    The result is the same, bit for bit, for every number of workers and `block_rows`.

    Examples
    --------
    >>> import tempfile
    >>> from kernelcore.distributed import best_candidates
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     best = best_candidates([[1.0, 0.0]], [[0.0, 1.0], [3.0, 4.0]], folder, k=1)
    >>> best.positions, best.scores
    (array([[1]]), array([[0.6]]))
    """
    most = check_integer("k", k, minimum=1)
    check_choice("similarity", similarity, ("cosine", "dot"))
    step = check_integer("block_rows", block_rows, minimum=1)
    with only_writer(path) as folder:
        left = as_matrix("queries", queries, folder / "inputs")
        right = as_matrix("candidates", candidates, folder / "inputs")
        check_same_dimensions(left, right)
        shape = len(left), min(most, len(right))
        step = min(step, len(left))
        about = {
            "queries": left.digest(),
            "candidates": right.digest(),
            "similarity": similarity,
        }
        dtype = np.result_type(left.vector_dtype, right.vector_dtype)
        names = [os.fspath(folder / name) for name in Best._fields]
        for name, kind in zip(names, (np.int64, dtype), strict=True):
            begin(folder / name, Output(shape, (step, shape[1]), kind), about)
        tasks = [
            Task(
                f"block {number} of {folder}",
                _write_best,
                (left, right, similarity, span, names),
                tuple(chunk_file(name, number, 0) for name in names),
            )
            for number, span in enumerate(spans(len(left), step))
        ]
        complete(tasks, client, n_threads=n_threads, progress=progress, description="search")
        return Best(*(read_part(name, (slice(None),)) for name in names))


def check_same_dimensions(left: Matrix, right: Matrix) -> None:
    """Raise ValueError unless two sets of vectors have as many dimensions."""
    if left.shape[1] != right.shape[1]:
        raise ValueError(
            f"{right.name} must have as many dimensions as {left.name} ({left.shape[1]}), "
            f"got {right.shape[1]}"
        )


def _write_best(
    queries: Matrix, candidates: Matrix, similarity: str, rows: slice, names: list[str]
) -> None:
    """Find the best candidates of a block of queries."""
    outputs = [open_zarr(name, "r+") for name in names]
    k, own = outputs[0].shape[1], queries.vectors(rows)
    found: list[Best | None] = []
    for columns in spans(len(candidates), _CANDIDATES):
        left, right = prepared_vectors(own, candidates.vectors(columns), similarity, 1)
        tile = np.empty((left.step, right.step), left.padded.dtype)
        found = found or [None] * len(left.tiles())
        for place, span in enumerate(left.tiles()):
            for part in right.tiles():
                check_stopped()
                scores = product(left, right, span.start, part.start, tile)
                scores = scores[: span.stop - span.start, : part.stop - part.start]
                found[place] = _improved(found[place], scores, k, columns.start + part.start)
    for number, output in enumerate(outputs):
        output[rows] = np.concatenate([best[number] for best in found if best is not None])


def _improved(best: Best | None, scores: Array, k: int, first: int) -> Best:
    """Return the best candidates of a tile and of those before it.

    Once there are k for each query, few of a tile are better than the last of them. Those are
    found by one comparison; only where they are many is the tile cut down by itself.
    """
    if best is not None and best.scores.shape[1] == k:
        query, column = np.nonzero(scores > best.scores[:, -1:])
        if len(query) <= _FEW * len(scores):
            return _with_few(best, scores[query, column], query, column + first)
    own = _best_of(scores, k, first)
    return own if best is None else _merged(best, own, k)


def _with_few(best: Best, scores: Array, query: Array, positions: Array) -> Best:
    """Put single candidates, in the order of queries and positions, among the best."""
    if not len(query):
        return best
    queries, start, count = np.unique(query, return_index=True, return_counts=True)
    row = np.repeat(np.arange(len(queries)), count)
    place = np.arange(len(query)) - np.repeat(start, count)
    shape = len(queries), int(count.max())
    new = Best(np.zeros(shape, np.int64), np.full(shape, -np.inf, scores.dtype))
    new.positions[row, place], new.scores[row, place] = positions, scores
    before = Best(best.positions[queries], best.scores[queries])
    best.positions[queries], best.scores[queries] = _merged(before, new, best.scores.shape[1])
    return best


def _best_of(scores: Array, k: int, first: int) -> Best:
    """Return the best candidates of a tile, whose columns are counted from `first`."""
    n_queries, n_columns = scores.shape
    count = min(k, n_columns)
    worst = np.partition(scores, n_columns - count, axis=1)[:, [n_columns - count]]
    kept = scores > worst
    is_level = scores == worst  # of these the first ones fill up
    room = count - kept.sum(axis=1, keepdims=True)
    kept |= is_level & (np.cumsum(is_level, axis=1) <= room)
    columns = np.nonzero(kept)[1].reshape(n_queries, count)
    return _sorted(columns + first, scores[kept].reshape(n_queries, count), k)


def _merged(first: Best, second: Best, k: int) -> Best:
    """Return the best of two lists, of which the second has the larger positions."""
    positions = np.hstack([first.positions, second.positions])
    return _sorted(positions, np.hstack([first.scores, second.scores]), k)


def _sorted(positions: Array, scores: Array, k: int) -> Best:
    order = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    return Best(
        np.take_along_axis(positions, order, axis=1), np.take_along_axis(scores, order, axis=1)
    )
