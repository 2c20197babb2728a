"""Exact search: the best candidates of each query, block by block."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kernelcore import _core
from kernelcore._check import Array, check_integer
from kernelcore._threads import Progress, attentive
from kernelcore.distributed.arrays import MatrixLike, Output, Pool, block_step, spans, writing
from kernelcore.evaluation.streaming import VectorSimilarity

_CANDIDATES = 32_768  # that a task reads at once


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
        Most queries of a task, which reads all candidates.
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
    most_rows = check_integer("block_rows", block_rows, minimum=1)
    with writing(path, client, n_threads, progress) as folder:
        pool = folder.pool(similarity, queries=queries, candidates=candidates)
        about = {**pool.digests(), "similarity": similarity}
        shape = len(pool.left), min(most, len(pool.right))
        step = block_step(len(pool.left), most_rows)
        outputs = [
            folder.begin("positions", shape, (step, shape[1]), np.int64, about),
            folder.begin("scores", shape, (step, shape[1]), pool.dtype, about),
        ]
        calls = [(pool, rows, shape[1]) for rows in spans(len(pool.left), step)]
        folder.fill("blocks", outputs, _write_best, calls)
        return Best(*(output.read() for output in outputs))


def _write_best(positions: Output, scores: Output, pool: Pool, rows: slice, k: int) -> None:
    """Find the best candidates of a block of queries."""
    shape = rows.stop - rows.start, k
    best = Best(np.zeros(shape, np.int64), np.full(shape, -np.inf, pool.dtype))
    for columns in spans(len(pool.right), _CANDIDATES):
        vectors = pool.prepared(rows, columns)
        _core.best_products(
            *vectors, columns.start, best.positions, best.scores, 1, attentive(None)
        )
    positions.write(rows, best.positions)
    scores.write(rows, best.scores)
