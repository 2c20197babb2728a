"""Means over folds of a pool: the 1K protocol of COCO."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from kernelcore._validation import check_integer
from kernelcore.evaluation.metrics import RankingMetrics, relevance_of
from kernelcore.evaluation.result import RankedResult, RetrievalResult
from kernelcore.evaluation.table import Shown


@dataclass(frozen=True)
class FoldedMetrics(Shown):
    """Metrics of one direction, each the mean over folds of equally many images.

    Attributes
    ----------
    folds : tuple of RankingMetrics
        Metrics of each fold, all with the same tie rule and the same k.

    Raises
    ------
    TypeError, ValueError
        If there is no fold, something else is among them, or they do not belong together.
    """

    folds: tuple[RankingMetrics, ...]

    def __post_init__(self) -> None:
        folds = tuple(self.folds)
        for fold in folds:
            if not isinstance(fold, RankingMetrics):
                raise TypeError(f"folds must hold RankingMetrics, got {type(fold).__name__}")
        if len({(fold.ties, fold.ks) for fold in folds}) != 1:
            raise ValueError(
                f"folds must be at least one and share ties and ks, got {len(folds)} folds"
            )
        object.__setattr__(self, "folds", folds)

    @property
    def n_folds(self) -> int:
        """Number of folds."""
        return len(self.folds)

    @property
    def n_queries(self) -> int:
        """Queries of all folds together."""
        return sum(fold.n_queries for fold in self.folds)

    @property
    def n_candidates(self) -> int:
        """Candidates of all folds together; a query ranks those of its own fold."""
        return sum(fold.n_candidates for fold in self.folds)

    @property
    def ties(self) -> str:
        """The tie rule of the ranks."""
        return self.folds[0].ties

    @property
    def ks(self) -> tuple[int, ...]:
        """The k of the recalls that are reported."""
        return self.folds[0].ks

    @property
    def ranks(self) -> npt.NDArray[np.float64]:
        """Rank of the gold item of each query within its fold, fold after fold."""
        return np.concatenate([fold.ranks for fold in self.folds])

    @property
    def recall(self) -> dict[int, float]:
        """Mean recall at each of `ks`, as shares in [0, 1]."""
        return {k: _mean(fold.recall[k] for fold in self.folds) for k in self.ks}

    @property
    def median_rank(self) -> float:
        """Mean of the median ranks."""
        return _mean(fold.median_rank for fold in self.folds)

    @property
    def mean_rank(self) -> float:
        """Mean of the mean ranks."""
        return _mean(fold.mean_rank for fold in self.folds)

    @property
    def mean_reciprocal_rank(self) -> float:
        """Mean of the mean reciprocal ranks."""
        return _mean(fold.mean_reciprocal_rank for fold in self.folds)

    @property
    def mean_average_precision(self) -> float:
        """Mean over the folds; ValueError where the places of the gold items are not known."""
        return _mean(fold.mean_average_precision for fold in self.folds)

    @property
    def ndcg(self) -> dict[int, float]:
        """Mean nDCG at each of `ks`, in [0, 1]; ValueError as `mean_average_precision`."""
        return {k: _mean(fold.ndcg[k] for fold in self.folds) for k in self.ks}

    @property
    def chance_recall(self) -> dict[int, float]:
        """Recall at each of `ks` that a random order within the folds is expected to reach."""
        return {k: _mean(fold.chance_recall[k] for fold in self.folds) for k in self.ks}

    @property
    def has_places(self) -> bool:
        """Whether the places of the gold items are known."""
        return all(fold.has_places for fold in self.folds)

    @property
    def tie_effect(self) -> dict[int, float]:
        """What ties make of the recalls; see `RankingMetrics.tie_effect`."""
        return {k: _mean(fold.tie_effect[k] for fold in self.folds) for k in self.ks}

    def to_dict(self) -> dict[str, Any]:
        """Return the means, and all of every fold, as plain values."""
        return {
            "n_folds": self.n_folds,
            "n_queries": self.n_queries,
            "n_candidates": self.n_candidates,
            "ties": self.ties,
            **{f"R@{k}": share for k, share in self.recall.items()},
            "median_rank": self.median_rank,
            "mean_rank": self.mean_rank,
            "mean_reciprocal_rank": self.mean_reciprocal_rank,
            **relevance_of(self),
            "folds": [fold.to_dict() for fold in self.folds],
        }

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> FoldedMetrics:
        """Restore what `to_dict` gave; the metrics are computed anew from the ranks."""
        return cls(tuple(RankingMetrics.from_dict(fold) for fold in document["folds"]))


@dataclass(frozen=True)
class FoldedResult(RankedResult[FoldedMetrics]):
    """Both directions of one system, means over folds of a pool.

    Attributes
    ----------
    annotation : FoldedMetrics
        Queries are images, candidates are the captions of their fold.
    search : FoldedMetrics
        Queries are captions, candidates are the images of their fold.
    system, protocol, dataset, split, pool : str
        What was measured, on what, and which captions formed the pool. One line each.
    settings : mapping of str to Any
        Settings of the system: anything JSON can hold; NumPy scalars become plain numbers.
    version : str
        Version of kernelcore that computed the result.

    Raises
    ------
    TypeError, ValueError
        If the directions do not belong together, a label is not one line of text, or the
        settings do not fit into JSON.

    See Also
    --------
    evaluate_folds : Makes one from scores.
    """

    _kind = "folded retrieval result"
    _metrics = FoldedMetrics

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.annotation.n_folds != self.search.n_folds:
            raise ValueError(
                "annotation and search must have the same folds, got "
                f"{self.annotation.n_folds} and {self.search.n_folds}"
            )

    @property
    def n_folds(self) -> int:
        """Number of folds."""
        return self.annotation.n_folds


def over_folds(
    measure: Callable[[npt.NDArray[np.intp], npt.NDArray[np.intp]], RetrievalResult],
    owner: npt.NDArray[np.intp],
    n_folds: int,
    **labels: Any,
) -> FoldedResult:
    """Measure each fold of consecutive images, given positions of images and captions."""
    n_folds = check_integer("n_folds", n_folds, minimum=1)
    n_images = int(owner.max()) + 1
    if n_images % n_folds:
        raise ValueError(
            f"n_folds must divide the number of images ({n_images}), got {n_folds}"
        )
    results = []
    for images in np.split(np.arange(n_images), n_folds):
        captions = np.flatnonzero((owner >= images[0]) & (owner <= images[-1]))
        results.append(measure(images, captions))
    return FoldedResult(
        annotation=FoldedMetrics(tuple(result.annotation for result in results)),
        search=FoldedMetrics(tuple(result.search for result in results)),
        **labels,
    )


def _mean(values: Iterable[float]) -> float:
    return float(np.mean(list(values)))
