"""Exact search: the best candidates of each query, over pairs of blocks of vectors on disk."""

from __future__ import annotations

import os
from functools import partial, reduce
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kernelcore._check import Array, check_choice, check_integer
from kernelcore._threads import Progress, check_stopped
from kernelcore.distributed.rows import (
    RowFiles,
    RowsLike,
    as_row_files,
    as_vectors,
    vector_bytes,
)
from kernelcore.distributed.store import Piece, Store, working_on
from kernelcore.distributed.tasks import ExecutorLike, complete
from kernelcore.evaluation.streaming import VectorSimilarity
from kernelcore.evaluation.tiles import TILE, prepared_vectors, product

_BLOCK_ROWS = 32_768
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
    queries: RowsLike,
    candidates: RowsLike,
    store: str | os.PathLike[str],
    *,
    k: int = 10,
    similarity: VectorSimilarity = "cosine",
    block_rows: int = _BLOCK_ROWS,
    executor: ExecutorLike = None,
    n_threads: int | None = None,
    progress: Progress = False,
) -> Best:
    """Find the k candidates with the highest scores for each query.

    Parameters
    ----------
    queries, candidates : array_like of shape (n, n_dimensions), path or list of paths
        Vectors: stores of rows, ``.npy`` files, or arrays, which are written into the store
        first.
    store : path
        Folder to write into. A second call with the same arguments computes what is missing.
    k : int, default 10
        Candidates of each query, at most all.
    similarity : {"cosine", "dot"}, default "cosine"
        How vectors are compared.
    block_rows : int, default 32768
        Queries and candidates of a task.
    executor, n_threads, progress
        As in `kernelcore.distributed.streamed_ranks`.

    Returns
    -------
    Best
        Of equal scores the candidate with the smaller row comes first.

    Raises
    ------
    TypeError, ValueError
        If the vectors are not of one length and finite, an option is out of range, or the
        folder holds another store.
    PiecesFailedError
        If a pair of blocks failed three times.
    ClusterLostError
        If the workers are gone.

    Notes
    -----
    The result is the same, bit for bit, for every executor, number of workers and
    `block_rows`.

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
    folder = Path(store).absolute()
    with working_on(folder):
        left = as_row_files("queries", queries, folder / "queries")
        right = as_row_files("candidates", candidates, folder / "candidates")
        if left.n_columns != right.n_columns:
            raise ValueError(
                f"candidates must have as many dimensions as queries ({left.n_columns}), "
                f"got {right.n_columns}"
            )
        n_across, width = -(-len(right) // step), min(most, len(right))
        target = Store.begin(
            folder,
            "best",
            -(-len(left) // step) * n_across,
            {"k": width, "similarity": similarity, "block_rows": step},
            {"queries": left.to_json(), "candidates": right.to_json()},
        )
        complete(target, executor, n_threads=n_threads, progress=progress)
        found = [
            reduce(
                partial(_merged, k=width),
                (_read(target, row * n_across + k) for k in range(n_across)),
            )
            for row in range(-(-len(left) // step))
        ]
    return Best(*(np.concatenate(parts) for parts in zip(*found, strict=True)))


def make(store: Store, number: int) -> Piece:
    """Find the best candidates of one block for the queries of another."""
    queries = RowFiles.from_json(store.inputs["queries"])
    candidates = RowFiles.from_json(store.inputs["candidates"])
    step, k = int(store.settings["block_rows"]), int(store.settings["k"])
    down, across = divmod(number, -(-len(candidates) // step))
    rows = range(down * step, min((down + 1) * step, len(queries)))
    columns = range(across * step, min((across + 1) * step, len(candidates)))
    left, right = prepared_vectors(
        as_vectors("queries", queries.read(rows.start, rows.stop), rows),
        as_vectors("candidates", candidates.read(columns.start, columns.stop), columns),
        store.settings["similarity"],
        1,
    )
    found = []
    own = np.empty((left.step, right.step), left.padded.dtype)
    for span in left.tiles():
        best = None
        for part in right.tiles():
            check_stopped()
            scores = product(left, right, span.start, part.start, own)
            scores = scores[: span.stop - span.start, : part.stop - part.start]
            best = _improved(best, scores, k, columns.start + part.start)
        assert best is not None
        found.append(best)
    files = {
        _name(number, field): np.concatenate([getattr(one, field) for one in found])
        for field in Best._fields
    }
    return Piece(files)


def need(store: Store) -> int:
    """Estimate the memory of a pair of blocks: vectors twice, results and one tile."""
    queries = RowFiles.from_json(store.inputs["queries"])
    candidates = RowFiles.from_json(store.inputs["candidates"])
    step, k = int(store.settings["block_rows"]), int(store.settings["k"])
    vector = max(vector_bytes(queries), vector_bytes(candidates))
    item = vector // queries.n_columns
    n_queries = min(step, len(queries))
    n_rows = n_queries + min(step, len(candidates)) + sum(TILE)
    read = max(queries.row_bytes, candidates.row_bytes)
    tile = TILE[0] * (TILE[1] * (3 * item + 16) + 8 * k * 16)
    return n_rows * (2 * vector + read) + tile + 3 * n_queries * k * (8 + item)


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


def _read(store: Store, number: int) -> Best:
    return Best(*(np.load(store.folder / _name(number, field)) for field in Best._fields))


def _name(number: int, field: str) -> str:
    return f"{field}/{number:07d}.npy"
