"""Figures of regions in photos with their labels."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import shorten
from typing import TYPE_CHECKING

import numpy.typing as npt

from kernelcore import plots
from kernelcore.plots._style import COLOURS, grid_of, literal
from kernelcore.plots.regions import N_COLUMNS, Pixels, as_picture, best_regions, regions_in
from kernelcore.report.drawing import ReportFigure, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_WIDTH, _HEIGHT, _CELL, _LINE = 8.2, 2.9, 1.36, 0.24
_N_CHARACTERS = 100


def aligned_regions(
    picture: Pixels,
    boxes: npt.ArrayLike,
    products: npt.ArrayLike,
    fragments: Sequence[str],
    *,
    title: str,
    n_fragments: int = 6,
    ranked: Sequence[tuple[str, bool]] = (),
) -> ReportFigure:
    """Draw the region of a photo that each fragment of its caption fits best.

    Parameters
    ----------
    picture : ndarray of uint8, shape (height, width, 3)
        RGB.
    boxes : array_like of shape (n_regions, 4)
        Left, top, right and bottom of each region in pixels.
    products : array_like of shape (n_regions, n_fragments)
        How well each fragment fits each region; higher is better. Finite.
    fragments : sequence of str
        What to call each fragment.
    title : str
        Heading of the figure, the caption say.
    n_fragments : int, default=6
        How many to show, from the highest score on.
    ranked : sequence of (str, bool), optional
        Captions that are ranked first for the photo, and whether each is one of its own.

    Returns
    -------
    ReportFigure

    Raises
    ------
    TypeError, ValueError
        If shapes do not fit together or a number is not finite.

    See Also
    --------
    kernelcore.plots.aligned_regions : The plot.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelcore.report import aligned_regions
    >>> figure = aligned_regions(
    ...     np.zeros((8, 8, 3), np.uint8), [[0, 0, 8, 8], [2, 2, 4, 4]], [[0.5], [2.0]],
    ...     ["black dog"], title="A black dog.",
    ... )
    >>> figure.alt
    'A photo of 8 by 8 pixels with the best region of 1 fragment: black dog 2.00.'
    """
    photo = as_picture("picture", picture)
    found = best_regions(boxes, products, fragments, n_fragments)

    def draw() -> Figure:
        heights = [_HEIGHT, *([_LINE * len(ranked)] if ranked else [])]
        figure = new_figure(_WIDTH, sum(heights))
        panels = figure.subplots(len(heights), squeeze=False, height_ratios=heights)[:, 0]
        plots.aligned_regions(
            photo, boxes, products, fragments, n_fragments=n_fragments, ax=panels[0]
        )
        if ranked:
            _write_ranked(panels[1], ranked)
        return figure

    height, width = photo.shape[:2]
    noun = "fragment" if len(found) == 1 else "fragments"
    alt = (
        f"A photo of {width} by {height} pixels with the best region of {len(found)} {noun}: "
        f"{'; '.join(region.label for region in found)}."
    )
    if ranked:
        n_own = sum(is_own for _, is_own in ranked)
        alt += f" Below are the {len(ranked)} captions ranked first, {n_own} of them its own."
    return ReportFigure(title, alt, draw)


def found_regions(
    pictures: Sequence[Pixels], boxes: npt.ArrayLike, scores: Sequence[float], *, title: str
) -> ReportFigure:
    """Draw the regions that were found for a fragment, each within its photo.

    Parameters
    ----------
    pictures : sequence of ndarray of uint8, shape (height, width, 3)
        Photo of each region, RGB.
    boxes : array_like of shape (n_regions, 4)
        Left, top, right and bottom of each region in pixels of its photo.
    scores : sequence of float
        Score of each region, from the highest on.
    title : str
        Heading of the figure, the fragment say.

    Returns
    -------
    ReportFigure

    Raises
    ------
    TypeError, ValueError
        If there are none, or shapes do not fit together.

    See Also
    --------
    kernelcore.plots.found_regions : The plot.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelcore.report import found_regions
    >>> photo = np.zeros((8, 8, 3), np.uint8)
    >>> found_regions([photo], [[0, 0, 4, 4]], [1.5], title="black dog").alt
    '1 region with score 1.50, each drawn as a box in its photo.'
    """
    found = regions_in(pictures, boxes, scores)
    photos, corners, values = zip(*found, strict=True)

    def draw() -> Figure:
        figure = new_figure(_WIDTH, -(-len(found) // N_COLUMNS) * (_CELL + 0.2))
        panels = grid_of(figure, len(found), N_COLUMNS)
        plots.found_regions(photos, corners, values, axes=panels)
        return figure

    span = f"{values[0]:.2f}" if len(values) == 1 else f"{values[0]:.2f} to {values[-1]:.2f}"
    noun = "region" if len(values) == 1 else "regions"
    return ReportFigure(
        title,
        f"{len(values)} {noun} with score {span}, each drawn as a box in its photo.",
        draw,
    )


def _write_ranked(axes: Axes, ranked: Sequence[tuple[str, bool]]) -> None:
    """Write captions under each other, with a mark for each that is one of the photo's."""
    axes.set(xlim=(0, 1), ylim=(len(ranked), 0))
    for place, (text, is_own) in enumerate(ranked):
        mark, colour = ("\u2713", COLOURS[2]) if is_own else ("\u2717", COLOURS[1])
        line = shorten(text, _N_CHARACTERS, placeholder=" ...")
        axes.text(0.01, place + 0.5, mark, color=colour, va="center", weight="bold")
        axes.text(0.035, place + 0.5, literal(line), va="center")
    axes.set_axis_off()
