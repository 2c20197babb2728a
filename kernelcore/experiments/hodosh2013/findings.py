"""The sections of the page, from the results of all systems and the judgments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import erfc, sqrt

import numpy as np

from kernelcore.evaluation import Result, ResultTable, compare
from kernelcore.evaluation.table import Table
from kernelcore.experiments.hodosh2013.ablation import SYSTEMS_COMPARED, ablation_section
from kernelcore.experiments.hodosh2013.correlations import (
    PRECISION,
    SUCCESSES,
    Orders,
    correlation_section,
)
from kernelcore.experiments.hodosh2013.judged import RANDOM, CaptionPool, Judgments
from kernelcore.experiments.hodosh2013.judged_systems import JudgedSystems
from kernelcore.experiments.hodosh2013.kappas import Floats
from kernelcore.experiments.hodosh2013.systems import (
    BASELINE,
    PUBLISHED,
    PUBLISHED_ON,
    SYSTEMS,
)
from kernelcore.experiments.scores import Scores, hub_corrected_name, printed
from kernelcore.experiments.sections import recall_cutoffs
from kernelcore.models.base import TASKS
from kernelcore.report import Section

N_PUBLISHED = 1000
"""Queries of each task behind the published figures."""


def make_sections(
    results: Sequence[Result],
    scores: Mapping[str, Scores],
    pool: CaptionPool,
    judgments: Judgments | None,
    *,
    elsewhere: Sequence[Result],
    n_threads: int | None,
) -> list[Section]:
    """Make the sections that the systems of the run and the judgments allow.

    Parameters
    ----------
    results : sequence of Result
        Of the systems that the tables shall show.
    scores : mapping of str to Scores
        By system.
    pool : CaptionPool
    judgments : Judgments or None
    elsewhere : sequence of Result
        Results of some systems on another pool.
    n_threads : int or None
    """
    named = {result.system: result for result in results}
    first = results[0]
    baseline = BASELINE if BASELINE in named else [r for r in named if r in SYSTEMS][-1]
    people = None
    if judgments is not None:
        labels = {name: getattr(first, name) for name in ("dataset", "split", "pool")}
        people = JudgedSystems.of(_by_result(scores, named), judgments, pool, labels)
    sections: list[Section] = []
    if (first.split, first.pool) == PUBLISHED_ON:
        sections += published_sections(results)
    if elsewhere:
        both = [result for other in elsewhere for result in (named[other.system], other)]
        sections.append(
            Section(
                "Another pool",
                ("The results depend on the caption of each image that is in the pool.",),
                (ResultTable(both).to_table(),),
            )
        )
    if people is not None:
        sections += people.system_sections(baseline, n_threads=n_threads)
    if len(results) > 1:
        sections.append(significance_section(results, people, baseline, n_threads=n_threads))
    # Features and metrics are compared over the systems of the paper.
    own = {name: named[name] for name in SYSTEMS if name in named}
    if set(SYSTEMS_COMPARED) <= set(own):
        sections.append(_ablation(own, people, n_threads))
    if people is not None and len(own) > 2:
        orders = Orders.of(own, people.relevance, people.texts)
        sections.append(correlation_section(orders))
    if people is not None:
        sections += people.judgment_sections()
    return sections


def published_sections(results: Sequence[Result]) -> list[Section]:
    """Compare the paper's best system with its published figures, if it was run."""
    [known] = PUBLISHED
    names = [
        of(name) for name in (BASELINE, printed(BASELINE)) for of in (str, hub_corrected_name)
    ]
    rows = []
    for result in results:
        if result.system not in names:
            continue
        for task in TASKS:
            ours, theirs = result.mean[task], known.values[task]
            n_queries = len(result.values[task]["mean_rank"])
            for k in recall_cutoffs(result):
                own, share = ours[f"R@{k}"], theirs[f"R@{k}"]
                z, p = shares_test(own, n_queries, share, N_PUBLISHED)
                cells = [f"{100 * of:.1f}" for of in (own, share)]
                difference = f"{100 * (own - share):+.1f}"
                rows.append(
                    (result.system, task, f"R@{k}", *cells, difference, f"{z:.2f}", f"{p:.2g}")
                )
            median = theirs["median_rank"]
            cells = [f"{ours['median_rank']:.1f}", f"{median:.1f}"]
            difference = f"{ours['median_rank'] - median:+.1f}"
            rows.append((result.system, task, "median_rank", *cells, difference, "", ""))
    if not rows:
        return []
    columns = ("system", "task", "metric", "here", "published", "difference", "z", "p")
    return [
        Section(
            "Comparison with the paper",
            (
                f"Of the tables of the paper we know one row, {BASELINE}. It was read in table "
                "2 of Karpathy et al. (2014). The photos of the paper were larger. Its "
                "features, its spelling dictionary and its grid of settings are not published "
                "in full.",
                "The test is an unpaired z test of two shares, because the published ranks of "
                "single queries are not known. Both figures are about the same photos, so a "
                "paired test could find smaller differences.",
            ),
            (Table(columns=columns, rows=tuple(rows), n_labels=3),),
        )
    ]


