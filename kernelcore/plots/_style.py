"""What all plots share: axes in a new figure, colours, labels and legends."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from textwrap import fill
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from kernelcore import _extras

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure, SubFigure

Panels: TypeAlias = npt.NDArray[np.object_]
"""Axes of Matplotlib, one after another."""

# Okabe and Ito's colours, which people with any colour vision tell apart.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
DASHES = ("-", (0, (6, 2)), (0, (2, 1.5)), (0, (6, 2, 1, 2)))
GREY = "#888888"  # stands out from a white ground and from a black one
SMALL = 8  # points; no text is smaller

_LINE_LENGTH = 44  # characters of a label
_MANY = 5000  # beyond it a scale is marked by powers of ten alone


def colour_of(place: int) -> str:
    """Return the colour of a line, bar or box; those of six differ."""
    return COLOURS[place % len(COLOURS)]


def line_style(place: int) -> dict[str, Any]:
    """Return colour and dashes of a line; those of 24 lines differ."""
    dashes = DASHES[place // len(COLOURS) % len(DASHES)]
    return {"color": colour_of(place), "linestyle": dashes}


def one_axes(ax: Axes | None, size: tuple[float, float]) -> Axes:
    """Return `ax`, or the axes of a new figure of this size in inches; see `panels_of`."""
    panels = panels_of(None if ax is None else [ax], 1, size, name="ax")
    found: Axes = panels[0]
    return found


def panels_of(
    axes: Iterable[Axes] | None,
    n: int,
    size: tuple[float, float],
    *,
    n_columns: int = 1,
    name: str = "axes",
) -> Panels:
    """Return `axes`, or `n` axes of a new figure of this size in inches.

    The figure is pyplot's: notebooks, galleries and ``pyplot.show`` show no other. It ends as
    all of pyplot's do, by ``pyplot.close`` or with the cell of a notebook. Plots check their
    input before they call this, so that a call that is refused leaves no figure behind.
    """
    if axes is None:
        pyplot = _extras.require("matplotlib.pyplot")
        return grid_of(pyplot.figure(figsize=size, layout="constrained"), n, n_columns)
    given: Panels = np.ravel(np.asarray(axes, dtype=object))
    kind = _extras.require("matplotlib.axes").Axes
    if len(given) != n or not all(isinstance(one, kind) for one in given):
        kinds = ", ".join(sorted({type(one).__name__ for one in given}))
        raise TypeError(f"{name} must be {n} Axes of Matplotlib, got {len(given)} ({kinds})")
    return given


def grid_of(figure: Figure, n: int, n_columns: int) -> Panels:
    """Return `n` axes in rows of `n_columns`."""
    grid: Panels = figure.subplots(-(-n // n_columns), n_columns, squeeze=False).ravel()
    for empty in grid[n:]:
        empty.remove()
    return grid[:n]


def legend_below(panel: Axes, figure: Figure | SubFigure) -> None:
    """Put the legend of `panel` under all axes of the figure, in as many columns as fit."""
    handles, labels = panel.get_legend_handles_labels()
    for n_columns in range(len(handles), 0, -1):
        legend = figure.legend(handles, labels, loc="outside lower center", ncols=n_columns)
        if legend.get_window_extent().width <= figure.bbox.width or n_columns == 1:
            return
        legend.remove()


def literal(text: str) -> str:
    """Return `text` as a label that is neither mathematics nor hidden from the legend."""
    visible = "\u200b" + text if text.startswith("_") else text
    return visible.replace("$", r"\$")


def label_of(text: str) -> str:
    """Return `text` as a label in lines of at most 44 characters."""
    return literal(fill(text, _LINE_LENGTH))


def round_numbers(end: int) -> list[int]:
    """Return 1, 2, 5, 10, 20 and so on, to the first that is not below `end`.

    Where there would be many, they are 1, 10, 100 and so on.
    """
    digits = (1, 2, 5) if end <= _MANY else (1,)
    numbers = [digit * 10**power for power in range(len(str(end)) + 1) for digit in digits]
    last = min(number for number in numbers if number >= end)
    return [number for number in numbers if number <= last]


def mark_numbers(ax: Axes, places: npt.ArrayLike, numbers: Iterable[int]) -> None:
    """Mark the x axis at `places` with `numbers`, as in 500, 1k and 2M."""
    short = _extras.require("matplotlib.ticker").EngFormatter(sep="")
    ax.set_xticks(places, [short(number) for number in numbers])
    ax.set_xticks([], minor=True)


def mark_whole_numbers(axis: Axis) -> None:
    """Mark an axis at whole numbers alone."""
    locator = _extras.require("matplotlib.ticker").MaxNLocator
    axis.set_major_locator(locator("auto", integer=True, steps=[1, 2, 5, 10]))


def draw_box(ax: Axes, box: Sequence[float], **look: Any) -> None:
    """Draw the outline of a box: left, top, right and bottom."""
    left, top, right, bottom = box
    rectangle = _extras.require("matplotlib.patches").Rectangle
    ax.add_patch(rectangle((left, top), right - left, bottom - top, fill=False, **look))


def frame(ax: Axes, column: int, row: int, n_columns: int = 1) -> None:
    """Frame cells of a matrix that is drawn with `Axes.imshow`, seen on any colour."""
    stroke = _extras.require("matplotlib.patheffects").withStroke
    effects = [stroke(linewidth=2.6, foreground="black")]
    box = column - 0.5, row - 0.5, column + n_columns - 0.5, row + 0.5
    draw_box(ax, box, edgecolor="white", linewidth=1.2, path_effects=effects)
