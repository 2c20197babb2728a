"""Draw time against size."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tables import Group, exponent

from kernelcore.plots import growth_curves

N_COLUMNS = 4


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
            growth_curves(
                {work: seconds}, size=size, exponents={work: slope}, ax=panel, legend=False
            )
            panel.set_title(f"{work}\nexponent {slope:.2f}")
            ends = [min(seconds.values()), max(seconds.values())]
            panel.set_yticks(ends, [f"{value:.2g}" for value in ends])
            panel.set_yticks([], minor=True)
        for panel in panels:
            panel.set_visible(False)
        figure.savefig(path, metadata={"Date": None})
