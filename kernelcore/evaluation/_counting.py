"""From gold scores to ranks: count the candidates ahead, then apply a rule for ties."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kernelcore import _core
from kernelcore._parallel import threads_for
from kernelcore._progress import attentive
from kernelcore._validation import Array
from kernelcore.evaluation._gold import GoldItems

TIE_RULES = ("mean", "min", "max", "ordinal")


class Targets(NamedTuple):
    """A gold candidate of every query: what the candidates are compared with.

    Several of each are layers, the first axis: the first of all queries, then the second, ...
    """

    scores: Array
    first: npt.NDArray[np.int64]  # index of the first gold candidate with that score
    n_best: npt.NDArray[np.int64]  # gold candidates with that score; 0 stands for no query

    def part(self, queries: slice, first_candidate: int) -> Targets:
        """Return those of some queries, among candidates that are counted from another one."""
        scores, first, n_best = (values[..., queries] for values in self)
        return Targets(scores, first - first_candidate, n_best)


def targets_of(gold: GoldItems, gold_scores: Array) -> Targets:
    """Return the targets, given the score of each of ``gold.candidates``."""
    starts = gold.offsets[:-1]
    best = np.maximum.reduceat(gold_scores, starts)
    is_best = gold_scores == np.repeat(best, np.diff(gold.offsets))
    outside = np.iinfo(np.int64).max
    return Targets(
        best,
        np.minimum.reduceat(np.where(is_best, gold.candidates, outside), starts),
        np.add.reduceat(is_best, starts, dtype=np.int64),
    )


def count_candidates(
    scores: Array,
    rows: Targets | None,
    columns: Targets | None,
    *,
    ties: str,
    n_threads: int,
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], bool]:
    """Count, in one pass over C-contiguous `scores`, for queries that are rows or columns.

    Returns the counts of either direction, layer by layer, one row each for candidates with a
    greater score, with the score of the gold one (gold ones too) and, if ``ties == "ordinal"``,
    with that score and a smaller index; and whether a score is NaN.
    """
    ordered = ties == "ordinal"

    def queries(targets: Targets | None) -> tuple[Any, ...] | None:
        if targets is None:
            return None
        gold, first = map(np.atleast_2d, targets[:2])
        counts = np.empty((3 if ordered else 2, gold.size), dtype=np.int64)
        return np.ascontiguousarray(gold), np.ascontiguousarray(first), counts

    by_row, by_column = queries(rows), queries(columns)
    n_layers = max(len(side[0]) for side in (by_row, by_column) if side is not None)
    threads = threads_for(n_threads, n_layers * scores.size / 4)
    has_nan = _core.count_ranks(scores, by_row, by_column, ordered, threads, attentive(None))
    none = np.empty((0, 0), dtype=np.int64)
    return by_row[2] if by_row else none, by_column[2] if by_column else none, has_nan


class GoldCounter:
    """Counts the candidates ahead of every gold candidate, tile by tile, in any order.

    Queries are rows, columns, or both.
    """

    def __init__(
        self,
        gold: Sequence[GoldItems | None],
        gold_scores: Sequence[Array],
        ties: str,
    ) -> None:
        """Take gold candidates of the rows and of the columns, and the score of each."""
        self._ties = ties
        self._gold = gold
        self._layers = tuple(
            None if items is None else _layers_of(items, scores)
            for items, scores in zip(gold, gold_scores, strict=True)
        )
        n_counts = 3 if ties == "ordinal" else 2
        self._counts = tuple(
            np.zeros(
                (0, 0, 0) if own is None else (n_counts, *own.scores.shape), dtype=np.int64
            )
            for own in self._layers
        )
        self._adding = threading.Lock()

    def add(self, rows: slice, columns: slice, scores: Array, n_threads: int = 1) -> bool:
        """Count in the C-contiguous scores of some rows and columns; say if one is NaN."""
        parts = [self._part(0, rows, columns.start), self._part(1, columns, rows.start)]
        *counted, has_nan = count_candidates(
            scores, *parts, ties=self._ties, n_threads=n_threads
        )
        with self._adding:
            for counts, part, found, queries in zip(
                self._counts, parts, counted, (rows, columns), strict=True
            ):
                if part is not None:
                    shape = (len(counts), *part.scores.shape)
                    counts[:, : shape[1], queries] += found.reshape(shape)
        return has_nan

    def counts(self, side: int) -> list[npt.NDArray[np.int64]]:
        """Return the counts of each gold candidate of the rows (side 0) or the columns (1).

        They are of greater candidates, of equal ones, and under "ordinal" of those before it.
        """
        gold = self._gold[side]
        assert gold is not None
        query, number = _numbered(gold)
        return [counts[number, query] for counts in self._counts[side]]

    def _part(self, side: int, queries: slice, first_candidate: int) -> Targets | None:
        layers = self._layers[side]
        if layers is None:
            return None
        part = layers.part(queries, first_candidate)
        n_layers = np.count_nonzero(part.n_best.any(axis=1))  # those of many gold candidates
        return Targets(*(values[:n_layers] for values in part))


def _numbered(gold: GoldItems) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Query of each gold candidate, and its number among those of the query."""
    n_gold = np.diff(gold.offsets)
    query = np.repeat(np.arange(len(n_gold)), n_gold)
    return query, np.arange(len(query)) - gold.offsets[query]


def _layers_of(gold: GoldItems, gold_scores: Array) -> Targets:
    """First gold candidate of every query, then the second of those that have one, ..."""
    query, number = _numbered(gold)
    shape = (int(number.max()) + 1, len(gold.offsets) - 1)
    scores = np.full(shape, np.inf, dtype=gold_scores.dtype)
    first, is_here = np.zeros((2, *shape), dtype=np.int64)
    scores[number, query] = gold_scores
    first[number, query] = gold.candidates
    is_here[number, query] = 1
    return Targets(scores, first, is_here)


def ranks_from_counts(
    counts: npt.NDArray[np.int64], n_best: npt.NDArray[np.int64], ties: str
) -> npt.NDArray[np.float64]:
    """Ranks of the best gold candidates, by the rules of `gold_ranks`."""
    greater, tied = counts[:2]
    if ties == "mean":
        ahead = (tied + 1) / (n_best + 1) - 1
    elif ties == "min":
        ahead = np.zeros(len(greater))
    else:
        ahead = counts[2] if ties == "ordinal" else tied - n_best
    return np.asarray(1 + greater + ahead, dtype=np.float64)
