"""How losses and measures move while models are trained."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from kernelcore.report.drawing import COLOURS, DASHES, ReportFigure, literal, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def training_curves(
    histories: Mapping[str, Sequence[Mapping[str, float]]], quantities: Mapping[str, str]
) -> ReportFigure:
    """Draw what was measured after each epoch, one panel per quantity and a line per system.

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
