"""Parts of the page that experiments with trained models share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from kernelcore._validation import Array
from kernelcore.deep import History
from kernelcore.evaluation import RetrievalResult, Table, evaluate
from kernelcore.experiments.corpora import Pool
from kernelcore.report import ReportFigure, Section, training_curves


def evaluate_pool(
    scores: npt.ArrayLike,
    pool: Pool,
    *,
    search: npt.ArrayLike | None = None,
    number: int | None = None,
    **labels: Any,
) -> RetrievalResult:
    """Rank all captions of a split, or those of one number.

    Parameters
    ----------
    scores : array_like of shape (n_photos, n_captions)
        Of the photos of the pool in the order of the corpus, and its captions.
    pool : Pool
    search : array_like of shape (n_photos, n_captions), optional
        Scores of search, where they are others.
    number : int, optional
        Number of the caption of each photo that is in the pool; the default is all of them.
    **labels
        As `kernelcore.evaluation.evaluate` takes them.

    Returns
    -------
    RetrievalResult
    """
    columns = np.arange(len(pool.numbers))
    if number is not None:
        columns = np.flatnonzero(pool.numbers == number)
    owners = np.unique(pool.photos, return_inverse=True)[1][columns]
    ranked, places = np.unique(owners, return_inverse=True)

    def part(matrix: npt.ArrayLike) -> Array:
        return np.asarray(matrix)[ranked][:, columns]

    result: RetrievalResult = evaluate(
        part(scores),
        None if search is None else part(search),
        caption_image=places,
        pool="all captions" if number is None else f"caption #{number}",
        **labels,
    )
    return result


def training_section(histories: Mapping[str, History]) -> Section:
    """Tell how the training of each system went."""
    return Section(
        "Training",
        ("The mean of R@1, R@5 and R@10 of both directions on dev, in percent.",),
        (
            Table(
                columns=("system", "epochs", "best", "mean recall", "seconds"),
                rows=tuple(_course(name, history) for name, history in histories.items()),
            ),
        ),
    )


def training_figures(histories: Mapping[str, History]) -> list[ReportFigure]:
    """Draw how the training of each system went."""
    epochs = {name: history.epochs for name, history in histories.items()}
    if not epochs:
        return []
    quantities = {"train_loss": "Training loss", "dev_loss": "1 - mean recall on dev"}
    return [training_curves(epochs, quantities)]


def choices_section(choices: Sequence[tuple[str, str, str]]) -> Section:
    """Tell what is done as in the paper, and what is not."""
    return Section(
        "Choices of ours",
        ("What the paper does, or leaves open, and what is done here.",),
        (Table(columns=("part", "the paper", "here"), rows=tuple(choices), n_labels=3),),
    )


def _course(name: str, history: History) -> tuple[str, ...]:
    best = history.best_epoch
    return (
        name,
        str(len(history.epochs)),
        str(best + 1),
        f"{100 * (1 - history.dev_losses[best]):.1f}",
        f"{sum(epoch['seconds'] for epoch in history.epochs):.0f}",
    )
