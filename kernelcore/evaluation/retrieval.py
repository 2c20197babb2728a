"""Results of image annotation and search: of one pool, or means over its folds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from kernelcore._check import check_integer, check_real, check_rng
from kernelcore.evaluation.metrics import (
    RankingMetrics,
    TaskMetrics,
    rank_numbers,
    relevance_of,
)
from kernelcore.evaluation.published import TASKS
from kernelcore.evaluation.result import Column, ResultTable, TwoTaskResult, name_of
from kernelcore.evaluation.table import Shown, Table

_Numbers: TypeAlias = dict[str, float]
_NOT_SHARES = ("median rank", "mean rank", "MRR")
_COLUMNS = {
    "median_rank": Column("median_rank", "median", is_share=False, best=min),
    "mean_rank": Column("mean_rank", "mean rank", is_share=False, best=min),
    "mean_reciprocal_rank": Column("mean_reciprocal_rank", "MRR"),
}


class RankedMetrics(TaskMetrics, Protocol):
    """Metrics of one task, as results of ranking use them."""

    @property
    def ranks(self) -> npt.NDArray[np.float64]: ...  # noqa: D102
    @property
    def recall(self) -> dict[int, float]: ...  # noqa: D102


_Ranked = TypeVar("_Ranked", bound=RankedMetrics)


@dataclass(frozen=True)
class RankedResult(TwoTaskResult[_Ranked]):
    """Base of results of ranking: sum of recalls and summary."""

    _options = ("rank",)
    _unit = "R@k in percent"

    @property
    def rsum(self) -> float:
        """Sum of the recalls of both tasks, as shares: at most 6 for three k (600 percent)."""
        return sum(self.annotation.recall.values()) + sum(self.search.recall.values())

    def _numbers(self) -> dict[str, Any]:
        return {"rsum": self.rsum, **super()._numbers()}

    def summary(
        self,
        *,
        n_resamples: int = 1000,
        confidence: float = 0.95,
        rng: np.random.Generator | int | None = 0,
    ) -> Table:
        """Return every metric with its interval, the effect of ties, and chance.

        Parameters
        ----------
        n_resamples : int, default=1000
            How many times the queries are drawn anew for the bootstrap intervals.
        confidence : float, default=0.95
            Share of the resampled values inside an interval, between 0 and 1.
        rng : numpy.random.Generator, int or None, default=0
            Source of the draws; an int is a seed.

        Returns
        -------
        Table
            One row per metric and, for each task, the value, the percentile interval of
            `bootstrap_interval`, the difference between ties in favour of the system and
            against it, and what a random order is expected to reach. Recalls, MAP and nDCG
            are in percent. What is not known is left empty.

        Raises
        ------
        TypeError, ValueError
            If an option is out of range.

        Notes
        -----
        An interval speaks of other queries from the same source. Captions of one image are
        drawn as if they were independent, which makes the intervals of search narrow.

        Examples
        --------
        >>> from kernelcore.evaluation import evaluate
        >>> print(evaluate([[0.9, 0.4], [0.9, 0.3]], ks=(1,)).summary())
                     ------------ annotation ------------  -------------- search --------------
        metric       value             95%   ties  chance  value             95%   ties  chance
        R@1           50.0    0.0 to 100.0    0.0   50.00    0.0      0.0 to 0.0   50.0   50.00
        ...
        rsum 50.0; R@k, MAP, nDCG and rsum in percent;
        ...
        """
        return _summary_table(self, n_resamples, confidence, rng)

    def _columns(self, table: ResultTable) -> list[Column]:
        recalls = [Column(f"R@{k}", f"R@{k}") for k in self.ks]
        return [*recalls, self._column(f"{table.rank}_rank")]

    @classmethod
    def _column(cls, metric: str) -> Column:
        return _COLUMNS.get(metric) or super()._column(metric)

    @classmethod
    def _notes(cls, results: Sequence[Any], table: ResultTable) -> str:
        lines = (_chance_line(results), _tie_line(results))
        return "".join(f";\n{line}" for line in lines if line)


@dataclass(frozen=True)
class RetrievalResult(RankedResult[RankingMetrics]):
    """Both directions of one system on one pool of images and captions.

    Attributes
    ----------
    annotation : RankingMetrics
        Queries are images, candidates are captions.
    search : RankingMetrics
        Queries are captions, candidates are images.
    system, protocol, dataset, split, pool : str
        The system, the protocol, the dataset, its split and the pool. One line each.
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
    evaluate : Makes one from a matrix of scores.

    Examples
    --------
    >>> from kernelcore.evaluation import RetrievalResult, evaluate
    >>> result = evaluate([[0.9, 0.4], [0.1, 0.3]], system="toy", split="test")
    >>> RetrievalResult.from_json(result.to_json()) == result
    True
    """

    _kind = "retrieval result"
    _metrics = RankingMetrics


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
        return {k: _mean_of(fold.recall[k] for fold in self.folds) for k in self.ks}

    @property
    def median_rank(self) -> float:
        """Mean of the median ranks."""
        return _mean_of(fold.median_rank for fold in self.folds)

    @property
    def mean_rank(self) -> float:
        """Mean of the mean ranks."""
        return _mean_of(fold.mean_rank for fold in self.folds)

    @property
    def mean_reciprocal_rank(self) -> float:
        """Mean of the mean reciprocal ranks."""
        return _mean_of(fold.mean_reciprocal_rank for fold in self.folds)

    @property
    def mean_average_precision(self) -> float:
        """Mean over the folds; ValueError where the places of the gold items are not known."""
        return _mean_of(fold.mean_average_precision for fold in self.folds)

    @property
    def ndcg(self) -> dict[int, float]:
        """Mean nDCG at each of `ks`, in [0, 1]; ValueError as `mean_average_precision`."""
        return {k: _mean_of(fold.ndcg[k] for fold in self.folds) for k in self.ks}

    @property
    def chance_recall(self) -> dict[int, float]:
        """Recall at each of `ks` that a random order within the folds is expected to reach."""
        return {k: _mean_of(fold.chance_recall[k] for fold in self.folds) for k in self.ks}

    @property
    def mean(self) -> dict[str, float]:
        """The recalls, ``R@k``, and the means of the ranks by name."""
        return rank_numbers(self)

    @property
    def has_places(self) -> bool:
        """Whether the places of the gold items are known."""
        return all(fold.has_places for fold in self.folds)

    @property
    def tie_effect(self) -> dict[int, float]:
        """How much ties change the recalls; see `RankingMetrics.tie_effect`."""
        return {k: _mean_of(fold.tie_effect[k] for fold in self.folds) for k in self.ks}

    def to_dict(self) -> dict[str, Any]:
        """Return the means, and all of every fold, as plain values."""
        return {
            "n_folds": self.n_folds,
            "n_queries": self.n_queries,
            "n_candidates": self.n_candidates,
            "ties": self.ties,
            **self.mean,
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
        The system, the protocol, the dataset, its split and the pool. One line each.
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
    evaluate : Makes one, with `n_folds`.
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


def _mean_of(values: Iterable[float]) -> float:
    return float(np.mean(list(values)))


def _chance_line(results: Sequence[RankedResult[Any]]) -> str:
    """Return the recalls of a random order, once for all results of one pool."""
    if not any(result.ks for result in results):
        return ""
    systems: dict[str, list[str]] = {}
    for result in results:
        shares = ", ".join(
            " ".join([task, *(f"{100 * share:.3g}" for share in chance.values())])
            for task in TASKS
            if (chance := getattr(result, task).chance_recall)
        )
        systems.setdefault(shares, []).append(name_of(result))
    if len(systems) == 1:
        return f"chance: {next(iter(systems))}"
    return ";\n".join(f"chance of {', '.join(of)}: {shares}" for shares, of in systems.items())


def _tie_line(results: Sequence[RankedResult[Any]]) -> str:
    """Return the largest effect of ties on a recall, if it is known."""
    directions = [getattr(result, task) for result in results for task in TASKS]
    effects = [
        effect
        for direction in directions
        if direction.has_places
        for effect in direction.tie_effect.values()
    ]
    return f"ties move R@k by at most {100 * max(effects):.1f}" if effects else ""


def _summary_table(
    result: Any,
    n_resamples: int,
    confidence: float,
    rng: np.random.Generator | int | None,
) -> Table:
    """Return the table of a ranked result; see `RankedResult.summary`."""
    n_resamples = check_integer("n_resamples", n_resamples, minimum=1)
    confidence = check_real("confidence", confidence, minimum=0.0, maximum=1.0)
    generator = check_rng("rng", rng)
    sides = []
    for metrics in (result.annotation, result.search):
        folds = getattr(metrics, "folds", (metrics,))
        sides.append(_cells_of(folds, n_resamples, confidence, generator))
    headings = ("value", f"{100 * confidence:g}%", "ties", "chance")
    labels = (result.system, result.protocol, result.dataset, result.split, result.pool)
    facts = (
        *labels,
        f"{result.n_images} images",
        f"{result.n_captions} captions",
        f"ties {result.ties}",
        f"kernelcore {result.version}",
    )
    caption = (
        f"rsum {100 * result.rsum:.1f}; R@k, MAP, nDCG and rsum in percent",
        "ties: what they make in favour of the system less what they make against it",
        ", ".join(fact for fact in facts if fact),
    )
    return Table(
        columns=("metric", *headings, *headings),
        rows=tuple((name, *cells, *sides[1][name]) for name, cells in sides[0].items()),
        groups=(("", 1), ("annotation", len(headings)), ("search", len(headings))),
        caption=";\n".join(caption),
    )


def _cells_of(
    folds: tuple[RankingMetrics, ...],
    n_resamples: int,
    confidence: float,
    generator: np.random.Generator,
) -> dict[str, tuple[str, str, str, str]]:
    """Return value, interval, effect of ties and chance of each metric as text."""
    values = _mean(map(_metrics_of, folds))
    draws = np.mean([_resampled(fold, n_resamples, generator) for fold in folds], axis=0)
    ends = np.quantile(draws, [(1 - confidence) / 2, (1 + confidence) / 2], axis=0)
    effects: _Numbers = {}
    if all(fold.has_places for fold in folds):
        best = _mean(_metrics_of(_by_rule(fold, "min")) for fold in folds)
        worst = _mean(_metrics_of(_by_rule(fold, "max")) for fold in folds)
        effects = {name: abs(best[name] - worst[name]) for name in values}
    chance = _mean(map(_chance_numbers, folds))
    return {
        name: (
            _summary_text(name, value),
            f"{_summary_text(name, low)} to {_summary_text(name, high)}",
            _summary_text(name, effects.get(name)),
            _summary_text(name, chance.get(name), digits=2),
        )
        for (name, value), low, high in zip(values.items(), *ends, strict=True)
    }


def _by_rule(metrics: RankingMetrics, ties: str) -> RankingMetrics:
    """Rank the same candidates by another rule of ties; their places are known."""
    assert metrics.places is not None
    return replace(metrics, ranks=metrics.places.ranks(ties), ties=ties)


def metrics_by_query(metrics: RankingMetrics) -> dict[str, npt.NDArray[np.float64]]:
    """Return a value for each query and metric; the metric is their mean or median."""
    ranks = metrics.ranks
    numbers = {f"R@{k}": (ranks <= k).astype(np.float64) for k in metrics.ks}
    numbers |= {"median rank": ranks, "mean rank": ranks, "MRR": 1 / ranks}
    if metrics.has_places:
        numbers["MAP"] = metrics.relevance.average_precision()
        numbers |= {f"nDCG@{k}": metrics.relevance.ndcg_at_k(k) for k in metrics.ks}
    return numbers


def _metrics_of(metrics: RankingMetrics) -> _Numbers:
    return {
        name: float(np.median(values) if name == "median rank" else np.mean(values))
        for name, values in metrics_by_query(metrics).items()
    }


def _chance_numbers(metrics: RankingMetrics) -> _Numbers:
    """Return the expected metrics of a random order, if they have a short formula."""
    first = (metrics.n_candidates + 1) / (metrics.n_relevant + 1)
    return {
        **{f"R@{k}": share for k, share in metrics.chance_recall.items()},
        "mean rank": float(np.mean(first)),
    }


def _resampled(
    metrics: RankingMetrics, n_resamples: int, generator: np.random.Generator
) -> npt.NDArray[np.float64]:
    """Return the metrics of resampled queries, one row per draw, as `bootstrap_interval`."""
    numbers = metrics_by_query(metrics)
    n_queries = metrics.n_queries
    table = np.stack(list(numbers.values()))
    median = list(numbers).index("median rank")
    order = np.argsort(metrics.ranks, kind="stable")
    middle = ((n_queries - 1) // 2, n_queries // 2)
    drawn = np.empty((n_resamples, len(numbers)))
    for number in range(n_resamples):
        times = np.bincount(
            generator.integers(n_queries, size=n_queries), minlength=n_queries
        ).astype(np.float64)
        drawn[number] = np.einsum("ij,j->i", table, times) / n_queries
        places = np.searchsorted(np.cumsum(times[order]), middle, side="right")
        drawn[number, median] = metrics.ranks[order[places]].mean()
    return drawn


def _mean(folds: Any) -> _Numbers:
    every = list(folds)
    return {name: float(np.mean([fold[name] for fold in every])) for name in every[0]}


def _summary_text(name: str, value: float | None, *, digits: int = 1) -> str:
    if value is None:
        return ""
    if name == "MRR":
        return f"{value:.3f}"
    return f"{value:.1f}" if name in _NOT_SHARES else f"{100 * value:.{digits}f}"
