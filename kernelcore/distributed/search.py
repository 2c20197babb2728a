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
    block_step,
    check_same_dimensions,
    spans,
    writing,
)
from kernelcore.evaluation.streaming import VectorSimilarity
from kernelcore.evaluation.tiles import TILE, prepared_vectors, product

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
    check_choice("similarity", similarity, ("cosine", "dot"))
    most_rows = check_integer("block_rows", block_rows, minimum=1)
    with writing(path, client, n_threads, progress) as folder:
        left, right = folder.matrix("queries", queries), folder.matrix("candidates", candidates)
        check_same_dimensions(left, right)
        about = {
            "queries": left.digest(),
            "candidates": right.digest(),
            "similarity": similarity,
        }
        shape = len(left), min(most, len(right))
        step = block_step(len(left), most_rows, TILE[1])
        dtype = np.result_type(left.vector_dtype, right.vector_dtype)
        outputs = [
            folder.begin("positions", shape, (step, shape[1]), np.int64, about),
            folder.begin("scores", shape, (step, shape[1]), dtype, about),
        ]
        calls = [(left, right, similarity, rows, shape[1]) for rows in spans(len(left), step)]
        folder.fill(outputs, "block", _write_best, calls)
        return Best(*(output.read() for output in outputs))


def _write_best(  # noqa: PLR0917
    positions: Output,
    scores: Output,
    queries: Matrix,
    candidates: Matrix,
    similarity: str,
    rows: slice,
    k: int,
) -> None:
    """Find the best candidates of a block of queries."""
    own, shape = queries.vectors(rows), (rows.stop - rows.start, k)
    dtype = np.result_type(own.dtype, candidates.vector_dtype)
    best = Best(np.zeros(shape, np.int64), np.full(shape, -np.inf, dtype))
    tile = np.empty(TILE, dtype)
    for columns in spans(len(candidates), _CANDIDATES):
        left, right = prepared_vectors(own, candidates.vectors(columns), similarity, 1)
        for span in left.tiles():
            for part in right.tiles():
                check_stopped()
                found = product(left, right, span.start, part.start, tile)
                found = found[: span.stop - span.start, : part.stop - part.start]
                first = columns.start + part.start
                _improve(best.positions[span], best.scores[span], found, first)
    positions.write(rows, best.positions)
    scores.write(rows, best.scores)


def _improve(positions: Array, best: Array, scores: Array, first: int) -> None:
    """Put better candidates of a tile among the best ones of its queries, in place.

    The tile's columns are positions from `first` on, behind all positions that are there, so
    of equal scores the first position stays.
    """
    queries = np.flatnonzero(scores.max(axis=1) > best[:, -1])
    if not len(queries):
        return
    scores = scores[queries]
    count = min(best.shape[1], scores.shape[1])
    worst = np.partition(scores, -count, axis=1)[:, [-count]]
    is_kept, is_level = scores > worst, scores == worst
    room = count - is_kept.sum(axis=1, keepdims=True)
    is_kept |= is_level & (np.cumsum(is_level, axis=1) <= room)
    columns = np.nonzero(is_kept)[1].reshape(-1, count)
    values = np.hstack([best[queries], scores[is_kept].reshape(-1, count)])
    places = np.hstack([positions[queries], columns + first])
    order = np.argsort(-values, axis=1, kind="stable")[:, : best.shape[1]]
    best[queries] = np.take_along_axis(values, order, axis=1)
    positions[queries] = np.take_along_axis(places, order, axis=1)
