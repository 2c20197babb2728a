"""Human judgments of the first result of a system for each query."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from kernelcore._check import (
    Array,
    as_list,
    as_real_array,
    check_choice,
    check_real,
)
from kernelcore.datasets.judgments import RelevanceJudgments
from kernelcore.evaluation._inputs import as_rows
from kernelcore.evaluation.relevance import check_pool
from kernelcore.evaluation.table import Table

Unjudged: TypeAlias = Literal["below", "above", "skip"]

_TIES = ("max", "min", "ordinal")
_UNJUDGED = ("below", "above", "skip")
# Means of three scores from 1 to 4, from all experts saying 4 down to all saying 1.
EXPERT_THRESHOLDS = tuple(total / 3 for total in range(12, 2, -1))


@dataclass(frozen=True, eq=False, repr=False)
class FirstResultScores:
    """Score of the first result of every query, where somebody judged it.

    Attributes
    ----------
    scores : ndarray of float64, shape (n_queries,)
        NaN where the first result was not judged.

    Raises
    ------
    TypeError, ValueError
        If `scores` is not a vector of numbers, is empty or holds infinity.

    See Also
    --------
    first_result_scores : Makes one.

    Examples
    --------
    >>> from kernelcore.experiments.hodosh2013.first_results import FirstResultScores
    >>> first = FirstResultScores([4, 11 / 3, 1, float("nan")])
    >>> first
    FirstResultScores(3 of 4 first results judged, mean 2.889)
    >>> first.share_at_least(3), first.share_at_least(3, unjudged="above")
    (0.5, 0.75)
    """

    scores: npt.NDArray[np.float64]

    def __post_init__(self) -> None:
        scores = np.array(as_real_array("scores", self.scores, ndim=1), dtype=np.float64)
        if not scores.size or np.isinf(scores).any():
            raise ValueError("scores must hold at least one query and no infinity")
        scores.flags.writeable = False
        object.__setattr__(self, "scores", scores)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FirstResultScores) and np.array_equal(
            self.scores, other.scores, equal_nan=True
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        mean = f", mean {self.mean:.4g}" if self.n_judged else ""
        return (
            f"FirstResultScores({self.n_judged} of {self.n_queries} first results judged{mean})"
        )

    @property
    def n_queries(self) -> int:
        """Number of queries."""
        return len(self.scores)

    @property
    def n_judged(self) -> int:
        """Queries whose first result was judged."""
        return int(np.count_nonzero(~np.isnan(self.scores)))

    @property
    def coverage(self) -> float:
        """Share of the queries whose first result was judged."""
        return self.n_judged / self.n_queries

    @property
    def mean(self) -> float:
        """Mean score of the judged first results; NaN if there is none."""
        return float(np.nanmean(self.scores)) if self.n_judged else float("nan")

    def at_least(self, threshold: float) -> npt.NDArray[np.bool_]:
        """Whether each query's first result has at least this score; unjudged ones do not.

        Paired tests between systems compare these.
        """
        above: npt.NDArray[np.bool_] = self.scores >= check_real("threshold", threshold)
        return above

    def share_at_least(self, threshold: float, *, unjudged: Unjudged = "below") -> float:
        """Share of the queries whose first result has at least a score.

        Parameters
        ----------
        threshold : float
        unjudged : {"below", "above", "skip"}, default="below"
            What first results that nobody judged count as: below every threshold, a lower
            bound; above it, an upper bound; or left out, so that systems are no longer
            measured on the same queries.

        Returns
        -------
        float
            Share in [0, 1]; NaN if all are left out.
        """
        check_choice("unjudged", unjudged, _UNJUDGED)
        n_above = int(np.count_nonzero(self.at_least(threshold)))
        if unjudged == "skip":
            return n_above / self.n_judged if self.n_judged else float("nan")
        n_assumed = self.n_queries - self.n_judged if unjudged == "above" else 0
        return (n_above + n_assumed) / self.n_queries

    def to_dict(self) -> dict[str, Any]:
        """Return the scores as plain values, None where there is none."""
        scores = [None if np.isnan(score) else score for score in self.scores.tolist()]
        return {
            "n_queries": self.n_queries,
            "n_judged": self.n_judged,
            "mean": self.mean if self.n_judged else None,
            "scores": scores,
        }

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> FirstResultScores:
        """Restore what `to_dict` gave."""
        return cls(np.array(document["scores"], dtype=np.float64))


def first_result_scores(
    scores: npt.ArrayLike,
    judgments: RelevanceJudgments,
    *,
    task: Literal["annotation", "search"] = "annotation",
    ties: Literal["max", "min", "ordinal"] = "max",
) -> FirstResultScores:
    """Look up how people scored the first result of every query.

    Parameters
    ----------
    scores : array_like of shape (n_images, n_captions)
        Higher is better.
    judgments : RelevanceJudgments
        Judgments of the pool, as for `evaluate_relevance`.
    task : {"annotation", "search"}, default="annotation"
        Whether the queries are images or captions.
    ties : {"max", "min", "ordinal"}, default="max"
        Which of several candidates with the greatest score is first, in the sense of
        `gold_ranks`: "max" the worst, where one that nobody judged is worse than all others,
        so that ties never help a system; "min" the best; "ordinal" that of the lowest index.

    Returns
    -------
    FirstResultScores

    Raises
    ------
    TypeError, ValueError
        If `scores` is not a matrix of numbers or holds NaN, the judgments are of another
        pool, or an option is unknown.

    Notes
    -----
    The experts of Flickr8k [1]_ judged what the systems of the paper ranked first: there,
    every first result had a score. Another system ranks captions first that no expert saw.
    Its `FirstResultScores.coverage` has to stand beside its shares, and `share_at_least`
    gives bounds. Captions written for the image itself that no expert saw can be taken as
    perfect: ``expert.union(RelevanceJudgments.gold(flickr, score=4), both="first")``.

    References
    ----------
    .. [1] M. Hodosh, P. Young and J. Hockenmaier, "Framing image description as a ranking
       task: data, models and evaluation metrics", JAIR 47, 2013, section 5.1.

    Examples
    --------
    >>> from kernelcore.datasets import RelevanceJudgments
    >>> from kernelcore.experiments.hodosh2013.first_results import first_result_scores
    >>> expert = RelevanceJudgments.from_pairs("experts", [("a", "a#0"), ("b", "a#0")], [4, 2])
    >>> pool = expert.select(["a", "b"], ["a#0", "b#0"])
    >>> first_result_scores([[0.9, 0.1], [0.2, 0.8]], pool).scores
    array([ 4., nan])
    """
    matrix = as_rows("scores", scores).matrix()
    check_pool("judgments", judgments, matrix.shape)
    check_choice("task", task, ("annotation", "search"))
    check_choice("ties", ties, _TIES)
    queries, candidates = _first(matrix if task == "annotation" else matrix.T)
    pairs = (queries, candidates) if task == "annotation" else (candidates, queries)
    found = judgments.scores_of(*pairs)
    starts = np.flatnonzero(np.diff(queries, prepend=-1))
    if ties == "ordinal":
        return FirstResultScores(found[starts])
    choose = np.minimum if ties == "max" else np.maximum
    worst = np.where(np.isnan(found), -np.inf, found)
    chosen = choose.reduceat(worst, starts)
    return FirstResultScores(np.where(np.isneginf(chosen), np.nan, chosen))


def first_result_table(
    systems: Mapping[str, FirstResultScores],
    *,
    thresholds: Sequence[float] = EXPERT_THRESHOLDS,
    unjudged: Unjudged = "below",
) -> Table:
    """Tabulate the cumulative distribution of first results' scores, one row per system.

    Parameters
    ----------
    systems : mapping of str to FirstResultScores
        By name.
    thresholds : sequence of float, optional
        By default the means that three experts' scores can have, from 4 down to 1.
    unjudged : {"below", "above", "skip"}, default="below"
        As for `FirstResultScores.share_at_least`.

    Returns
    -------
    Table
        Shares in percent, after the share of first results that were judged.

    Raises
    ------
    TypeError, ValueError
        If there is no system, something else is among them, or an option is out of range.

    Examples
    --------
    >>> from kernelcore.experiments.hodosh2013.first_results import (
    ...     FirstResultScores, first_result_table
    ... )
    >>> first = FirstResultScores([4, 3, 1, float("nan")])
    >>> print(first_result_table({"toy": first}, thresholds=(4, 11 / 3, 3)))
    system  judged  mean    >= 4  >= 3.67  >= 3
    toy       75.0  2.67    25.0     25.0  50.0
    Queries whose first result has at least a score, in percent; unjudged counts as below
    """
    if not isinstance(systems, Mapping):
        raise TypeError(f"systems must be a mapping, got {type(systems).__name__}")
    if not systems:
        raise ValueError("systems must hold at least one system, got none")
    thresholds = [
        check_real("thresholds", value) for value in as_list("thresholds", thresholds)
    ]
    rows = []
    for name, first in systems.items():
        if not isinstance(first, FirstResultScores):
            raise TypeError(
                f"systems must map to FirstResultScores, got {type(first).__name__}"
            )
        shares = [first.share_at_least(value, unjudged=unjudged) for value in thresholds]
        cells = [f"{100 * first.coverage:.1f}", f"{first.mean:.2f}"]
        rows.append((name, *cells, *(f"{100 * share:.1f}" for share in shares)))
    meaning = {"below": "counts as below", "above": "counts as above", "skip": "is left out"}
    return Table(
        columns=("system", "judged", "mean", *(f">= {value:.3g}" for value in thresholds)),
        rows=tuple(rows),
        caption="Queries whose first result has at least a score, in percent; "
        f"unjudged {meaning[unjudged]}",
    )


def _first(matrix: Array) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Row and column of every greatest score of a row, row by row."""
    best = matrix.max(axis=1)
    if np.isnan(best).any():
        raise ValueError(
            f"scores must not hold NaN, got NaN for query {np.flatnonzero(np.isnan(best))[0]}"
        )
    queries, candidates = np.nonzero(matrix == best[:, np.newaxis])
    return queries, candidates
