"""Draw time against size."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from tables import Group, exponent

N_COLUMNS = 4
COLOUR = "#0072B2"


def draw(curves: Mapping[str, Group], path: Path) -> None:
    """One panel for each curve, with its fitted line; the same bytes for the same numbers."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    if not curves:
        path.unlink(missing_ok=True)
        return
    n_rows = -(-len(curves) // N_COLUMNS)
    with mpl.rc_context({"svg.hashsalt": "growth", "svg.fonttype": "none", "font.size": 8}):
        figure = Figure(figsize=(3 * N_COLUMNS, 2.6 * n_rows), layout="constrained")
        panels = figure.subplots(n_rows, N_COLUMNS, squeeze=False).flat
        for panel, (name, curve) in zip(panels, curves.items(), strict=False):
            work, _, size = name.rpartition(", ")
            seconds = {float(way): one.seconds for way, one in curve.items()}
            slope = exponent(curve)
            sizes, costs = np.array(sorted(seconds.items())).T
            x, y = np.log(sizes), np.log(costs)
            fitted = np.exp(y.mean() + slope * (x - x.mean()))
            panel.plot(sizes, fitted, color=COLOUR, linewidth=1, alpha=0.6)
            panel.plot(sizes, costs, "o", color=COLOUR)
            panel.set(xscale="log", yscale="log", xlabel=size, ylabel="seconds")
            panel.set_xticks(sizes, [f"{one:,.6g}" for one in sizes])
            panel.set_xticks([], minor=True)
            panel.set_title(f"{work}\nexponent {slope:.2f}")
            ends = [min(seconds.values()), max(seconds.values())]
            panel.set_yticks(ends, [f"{value:.2g}" for value in ends])
            panel.set_yticks([], minor=True)
        for panel in panels:
            panel.set_visible(False)
        figure.savefig(path, metadata={"Date": None})
