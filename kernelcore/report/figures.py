"""Figures about rankings: recall curves, score matrices, histograms and training curves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from kernelcore import plots
from kernelcore._check import as_real_array, check_finite, check_integer
from kernelcore.evaluation import Result
from kernelcore.plots._style import (
    grid_of,
    label_of,
    legend_below,
    line_style,
    mark_whole_numbers,
)
from kernelcore.plots.ranking import CHANCE, TASKS, chance_at, of_one_pool, recalls_at
from kernelcore.plots.scores import first_scores
from kernelcore.report.drawing import ReportFigure, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Inches. Panels stand under each other, so that a narrow screen shows them in full size.
_WIDTH, _PANEL, _LEGEND = 4.6, 2.7, 0.7


def recall_curves(
    results: Result | Sequence[Result], *, max_k: int | None = None
) -> ReportFigure:
    """Recall at every k, both directions, of all systems against chance.

    Parameters
    ----------
    results : Result or sequence of Result
        Systems measured on one pool: the numbers of candidates and of relevant items agree.
    max_k : int, optional
        End of the curves; the default is the number of candidates.

    Returns
    -------
    ReportFigure

    Raises
    ------
    TypeError
        If something else is among the results.
    ValueError
        If there are no results or they come from different pools.

    See Also
    --------
    kernelcore.plots.recall_curves : The plot.

    Examples
    --------
    >>> from kernelcore.evaluation import evaluate
    >>> from kernelcore.report import recall_curves
    >>> recall_curves(evaluate([[0.9, 0.1], [0.8, 0.3]], system="toy"), max_k=2).title
    'Recall at k'
    """
    compared = of_one_pool(results)
    if max_k is not None:
        max_k = check_integer("max_k", max_k, minimum=2)

    def draw() -> Figure:
        figure = new_figure(_WIDTH, 2 * _PANEL + _LEGEND)
        panels = grid_of(figure, 2, 1)
        plots.recall_curves(compared, max_k=max_k, axes=panels, legend=False)
        legend_below(panels[0], figure)
        return figure

    return ReportFigure("Recall at k", _describe_recall(compared), draw)


def similarity_matrix(
    scores: npt.ArrayLike,
    caption_image: npt.ArrayLike | None = None,
    *,
    max_images: int = 40,
    system: str = "",
) -> ReportFigure:
    """Scores of the first images and their captions; the gold pairs are framed.

    Parameters
    ----------
    scores : array_like of shape (n_images, n_captions)
        Higher is better; finite.
    caption_image : array_like of int, shape (n_captions,), optional
        Row of the image that each caption belongs to. Omit it where caption i belongs to
        image i.
    max_images : int, default=40
        Images to show, from the first on, with all their captions.
    system : str, optional
        Name of the system, for the title.

    Returns
    -------
    ReportFigure

    Raises
    ------
    TypeError, ValueError
        If `scores` is not a finite matrix or `caption_image` does not fit it.

    See Also
    --------
    kernelcore.plots.similarity_matrix : The plot.

    Examples
    --------
    >>> from kernelcore.report import similarity_matrix
    >>> similarity_matrix([[0.9, 0.1], [0.8, 0.3]], system="toy").title
    'Similarity matrix of toy'
    """
    part, rows, n_images = first_scores(scores, caption_image, max_images)
    n_shown, n_captions = part.shape

    def draw() -> Figure:
        figure = new_figure(_WIDTH, 4.1)
        plots.similarity_matrix(part, rows, max_images=n_shown, ax=figure.subplots())
        return figure

    mean_gold = part[rows, np.arange(n_captions)].mean()
    name = f" of {system}" if system else ""
    return ReportFigure(
        title=f"Similarity matrix{name}",
        alt=(
            f"Scores{name} of the first {n_shown} of {n_images} images by their {n_captions} "
            f"captions. The pairs that belong together are framed; their mean "
            f"score is {mean_gold:.3g}, that of all pairs shown {part.mean():.3g}."
        ),
        draw=draw,
    )


def _describe_recall(results: Sequence[Result]) -> str:
    sentences = []
    for task, heading in TASKS.items():
        k = min(10, int(results[0].n_candidates[task].max()))
        shares = [
            (result.system or "(unnamed)", recalls_at(result, task, k)) for result in results
        ]
        shares.append((CHANCE, chance_at(results[0], task, k)))
        parts = [f"{name} {100 * share:.1f} %" for name, share in shares]
        sentences.append(f"{heading}, recall at {k}: {', '.join(parts)}.")
    return " ".join(sentences)


_BINS = 60
_SHOWN = 99.5  # percent of the numbers of each group; the rest lies beyond the last bin


def histograms(
    groups: Mapping[str, npt.ArrayLike], *, title: str, quantity: str
) -> ReportFigure:
    """Draw the density of some non-negative numbers, a line for each group.

    Parameters
    ----------
    groups : mapping of str to array_like
        Numbers by the name of their group.
    title : str
    quantity : str
        What the numbers are.

    Returns
    -------
    ReportFigure

    Raises
    ------
    ValueError
        If there is no group, or one that holds no numbers or any that are not finite.

    Examples
    --------
    >>> from kernelcore.report import histograms
    >>> groups = {"true": [0.0, 0.5], "false": [2.0]}
    >>> figure = histograms(groups, title="Pairs", quantity="cost")
    >>> figure.alt
    'Density of the cost. true: mean 0.25, median 0.25 of 2; false: mean 2, median 2 of 1.'
    """
    drawn = {
        name: check_finite(name, as_real_array(name, np.ravel(np.asarray(values)), ndim=1))
        for name, values in groups.items()
    }
    if not drawn or not all(len(values) for values in drawn.values()):
        raise ValueError("groups must each hold at least one number, got nothing to draw")
    end = max(float(np.percentile(values, _SHOWN)) for values in drawn.values())
    edges = np.linspace(0, end if end > 0 else 1.0, _BINS + 1)

    def draw() -> Figure:
        figure = new_figure(_WIDTH, 3.2)
        panel = figure.subplots()
        for i, (name, values) in enumerate(drawn.items()):
            counts, _ = np.histogram(values, edges)
            density = counts / (len(values) * np.diff(edges))
            panel.stairs(density, edges, label=label_of(name), linewidth=1.8, **line_style(i))
        panel.set(xlabel=label_of(quantity), ylabel="density", xlim=(0, edges[-1]))
        panel.legend()
        return figure

    parts = [
        f"{name}: mean {values.mean():.3g}, median {np.median(values):.3g} of {len(values)}"
        for name, values in drawn.items()
    ]
    return ReportFigure(title, f"Density of the {quantity}. {'; '.join(parts)}.", draw)


def training_curves(
    histories: Mapping[str, Sequence[Mapping[str, float]]], quantities: Mapping[str, str]
) -> ReportFigure:
    """Draw measurements after each epoch, one panel per quantity and a line per system.

    Parameters
    ----------
    histories : mapping of str to sequence of mapping of str to float
        Of each system what its epochs measured, as in `kernelcore.deep.History.epochs`.
        An epoch that lacks a quantity leaves a gap.
    quantities : mapping of str to str
        Which of these to draw, and what to call them.

    Returns
    -------
    ReportFigure

    Raises
    ------
    ValueError
        If there is nothing to draw.

    Examples
    --------
    >>> from kernelcore.report import training_curves
    >>> epochs = [{"dev_loss": 0.5}, {"dev_loss": 0.25}]
    >>> training_curves({"AP": epochs}, {"dev_loss": "loss"}).alt
    'loss by epoch. AP: 0.5 to 0.25 in 2 epochs.'
    """
    if not quantities or not any(histories.values()):
        raise ValueError("histories and quantities must hold something to draw, got nothing")
    drawn = {name: epochs for name, epochs in histories.items() if epochs}

    def draw() -> Figure:
        figure = new_figure(_WIDTH, len(quantities) * _PANEL + _LEGEND)
        panels = grid_of(figure, len(quantities), 1)
        for panel, (key, heading) in zip(panels, quantities.items(), strict=True):
            for i, (name, epochs) in enumerate(drawn.items()):
                numbers = np.arange(1, len(epochs) + 1)
                values = [epoch.get(key, np.nan) for epoch in epochs]
                panel.plot(numbers, values, label=label_of(name), **line_style(i))
            panel.set(title=heading, xlabel="epoch")
            mark_whole_numbers(panel.xaxis)
        legend_below(panels[0], figure)
        return figure

    parts = [
        f"{name}: {epochs[0][key]:.3g} to {epochs[-1][key]:.3g} in {len(epochs)} epochs"
        for key in quantities
        for name, epochs in drawn.items()
        if key in epochs[0] and key in epochs[-1]
    ]
    headings = " and ".join(quantities.values())
    return ReportFigure("Training", f"{headings} by epoch. {'; '.join(parts)}.", draw)
