"""Figures about rankings: recall curves, score matrices, histograms and training curves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from kernelcore import _extras
from kernelcore._validation import as_real_array, check_finite, check_integer
from kernelcore.evaluation import RetrievalResult
from kernelcore.evaluation._inputs import as_caption_image
from kernelcore.evaluation.ranks import as_scores
from kernelcore.report.drawing import COLOURS, DASHES, ReportFigure, literal, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure


TASKS = {"annotation": "Image annotation", "search": "Image search"}


def recall_curves(
    results: Sequence[RetrievalResult], *, max_k: int | None = None
) -> ReportFigure:
    """Recall at every k, both directions, of all systems against chance.

    Parameters
    ----------
    results : sequence of RetrievalResult
        Systems measured on one pool: the numbers of candidates and of relevant items agree.
    max_k : int, optional
        End of the curves; the default is the number of candidates.

    Returns
    -------
    ReportFigure

    Raises
    ------
    ValueError
        If there are no results or they come from different pools.
    """
    results = tuple(results)
    if not results:
        raise ValueError("results must hold at least one result, got none")
    first = results[0]
    for result in results[1:]:
        for task in TASKS:
            ours, theirs = getattr(first, task), getattr(result, task)
            if ours.n_candidates != theirs.n_candidates or not np.array_equal(
                ours.n_relevant, theirs.n_relevant
            ):
                raise ValueError(
                    "results must come from one pool, and those of "
                    f"{first.system!r} and {result.system!r} differ in {task}"
                )
    if max_k is not None:
        max_k = check_integer("max_k", max_k, minimum=2)

    def draw() -> Figure:
        figure = new_figure(8.2, 3.9)
        panels = figure.subplots(1, 2, sharey=True)
        for panel, (task, heading) in zip(panels, TASKS.items(), strict=True):
            metrics = [getattr(result, task) for result in results]
            last = min(max_k or metrics[0].n_candidates, metrics[0].n_candidates)
            ks = np.arange(1, last + 1)
            for i, (result, one) in enumerate(zip(results, metrics, strict=True)):
                panel.plot(
                    ks,
                    100 * one.recall_curve(last),
                    label=literal(result.system or "(unnamed)"),
                    color=COLOURS[i % len(COLOURS)],
                    linestyle=DASHES[i // len(COLOURS) % len(DASHES)],
                )
            panel.plot(
                ks,
                100 * metrics[0].chance_recall_curve(last),
                label="expected by chance",
                color="#888888",
                linestyle=":",
            )
            panel.set(title=heading, xlabel="k", xscale="log", xlim=(1, max(last, 2)))
            panel.xaxis.set_major_formatter("{x:,.0f}")
        panels[0].set(ylabel="R@k (%)", ylim=(0, 100))
        figure.legend(
            *panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=4
        )
        return figure

    return ReportFigure("Recall at k", _describe_recall(results), draw)


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
    """
    matrix = check_finite("scores", as_scores("scores", scores))
    owner = as_caption_image(caption_image, matrix.shape)
    n_shown = min(check_integer("max_images", max_images, minimum=1), len(matrix))
    shown = np.flatnonzero(owner < n_shown)
    captions = shown[np.argsort(owner[shown], kind="stable")]
    part = matrix[:n_shown, captions]
    gold_rows = owner[captions]

    def draw() -> Figure:
        figure = new_figure(5.6, 4.9)
        axes = figure.subplots()
        low, high = np.percentile(part, [1, 99])
        image = axes.imshow(
            part, cmap="viridis", vmin=low, vmax=high, aspect="auto", interpolation="nearest"
        )
        frame = _extras.require("matplotlib.patches").Rectangle
        for column, row in enumerate(gold_rows):
            axes.add_patch(
                frame(
                    (column - 0.45, row - 0.45),
                    width=0.9,
                    height=0.9,
                    fill=False,
                    edgecolor="white",
                    linewidth=1.1,
                )
            )
        axes.grid(visible=False)
        axes.set(xlabel="caption", ylabel="image")
        figure.colorbar(image, label="score", extend="both")
        return figure

    mean_gold = part[gold_rows, np.arange(len(captions))].mean()
    name = f" of {system}" if system else ""
    return ReportFigure(
        title=f"Similarity matrix{name}",
        alt=(
            f"Scores{name} of the first {n_shown} of {len(matrix)} images by their "
            f"{len(captions)} captions. The pairs that belong together are framed; their mean "
            f"score is {mean_gold:.3g}, that of all pairs shown {part.mean():.3g}."
        ),
        draw=draw,
    )


def _describe_recall(results: Sequence[RetrievalResult]) -> str:
    sentences = []
    for task, heading in TASKS.items():
        first = getattr(results[0], task)
        k = min(10, first.n_candidates)
        shares = [
            (result.system or "(unnamed)", getattr(result, task).recall_curve(k)[-1])
            for result in results
        ]
        shares.append(("expected by chance", first.chance_recall_curve(k)[-1]))
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
        figure = new_figure(8.2, 3.6)
        panel = figure.subplots()
        for i, (name, values) in enumerate(drawn.items()):
            counts, _ = np.histogram(values, edges)
            panel.stairs(
                counts / (len(values) * np.diff(edges)),
                edges,
                label=literal(name),
                color=COLOURS[i % len(COLOURS)],
                linestyle=DASHES[i // len(COLOURS) % len(DASHES)],
                linewidth=1.8,
            )
        panel.set(xlabel=literal(quantity), ylabel="density", xlim=(0, edges[-1]))
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
        figure = new_figure(8.2, 3.6)
        panels = figure.subplots(1, len(quantities), squeeze=False)[0]
        for panel, (key, heading) in zip(panels, quantities.items(), strict=True):
            for i, (name, epochs) in enumerate(drawn.items()):
                panel.plot(
                    np.arange(1, len(epochs) + 1),
                    [epoch.get(key, np.nan) for epoch in epochs],
                    label=literal(name),
                    color=COLOURS[i % len(COLOURS)],
                    linestyle=DASHES[i // len(COLOURS) % len(DASHES)],
                )
            panel.set(title=heading, xlabel="epoch")
        handles = panels[0].get_legend_handles_labels()
        figure.legend(*handles, loc="outside lower center", ncols=6)
        return figure

    parts = [
        f"{name}: {epochs[0][key]:.3g} to {epochs[-1][key]:.3g} in {len(epochs)} epochs"
        for key in quantities
        for name, epochs in drawn.items()
        if key in epochs[0] and key in epochs[-1]
    ]
    headings = " and ".join(quantities.values())
    return ReportFigure("Training", f"{headings} by epoch. {'; '.join(parts)}.", draw)
