"""The captions ranked first: expert scores, BLEU and ROUGE of each system, with tests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from kernelcore.datasets import RelevanceJudgments
from kernelcore.evaluation import Result, Table, compare
from kernelcore.evaluation.significance import fisher_randomization
from kernelcore.experiments.hodosh2013.first_results import (
    EXPERT_THRESHOLDS,
    FirstResultScores,
    first_result_scores,
    first_result_table,
)
from kernelcore.experiments.hodosh2013.judged import ALL, OTHERS, RANDOM, TextMatrices
from kernelcore.experiments.scores import Scores
from kernelcore.report import Section

_Floats: TypeAlias = npt.NDArray[np.float64]
_SHOWN = [(references, metric) for references in (ALL, OTHERS) for metric in ("BLEU", "ROUGE")]


def expert_scores(
    scores: Mapping[str, Scores], expert: RelevanceJudgments
) -> dict[str, FirstResultScores]:
    """Look up how the experts scored the caption that each system ranks first."""
    return {name: first_result_scores(of.annotation, expert) for name, of in scores.items()}


def text_scores(
    scores: Mapping[str, Scores], matrices: TextMatrices
) -> dict[tuple[str, str], dict[str, _Floats]]:
    """Return BLEU and ROUGE of the captions ranked first.

    Where several captions have the same best score, it is the mean over them.

    Returns
    -------
    dict of (references, metric) to dict of system to ndarray, shape (n_images,)
    """
    first = {name: _first_places(of.annotation) for name, of in scores.items()}
    return {
        (references, metric): {
            name: (matrices[references][metric] * weights).sum(axis=1)
            for name, weights in first.items()
        }
        for references, metric in _SHOWN
        if references in matrices
    }


def expert_section(
    first: Mapping[str, FirstResultScores],
    expert: RelevanceJudgments,
    *,
    baseline: str,
    n_threads: int | None,
) -> Section:
    """Tabulate the cumulative distribution of expert scores, with tests."""
    table = _with_random(first, expert)
    if len(first) > 1:
        successes = {
            column: [of.at_least(least).astype(float) for of in first.values()]
            for column, least in zip(table.columns[3:], EXPERT_THRESHOLDS, strict=True)
        }
        table = _marked(table, first, successes, baseline, n_threads, n_before=2)
    return Section(
        "Expert scores of the first caption",
        (
            "The experts judged the captions that the systems of the paper ranked first. An "
            "image's own caption that no expert saw counts as 4. Many other first captions of "
            "our systems were not judged. The table counts them as below every threshold: a "
            "lower bound, which lies further down for a system whose first captions differ "
            "more from those of the paper's systems. The row of a random choice is its "
            "expected value.",
        ),
        (table,),
    )


def mean_section(
    first: Mapping[str, FirstResultScores],
    texts: Mapping[tuple[str, str], Mapping[str, _Floats]],
    matrices: TextMatrices,
    *,
    baseline: str,
    n_threads: int | None,
) -> Section:
    """Tabulate mean expert scores, BLEU and ROUGE of the first captions, with tests."""
    tables = [_jointly_judged(first, baseline, n_threads)] if len(first) > 1 else []
    if texts:
        tables.append(_text_table(texts, matrices, baseline, n_threads))
    return Section(
        "Mean scores of the first caption",
        (
            f"The first table compares the mean expert scores of a system and of {baseline} "
            "on the images where both first captions were judged, by Fisher's randomisation "
            "test. The second has BLEU and ROUGE, which compare unigrams without brevity "
            "penalty. The references are all captions of the image, as in the paper, so that "
            "its own caption scores 1 in BLEU; or the captions outside the pool. Where several "
            "captions are ranked first, their mean counts. The p-values are not corrected for "
            "multiple tests.",
        ),
        tables,
    )


def _first_places(scores: npt.ArrayLike) -> _Floats:
    """Return the probability of each caption to be ranked first, if ties are drawn."""
    values = np.asarray(scores)
    best = values == values.max(axis=1, keepdims=True)
    places: _Floats = best / best.sum(axis=1, keepdims=True)
    return places


def _with_random(first: Mapping[str, FirstResultScores], expert: RelevanceJudgments) -> Table:
    """Return the cumulative distribution, with what a random choice is expected to have."""
    table = first_result_table(first)
    n_pairs = len(expert.image_ids) * len(expert.caption_ids)
    coverage = len(expert) / n_pairs
    shares = [np.count_nonzero(expert.scores >= least) / n_pairs for least in EXPERT_THRESHOLDS]
    cells = (f"{100 * coverage:.1f}", f"{expert.scores.mean():.2f}")
    random = (RANDOM, *cells, *(f"{100 * share:.1f}" for share in shares))
    return replace(table, rows=(*table.rows, random))


def _marked(
    table: Table,
    systems: Mapping[str, object],
    values: Mapping[str, list[_Floats]],
    baseline: str,
    n_threads: int | None,
    *,
    n_before: int,
) -> Table:
    """Add the marks of `compare` to the columns of a table after some others."""
    results = [
        Result({"annotation": {of: own[i] for of, own in values.items()}}, system=name)
        for i, name in enumerate(systems)
    ]
    compared = compare(results, baseline=baseline, rng=0, n_threads=n_threads)
    marks = compared.to_table()
    return replace(
        table,
        superscripts=frozenset(
            ((i, j + n_before), mark) for (i, j), mark in marks.superscripts
        ),
        caption=f"{table.caption}; {marks.caption.removeprefix('shares in percent; ')}",
    )


def _jointly_judged(
    first: Mapping[str, FirstResultScores], baseline: str, n_threads: int | None
) -> Table:
    """Compare mean expert scores where the first captions of both systems were judged."""
    names = [name for name in first if name != baseline]
    theirs = first[baseline].scores
    ours = np.stack([first[name].scores for name in names])
    differences = ours - theirs
    known = np.nan_to_num(differences)  # a difference of zero counts for no system
    none = np.zeros(known.shape[1])
    p_values = fisher_randomization(known, none, rng=0, n_threads=n_threads).p_value
    rows = []
    for name, scores, difference, p in zip(
        names, ours, differences, np.asarray(p_values), strict=True
    ):
        both = ~np.isnan(difference)
        cells = ["-"] * 4
        if both.any():
            means = [scores[both].mean(), theirs[both].mean()]
            cells = [*(f"{mean:.2f}" for mean in means), f"{difference[both].mean():+.2f}"]
            cells.append(f"{p:.2g}")
        rows.append((name, f"{both.sum():,}", *cells))
    return Table(
        columns=("system", "both judged", "mean", f"mean of {baseline}", "difference", "p"),
        rows=tuple(rows),
    )


def _text_table(
    texts: Mapping[tuple[str, str], Mapping[str, _Floats]],
    matrices: TextMatrices,
    baseline: str,
    n_threads: int | None,
) -> Table:
    """Tabulate mean BLEU and ROUGE, with marks and the means of a random choice."""
    names = list(next(iter(texts.values())))
    random = [f"{100 * matrices[of][metric].mean():.1f}" for of, metric in texts]
    rows = [
        (name, *(f"{100 * values[name].mean():.1f}" for values in texts.values()))
        for name in names
    ]
    table = Table(
        columns=("system", *(metric for _, metric in texts)),
        rows=(*rows, (RANDOM, *random)),
        groups=(("", 1), *((of, 2) for of in dict.fromkeys(of for of, _ in texts))),
        caption="Means in percent",
    )
    if len(names) < 2:
        return table
    values = {f"{metric} ({of})": [*by.values()] for (of, metric), by in texts.items()}
    return _marked(table, dict.fromkeys(names), values, baseline, n_threads, n_before=0)
