"""Counts of candidates ahead of every gold item; all ranks and metrics follow from them."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kernelcore._check import Array, as_integer_array, check_choice, owned
from kernelcore._threads import resolve_n_threads
from kernelcore.evaluation._inputs import GoldItems, Rows
from kernelcore.evaluation.ranks import (
    TIE_RULES,
    Targets,
    count_candidates,
    place_of_nan,
    ranks_from_counts,
)

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False, repr=False)
class GoldPlaces:
    """Number of candidates ahead of each gold candidate of every query, and tied with it.

    Attributes
    ----------
    n_gold : ndarray of int64, shape (n_queries,)
        Gold candidates of each query, at least one. The other arrays have those of the first
        query first.
    greater : ndarray of int64, shape (n_gold.sum(),)
        Candidates with a greater score than this one, gold ones included.
    tied : ndarray of int64, shape (n_gold.sum(),)
        Candidates with the same score, itself and other gold ones included.
    before : ndarray of int64, shape (n_gold.sum(),), optional
        Those of the tied candidates that have a smaller index; the rule "ordinal" needs them.

    Raises
    ------
    TypeError, ValueError
        If a part does not hold integers or does not fit the others.

    Examples
    --------
    >>> from kernelcore.evaluation import evaluate
    >>> places = evaluate([[0.5, 0.5, 0.1]], caption_image=[0, 0, 0]).annotation.places
    >>> places.greater, places.tied
    (array([0, 0, 2]), array([2, 2, 1]))
    """

    n_gold: Integers
    greater: Integers
    tied: Integers
    before: Integers | None = None

    def __post_init__(self) -> None:
        for name, lowest in (("n_gold", 1), ("greater", 0), ("tied", 1), ("before", 0)):
            if getattr(self, name) is None:
                continue
            values = as_integer_array(name, getattr(self, name), ndim=1, dtype=np.int64)
            if values.size and values.min() < lowest:
                raise ValueError(f"{name} must be >= {lowest}, got {values.min()}")
            object.__setattr__(self, name, owned(values))
            length = len(self.n_gold) if name == "n_gold" else int(self.n_gold.sum())
            if len(values) != length or not length:
                raise ValueError(
                    f"{name} must have one entry per gold candidate ({length}), at least one, "
                    f"got {len(values)}"
                )

    def ranks(self, ties: str) -> npt.NDArray[np.float64]:
        """Rank of the best gold candidate of every query by a rule of `gold_ranks`.

        Parameters
        ----------
        ties : {"mean", "min", "max", "ordinal"}

        Returns
        -------
        ndarray of float64, shape (n_queries,)

        Raises
        ------
        ValueError
            If the rule is another one, or "ordinal" and `before` is not known.
        """
        check_choice("ties", ties, TIE_RULES)
        starts = np.cumsum(self.n_gold) - self.n_gold
        greater = np.minimum.reduceat(self.greater, starts)
        is_best = self.greater == np.repeat(greater, self.n_gold)
        counts = [greater, np.maximum.reduceat(np.where(is_best, self.tied, 0), starts)]
        if ties == "ordinal":
            if self.before is None:
                raise ValueError("ties must not be 'ordinal' where `before` was not counted")
            outside = np.iinfo(np.int64).max
            counts.append(np.minimum.reduceat(np.where(is_best, self.before, outside), starts))
        n_best = np.add.reduceat(is_best, starts, dtype=np.int64)
        return ranks_from_counts(np.stack(counts), n_best, ties)


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
    """Return the first gold candidates of all queries, then the second ones, and so on."""
    query, number = _numbered(gold)
    shape = (int(number.max()) + 1, len(gold.offsets) - 1)
    scores = np.full(shape, np.inf, dtype=gold_scores.dtype)
    first, is_here = np.zeros((2, *shape), dtype=np.int64)
    scores[number, query] = gold_scores
    first[number, query] = gold.candidates
    is_here[number, query] = 1
    return Targets(scores, first, is_here)


def places_of(counter: GoldCounter, side: int, gold: GoldItems) -> GoldPlaces:
    """Return what was counted of the rows (side 0) or the columns (side 1)."""
    return GoldPlaces(np.diff(gold.offsets), *counter.counts(side))


def count_places(
    table: Rows,
    *,
    rows: GoldItems | None = None,
    columns: GoldItems | None = None,
    ties: str,
    n_threads: int | None,
) -> list[GoldPlaces]:
    """Find the gold candidates of the rows of a matrix of scores, of its columns, or of both.

    A matrix in memory is read in place, once for each gold candidate that a query has.
    """
    check_choice("ties", ties, TIE_RULES)
    n_threads = resolve_n_threads(n_threads)
    gold = [rows, columns]
    gold_scores = [
        np.empty(0, table.dtype) if items is None else _gold_scores(table, items, side)
        for side, items in enumerate(gold)
    ]
    whole = table.whole()
    step = 1 if whole is None or whole.flags.c_contiguous else -1  # or the matrix is turned
    counter = GoldCounter(gold[::step], gold_scores[::step], ties)
    for span, piece in table.pieces() if whole is None else [(slice(0, len(whole)), whole)]:
        here, there = [span, slice(0, piece.shape[1])][::step]
        if counter.add(here, there, piece if step == 1 else piece.T, n_threads):
            raise ValueError(
                f"{table.name} must not hold NaN, got NaN {place_of_nan(piece, span.start)}"
            )
    return [
        places_of(counter, side, items)
        for side, items in list(enumerate(gold[::step]))[::step]
        if items is not None
    ]


def _gold_scores(table: Rows, gold: GoldItems, side: int) -> Array:
    queries = np.repeat(np.arange(len(gold.offsets) - 1), np.diff(gold.offsets))
    pairs = (queries, gold.candidates)
    return table.at(*(pairs if side == 0 else pairs[::-1]))