def shares_test(
    first: float, n_first: int, second: float, n_second: int
) -> tuple[float, float]:
    r"""Return z and the two-sided p-value of the unpaired test that two shares are equal.

    .. math:: z = \frac{p_1 - p_2}{\sqrt{p (1 - p) (1 / n_1 + 1 / n_2)}}, \qquad
        p = \frac{n_1 p_1 + n_2 p_2}{n_1 + n_2}
    """
    pooled = (n_first * first + n_second * second) / (n_first + n_second)
    if pooled in (0, 1):
        return 0.0, 1.0
    z = (first - second) / sqrt(pooled * (1 - pooled) * (1 / n_first + 1 / n_second))
    return z, erfc(abs(z) / sqrt(2))


def significance_section(
    results: Sequence[Result],
    people: JudgedSystems | None,
    baseline: str,
    *,
    n_threads: int | None,
) -> Section:
    """Test the difference of every system to one of them, beside a random order."""
    relevance: Mapping[str, Result] = {} if people is None else people.relevance
    compared = list(results)
    if relevance:
        more = (*SUCCESSES, PRECISION)
        compared = [
            replace(
                of,
                values={
                    task: dict(own)
                    | {metric: relevance[of.system].values[task][metric] for metric in more}
                    for task, own in of.values.items()
                },
                shown=(*of.columns, *more),
            )
            for of in results
        ]
    comparison = compare(compared, baseline=baseline, rng=0, n_threads=n_threads)
    random = []
    for metric in comparison.metrics:
        expected = results[0].chance[metric.task]
        if people is not None:
            expected |= people.chance[metric.task]
        if metric.name == "median_rank":
            n_candidates = results[0].n_candidates[metric.task][0]
            random.append(f"{(n_candidates + 1) / 2:.1f}")
        else:
            random.append(f"{100 * expected[metric.name]:.1f}")
    table = comparison.to_table()
    return Section(
        f"Differences to {baseline}",
        (
            "The tests are McNemar's exact test for R@k and S@k, and Fisher's randomisation "
            "test with 100,000 reassignments for medians and R-precision. "
            "The p-values are not corrected for multiple tests. The last row is what a random "
            "order is expected to reach.",
        ),
        (replace(table, rows=(*table.rows, (RANDOM, *random))),),
    )


def _by_result(scores: Mapping[str, Scores], named: Mapping[str, Result]) -> dict[str, Scores]:
    """Return the scores behind each result, those corrected for hubs by their own names."""
    found = {
        name: Scores(annotation, search, of.settings)
        for system, of in scores.items()
        for name, annotation, search in of.variants(system)
    }
    return {name: found[name] for name in named}


def _ablation(
    own: Mapping[str, Result], people: JudgedSystems | None, n_threads: int | None
) -> Section:
    measures: dict[str, dict[str, dict[str, Floats]]] = {}
    if people is not None:
        measures["R-precision in percent"] = {
            task: {name: people.relevance[name].values[task][PRECISION] for name in own}
            for task in TASKS
        }
    measures["Sum of R@1, R@5 and R@10 of both tasks in percent"] = {
        "sum": {name: _hits(result) for name, result in own.items()}
    }
    return ablation_section(measures, n_threads=n_threads)


def _hits(result: Result) -> Floats:
    """Count the recalls, of both tasks, that each image and its caption are a hit of."""
    total: Floats = np.sum(
        [result.values[task][f"R@{k}"] for task in TASKS for k in recall_cutoffs(result)],
        axis=0,
    )
    return total
