"""The sections of the page: published figures, comparisons, ablations, correlations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from kernelcore.evaluation import (
    Published,
    RelevanceResult,
    ResultTable,
    RetrievalResult,
    Table,
    compare,
)
from kernelcore.evaluation.significance import rank_correlation
from kernelcore.experiments.hodosh2013.claims import Draws, check_claims, claims_section
from kernelcore.experiments.hodosh2013.judged import (
    CaptionPool,
    Judgments,
    agreement_section,
    crowd_section,
    expert_section,
    relevance_results,
    text_scores,
    text_section,
)
from kernelcore.experiments.hodosh2013.systems import (
    BASELINE,
    CHOICES,
    PUBLISHED,
    PUBLISHED_ON,
    SYSTEMS,
    System,
)
from kernelcore.experiments.scores import Scores
from kernelcore.models.base import TASKS
from kernelcore.report import Section

NOT_AVAILABLE = "not available"

_Values = npt.NDArray[np.float64]


def make_sections(
    results: Sequence[RetrievalResult],
    scores: Mapping[str, Scores],
    pool: CaptionPool,
    judgments: Judgments | None,
    *,
    elsewhere: Sequence[RetrievalResult],
    n_threads: int | None,
) -> list[Section]:
    """Make the sections that the systems of the run and the judgments allow.

    `elsewhere` holds results of some systems on another pool.
    """
    named = {result.system: result for result in results}
    first = results[0]
    relevance: dict[str, RelevanceResult] = {}
    texts: dict[str, _Values] = {}
    sections = [choices_section(first.split)]
    if (first.split, first.pool) == PUBLISHED_ON:
        sections.insert(0, published_section(results))
    if elsewhere:
        both = [result for other in elsewhere for result in (named[other.system], other)]
        sections.append(
            Section(
                "Another pool",
                ("The results depend on the caption of each image that is in the pool.",),
                (ResultTable(both).to_table(),),
            )
        )
    if judgments is not None:
        labels = {name: getattr(first, name) for name in ("dataset", "split", "pool")}
        judged = relevance_results(scores, judgments, pool, labels)
        relevance = {result.system: result for result in judged}
        sections += [crowd_section(judged), expert_section(scores, judgments)]
        if pool.has_references:
            texts = text_scores(scores, pool)
            sections.append(text_section(list(scores), texts))
    if len(results) > 1:
        sections.append(significance_section(results, relevance, n_threads=n_threads))
        sections += ablation_sections(named)
        sections.append(
            claims_section(check_claims(named, relevance, draws=Draws(n_threads=n_threads)))
        )
    if judgments is not None:
        if len(results) > 2:
            sections.append(correlation_section(named, relevance, texts))
        sections.append(agreement_section(judgments, pool))
    return sections


def published_section(results: Sequence[RetrievalResult]) -> Section:
    """Tabulate our figures beside the published ones."""
    known = {result.system: result for result in PUBLISHED}
    rows = []
    for result in results:
        cells = []
        for task in TASKS:
            ours, theirs = getattr(result, task), known.get(result.system)
            for k in result.ks:
                cells += [f"{100 * ours.recall[k]:.1f}", _published(theirs, task, k)]
            cells += [f"{ours.median_rank:.1f}", _published(theirs, task, None)]
        rows.append((result.system, *cells))
    columns = [*(f"R@{k}" for k in results[0].ks), "median"]
    paired = [name for column in columns for name in (column, "paper")]
    return Section(
        "Comparison with the paper",
        (
            "We know only one row of the paper's tables. The photos of the paper were larger. "
            "Its features, its spelling dictionary and its grid of settings are not published "
            "in full.",
        ),
        (
            Table(
                columns=("system", *paired, *paired),
                rows=tuple(rows),
                groups=(("", 1), *((task, len(paired)) for task in TASKS)),
            ),
        ),
    )


def choices_section(split: str) -> Section:
    """Tabulate where the study differs from the paper."""
    chosen = (
        "The settings were chosen on the reported split, so the figures are optimistic."
        if split == "dev"
        else "No setting was chosen on the reported split."
    )
    return Section(
        "Our choices",
        (chosen,),
        (Table(columns=("part", "the paper", "here"), rows=CHOICES, n_labels=3),),
    )


def significance_section(
    results: Sequence[RetrievalResult],
    relevance: Mapping[str, RelevanceResult],
    *,
    n_threads: int | None,
) -> Section:
    """Test the difference of every system to the paper's best one, or to the last one."""
    names = [result.system for result in results]
    baseline = BASELINE if BASELINE in names else names[-1]
    per_query: dict[str, dict[str, list[_Values]]] = {}
    if relevance:
        metrics = [*(f"S@{k}" for k in results[0].ks), "R-precision"]
        per_query = {
            task: {
                metric: [getattr(relevance[name], task).per_query[metric] for name in names]
                for metric in metrics
            }
            for task in TASKS
        }
    comparison = compare(
        results, baseline=baseline, per_query=per_query, rng=0, n_threads=n_threads
    )
    return Section(
        f"Differences to {baseline}",
        (
            "The tests are McNemar's exact test for R@k and S@k, and Fisher's randomisation "
            "test with 100,000 reassignments for medians and R-precision. The p-values are "
            "not corrected for multiple tests.",
        ),
        (comparison.to_table(),),
    )


