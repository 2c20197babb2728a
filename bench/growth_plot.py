"""Draw time against size."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tables import Group, exponent

N_COLUMNS = 4


def draw(curves: Mapping[str, Group], path: Path) -> None:
    """One panel for each curve, with its fitted line; the same bytes for the same numbers."""
    import matplotlib as mpl
    import numpy as np
    from matplotlib.figure import Figure

    if not curves:
        path.unlink(missing_ok=True)
        return
    n_rows = -(-len(curves) // N_COLUMNS)
    with mpl.rc_context({"svg.hashsalt": "growth", "svg.fonttype": "none", "font.size": 8}):
        figure = Figure(figsize=(3 * N_COLUMNS, 2.6 * n_rows), layout="constrained")
        panels = figure.subplots(n_rows, N_COLUMNS, squeeze=False).flat
        for panel, (name, curve) in zip(panels, curves.items(), strict=False):
            x = np.array([float(way) for way in curve])
            y = np.array([one.seconds for one in curve.values()])
            slope = exponent(curve)
            level = np.exp(np.mean(np.log(y) - slope * np.log(x)))
            panel.loglog(x, level * x**slope, color="0.7", linewidth=1)
            panel.loglog(x, y, "o", color="tab:blue", markersize=4)
            work, _, size = name.rpartition(", ")
            panel.set_title(f"{work}\nexponent {slope:.2f}")
            panel.set_xlabel(size)
            panel.set_xticks(x, [f"{value:,.0f}" for value in x])
            panel.set_xticks([], minor=True)
            panel.set_yticks(
                [y.min(), y.max()], [f"{value:.2g}" for value in (y.min(), y.max())]
            )
            panel.set_yticks([], minor=True)
            panel.set_ylabel("seconds")
        for panel in panels:
            panel.set_visible(False)
        figure.savefig(path, metadata={"Date": None})
