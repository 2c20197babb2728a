"""Ranks of one direction, and the numbers that follow from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
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

_STORED = ("ranks", "n_relevant", "n_candidates", "ties", "ks")


@dataclass(frozen=True, eq=False)
class RankingMetrics:
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

    Raises
    ------
    TypeError, ValueError
        If the ranks do not lie from 1 to `n_candidates`, or a part does not fit the others.

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
        for name, value in (
            ("ranks", ranks),
            ("n_relevant", relevant),
            ("n_candidates", n_candidates),
            ("ks", ks),
        ):
            if isinstance(value, np.ndarray):
                value.flags.writeable = False
            object.__setattr__(self, name, value)

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
            "ks": list(self.ks),
            "n_relevant": self.n_relevant.tolist(),
            "ranks": self.ranks.tolist(),
        }

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> RankingMetrics:
        """Restore what `to_dict` gave; the metrics are computed anew from the ranks."""
        return cls(**{name: document[name] for name in _STORED})
