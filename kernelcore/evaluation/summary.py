"""Summary of one result: every metric with its interval, the effect of ties, and chance."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from kernelcore._validation import check_integer, check_real, check_rng
from kernelcore.evaluation.metrics import RankingMetrics
from kernelcore.evaluation.table import Table

_Numbers: TypeAlias = dict[str, float]
_PLAIN = ("median rank", "mean rank", "MRR")  # what is not printed in percent


def summary_table(
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
    facts = (*labels, f"{result.n_images} images", f"{result.n_captions} captions")
    caption = (
        f"rsum {100 * result.rsum:.1f}; R@k, MAP, nDCG and rsum in percent",
        "ties: what they make in favour of the system less what they make against it",
        ", ".join(fact for fact in facts if fact),
        f"signature {result.signature}",
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
        best = _mean(_metrics_of(fold.with_ties("min")) for fold in folds)
        worst = _mean(_metrics_of(fold.with_ties("max")) for fold in folds)
        effects = {name: abs(best[name] - worst[name]) for name in values}
    chance = _mean(map(_chance_of, folds))
    return {
        name: (
            _text(name, value),
            f"{_text(name, low)} to {_text(name, high)}",
            _text(name, effects.get(name)),
            _text(name, chance.get(name), digits=2),
        )
        for (name, value), low, high in zip(values.items(), *ends, strict=True)
    }


def metrics_by_query(metrics: RankingMetrics) -> dict[str, npt.NDArray[np.float64]]:
    """Return what each query contributes: a metric is the mean of it, or the median."""
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


def _chance_of(metrics: RankingMetrics) -> _Numbers:
    """Return what a random order is expected to reach, where that has a short formula."""
    first = (metrics.n_candidates + 1) / (metrics.n_relevant + 1)
    return {
        **{f"R@{k}": share for k, share in metrics.chance_recall.items()},
        "mean rank": float(np.mean(first)),
    }


def _resampled(
    metrics: RankingMetrics, n_resamples: int, generator: np.random.Generator
) -> npt.NDArray[np.float64]:
    """Metrics of queries drawn anew, one row for each draw, as `bootstrap_interval` draws."""
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


def _text(name: str, value: float | None, *, digits: int = 1) -> str:
    if value is None:
        return ""
    if name == "MRR":
        return f"{value:.3f}"
    return f"{value:.1f}" if name in _PLAIN else f"{100 * value:.{digits}f}"
