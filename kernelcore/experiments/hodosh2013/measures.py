"""What the claims of the paper are about: measures of the systems, query by query."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from kernelcore.evaluation import RelevanceResult, RetrievalResult
from kernelcore.experiments.hodosh2013.claims import Measure
from kernelcore.experiments.hodosh2013.correlations import (
    MEDIAN,
    PRECISION,
    RECALLS,
    SUCCESSES,
)
from kernelcore.experiments.hodosh2013.first_results import EXPERT_THRESHOLDS, FirstResultScores
from kernelcore.experiments.hodosh2013.judged import ALL
from kernelcore.experiments.hodosh2013.systems import BASELINE
from kernelcore.experiments.judged import PERFECT
from kernelcore.models.base import TASKS

Floats: TypeAlias = npt.NDArray[np.float64]

HITS, HITS_OF_TASK = "hits", f"hits of {BASELINE}"
EXPERT_MEAN = "mean expert score"
NO_ERROR = "first captions"
BY_THRESHOLD = {least: f"experts >= {least:.3g}" for least in EXPERT_THRESHOLDS[:-1]}
"""Names of successes at thresholds of the mean expert score; at 1 all succeed."""


def hits(result: RetrievalResult) -> Floats:
    """Count the recalls, of both tasks, that each image and its caption are a hit of."""
    of_tasks = [_hits_of(result, task) for task in TASKS]
    total: Floats = np.sum(of_tasks, axis=0)
    return total


def of_ranks(results: Mapping[str, RetrievalResult]) -> dict[str, Measure]:
    """Measures that follow from the ranks of the gold items."""
    found = {HITS: Measure({name: hits(result) for name, result in results.items()})}
    if BASELINE in results:
        by_task: dict[str, Floats] = {task: _hits_of(results[BASELINE], task) for task in TASKS}
        found[HITS_OF_TASK] = Measure(by_task)
    for task in TASKS:
        ranks = {name: getattr(result, task).ranks for name, result in results.items()}
        for name in RECALLS:
            k = int(name.removeprefix("R@"))
            recalled = {system: (of <= k).astype(np.float64) for system, of in ranks.items()}
            found[f"{task} {name}"] = Measure(recalled, "success")
        negated = {system: -of for system, of in ranks.items()}
        found[f"{task} {MEDIAN}"] = Measure(negated, "median")
    return found


def of_relevance(
    relevance: Mapping[str, RelevanceResult], results: Mapping[str, RetrievalResult]
) -> dict[str, Measure]:
    """Measures that follow from the judgments of the crowd.

    Those of first results have two values for each system: whether the first result is
    `relevant_not_gold`, and whether it is `gold`.
    """
    found = {}
    for task in TASKS:
        per_query = {name: getattr(of, task).per_query for name, of in relevance.items()}
        for name in SUCCESSES:
            successes = {system: values[name] for system, values in per_query.items()}
            found[f"{task} {name}"] = Measure(successes, "success")
        precision = {system: values[PRECISION] for system, values in per_query.items()}
        found[f"{task} {PRECISION}"] = Measure(precision)
        first: dict[str, Floats] = {}
        for system, values in per_query.items():
            is_gold = (getattr(results[system], task).ranks == 1).astype(np.float64)
            first[gold(system)] = is_gold
            first[relevant_not_gold(system)] = values["S@1"] * (1 - is_gold)
        found[first_results(task)] = Measure(first, "success")
    return found


def of_first_captions(
    experts: Mapping[str, FirstResultScores],
    texts: Mapping[tuple[str, str], Mapping[str, Floats]],
    results: Mapping[str, RetrievalResult],
) -> dict[str, Measure]:
    """Expert scores, BLEU and ROUGE of the captions ranked first."""
    found = {EXPERT_MEAN: Measure({name: of.scores for name, of in experts.items()})}
    for least, name in BY_THRESHOLD.items():
        successes = {
            system: np.where(np.isnan(of.scores), np.nan, of.at_least(least))
            for system, of in experts.items()
        }
        found[name] = Measure(successes, "success")
    without_error = {
        no_error(name): of.at_least(PERFECT).astype(np.float64) for name, of in experts.items()
    }
    is_gold = {
        gold(name): (results[name].annotation.ranks == 1).astype(np.float64) for name in experts
    }
    found[NO_ERROR] = Measure({**without_error, **is_gold}, "success")
    found |= {metric: Measure(by) for (of, metric), by in texts.items() if of == ALL}
    return found


def first_results(task: str) -> str:
    """Name of the measure of the first results of a task."""
    return f"{task}, first results"


def gold(system: str) -> str:
    """Name of a system's first results that are gold."""
    return f"{system}, gold"


def relevant_not_gold(system: str) -> str:
    """Name of a system's first results that are relevant and not gold."""
    return f"{system}, relevant and not gold"


def no_error(system: str) -> str:
    """Name of a system's first captions in which the experts find no error."""
    return f"{system}, no error"


def _hits_of(result: RetrievalResult, task: str) -> Floats:
    ranks = getattr(result, task).ranks
    total: Floats = np.sum([ranks <= k for k in result.ks], axis=0).astype(np.float64)
    return total
