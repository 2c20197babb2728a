"""Binary image selection beside retrieval: the order of systems, and errors people accept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.stats import kendalltau

from kernelcore.evaluation import (
    Result,
    Table,
)
from kernelcore.experiments.corpus import Pool
from kernelcore.experiments.judged import Questions
from kernelcore.experiments.sections import recall_cutoffs, spearman
from kernelcore.report import Section

Selected: TypeAlias = Mapping[str, Sequence[Result]]
"""Results of all systems by the source of their triples."""

_PUBLISHED_ERRORS = ("SCAN t2i, COCO (Hu et al. 2019)", "376", "376", "211", "56.1", "56.1")
"""Table 1 of the paper."""


def correlation_section(results: Mapping[str, Result], selected: Selected) -> Section | None:
    """Compare the order of systems by selection with their order by recalls.

    Parameters
    ----------
    results : mapping of str to Result
        Of the systems to compare, in the pool of all captions.
    selected : mapping of str to sequence of Result
        Of these systems, and of others.

    Returns
    -------
    Section or None
        None for fewer than three systems.
    """
    if len(results) < 3 or not selected:
        return None
    rows = []
    for every in selected.values():
        own = [one for one in every if one.system in results]
        for k in recall_cutoffs(results[own[0].system]):
            recalls = [results[one.system].mean["search"][f"R@{k}"] for one in own]
            accuracies = [one.mean["selection"]["accuracy"] for one in own]
            rows.append(
                (
                    str(own[0].facts["selections"]),
                    f"search R@{k}",
                    f"{spearman(accuracies, recalls):.2f}",
                    f"{kendalltau(accuracies, recalls).statistic:.2f}",
                )
            )
    return Section(
        "Selection beside retrieval",
        (
            "The paper finds that both order the systems in a similar way. The table has the "
            "rank correlation of the accuracy of binary image selection with recalls of "
            f"search, over {len(results)} systems, without those corrected for hubs.",
        ),
        (
            Table(
                columns=("triples", "recall", "Spearman", "Kendall"),
                rows=tuple(rows),
                n_labels=2,
            ),
        ),
    )


def accepted_section(
    scores: Mapping[str, npt.ArrayLike], questions: Questions, pool: Pool, number: int
) -> Section | None:
    """Count the errors of search that people accept, as table 1 of the paper.

    Parameters
    ----------
    scores : mapping of str to array_like of shape (n_photos, n_captions)
        Scores of search by each system.
    questions : Questions
    pool : Pool
    number : int
        Number of the caption of each photo that is a query. Those of Flickr8k that were
        judged have the number 2.

    Returns
    -------
    Section or None
        None if nobody judged pairs of this split.
    """
    if not questions.judgments:
        return None
    columns = np.flatnonzero(pool.numbers == number)
    own = np.unique(pool.photos, return_inverse=True)[1][columns]
    tables = []
    for source, judged in questions.judgments:
        rows = []
        for name, values in scores.items():
            first = np.asarray(values)[:, columns].argmax(axis=0)
            is_error = first != own
            verdicts = judged.scores_of(first[is_error], columns[is_error])
            n_judged = int(np.isfinite(verdicts).sum())
            rows.append(
                (name, *_shares(len(verdicts), n_judged, (verdicts >= source.right).sum()))
            )
        tables.append(
            Table(
                columns=(
                    "system",
                    "errors",
                    "judged",
                    "accepted",
                    "% of errors",
                    "% of judged",
                ),
                rows=(*rows, _PUBLISHED_ERRORS),
                caption=f"{judged.name}, accepted from {source.right:g} on; "
                f"{len(columns)} captions, number {number} of each photo",
            )
        )
    return Section(
        "Errors that people accept",
        (
            "An error is a caption for which another photo than its own comes first. The paper "
            "had people judge all 376 errors of one system. Here judgments are those that "
            "Flickr8k comes with, made for other systems, so that most errors were judged by "
            "nobody: the share of all errors is a lower bound. Pairs were judged because a "
            "system ranked them high or their words are alike, so that the share of judged "
            "errors may be above that of all.",
        ),
        tables,
    )


def _shares(n_errors: int, n_judged: int, n_accepted: int) -> tuple[str, ...]:
    counts = map(str, (n_errors, n_judged, n_accepted))
    shares = (f"{100 * n_accepted / n:.1f}" if n else "-" for n in (n_errors, n_judged))
    return (*counts, *shares)
