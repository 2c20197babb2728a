"""Plot of a matrix of scores."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from kernelcore._check import Array, check_finite, check_integer
from kernelcore.evaluation._inputs import as_caption_image
from kernelcore.evaluation.ranks import as_scores
from kernelcore.plots._style import frame, mark_whole_numbers, one_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def similarity_matrix(
    scores: npt.ArrayLike,
    caption_image: npt.ArrayLike | None = None,
    *,
    max_images: int = 40,
    ax: Axes | None = None,
) -> Axes:
    """Plot the scores of the first images and their captions; the gold pairs are framed.

    Parameters
    ----------
    scores : array_like of shape (n_images, n_captions)
        Higher is better; finite.
    caption_image : array_like of int, shape (n_captions,), optional
        Row of the image that each caption belongs to. Omit it where caption i belongs to
        image i.
    max_images : int, default 40
        Images to show, from the first on, with all their captions, image by image.
    ax : Axes, optional
        Where to draw. The default is a new figure.

    Returns
    -------
    Axes

    Raises
    ------
    TypeError, ValueError
        If `scores` is not a finite matrix or `caption_image` does not fit it.
    MissingExtraError
        If Matplotlib is not installed.

    Notes
    -----
    The colours span the scores from percentile 1 to 99; what lies beyond has the colour of
    the end.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from kernelcore.plots import similarity_matrix
    >>> scores = [[0.9, 0.1, 0.2], [0.3, 0.4, 0.8]]
    >>> ax = similarity_matrix(scores, [0, 1, 1], ax=Figure().subplots())
    >>> len(ax.patches)
    2
    """
    part = first_scores(scores, caption_image, max_images)
    ax = one_axes(ax, (5.6, 4.9))
    low, high = np.percentile(part.scores, [1, 99])
    image = ax.imshow(
        part.scores, cmap="viridis", vmin=low, vmax=high, aspect="auto", interpolation="nearest"
    )
    starts = np.searchsorted(part.caption_image, np.arange(len(part.scores) + 1))
    for row, (start, end) in enumerate(pairwise(starts.tolist())):
        frame(ax, start, row, end - start)
    ax.grid(visible=False)
    ax.set(xlabel="caption", ylabel="image")
    mark_whole_numbers(ax.xaxis)
    mark_whole_numbers(ax.yaxis)
    ax.figure.colorbar(image, ax=ax, label="score", extend="both")
    return ax


class FirstScores(NamedTuple):
    """Scores of the first images and of all their captions.

    Attributes
    ----------
    scores : ndarray of shape (n_shown, n_captions)
        Captions of one image stand side by side.
    caption_image : ndarray of int, shape (n_captions,)
        Row of the image that each caption belongs to, ascending.
    n_images : int
        Images of the whole matrix.
    """

    scores: Array
    caption_image: npt.NDArray[np.intp]
    n_images: int


def first_scores(
    scores: npt.ArrayLike, caption_image: npt.ArrayLike | None, max_images: int
) -> FirstScores:
    """Return the part of the scores that `similarity_matrix` shows."""
    matrix = check_finite("scores", as_scores("scores", scores))
    owner = as_caption_image(caption_image, matrix.shape)
    n_shown = min(check_integer("max_images", max_images, minimum=1), len(matrix))
    shown = np.flatnonzero(owner < n_shown)
    captions = shown[np.argsort(owner[shown], kind="stable")]
    return FirstScores(matrix[:n_shown, captions], owner[captions], len(matrix))
