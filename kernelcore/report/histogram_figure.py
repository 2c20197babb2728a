"""How numbers of several kinds are spread."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from kernelcore._validation import as_real_array, check_finite
from kernelcore.report.drawing import COLOURS, DASHES, ReportFigure, literal, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

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
