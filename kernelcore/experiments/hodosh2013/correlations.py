"""Rank correlation of metrics over the systems."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.stats import kendalltau

from kernelcore.evaluation import Result, Table
from kernelcore.experiments.hodosh2013.kappas import resamples, standard_error
from kernelcore.experiments.sections import spearman
from kernelcore.models.base import TASKS
from kernelcore.report import Section

_Floats: TypeAlias = npt.NDArray[np.float64]

MEDIAN, PRECISION = "median_rank", "R-precision"
RECALLS = ("R@1", "R@5", "R@10")
SUCCESSES = ("S@1", "S@5", "S@10")


class Correlation(NamedTuple):
    """Rank correlation of two metrics over the systems.

    Attributes
    ----------
    spearman, kendall : float
        NaN where a metric ties all systems.
    drawn : ndarray of float64, shape (n_resamples,)
        Spearman's rho in resamples of the queries.
    """

    spearman: float
    kendall: float
    drawn: _Floats

    @property
    def interval(self) -> tuple[float, float]:
        """95 % interval of rho: normal in Fisher's z, with the error over resamples."""
        z, half = fisher_z(self.spearman), 1.96 * standard_error(fisher_z(self.drawn))
        return float(np.tanh(z - half)), float(np.tanh(z + half))


@dataclass(frozen=True, eq=False)
class Orders:
    """Metrics of all systems, and the same metrics in resamples of the queries.

    Attributes
    ----------
    observed : mapping of (task, metric) to ndarray, shape (n_systems,)
        More is better: the median rank is negative.
    drawn : mapping of (task, metric) to ndarray, shape (n_resamples, n_systems)
        An image and its caption are one query: both tasks have the same resamples.
    """

    observed: Mapping[tuple[str, str], _Floats]
    drawn: Mapping[tuple[str, str], _Floats]

    @classmethod
    def of(
        cls,
        results: Mapping[str, Result],
        relevance: Mapping[str, Result],
        texts: Mapping[tuple[str, str], Mapping[str, _Floats]],
    ) -> Orders:
        """Measure all systems, on all queries and on resamples."""
        observed: dict[tuple[str, str], _Floats] = {}
        drawn: dict[tuple[str, str], _Floats] = {}
        n_queries = int(next(iter(results.values())).facts["n_images"])
        counts = resamples(n_queries)
        for task in TASKS:
            ranks = np.stack([own.values[task]["mean_rank"] for own in results.values()])
            values = {f"R@{k}": (ranks <= k).astype(np.float64) for k in (1, 5, 10)}
            values |= {
                name: np.stack([relevance[of].values[task][name] for of in results])
                for name in (*SUCCESSES, PRECISION, "mean_average_precision")
            }
            if task == "annotation":
                values |= {
                    f"{metric}, {references}": np.stack([by[name] for name in results])
                    for (references, metric), by in texts.items()
                }
            for name, of in values.items():
                observed[task, name] = of.mean(axis=1)
                drawn[task, name] = counts @ of.T / n_queries
            observed[task, MEDIAN] = -np.median(ranks, axis=1)
            drawn[task, MEDIAN] = -_medians(ranks, counts)
        return cls(observed, drawn)

    def correlation(self, task: str, first: str, second: str) -> Correlation:
        """Correlate two metrics of a task."""
        keys = (task, first), (task, second)
        observed = [self.observed[key] for key in keys]
        kendall = kendalltau(*observed).statistic
        return Correlation(
            float(spearman(*observed)), kendall, spearman(*(self.drawn[key] for key in keys))
        )


def correlation_section(orders: Orders) -> Section:
    """Tabulate the correlation of R@k with S@k, and of all metrics with R-precision."""
    n_systems = len(next(iter(orders.observed.values())))
    pairs = list(zip(RECALLS, SUCCESSES, strict=True))
    with_successes = [
        (task, f"{first} and {second}", *_cells(orders.correlation(task, first, second)))
        for task in TASKS
        for first, second in pairs
    ]
    with_precision = [
        (task, name, *_cells(orders.correlation(task, name, PRECISION)))
        for task in TASKS
        for name in (
            *RECALLS,
            MEDIAN,
            *(n for t, n in orders.observed if _is_other(t, n, task)),
        )
    ]
    columns = ("task", "metrics", "Spearman", "low", "high", "Kendall")
    return Section(
        "Do the metrics agree on the order of the systems?",
        (
            f"Rank correlations over {n_systems} systems: of R@k with S@k, and of each metric "
            "with R-precision. The 95 % interval of Spearman's rho is normal in Fisher's z, "
            "with the standard error over resamples of the queries. The relevance is that of "
            "the crowd, whose pool was made by the systems of the paper.",
        ),
        (
            Table(columns=columns, rows=tuple(with_successes), n_labels=2),
            Table(
                columns=columns,
                rows=tuple(with_precision),
                n_labels=2,
                caption="with R-precision",
            ),
        ),
    )


def fisher_z(rho: npt.ArrayLike) -> _Floats:
    """Return the inverse hyperbolic tangent of correlations; 1 counts as 0.9999."""
    z: _Floats = np.arctanh(np.clip(rho, -0.9999, 0.9999))
    return z


def _is_other(task: str, name: str, wanted: str) -> bool:
    """Whether a metric is one of those that the paper does not compare with R-precision."""
    return task == wanted and name not in (*RECALLS, MEDIAN, PRECISION)


def _medians(ranks: _Floats, counts: npt.NDArray[np.int64]) -> _Floats:
    """Return the median rank in each resample, shape (n_resamples, n_systems)."""
    queries = np.arange(ranks.shape[1])
    return np.stack([np.median(ranks[:, np.repeat(queries, of)], axis=1) for of in counts])


def _cells(found: Correlation) -> tuple[str, ...]:
    low, high = found.interval
    return tuple(f"{value:.3f}" for value in (found.spearman, low, high, found.kendall))
