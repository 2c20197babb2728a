"""Sections of pages that several studies share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from kernelcore.evaluation import (
    Published,
    Result,
    ResultTable,
    Table,
    compare,
)
from kernelcore.evaluation.significance import fisher_randomization, holm
from kernelcore.experiments.corpus import Pool
from kernelcore.experiments.scores import Scores, hub_corrected_name, printed
from kernelcore.models.base import TASKS
from kernelcore.report import ReportFigure, Section
from kernelcore.report.figures import training_figure

if TYPE_CHECKING:
    from kernelcore.deep.training import History


def printed_section(
    results: Sequence[Result], published: Mapping[str, Published], **options: Any
) -> Section | None:
    """Tabulate each system as published, as printed and as ours.

    Parameters
    ----------
    results : sequence of Result
        All that were measured. A system has up to three of them: its own, the one with the
        paper's choices, and the one corrected for hubs.
    published : mapping of str to Published
        Published row of a system, by its name here.
    **options
        For `ResultTable`.

    Returns
    -------
    Section or None
        None if no system was measured as printed.
    """
    measured = {result.system: result for result in results}
    rows: list[Result | Published] = []
    for name, ours in measured.items():
        if printed(name) not in measured:
            continue
        if name in published:
            rows.append(replace(published[name], system=f"{name}, published"))
        rows += [measured[printed(name)], replace(ours, system=f"{name}, ours")]
        if hub_corrected_name(name) in measured:
            corrected = measured[hub_corrected_name(name)]
            rows.append(replace(corrected, system=f"{name}, ours, hubs corrected"))
    if not rows:
        return None
    return Section(
        "Published, as printed, ours",
        (
            "A system as printed has the paper's own choices where they are known, on our "
            "photos, captions and features.",
        ),
        (ResultTable(rows, **options).to_table(),),
    )


def differences_section(
    results: Sequence[Result], baseline: str, pool: Pool, *, n_threads: int | None
) -> Section:
    """Test the differences of all systems to one of them, photo by photo.

    Parameters
    ----------
    results : sequence of Result
        Of `kernelcore.experiments.scores.evaluate_pool`, on the whole pool.
    baseline : str
        Name of the system to compare with.
    pool : Pool
    n_threads : int or None
    """
    by_photo = []
    for result in results:
        hits = dict(zip(TASKS, photo_hits(result, pool), strict=True))
        values: dict[str, Any] = {
            task: {f"R@{k}": own[:, j] for j, k in enumerate(recall_cutoffs(result))}
            for task, own in hits.items()
        }
        by_photo.append(Result(values, system=result.system))
    comparison = compare(by_photo, baseline=baseline, rng=0, n_threads=n_threads)
    means = {result.system: photo_recalls(result, pool) for result in results}
    others = [name for name in means if name != baseline]
    gains = np.array([means[name] - means[baseline] for name in others])
    tested = fisher_randomization(
        np.array([means[name] for name in others]), means[baseline], rng=0, n_threads=n_threads
    )
    corrected = holm(tested.p_value)
    rows = [(baseline, f"{means[baseline].mean():.1f}", "", "", "")]
    for i, name in enumerate(others):
        cells = f"{tested.p_value[i]:.2g}", f"{corrected[i]:.2g}"
        gain = f"{gains[i].mean():+.2f} ± {independent_error(gains[i]):.2f}"
        rows.append((name, f"{means[name].mean():.1f}", gain, *cells))
    columns = ("system", "mean recall", "difference ± standard error", "p", "p, Holm")
    return Section(
        f"Differences to {baseline}",
        (
            "A photo's captions stay together: each photo has the share of its queries that "
            "are answered among the first k, and the tests are Fisher's randomisation test "
            "over photos with 100,000 reassignments, or McNemar's exact test where each photo "
            "has one query. The first table has the mean of the six recalls, and p-values "
            "without and with Holm's correction for the number of systems. Those of the second "
            "table are not corrected. The tests say nothing about other runs of training.",
        ),
        (Table(columns=columns, rows=tuple(rows)), comparison.to_table()),
    )


def photo_hits(
    result: Result, pool: Pool, number: int | None = None
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """For each photo and k, the share of its queries that are answered among the first k.

    Parameters
    ----------
    result : Result
        Of `kernelcore.experiments.scores.evaluate_pool`.
    pool : Pool
    number : int, optional
        Number of the one caption of each photo in the pool; by default all are in it.

    Returns
    -------
    annotation, search : ndarray of float64, shape (n_photos, n_ks)
        The photo is the query of annotation, and its captions are those of search.
    """
    photos = pool.photos if number is None else pool.photos[pool.numbers == number]
    owners = np.unique(photos, return_inverse=True)[1]
    annotation, search = (
        np.stack([result.values[task][f"R@{k}"] for k in recall_cutoffs(result)], axis=1)
        for task in TASKS
    )
    sums = np.zeros_like(annotation)
    np.add.at(sums, owners, search)
    return annotation, sums / np.bincount(owners)[:, np.newaxis]


def recall_cutoffs(result: Result) -> list[int]:
    """Return the k of the recalls of a result."""
    return [int(name[2:]) for name in result.columns if name.startswith("R@")]


def photo_recalls(
    result: Result, pool: Pool, number: int | None = None
) -> npt.NDArray[np.float64]:
    """Mean recall of each photo: the mean over the k and both tasks, in percent.

    If all photos have equally many captions, the mean over the photos is the mean recall of
    the system. See `photo_hits` for the arguments.

    Returns
    -------
    ndarray of float64, shape (n_photos,)
    """
    recalls: npt.NDArray[np.float64] = 50 * sum(
        hits.mean(axis=1) for hits in photo_hits(result, pool, number)
    )
    return recalls


def independent_error(values: npt.NDArray[np.float64]) -> float:
    """Estimate the standard error of the mean of independent values."""
    return float(values.std(ddof=1) / np.sqrt(len(values)))


def histories_of(scored: Mapping[str, Scores]) -> dict[str, History]:
    """Return the history of each system that is trained by epochs."""
    return {name: own.history for name, own in scored.items() if own.history is not None}


def training_section(histories: Mapping[str, History], about: str = "") -> Section:
    """Tabulate the training of each system.

    Parameters
    ----------
    histories : mapping of str to History
        By system.
    about : str
        A sentence on the pool of each system, where they differ.
    """
    measure = "Mean recall: mean of R@1, R@5 and R@10 of both directions on dev, in percent."
    last = [name for name, own in histories.items() if own.best_epoch == len(own.epochs) - 1]
    rising = f"The best epoch is the last one for {', '.join(last)}." if last else ""
    return Section(
        "Training",
        (" ".join(filter(None, (measure, about, rising))),),
        (
            Table(
                columns=("system", "epochs", "best", "mean recall", "seconds"),
                rows=tuple(_training_row(name, history) for name, history in histories.items()),
            ),
        ),
    )


def training_figures(histories: Mapping[str, History]) -> list[ReportFigure]:
    """Draw the losses of each system by epoch."""
    epochs = {name: history.epochs for name, history in histories.items()}
    if not epochs:
        return []
    quantities = {"train_loss": "Training loss", "dev_loss": "1 - mean recall on dev"}
    return [training_figure(epochs, quantities)]


def _training_row(name: str, history: History) -> tuple[str, ...]:
    best = history.best_epoch
    return (
        name,
        str(len(history.epochs)),
        str(best + 1),
        f"{100 * (1 - history.dev_losses[best]):.1f}",
        f"{sum(epoch['seconds'] for epoch in history.epochs):.0f}",
    )


def spearman(first: npt.ArrayLike, second: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Return Spearman's rho along the last axis; NaN where all values are equal."""
    ranks = [
        np.sign(of[..., :, np.newaxis] - of[..., np.newaxis, :]).sum(axis=-1)
        for of in (np.asarray(first), np.asarray(second))
    ]
    products = np.sum(ranks[0] * ranks[1], axis=-1)
    lengths = np.sqrt(np.prod([np.sum(of**2, axis=-1) for of in ranks], axis=0))
    with np.errstate(invalid="ignore"):
        rho: npt.NDArray[np.float64] = products / lengths
    return rho
