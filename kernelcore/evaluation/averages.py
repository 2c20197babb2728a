"""Means over queries and folds, resamples of them, and what chance reaches."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from kernelcore.evaluation.metrics import chance_recall_at_k

Floats: TypeAlias = npt.NDArray[np.float64]
Integers: TypeAlias = npt.NDArray[np.int64]

_DRAWN_AT_ONCE = 1 << 20  # queries in the draws of a bootstrap: 8 MiB


def chance_by_query(n_candidates: Integers, n_relevant: Integers, k: npt.ArrayLike) -> Floats:
    """Return the recall at k of a random order for each query; NaN if nothing is relevant."""
    pairs = n_candidates * (int(n_relevant.max()) + 1) + n_relevant
    _, first, place = np.unique(pairs, return_index=True, return_inverse=True)
    shares = [
        chance_recall_at_k(int(n_candidates[i]), k, n_relevant=int(n_relevant[i]))
        if n_relevant[i]
        else np.full(np.shape(k), np.nan)
        for i in first
    ]
    return np.asarray(np.array(shares)[place], np.float64)


def mean_over_folds(name: str, values: Floats, fold: Integers | None) -> float:
    """Return the mean over the folds of the mean, or of the median for ``median_rank``."""
    parts = [values] if fold is None else [values[fold == f] for f in range(fold.max() + 1)]
    known = [part[~np.isnan(part)] for part in parts]
    middle = np.median if name == "median_rank" else np.mean
    return float(np.mean([middle(part) for part in known if part.size]))


def resampled_means(
    of: Mapping[str, Floats],
    fold: Integers | None,
    n_resamples: int,
    rng: np.random.Generator,
) -> Floats:
    """Return the means over resampled queries, one row per draw, one column per metric."""
    table = np.stack(list(of.values()))
    parts = [table] if fold is None else [table[:, fold == f] for f in range(fold.max() + 1)]
    drawn = np.zeros((n_resamples, len(of)))
    for part in parts:
        n_queries = part.shape[1]
        step = max(1, _DRAWN_AT_ONCE // n_queries)
        for start in range(0, n_resamples, step):
            here = drawn[start : start + step]
            times = np.zeros((len(here), n_queries))  # that each query is drawn
            for row in range(len(here)):
                places = rng.integers(n_queries, size=n_queries)
                times[row] = np.bincount(places, minlength=n_queries)
            for column, (name, values) in enumerate(zip(of, part, strict=True)):
                known = ~np.isnan(values)
                drawn_times = times if known.all() else times[:, known]
                middle = _weighted_medians if name == "median_rank" else _weighted_means
                here[:, column] += middle(values[known], drawn_times) / len(parts)
    return drawn


def _weighted_means(values: Floats, times: Floats) -> Floats:
    with np.errstate(invalid="ignore"):  # a draw may hold no query with a value
        return np.asarray(np.einsum("ij,j->i", times, values) / times.sum(axis=1))


def _weighted_medians(values: Floats, times: Floats) -> Floats:
    """Return the median of the values for each row of whole weights."""
    order = np.argsort(values, kind="stable")
    medians = np.full(len(times), np.nan)
    for row, counts in enumerate(np.cumsum(times[:, order], axis=1)):
        total = counts[-1]
        if total:
            middle = np.searchsorted(counts, ((total - 1) // 2, total // 2), side="right")
            medians[row] = values[order[middle]].mean()
    return medians
