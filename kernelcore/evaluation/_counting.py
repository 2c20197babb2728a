"""From gold scores to ranks: count the candidates ahead, then apply a rule for ties."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kernelcore import _core
from kernelcore._progress import attentive
from kernelcore._validation import Array
from kernelcore.evaluation._gold import GoldItems

TIE_RULES = ("mean", "min", "max", "ordinal")


class Targets(NamedTuple):
    """The best gold candidate of every query: what the candidates are compared with."""

    scores: Array
    first: npt.NDArray[np.int64]  # index of the first gold candidate with that score
    n_best: npt.NDArray[np.int64]  # gold candidates with that score


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
    has_nan = _core.count_ranks(scores, by_row, by_column, ordered, n_threads, attentive(None))
    none = np.empty((0, 0), dtype=np.int64)
    return by_row[2] if by_row else none, by_column[2] if by_column else none, has_nan


def ranks_from_counts(
    counts: npt.NDArray[np.int64], targets: Targets, ties: str
) -> npt.NDArray[np.float64]:
    """Ranks of the best gold candidates, by the rules of `gold_ranks`."""
    greater, tied = counts[:2]
    if ties == "mean":
        ahead = (tied + 1) / (targets.n_best + 1) - 1
    elif ties == "min":
        ahead = np.zeros(len(greater))
    else:
        ahead = counts[2] if ties == "ordinal" else tied - targets.n_best
    return np.asarray(1 + greater + ahead, dtype=np.float64)