def ablation_sections(named: Mapping[str, RetrievalResult]) -> Iterator[Section]:
    """Tabulate weights of words against similarities of words, if all these systems ran."""
    similarities = {"none": (), "D_out": ("D_out",), "D_ic": ("D_ic",), "D_out,ic": _BOTH}
    columns = [(weights, with_a) for weights in ("none", "sqrt_idf") for with_a in (0, 1)]
    rows = []
    for label, distributional in similarities.items():
        cells = []
        for weights, with_a in columns:
            name = _name_of(weights, {*distributional, *(["A"] if with_a else [])})
            if name not in named:
                return
            cells.append(f"{100 * _total_recall(named[name]):.1f}")
        rows.append((label, *cells))
    headings = ("no alignment", "alignment")
    yield Section(
        "What makes Tri5Sem",
        (
            "Sum of R@1, R@5 and R@10 of both tasks in percent. Rows have the word similarity "
            "from co-occurrence; columns have the word weights, with and without the "
            "similarity from alignment.",
        ),
        (
            Table(
                columns=("co-occurrence", *headings, *headings),
                rows=tuple(rows),
                groups=(("", 1), ("no weights", 2), ("sqrt(idf)", 2)),
            ),
        ),
    )


def correlation_section(
    named: Mapping[str, RetrievalResult],
    relevance: Mapping[str, RelevanceResult],
    texts: Mapping[str, _Values],
) -> Section:
    """Tabulate the rank correlation of each metric with R-precision."""
    rows = []
    for task in TASKS:
        metrics: dict[str, Sequence[float]] = {
            f"R@{k}": [getattr(of, task).recall[k] for of in named.values()] for k in (1, 5, 10)
        }
        metrics["median"] = [-getattr(of, task).median_rank for of in named.values()]
        metrics |= {
            name: [getattr(relevance[system], task).mean[name] for system in named]
            for name in ("S@1", "S@5", "S@10", "MAP")
        }
        if task == "annotation":
            metrics |= {name: values.mean(axis=1).tolist() for name, values in texts.items()}
        reference = [getattr(relevance[system], task).mean["R-precision"] for system in named]
        for name, values in metrics.items():
            found = rank_correlation(values, reference)
            rows.append((task, name, f"{found.spearman:.3f}", f"{found.kendall:.3f}"))
    return Section(
        "Do the metrics agree on the order of the systems?",
        (f"Rank correlation with R-precision over {len(named)} systems.",),
        (
            Table(
                columns=("task", "metric", "Spearman", "Kendall"), rows=tuple(rows), n_labels=2
            ),
        ),
    )


_BOTH = ("D_out", "D_ic")


def _name_of(weights: str, lexical: set[str]) -> str:
    """Name of the Tri5 system with these weights and similarities."""
    plain = System("word_sequence")
    return next(
        name
        for name, system in SYSTEMS.items()
        if (system.text, system.weights, set(system.lexical)) == (plain.text, weights, lexical)
        and (system.ranker, system.single, system.pyramid)
        == (plain.ranker, plain.single, plain.pyramid)
    )


def _total_recall(result: RetrievalResult) -> float:
    return float(sum(sum(getattr(result, task).recall.values()) for task in TASKS))


def _published(result: Published | None, task: str, k: int | None) -> str:
    """Return a figure of the paper: R@k in percent, or the median rank."""
    if result is None:
        return NOT_AVAILABLE
    numbers = result.values[task]
    return f"{numbers['median_rank']:.1f}" if k is None else f"{100 * numbers[f'R@{k}']:.1f}"
