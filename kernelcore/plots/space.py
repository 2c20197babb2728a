"""Map of the space that photos and captions share."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from textwrap import shorten
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from kernelcore import _extras
from kernelcore._check import Array, as_ordered_list, as_real_array, check_finite
from kernelcore._threads import one_blas_thread
from kernelcore.evaluation._inputs import as_caption_image
from kernelcore.models.base import as_strings
from kernelcore.plots._style import COLOURS, GREY, SMALL, legend_above, literal, one_axes
from kernelcore.plots.regions import Pixels, as_picture

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LENGTH = 32  # characters of a caption
_SIDE = 30  # points of a picture
_TRIED = 500  # of the pictures and of the captions


def joint_space(
    images: npt.ArrayLike,
    captions: npt.ArrayLike,
    caption_image: npt.ArrayLike | None = None,
    *,
    texts: Sequence[str] | None = None,
    pictures: Sequence[Pixels] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Plot photos and captions as points of their common space, with lines between gold pairs.

    Vectors of two numbers are drawn as they are. Of longer ones the two principal components
    are drawn, of photos and captions together. A map keeps a part of the differences, which
    the axes tell: points that are near to each other here may be far apart in the space.

    Parameters
    ----------
    images : array_like of shape (n_images, n_components)
        Vectors of the photos, such as `PhotoRanker.embed_images` returns.
    captions : array_like of shape (n_captions, n_components)
        Vectors of the captions, such as `PhotoRanker.embed_captions` returns.
    caption_image : array_like of int, shape (n_captions,), optional
        Row of the photo that each caption belongs to. Omit it where caption i belongs to
        photo i.
    texts : sequence of str, optional
        The captions. They are written beside their points, from the first on, where they
        cover no other and no picture. The first 500 are tried.
    pictures : sequence of ndarray of uint8, shape (height, width, 3)
        The photos in RGB. They stand in place of their points, from the first on, where they
        cover no other. The first 500 are tried.
    ax : Axes, optional
        Where to draw. The default is a new figure.

    Returns
    -------
    Axes

    Raises
    ------
    TypeError, ValueError
        If the vectors are not finite, do not have equally many components, at least two, or
        the other arguments do not fit them.
    MissingExtraError
        If Matplotlib is not installed.

    Notes
    -----
    Which texts and pictures have room depends on the size of the axes when they are drawn.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from kernelcore.plots import joint_space
    >>> photos, captions = [[0.0, 1.0], [1.0, 0.0]], [[0.1, 0.9], [0.8, 0.1]]
    >>> ax = joint_space(photos, captions, texts=["a dog", "a cat"], ax=Figure().subplots())
    >>> [text.get_text() for text in ax.texts]
    ['a dog', 'a cat']
    """
    parts = [
        check_finite(name, as_real_array(name, vectors, ndim=2)).astype(np.float64, copy=False)
        for name, vectors in (("images", images), ("captions", captions))
    ]
    n_images, n_captions = map(len, parts)
    if not n_images or parts[0].shape[1] < 2:
        raise ValueError(
            "images must hold at least one vector of at least two components, "
            f"got shape {parts[0].shape}"
        )
    if parts[1].shape[1] != parts[0].shape[1]:
        raise ValueError(
            f"captions must have as many components as images ({parts[0].shape[1]}), "
            f"got shape {parts[1].shape}"
        )
    owner = as_caption_image(caption_image, (n_images, n_captions))
    written = [] if texts is None else as_strings("texts", texts)
    shown = [] if pictures is None else as_ordered_list("pictures", pictures)
    for name, found, n in (("texts", written, n_captions), ("pictures", shown, n_images)):
        if found and len(found) != n:
            raise ValueError(f"{name} must have one entry per vector ({n}), got {len(found)}")
    for i, picture in enumerate(shown):
        as_picture(f"pictures[{i}]", picture)
    points, labels = _plane(np.concatenate(parts))
    photos, sentences = points[:n_images], points[n_images:]
    ax = one_axes(ax, (6.8, 5.6))
    pairs = np.stack([photos[owner], sentences], axis=1)
    lines = _extras.require("matplotlib.collections").LineCollection
    ax.add_collection(lines(pairs, colors=GREY, linewidths=0.8, alpha=0.5, zorder=1))
    ax.plot(*photos.T, "o", color=COLOURS[0], markersize=5, label="photos")
    ax.plot(*sentences.T, "^", color=COLOURS[1], markersize=5, label="captions")
    ax.set(xlabel=labels[0], ylabel=labels[1])
    ax.margins(0.12)
    ax.set_aspect("equal", adjustable="datalim")
    legend_above(ax)
    if written or shown:
        _annotate(ax, photos, shown, sentences, written)
    return ax


def _plane(vectors: Array) -> tuple[Array, tuple[str, str]]:
    """Return two coordinates of each vector, and what they are."""
    if vectors.shape[1] == 2:
        return vectors, ("first coordinate", "second coordinate")
    largest = np.abs(vectors).max()
    scaled = vectors / largest if largest > 0 else vectors
    centred = scaled - scaled.mean(axis=0)
    with one_blas_thread():
        variances, directions = np.linalg.eigh(centred.T @ centred)
        axes = directions[:, :-3:-1]
        # The sign of an eigenvector is arbitrary: its largest number becomes positive.
        axes = axes * np.where(axes[np.abs(axes).argmax(axis=0), [0, 1]] < 0, -1, 1)
        points = centred @ axes
    total = variances.sum()
    shares = variances[:-3:-1] / total if total > 0 else np.zeros(2)
    first, second = (f"{100 * max(share, 0):.0f} % of the variance" for share in shares)
    return points, (f"first component, {first}", f"second component, {second}")


def _annotate(
    ax: Axes,
    photos: Array,
    pictures: Sequence[Pixels],
    sentences: Array,
    texts: Sequence[str],
) -> None:
    """Draw pictures and texts at their points, as long as they cover nothing."""
    offsetbox = _extras.require("matplotlib.offsetbox")
    # Places in pixels are known when the layout of the figure is.
    ax.figure.canvas.figure.draw_without_rendering()
    covered: list[Any] = []
    thumbnails = (
        offsetbox.AnnotationBbox(
            offsetbox.OffsetImage(picture, zoom=_SIDE / max(picture.shape[:2])),
            point,
            pad=0.1,
            bboxprops={"edgecolor": COLOURS[0]},
        )
        for point, picture in zip(photos, pictures[:_TRIED], strict=False)
    )
    lines = (
        ax.annotate(_line(text), point, (5, 3), textcoords="offset points", fontsize=SMALL)
        for point, text in zip(sentences, texts[:_TRIED], strict=False)
    )
    for artist in chain(map(ax.add_artist, thumbnails), lines):
        box = artist.get_window_extent()
        inside = ax.bbox.x0 <= box.x0 and box.x1 <= ax.bbox.x1
        inside = inside and ax.bbox.y0 <= box.y0 and box.y1 <= ax.bbox.y1
        if inside and not box.count_overlaps(covered):
            covered.append(box)
        else:
            artist.remove()


def _line(text: str) -> str:
    return literal(shorten(text, _LENGTH, placeholder=" …"))
