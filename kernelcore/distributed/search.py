"""Exact search: the best candidates of each query, over pairs of blocks of vectors on disk."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kernelcore._parallel import check_stopped
from kernelcore._progress import Progress
from kernelcore._validation import Array, check_choice, check_integer
from kernelcore.distributed.rows import RowFiles, RowsLike, as_row_files
from kernelcore.distributed.store import Piece, Store, working_on
from kernelcore.distributed.tasks import ExecutorLike, complete
from kernelcore.evaluation._inputs import Rows
from kernelcore.evaluation.streaming import VectorSimilarity
from kernelcore.evaluation.tiles import TILE, prepared_vectors, product

_BLOCK_ROWS = 32_768


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
            _merged([_read(target, row * n_across + k) for k in range(n_across)], width)
            for row in range(-(-len(left) // step))
        ]
    return Best(*(np.concatenate(parts) for parts in zip(*found, strict=True)))


def make(store: Store, number: int) -> Piece:
    """Find the best candidates of one block for the queries of another."""
    queries = RowFiles.from_json(store.inputs["queries"])
    candidates = RowFiles.from_json(store.inputs["candidates"])
    step, k = int(store.settings["block_rows"]), int(store.settings["k"])
    down, across = divmod(number, -(-len(candidates) // step))
    rows = queries.read(down * step, min((down + 1) * step, len(queries)))
    columns = candidates.read(across * step, min((across + 1) * step, len(candidates)))
    left, right = prepared_vectors(
        Rows("queries", [rows]), Rows("candidates", [columns]), store.settings["similarity"], 1
    )
    found = []
    own = np.empty((left.step, right.step), left.padded.dtype)
    for span in left.tiles():
        best = None
        for part in right.tiles():
            check_stopped()
            scores = product(left, right, span.start, part.start, own)
            scores = scores[: span.stop - span.start, : part.stop - part.start]
            tile = _best_of(scores, k, across * step + part.start)
            best = tile if best is None else _merged([best, tile], k)
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
    item = max(queries.dtype.itemsize, candidates.dtype.itemsize)
    n_queries = min(step, len(queries))
    n_rows = n_queries + min(step, len(candidates)) + sum(TILE)
    tile = TILE[0] * (TILE[1] * (item + 8) + 8 * k * 16)
    return (
        n_rows * (2 * queries.n_columns * item + queries.row_bytes)
        + tile
        + (3 * n_queries * k * (8 + item))
    )


def _best_of(scores: Array, k: int, first: int) -> Best:
    """Return the best candidates of a tile, whose columns are counted from `first`."""
    count = min(k, scores.shape[1])
    order = np.argsort(-scores, axis=1, kind="stable")[:, :count]
    return Best(order + first, np.take_along_axis(scores, order, axis=1))


def _merged(parts: list[Best], k: int) -> Best:
    """Return the best of several lists; positions grow from list to list."""
    positions = np.hstack([part.positions for part in parts])
    scores = np.hstack([part.scores for part in parts])
    order = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    return Best(
        np.take_along_axis(positions, order, axis=1), np.take_along_axis(scores, order, axis=1)
    )


def _read(store: Store, number: int) -> Best:
    return Best(*(np.load(store.folder / _name(number, field)) for field in Best._fields))


def _name(number: int, field: str) -> str:
    return f"{field}/{number:07d}.npy"
