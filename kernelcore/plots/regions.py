"""Plots of sentence fragments and the regions of photos that they fit."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from kernelcore._check import Array, as_list, as_real_array, as_strings, check_finite
from kernelcore.plots import _style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Pixels: TypeAlias = npt.NDArray[np.uint8]
"""A photo: uint8, shape (height, width, 3) in RGB order."""

_LINE = 1.8  # points
_N_FRAGMENTS = 6

N_COLUMNS = 6
"""Photos of `found_regions` in a row."""


def alignments(
    products: npt.ArrayLike, fragments: Sequence[str], *, ax: Axes | None = None
) -> Axes:
    """Plot how well each fragment of a caption fits each region; the best regions are framed.

    Parameters
    ----------
    products : array_like of shape (n_regions, n_fragments)
        How well they fit, finite; positive where a region shows a fragment. For a
        `FragmentRanker`, one of what its `alignments` returns.
    fragments : sequence of str
        What to call each fragment.
    ax : Axes, optional
        Where to draw. The default is a new figure.

    Returns
    -------
    Axes

    Raises
    ------
    TypeError, ValueError
        If `products` is not a finite matrix, or there is not one fragment per column.
    MissingExtraError
        If Matplotlib is not installed.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from kernelcore.plots import alignments
    >>> products = [[0.5, -1.0], [2.0, 0.1]]
    >>> ax = alignments(products, ["dog", "black dog"], ax=Figure().subplots())
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['dog', 'black dog']
    """
    matrix, names = _fitted(products, fragments)
    if not names:
        raise ValueError("fragments must hold at least one fragment, got none")
    ax = _style.one_axes(ax, (5.6, 1.3 + 0.3 * len(names)))
    end = float(np.abs(matrix).max()) or 1.0
    image = ax.imshow(matrix.T, cmap="PuOr_r", vmin=-end, vmax=end, aspect="auto")
    for row, region in enumerate(matrix.argmax(axis=0).tolist()):
        _style.frame(ax, region, row)
    ax.grid(visible=False)
    ax.set_yticks(range(len(names)), map(_style.label_of, names))
    ax.set_xlabel("region")
    _style.mark_whole_numbers(ax.xaxis)
    ax.figure.colorbar(image, ax=ax, label="product")
    return ax


def aligned_regions(
    picture: Pixels,
    boxes: npt.ArrayLike,
    products: npt.ArrayLike,
    fragments: Sequence[str],
    *,
    ax: Axes | None = None,
) -> Axes:
    """Plot a photo with the region that each fragment of its caption fits best.

    Shows the six fragments with the highest products.

    Parameters
    ----------
    picture : ndarray of uint8, shape (height, width, 3)
        RGB.
    boxes : array_like of shape (n_regions, 4)
        Left, top, right and bottom of each region in pixels.
    products : array_like of shape (n_regions, n_fragments)
        How well each fragment fits each region; higher is better. Finite.
    fragments : sequence of str
        What to call each fragment. The legend right of the photo names it with its product.
    ax : Axes, optional
        Where to draw. The default is a new figure.

    Returns
    -------
    Axes

    Raises
    ------
    TypeError, ValueError
        If shapes do not fit together or a number is not finite.
    MissingExtraError
        If Matplotlib is not installed.

    Examples
    --------
    >>> import numpy as np
    >>> from matplotlib.figure import Figure
    >>> from kernelcore.plots import aligned_regions
    >>> photo, boxes = np.zeros((8, 8, 3), np.uint8), [[0, 0, 8, 8], [2, 2, 4, 4]]
    >>> ax = aligned_regions(photo, boxes, [[0.5], [2.0]], ["dog"], ax=Figure().subplots())
    >>> ax.get_legend().get_texts()[0].get_text(), ax.patches[0].get_bbox().extents
    ('dog 2.00', array([2., 2., 4., 4.]))
    """
    photo = as_picture("picture", picture)
    found = best_regions(boxes, products, fragments)
    ax = _style.one_axes(ax, (7.2, 3.2))
    ax.imshow(photo)
    ax.set_anchor("W")  # the legend has the room right of it
    for place, (label, box) in enumerate(found):
        # Of fragments in one region, the frames lie in each other.
        n_later = sum(np.array_equal(box, other) for _, other in found[place + 1 :])
        look = {"edgecolor": _style.colour_of(place), "linewidth": _LINE + 3 * n_later}
        _style.draw_box(ax, box.tolist(), label=_style.label_of(label), **look)
    if found:
        legend = ax.legend(loc="upper left", bbox_to_anchor=(1.02, 1), frameon=False)
        for handle in legend.get_patches():
            handle.set_linewidth(_LINE)
    ax.set_axis_off()
    return ax


def found_regions(
    pictures: Sequence[Pixels],
    boxes: npt.ArrayLike,
    scores: Sequence[float],
    *,
    axes: Iterable[Axes] | None = None,
) -> _style.Panels:
    """Plot the regions that were found for a fragment, each within its photo.

    Parameters
    ----------
    pictures : sequence of ndarray of uint8, shape (height, width, 3)
        Photo of each region, RGB.
    boxes : array_like of shape (n_regions, 4)
        Left, top, right and bottom of each region in pixels of its photo.
    scores : sequence of float
        Score of each region, from the highest on.
    axes : Axes of each region, optional
        Where to draw. The default is a new figure with six photos in a row.

    Returns
    -------
    ndarray of n_regions Axes

    Raises
    ------
    TypeError, ValueError
        If there are none, or shapes do not fit together.
    MissingExtraError
        If Matplotlib is not installed.

    Examples
    --------
    >>> import numpy as np
    >>> from matplotlib.figure import Figure
    >>> from kernelcore.plots import found_regions
    >>> photos, boxes = np.zeros((2, 8, 8, 3), np.uint8), [[0, 0, 4, 4], [2, 2, 6, 6]]
    >>> axes = found_regions(photos, boxes, [1.5, 0.5], axes=Figure().subplots(1, 2))
    >>> [ax.get_title() for ax in axes]
    ['1.50', '0.50']
    """
    found = regions_in(pictures, boxes, scores)
    n_columns = min(len(found), N_COLUMNS)
    size = (1.37 * n_columns, 1.56 * -(-len(found) // N_COLUMNS))
    panels = _style.panels_of(axes, len(found), size, n_columns=n_columns)
    for panel, (photo, box, value) in zip(panels, found, strict=True):
        panel.imshow(photo)
        _style.draw_box(panel, box.tolist(), edgecolor=_style.COLOURS[1], linewidth=_LINE)
        panel.set_title(f"{value:.2f}", fontsize=_style.SMALL)
        panel.set_axis_off()
    return panels


def best_regions(
    boxes: npt.ArrayLike, products: npt.ArrayLike, fragments: Sequence[str]
) -> list[tuple[str, Array]]:
    """Return label and box of the best regions of six fragments, by descending product."""
    matrix, names = _fitted(products, fragments)
    corners = check_finite("boxes", as_real_array("boxes", boxes, ndim=2))
    if corners.shape != (len(matrix), 4):
        raise ValueError(
            f"boxes must have shape ({len(matrix)}, 4) for the rows of products, "
            f"got {corners.shape}"
        )
    best = matrix.max(axis=0)
    shown = np.argsort(-best, kind="stable")[:_N_FRAGMENTS].tolist()
    return [(f"{names[j]} {best[j]:.2f}", corners[matrix[:, j].argmax()]) for j in shown]


def regions_in(
    pictures: Sequence[Pixels], boxes: npt.ArrayLike, scores: Sequence[float]
) -> list[tuple[Pixels, Array, float]]:
    """Return each photo with its region and the score, of which there is at least one."""
    photos = [
        as_picture(f"pictures[{i}]", one) for i, one in enumerate(as_list("pictures", pictures))
    ]
    corners = check_finite("boxes", as_real_array("boxes", boxes, ndim=2))
    values = check_finite("scores", as_real_array("scores", scores, ndim=1))
    if not photos or corners.shape != (len(photos), 4) or len(values) != len(photos):
        raise ValueError(
            "pictures, boxes and scores must have one entry per region, at least one, got "
            f"{len(photos)}, {corners.shape} and {len(values)}"
        )
    return list(zip(photos, corners, values.tolist(), strict=True))


def as_picture(name: str, pixels: Any) -> Pixels:
    """Return `pixels`, called `name` in errors, if they are a photo in RGB."""
    if not isinstance(pixels, np.ndarray) or pixels.dtype != np.uint8:
        kind = pixels.dtype if isinstance(pixels, np.ndarray) else type(pixels).__name__
        raise TypeError(f"{name} must be an array of uint8, got {kind}")
    if pixels.ndim != 3 or pixels.shape[2] != 3 or not pixels.size:
        raise ValueError(f"{name} must have shape (height, width, 3), got {pixels.shape}")
    return pixels


def _fitted(products: npt.ArrayLike, fragments: Sequence[str]) -> tuple[Array, list[str]]:
    matrix = check_finite("products", as_real_array("products", products, ndim=2))
    names = as_strings("fragments", fragments)
    if not len(matrix):
        raise ValueError("products must hold at least one region, got none")
    if len(names) != matrix.shape[1]:
        raise ValueError(
            f"fragments must be one per column of products ({matrix.shape[1]}), "
            f"got {len(names)}"
        )
    return matrix, names
