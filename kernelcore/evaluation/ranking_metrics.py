"""Ranks of one direction, and the numbers that follow from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from kernelcore._validation import (
    as_integer_array,
    as_list,
    check_choice,
    check_integer,
)
from kernelcore.evaluation._counting import TIE_RULES
from kernelcore.evaluation.metrics import (
    as_ranks,
    chance_recall_at_k,
    mean_rank,
    mean_reciprocal_rank,
    median_rank,
    recall_at_k,
)
from kernelcore.evaluation.places import GoldPlaces
from kernelcore.evaluation.ranked_relevance import RankedRelevance, ranked_by_counts
from kernelcore.evaluation.shown import Shown

_STORED = ("ranks", "n_relevant", "n_candidates", "ties", "ks")
_PLACES = ("greater", "tied", "before")


@dataclass(frozen=True, eq=False)
class RankingMetrics(Shown):
    """Ranks of the gold items in one direction, and the numbers that follow from them.

    Attributes
    ----------
    ranks : ndarray of float64, shape (n_queries,)
        Rank of the gold item of each query, from 1. Paired significance tests compare
        these.
    n_relevant : ndarray of int64, shape (n_queries,)
        Gold candidates of each query.
    n_candidates : int
        Candidates that each query ranks.
    ties : str
        The tie rule of `gold_ranks`.
    ks : tuple of int
        The k of the recalls that are reported, ascending.
    places : GoldPlaces, optional
        Where each gold candidate stands. MAP, nDCG and what ties make of the metrics need it;
        results of version 0.1 have none.

    Raises
    ------
    TypeError, ValueError
        If the ranks do not lie from 1 to `n_candidates`, or a part does not fit the others.

    Notes
    -----
    Under the rule "mean", average precision and nDCG are expectations over the random orders
    of tied candidates, as in `RankedRelevance`; the reciprocal rank is that of the mean rank.

    Examples
    --------
    >>> from kernelcore.evaluation import RankingMetrics
    >>> metrics = RankingMetrics([1, 3, 8, 40], [1, 1, 1, 1], n_candidates=100)
    >>> metrics.recall, metrics.median_rank
    ({1: 0.25, 5: 0.5, 10: 0.75}, 5.5)
    """

    ranks: npt.NDArray[np.float64]
    n_relevant: npt.NDArray[np.int64]
    n_candidates: int
    ties: str = "mean"
    ks: tuple[int, ...] = (1, 5, 10)
    places: GoldPlaces | None = None

    def __post_init__(self) -> None:
        ranks = np.array(as_ranks("ranks", self.ranks))
        relevant = np.array(
            as_integer_array("n_relevant", self.n_relevant, ndim=1, dtype=np.int64)
        )
        n_candidates = check_integer("n_candidates", self.n_candidates, minimum=1)
        check_choice("ties", self.ties, TIE_RULES)
        ks = tuple(sorted({check_integer("ks", k, minimum=1) for k in as_list("ks", self.ks)}))
        if ranks.max() > n_candidates:
            raise ValueError(
                f"ranks must be at most n_candidates ({n_candidates}), got {ranks.max()}"
            )
        if relevant.shape != ranks.shape:
            raise ValueError(
                f"n_relevant must have one entry per query ({len(ranks)}), got {len(relevant)}"
            )
        if not 1 <= relevant.min() <= relevant.max() <= n_candidates:
            raise ValueError(
                f"n_relevant must lie from 1 to n_candidates ({n_candidates}), "
                f"got values from {relevant.min()} to {relevant.max()}"
            )
        if self.places is not None:
            self._check_places(relevant, n_candidates)
        for name, value in (
            ("ranks", ranks),
            ("n_relevant", relevant),
            ("n_candidates", n_candidates),
            ("ks", ks),
        ):
            if isinstance(value, np.ndarray):
                value.flags.writeable = False
            object.__setattr__(self, name, value)

    @classmethod
    def of(
        cls, places: GoldPlaces, *, n_candidates: int, ties: str, ks: tuple[int, ...]
    ) -> RankingMetrics:
        """Rank the gold candidates by a rule of `gold_ranks`."""
        return cls(places.ranks(ties), places.n_gold, n_candidates, ties, ks, places)

    def _check_places(self, n_relevant: npt.NDArray[np.int64], n_candidates: int) -> None:
        if not isinstance(self.places, GoldPlaces):
            raise TypeError(f"places must be GoldPlaces, got {type(self.places).__name__}")
        if not np.array_equal(self.places.n_gold, n_relevant):
            raise ValueError("places must be of as many gold candidates as n_relevant says")
        last = int((self.places.greater + self.places.tied).max())
        if last > n_candidates:
            raise ValueError(f"places must end at n_candidates ({n_candidates}), got {last}")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RankingMetrics) and self.to_dict() == other.to_dict()

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        numbers = [f"R@{k}={share:.4f}" for k, share in self.recall.items()]
        return (
            f"RankingMetrics({', '.join([*numbers, f'median_rank={self.median_rank:.1f}'])}, "
            f"n_queries={self.n_queries}, n_candidates={self.n_candidates})"
        )

    @property
    def n_queries(self) -> int:
        """Number of queries."""
        return len(self.ranks)

    @property
    def recall(self) -> dict[int, float]:
        """Recall at each of `ks`, as shares in [0, 1]; see `recall_at_k`."""
        return {k: recall_at_k(self.ranks, k) for k in self.ks}

    @property
    def median_rank(self) -> float:
        """Plain median of the ranks."""
        return median_rank(self.ranks)

    @property
    def mean_rank(self) -> float:
        """Mean of the ranks."""
        return mean_rank(self.ranks)

    @property
    def mean_reciprocal_rank(self) -> float:
        """Mean of the reciprocal ranks."""
        return mean_reciprocal_rank(self.ranks)

    @property
    def chance_recall(self) -> dict[int, float]:
        """Recall at each of `ks` that a random order is expected to reach."""
        relevant, counts = np.unique(self.n_relevant, return_counts=True)
        return {
            k: float(
                counts
                @ chance_recall_at_k(self.n_candidates, k, n_relevant=relevant)
                / self.n_queries
            )
            for k in self.ks
        }

    @cached_property
    def relevance(self) -> RankedRelevance:
        """Where all gold candidates stand: average precision, nDCG and the like by query.

        Raises
        ------
        ValueError
            If `places` is not known.
        """
        if self.places is None:
            raise ValueError("places must be known for this metric, and this result has none")
        counts = (self.places.greater, self.places.tied, self.places.before)
        return ranked_by_counts(self.places.n_gold, counts, self.n_candidates, self.ties)

    @property
    def has_places(self) -> bool:
        """Whether `places` is known."""
        return self.places is not None

    @property
    def mean_average_precision(self) -> float:
        """Mean over the queries of the average precision; ValueError without `places`."""
        return float(np.mean(self.relevance.average_precision()))

    @property
    def ndcg(self) -> dict[int, float]:
        """Mean nDCG at each of `ks`, in [0, 1]; ValueError without `places`."""
        return {k: float(np.mean(self.relevance.ndcg_at_k(k))) for k in self.ks}

    def with_ties(self, ties: str) -> RankingMetrics:
        """Return the same candidates ranked by another rule of `gold_ranks`.

        Parameters
        ----------
        ties : {"mean", "min", "max", "ordinal"}

        Raises
        ------
        ValueError
            If `places` is not known, or not well enough for the rule "ordinal".

        Examples
        --------
        >>> from kernelcore.evaluation import evaluate
        >>> metrics = evaluate([[0.5, 0.5], [0.5, 0.7]]).annotation
        >>> metrics.ranks, metrics.with_ties("min").ranks, metrics.with_ties("max").ranks
        (array([1.5, 1. ]), array([1., 1.]), array([2., 1.]))
        """
        if self.places is None:
            raise ValueError("places must be known to change the rule of ties, got none")
        return replace(self, ranks=self.places.ranks(ties), ties=ties)

    @property
    def tie_effect(self) -> dict[int, float]:
        """Recall at each of `ks` with ties in favour of the system less that with ties against.

        0 where the order of tied candidates makes no difference; ValueError without `places`.
        """
        best, worst = (self.with_ties(rule).recall for rule in ("min", "max"))
        return {k: best[k] - worst[k] for k in self.ks}

    def recall_curve(self, max_k: int) -> npt.NDArray[np.float64]:
        """Recall at 1, 2, ..., `max_k`, shape (max_k,)."""
        ks = np.arange(1, check_integer("max_k", max_k, minimum=1) + 1)
        return np.searchsorted(np.sort(self.ranks), ks, side="right") / self.n_queries

    def chance_recall_curve(self, max_k: int) -> npt.NDArray[np.float64]:
        """Recall at 1, 2, ..., `max_k` expected of a random order of the candidates."""
        ks = np.arange(1, check_integer("max_k", max_k, minimum=1) + 1)
        sizes, counts = np.unique(self.n_relevant, return_counts=True)
        curves = chance_recall_at_k(self.n_candidates, ks, n_relevant=sizes[:, np.newaxis])
        return np.asarray(counts @ curves / self.n_queries)

    def to_dict(self) -> dict[str, Any]:
        """Return the metrics and the ranks as plain values; recalls are shares in [0, 1]."""
        return {
            "n_queries": self.n_queries,
            "n_candidates": self.n_candidates,
            "ties": self.ties,
            **{f"R@{k}": share for k, share in self.recall.items()},
            "median_rank": self.median_rank,
            "mean_rank": self.mean_rank,
            "mean_reciprocal_rank": self.mean_reciprocal_rank,
            **relevance_of(self),
            "ks": list(self.ks),
            "n_relevant": self.n_relevant.tolist(),
            "ranks": self.ranks.tolist(),
            **self._places_to_dict(),
        }

    def _places_to_dict(self) -> dict[str, list[int]]:
        found = {name: getattr(self.places, name, None) for name in _PLACES}
        return {name: array.tolist() for name, array in found.items() if array is not None}

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> RankingMetrics:
        """Restore what `to_dict` gave; the metrics are computed anew from the ranks."""
        places = None
        if "greater" in document:
            counted = {name: document[name] for name in _PLACES if name in document}
            places = GoldPlaces(document["n_relevant"], **counted)
        return cls(**{name: document[name] for name in _STORED}, places=places)


def relevance_of(metrics: Any) -> dict[str, float]:
    """MAP and nDCG by name, nothing where the places of the gold items are not known."""
    if not metrics.has_places:
        return {}
    return {
        "mean_average_precision": metrics.mean_average_precision,
        **{f"nDCG@{k}": value for k, value in metrics.ndcg.items()},
    }
