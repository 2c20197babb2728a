"""Figures of regions in photos with their labels."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import shorten
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from kernelcore import _extras
from kernelcore._validation import Array, as_real_array, check_finite, check_integer
from kernelcore.report.drawing import COLOURS, ReportFigure, literal, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Pixels = npt.NDArray[np.uint8]

_WIDTH, _HEIGHT, _CELL, _LINE = 8.2, 2.9, 1.36, 0.22
_N_CHARACTERS = 110
_COLUMNS = 6


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
    photo = _as_picture(picture)
    corners = check_finite("boxes", as_real_array("boxes", boxes, ndim=2))
    scores = check_finite("products", as_real_array("products", products, ndim=2))
    if corners.shape != (len(scores), 4) or not len(corners):
        raise ValueError(
            f"boxes must have shape ({len(scores)}, 4) for the rows of products, at least "
            f"one, got {corners.shape}"
        )
    if len(fragments) != scores.shape[1]:
        raise ValueError(
            f"fragments must be one per column of products ({scores.shape[1]}), "
            f"got {len(fragments)}"
        )
    n_fragments = check_integer("n_fragments", n_fragments, minimum=1)
    shown = np.argsort(-scores.max(axis=0), kind="stable")[:n_fragments].tolist()
    labels = [f"{fragments[j]} {scores[:, j].max():.2f}" for j in shown]

    def draw() -> Figure:
        heights = [_HEIGHT, *([_LINE * len(ranked)] if ranked else [])]
        rows: list[Any] = [["photo", "fragments"], ["ranked", "ranked"]][: len(heights)]
        figure = new_figure(_WIDTH, sum(heights))
        panels = figure.subplot_mosaic(rows, height_ratios=heights)
        panels["photo"].imshow(photo)
        panels["fragments"].set(xlim=(0, 1), ylim=(max(len(shown), 1), 0))
        for place, (j, label) in enumerate(zip(shown, labels, strict=True)):
            colour = COLOURS[place % len(COLOURS)]
            _draw_box(panels["photo"], corners[scores[:, j].argmax()], colour)
            panels["fragments"].text(
                0.02, place + 0.5, literal(label), color=colour, va="center"
            )
        if ranked:
            _write_ranked(panels["ranked"], ranked)
        for panel in panels.values():
            panel.set_axis_off()
        return figure

    height, width = photo.shape[:2]
    noun = "fragment" if len(shown) == 1 else "fragments"
    alt = (
        f"A photo of {width} by {height} pixels with the best region of {len(shown)} {noun}: "
        f"{'; '.join(labels)}."
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

    Examples
    --------
    >>> import numpy as np
    >>> from kernelcore.report import found_regions
    >>> photo = np.zeros((8, 8, 3), np.uint8)
    >>> found_regions([photo], [[0, 0, 4, 4]], [1.5], title="black dog").alt
    '1 region with score 1.50, each drawn as a box in its photo.'
    """
    photos = [_as_picture(picture) for picture in pictures]
    corners = check_finite("boxes", as_real_array("boxes", boxes, ndim=2))
    values = check_finite("scores", as_real_array("scores", scores, ndim=1))
    if not photos or corners.shape != (len(photos), 4) or len(values) != len(photos):
        raise ValueError(
            "pictures, boxes and scores must have one entry per region, at least one, got "
            f"{len(photos)}, {corners.shape} and {len(values)}"
        )

    def draw() -> Figure:
        n_rows = -(-len(photos) // _COLUMNS)
        figure = new_figure(_WIDTH, n_rows * (_CELL + 0.2))
        panels = figure.subplots(n_rows, _COLUMNS, squeeze=False).ravel()
        for panel in panels:
            panel.set_axis_off()
        for panel, photo, box, value in zip(panels, photos, corners, values, strict=False):
            panel.imshow(photo)
            _draw_box(panel, box, COLOURS[1])
            panel.set_title(f"{value:.2f}", fontsize=8)
        return figure

    span = f"{values[0]:.2f}" if len(values) == 1 else f"{values[0]:.2f} to {values[-1]:.2f}"
    noun = "region" if len(values) == 1 else "regions"
    return ReportFigure(
        title,
        f"{len(values)} {noun} with score {span}, each drawn as a box in its photo.",
        draw,
    )


def _as_picture(picture: Pixels) -> Pixels:
    if (
        not isinstance(picture, np.ndarray)
        or picture.dtype != np.uint8
        or picture.ndim != 3
        or picture.shape[2] != 3
    ):
        raise TypeError("a picture must be an array of uint8 of shape (height, width, 3)")
    return picture


def _write_ranked(axes: Axes, ranked: Sequence[tuple[str, bool]]) -> None:
    """Write captions under each other, with a mark for each that is one of the photo's."""
    axes.set(xlim=(0, 1), ylim=(len(ranked), 0))
    for place, (text, is_own) in enumerate(ranked):
        mark, colour = ("\u2713", COLOURS[2]) if is_own else ("\u2717", COLOURS[1])
        line = shorten(text, _N_CHARACTERS, placeholder=" ...")
        axes.text(0.01, place + 0.5, f"{mark} {literal(line)}", color=colour, va="center")


def _draw_box(axes: Axes, corners: Array, colour: str) -> None:
    left, top, right, bottom = corners.tolist()
    rectangle = _extras.require("matplotlib.patches").Rectangle
    axes.add_patch(
        rectangle(
            (left, top), right - left, bottom - top, fill=False, edgecolor=colour, linewidth=1.6
        )
    )
