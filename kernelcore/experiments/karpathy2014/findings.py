"""Section of the page: what parts of the model are worth."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kernelcore.evaluation import Published, Result, Table
from kernelcore.experiments.corpus import Pool
from kernelcore.experiments.karpathy2014.systems import PARTS, SYSTEMS
from kernelcore.experiments.sections import photo_recalls
from kernelcore.report import Section


def parts_section(
    results: Sequence[Result], published: Sequence[Published], pool: Pool
) -> Section | None:
    """Tabulate what each part of the paper's model is worth, in the paper and here.

    Parameters
    ----------
    results : sequence of Result
        Of one pool.
    published : sequence of Published
        Rows of the paper; without them there is no column of the paper.
    pool : Pool

    Returns
    -------
    Section or None
        None if no two systems were measured that differ in a part.
    """
    measured = {result.system: photo_recalls(result, pool) for result in results}
    papers = {row.system: _mean_recall(row) for row in published}
    rows = []
    for part, without, whole in PARTS:
        if not {without, whole} <= set(measured):
            continue
        worth = measured[whole] - measured[without]
        error = worth.std(ddof=1) / np.sqrt(len(worth))
        names = SYSTEMS[without].published, SYSTEMS[whole].published
        there = [f"{papers[names[1]] - papers[names[0]]:+.1f}"] if papers else []
        rows.append((part, without, whole, *there, f"{worth.mean():+.1f}", f"{error:.1f}"))
    if not rows:
        return None
    paper = ["the paper"] if papers else []
    return Section(
        "What the parts of the model are worth",
        (
            "Differences of the mean of the six recalls, in percent: the system with the part "
            "less the system without it. The standard error is that of the paired differences "
            "over photos; a photo's captions stay together.",
        ),
        (
            Table(
                columns=("part", "without", "with", *paper, "here", "standard error"),
                rows=tuple(rows),
                n_labels=3,
            ),
        ),
    )


def _mean_recall(row: Published) -> float:
    """Mean of the six recalls of a published row, in percent."""
    recalls = [
        value
        for values in row.values.values()
        for name, value in values.items()
        if name.startswith("R@")
    ]
    return float(100 * np.mean(recalls))
