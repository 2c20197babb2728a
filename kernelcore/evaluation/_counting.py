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
    """A gold candidate of every query: what the candidates are compared with."""

    scores: Array
    first: npt.NDArray[np.int64]  # index of the first gold candidate with that score
    n_best: npt.NDArray[np.int64]  # gold candidates with that score; 0 stands for no query

    def part(self, queries: slice, first_candidate: int) -> Targets:
        """Return those of some queries, among candidates that are counted from another one."""
        scores, first, n_best = (values[queries] for values in self)
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

    Returns the counts of either direction, one row each for candidates with a greater score,
    with the score of the best gold one (gold ones too) and, if ``ties == "ordinal"``, with
    that score and a smaller index; and whether a score is NaN.
    """
    ordered = ties == "ordinal"

    def queries(targets: Targets | None) -> tuple[Any, ...] | None:
        if targets is None:
            return None
        counts = np.empty((3 if ordered else 2, len(targets.scores)), dtype=np.int64)
        return targets.scores, targets.first, counts

    by_row, by_column = queries(rows), queries(columns)
    threads = threads_for(n_threads, scores.size / 4)
    has_nan = _core.count_ranks(scores, by_row, by_column, ordered, threads, attentive(None))
    none = np.empty((0, 0), dtype=np.int64)
    return by_row[2] if by_row else none, by_column[2] if by_column else none, has_nan


class GoldCounter:
    """Counts the candidates ahead of every gold candidate, tile by tile, in any order.

    Queries are rows, columns, or both. The first gold candidates of all queries are counted
    in one pass, then the second ones, and so on.
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
            [] if items is None else _layers_of(items, scores)
            for items, scores in zip(gold, gold_scores, strict=True)
        )
        n_counts = 3 if ties == "ordinal" else 2
        self._counts = tuple(
            np.zeros(
                (len(layers), n_counts, len(layers[0].scores) if layers else 0), dtype=np.int64
            )
            for layers in self._layers
        )
        self._adding = threading.Lock()

    def add(self, rows: slice, columns: slice, scores: Array, n_threads: int = 1) -> bool:
        """Count in the C-contiguous scores of some rows and columns; say if one is NaN."""
        found_nan = False
        for number in range(max(map(len, self._layers))):
            here = [
                self._part(number, 0, rows, columns.start),
                self._part(number, 1, columns, rows.start),
            ]
            if number and here == [None, None]:
                continue
            *counted, has_nan = count_candidates(
                scores, *here, ties=self._ties, n_threads=n_threads
            )
            found_nan |= has_nan
            with self._adding:
                for side, queries in enumerate((rows, columns)):
                    if here[side] is not None:
                        self._counts[side][number, :, queries] += counted[side]
        return found_nan

    def counts(self, side: int) -> list[npt.NDArray[np.int64]]:
        """Return the counts of each gold candidate of the rows (side 0) or the columns (1).

        They are of greater candidates, of equal ones, and under "ordinal" of those before it.
        """
        gold = self._gold[side]
        assert gold is not None
        query, number = _numbered(gold)
        return [counts[number, query] for counts in np.moveaxis(self._counts[side], 1, 0)]

    def _part(
        self, number: int, side: int, queries: slice, first_candidate: int
    ) -> Targets | None:
        if number >= len(self._layers[side]):
            return None
        part = self._layers[side][number].part(queries, first_candidate)
        return part if part.n_best.any() else None


def _numbered(gold: GoldItems) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Query of each gold candidate, and its number among those of the query."""
    n_gold = np.diff(gold.offsets)
    query = np.repeat(np.arange(len(n_gold)), n_gold)
    return query, np.arange(len(query)) - gold.offsets[query]


def _layers_of(gold: GoldItems, gold_scores: Array) -> list[Targets]:
    """First gold candidate of every query, then the second of those that have one, ..."""
    query, number = _numbered(gold)
    order = np.argsort(number, kind="stable")
    layers = []
    for members in np.split(order, np.cumsum(np.bincount(number))[:-1]):
        n_queries = len(gold.offsets) - 1
        scores = np.full(n_queries, np.inf, dtype=gold_scores.dtype)
        first, is_here = np.zeros((2, n_queries), dtype=np.int64)
        scores[query[members]] = gold_scores[members]
        first[query[members]] = gold.candidates[members]
        is_here[query[members]] = 1
        layers.append(Targets(scores, first, is_here))
    return layers


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
