"""Plots of scores and of the ranks of gold items: recall at every k, and a histogram."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from kernelcore._check import Array, as_list, check_finite, check_integer
from kernelcore.evaluation import Result
from kernelcore.evaluation._inputs import as_caption_image, as_rows
from kernelcore.evaluation.metrics import chance_recall_at_k
from kernelcore.plots import _style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

TASKS = {"annotation": "Image annotation", "search": "Image search"}
CHANCE = "expected by chance"
N_IMAGES = 40
"""Images of `similarity_matrix`, unless another number is asked for."""

_CHANCE_STYLE: dict[str, Any] = {"label": CHANCE, "color": _style.GREY, "linestyle": ":"}
_SIZE = (8.2, 3.9)
_BAR_WIDTH = 0.84  # of all bars of a bin together
_TOP = 0.96  # height of the first median; 1 is the panel


def recall_curves(
    results: Result | Sequence[Result],
    *,
    max_k: int | None = None,
    axes: Iterable[Axes] | None = None,
) -> _style.Panels:
    """Plot recall at every k, both tasks, of all systems against chance.

    Parameters
    ----------
    results : Result or sequence of Result
        Systems measured on one pool: the numbers of candidates and of relevant items agree.
    max_k : int, optional
        End of the curves, at least 2; the default is the number of candidates.
    axes : two Axes, optional
        Where to draw image annotation and image search, which gets the legend. The default is
        a new figure with the legend under it.

    Returns
    -------
    ndarray of two Axes

    Raises
    ------
    TypeError
        If something else is among the results, or `axes` are not two axes.
    ValueError
        If there are no results or they come from different pools.
    MissingExtraError
        If Matplotlib is not installed.

    See Also
    --------
    kernelcore.report.recall_figure : The same for a page.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from kernelcore.evaluation import evaluate
    >>> from kernelcore.plots import recall_curves
    >>> result = evaluate([[0.9, 0.1], [0.8, 0.3]], system="toy")
    >>> annotation, search = recall_curves(result, axes=Figure().subplots(1, 2))
    >>> [line.get_label() for line in search.get_lines()]
    ['toy', 'expected by chance']
    """
    compared = of_one_pool(results)
    last_k = None if max_k is None else check_integer("max_k", max_k, minimum=2)
    panels = _style.panels_of(axes, 2, _SIZE, n_columns=2)
    draw_recalls(panels, compared, last_k)
    _name_lines(panels, is_new=axes is None)
    return panels


def draw_recalls(
    panels: _style.Panels, compared: Sequence[Result], last_k: int | None = None
) -> None:
    """Draw the lines of `recall_curves` without a legend."""
    for panel, (task, heading) in zip(panels, TASKS.items(), strict=True):
        n_candidates = int(compared[0].n_candidates[task].max())
        end = min(last_k or n_candidates, n_candidates)
        ks = np.arange(1, end + 1)
        for place, result in enumerate(compared):
            curve = 100 * recalls_at(result, task, ks)
            panel.plot(ks, curve, label=_name(result), **_style.line_style(place))
        chance = 100 * chance_at(compared[0], task, ks)
        panel.plot(ks, chance, **_CHANCE_STYLE)
        panel.set(title=heading, xlabel="k", ylabel="R@k (%)", xscale="log", ylim=(0, 100))
        _style.mark_numbers(panel, _style.round_numbers(end), _style.round_numbers(end))
        panel.set_xlim(1, max(end, 2))


def rank_histogram(
    results: Result | Sequence[Result], *, axes: Iterable[Axes] | None = None
) -> _style.Panels:
    """Plot how many queries have their gold item at which ranks, both tasks.

    The ends of the bins are 1, 2, 5, 10, 20 and so on; a bin holds the ranks above its left
    end, up to its right end. So all bars up to k add up to R@k. Triangles at the top
    stand at the median ranks, a row for each system.

    Parameters
    ----------
    results : Result or sequence of Result
        Systems measured on one pool: the numbers of candidates and of relevant items agree.
        More than four are hard to tell apart.
    axes : two Axes, optional
        Where to draw image annotation and image search, which gets the legend. The default is
        a new figure with the legend under it.

    Returns
    -------
    ndarray of two Axes

    Raises
    ------
    TypeError
        If something else is among the results, or `axes` are not two axes.
    ValueError
        If there are no results or they come from different pools.
    MissingExtraError
        If Matplotlib is not installed.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from kernelcore.evaluation import evaluate
    >>> from kernelcore.plots import rank_histogram
    >>> result = evaluate([[0.9, 0.1], [0.8, 0.3]], system="toy")
    >>> annotation, search = rank_histogram(result, axes=Figure().subplots(1, 2))
    >>> [float(bar.get_height()) for bar in annotation.containers[0]]
    [50.0, 50.0]
    """
    compared = of_one_pool(results)
    panels = _style.panels_of(axes, 2, _SIZE, n_columns=2)
    width, row = _BAR_WIDTH / len(compared), min(0.06, 0.4 / len(compared))
    for panel, (task, heading) in zip(panels, TASKS.items(), strict=True):
        n_candidates = int(compared[0].n_candidates[task].max())
        ends = np.array([0, *_style.round_numbers(n_candidates)])
        places = np.arange(len(ends))
        for i, result in enumerate(compared):
            ranks = np.sort(result.values[task]["mean_rank"])
            counts = np.diff(np.searchsorted(ranks, ends, side="right"))
            colour, shares = _style.colour_of(i), 100 * counts / len(ranks)
            left = places[:-1] + (1 - _BAR_WIDTH) / 2 + i * width
            bars = panel.bar(left, shares, width, align="edge", color=colour)
            bars[0].set_label(_name(result))
            # In the middle of its bin: rank 1 alone fills the first.
            median = np.interp(np.median(ranks) - 0.5, ends, places)
            above = panel.get_xaxis_transform()
            panel.plot([median], [_TOP - i * row], "v", color=colour, transform=above)
        chance = np.r_[0, chance_at(compared[0], task, np.arange(1, n_candidates + 1))]
        expected = 100 * np.diff(chance[np.minimum(ends, n_candidates)])
        panel.stairs(expected, places, **_CHANCE_STYLE, linewidth=1.8)
        panel.plot([], [], "v", color=_style.GREY, label="median rank")
        panel.set(title=heading, xlabel="rank of the gold item", ylabel="queries (%)")
        _style.mark_numbers(panel, places[1:], ends[1:].tolist())
        panel.set_xlim(0, places[-1])
        panel.set_ylim(0, panel.dataLim.y1 / (_TOP - len(compared) * row))
    _name_lines(panels, is_new=axes is None)
    return panels


def similarity_matrix(
    scores: npt.ArrayLike,
    caption_image: npt.ArrayLike | None = None,
    *,
    max_images: int = N_IMAGES,
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
    part, owners, _ = first_scores(scores, caption_image, max_images)
    ax = _style.one_axes(ax, (5.6, 4.9))
    low, high = np.percentile(part, [1, 99])
    image = ax.imshow(
        part, cmap="viridis", vmin=low, vmax=high, aspect="auto", interpolation="nearest"
    )
    starts = np.searchsorted(owners, np.arange(len(part) + 1))
    for row, (start, end) in enumerate(pairwise(starts.tolist())):
        _style.frame(ax, start, row, end - start)
    ax.grid(visible=False)
    ax.set(xlabel="caption", ylabel="image")
    _style.mark_whole_numbers(ax.xaxis)
    _style.mark_whole_numbers(ax.yaxis)
    ax.figure.colorbar(image, ax=ax, label="score", extend="both")
    return ax


def first_scores(
    scores: npt.ArrayLike, caption_image: npt.ArrayLike | None, max_images: int
) -> tuple[Array, npt.NDArray[np.intp], int]:
    """Return the scores that `similarity_matrix` shows, their owners, and the number of images.

    Captions of one image stand side by side: the owners are ascending.
    """
    matrix = check_finite("scores", as_rows("scores", scores).matrix())
    owner = as_caption_image(caption_image, matrix.shape)
    n_shown = min(check_integer("max_images", max_images, minimum=1), len(matrix))
    captions = np.argsort(owner, kind="stable")[: np.count_nonzero(owner < n_shown)]
    return matrix[:n_shown, captions], owner[captions], len(matrix)


def of_one_pool(results: Result | Sequence[Result]) -> tuple[Result, ...]:
    """Return the results, of which there is at least one, if they are of one pool."""
    single = isinstance(results, Result)
    compared = (results,) if single else tuple(as_list("results", results))
    if not compared:
        raise ValueError("results must hold at least one result, got none")
    for result in compared:
        if not isinstance(result, Result):
            raise TypeError(f"results must be Result, got {type(result).__name__}")
        if "mean_rank" not in result.values.get("search", ()):
            raise ValueError("results must come from evaluate, as others have no ranks")
    first = compared[0]
    for result in compared[1:]:
        for task in TASKS:
            pools = [(one.n_candidates[task], one.n_relevant[task]) for one in (first, result)]
            if not all(map(np.array_equal, *pools)):
                raise ValueError(
                    "results must come from one pool, and those of "
                    f"{first.system!r} and {result.system!r} differ in {task}"
                )
    return compared


def recalls_at(result: Result, task: str, ks: npt.ArrayLike) -> Array:
    """Return the recall at each k."""
    ranks = np.sort(result.values[task]["mean_rank"])
    return np.searchsorted(ranks, ks, side="right") / len(ranks)


def chance_at(result: Result, task: str, ks: npt.ArrayLike) -> Array:
    """Return the recall at each k that a random order is expected to reach."""
    pools = np.stack((result.n_candidates[task], result.n_relevant[task]))
    (total, relevant), n_queries = np.unique(pools, axis=1, return_counts=True)
    shares = chance_recall_at_k(total, np.asarray(ks)[..., np.newaxis], n_relevant=relevant)
    return np.asarray(np.average(shares, axis=-1, weights=n_queries))


def _name(result: Result) -> str:
    return _style.label_of(result.system or "(unnamed)")


def _name_lines(panels: _style.Panels, *, is_new: bool) -> None:
    if is_new:
        _style.legend_below(panels[0], panels[0].figure)
    else:
        panels[-1].legend()
