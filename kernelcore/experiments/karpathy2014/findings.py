"""Sections of the page: what parts of the model are worth, and how printed systems train."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from kernelcore.evaluation import Published, RetrievalResult, Table
from kernelcore.experiments.corpus import Pool
from kernelcore.experiments.karpathy2014.systems import PARTS, SYSTEMS
from kernelcore.experiments.sections import photo_recalls
from kernelcore.report import Section

if TYPE_CHECKING:
    from kernelcore.deep import History


def parts_section(
    results: Sequence[RetrievalResult], published: Sequence[Published], pool: Pool
) -> Section | None:
    """Tabulate what each part of the paper's model is worth, in the paper and here.

    Parameters
    ----------
    results : sequence of RetrievalResult
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


def epochs_section(histories: Mapping[str, History]) -> Section:
    """Tabulate each epoch of the training of some systems."""
    rows = [
        (
            name,
            str(number),
            f"{epoch['train_loss']:.4g}",
            f"{100 * (1 - epoch['dev_loss']):.1f}",
            f"{100 * epoch['positive']:.1f}",
            f"{100 * epoch['positive_others']:.1f}",
        )
        for name, history in histories.items()
        for number, epoch in enumerate(history.epochs, 1)
    ]
    return Section(
        "Epochs of the systems as printed",
        (
            "The last two columns are shares of pairs of a photo and a caption of dev, in "
            "percent, whose score is above 0: pairs that belong together, and all others. A "
            "score is above 0 if at least one product of a region and a fragment is. Pairs "
            "whose score is 0 tie.",
        ),
        (
            Table(
                columns=("system", "epoch", "loss", "mean recall", "own pairs", "other pairs"),
                rows=tuple(rows),
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
