"""Figures of report pages: plots with a title and an alternative text, in two themes."""

from __future__ import annotations

import io
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import shorten
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from kernelcore import _extras
from kernelcore._check import as_real_array, check_choice, check_finite
from kernelcore._store import make_folder, replacing
from kernelcore.evaluation import Result
from kernelcore.plots import _style, ranking, regions
from kernelcore.plots.regions import Pixels

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Theme: TypeAlias = Literal["light", "dark"]

THEMES = ("light", "dark")

DOTS_PER_INCH = 160

_STYLES = Path(__file__).with_name("templates")
_NAME_LENGTH = 60

# Inches. Panels stand under each other, so that a narrow screen shows them in full size.
_WIDTH, _PANEL, _LEGEND = 4.6, 2.7, 0.7
_WIDE, _PHOTO, _CELL, _LINE = 8.2, 2.9, 1.56, 0.24
_N_CHARACTERS = 100
_BINS = 60
_SHOWN = 99.5  # percent of the numbers of each group; the rest lies beyond the last bin


@dataclass(frozen=True)
class ReportFigure:
    r"""A plot with a title and an alternative text, on a light or a dark background.

    Attributes
    ----------
    title : str
        Heading over the figure.
    alt : str
        Alternative text, for those who do not see it.
    draw : callable
        Draws on an empty figure of Matplotlib, its argument. It is called with the colours of
        the theme set as Matplotlib's defaults.
    size : (float, float), default (4.6, 3.2)
        Width and height in inches.

    Examples
    --------
    >>> from kernelcore.plots import alignments
    >>> from kernelcore.report import ReportFigure
    >>> figure = ReportFigure(
    ...     "A dog", "The dog fits the second region.",
    ...     lambda figure: alignments([[0.5], [2.0]], ["dog"], ax=figure.subplots()),
    ... )
    >>> figure.to_png("dark")[:4]
    b'\x89PNG'
    """

    title: str
    alt: str
    draw: Callable[[Figure], object]
    size: tuple[float, float] = (4.6, 3.2)

    def to_matplotlib(self, theme: Theme = "light") -> Figure:
        """Draw the figure.

        Parameters
        ----------
        theme : {"light", "dark"}, default="light"

        Returns
        -------
        matplotlib.figure.Figure

        Raises
        ------
        ValueError
            If `theme` is unknown.
        MissingExtraError
            If matplotlib is not installed.
        """
        check_choice("theme", theme, THEMES)
        style = _extras.require("matplotlib.style")
        empty = _extras.require("matplotlib.figure").Figure
        with style.context([_STYLES / f"{name}.mplstyle" for name in ("figure", theme)]):
            figure: Figure = empty(figsize=self.size, layout="constrained")
            self.draw(figure)
            figure.draw_without_rendering()  # ticks take their colours when they are made
            return figure

    def to_png(self, theme: Theme = "light") -> bytes:
        """Return the figure as a PNG file.

        Parameters
        ----------
        theme : {"light", "dark"}, default="light"

        Returns
        -------
        bytes
        """
        buffer = io.BytesIO()
        self.to_matplotlib(theme).savefig(
            buffer, format="png", dpi=DOTS_PER_INCH, metadata={"Software": None}
        )
        return buffer.getvalue()


def save_figures(figures: Iterable[ReportFigure], folder: str | os.PathLike[str]) -> list[Path]:
    """Write figures as PNG files that are named by their numbers and titles.

    Parameters
    ----------
    figures : iterable of ReportFigure
    folder : path
        Made if missing.

    Returns
    -------
    list of Path
        The files.

    Examples
    --------
    >>> import tempfile
    >>> from kernelcore.evaluation import evaluate
    >>> from kernelcore.report import recall_figure, save_figures
    >>> figure = recall_figure([evaluate([[0.9, 0.1], [0.8, 0.3]], system="toy")])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     [path.name for path in save_figures([figure], folder)]
    ['01-recall-at-k.png']
    """
    target = Path(folder)
    make_folder(target)
    paths = []
    for number, figure in enumerate(figures, 1):
        words = "-".join(re.findall("[a-z0-9]+", figure.title.lower()))[:_NAME_LENGTH]
        path = target / f"{number:02d}-{words.strip('-')}.png"
        with replacing(path) as temporary:
            temporary.write_bytes(figure.to_png())
        paths.append(path)
    return paths


def recall_figure(results: Result | Sequence[Result]) -> ReportFigure:
    """Recall at every k, both directions, of all systems against chance.

    Parameters
    ----------
    results : Result or sequence of Result
        Systems measured on one pool: the numbers of candidates and of relevant items agree.

    Returns
    -------
    ReportFigure

    Raises
    ------
    TypeError
        If something else is among the results.
    ValueError
        If there are no results or they come from different pools.

    See Also
    --------
    kernelcore.plots.recall_curves : The plot.

    Examples
    --------
    >>> from kernelcore.evaluation import evaluate
    >>> from kernelcore.report import recall_figure
    >>> recall_figure(evaluate([[0.9, 0.1], [0.8, 0.3]], system="toy")).title
    'Recall at k'
    """
    compared = ranking.of_one_pool(results)

    def draw(figure: Figure) -> None:
        panels = figure.subplots(2)
        ranking.draw_recalls(panels, compared)
        _style.legend_below(panels[0], figure)

    sentences = []
    names = [*(one.system or "(unnamed)" for one in compared), ranking.CHANCE]
    for task, heading in ranking.TASKS.items():
        k = min(10, int(compared[0].n_candidates[task].max()))
        shares = [ranking.recalls_at(one, task, k) for one in compared]
        shares.append(ranking.chance_at(compared[0], task, k))
        parts = map("{} {:.1f} %".format, names, (100 * share for share in shares))
        sentences.append(f"{heading}, recall at {k}: {', '.join(parts)}.")
    size = _WIDTH, 2 * _PANEL + _LEGEND
    return ReportFigure("Recall at k", " ".join(sentences), draw, size)


def similarity_figure(
    scores: npt.ArrayLike,
    caption_image: npt.ArrayLike | None = None,
    *,
    system: str = "",
) -> ReportFigure:
    """Scores of the first 40 images and their captions; the gold pairs are framed.

    Parameters
    ----------
    scores : array_like of shape (n_images, n_captions)
        Higher is better; finite.
    caption_image : array_like of int, shape (n_captions,), optional
        Row of the image that each caption belongs to. Omit it where caption i belongs to
        image i.
    system : str, optional
        Name of the system, for the title.

    Returns
    -------
    ReportFigure

    Raises
    ------
    TypeError, ValueError
        If `scores` is not a finite matrix or `caption_image` does not fit it.

    See Also
    --------
    kernelcore.plots.similarity_matrix : The plot.

    Examples
    --------
    >>> from kernelcore.report import similarity_figure
    >>> similarity_figure([[0.9, 0.1], [0.8, 0.3]], system="toy").title
    'Similarity matrix of toy'
    """
    part, rows, n_images = ranking.first_scores(scores, caption_image, ranking.N_IMAGES)
    n_shown, n_captions = part.shape

    def draw(figure: Figure) -> None:
        ranking.similarity_matrix(part, rows, ax=figure.subplots())

    mean_gold = part[rows, np.arange(n_captions)].mean()
    name = f" of {system}" if system else ""
    alt = (
        f"Scores{name} of the first {n_shown} of {n_images} images by their {n_captions} "
        f"captions. The pairs that belong together are framed; their mean "
        f"score is {mean_gold:.3g}, that of all pairs shown {part.mean():.3g}."
    )
    return ReportFigure(f"Similarity matrix{name}", alt, draw, (_WIDTH, 4.1))


def histogram_figure(
    groups: Mapping[str, npt.ArrayLike], *, title: str, quantity: str
) -> ReportFigure:
    """Draw the density of some non-negative numbers, a line for each group.

    Parameters
    ----------
    groups : mapping of str to array_like
        Numbers by the name of their group.
    title : str
    quantity : str
        What the numbers are.

    Returns
    -------
    ReportFigure

    Raises
    ------
    ValueError
        If there is no group, or one that holds no numbers or any that are not finite.

    Examples
    --------
    >>> from kernelcore.report.figures import histogram_figure
    >>> groups = {"true": [0.0, 0.5], "false": [2.0]}
    >>> figure = histogram_figure(groups, title="Pairs", quantity="cost")
    >>> figure.alt
    'Density of the cost. true: mean 0.25, median 0.25 of 2; false: mean 2, median 2 of 1.'
    """
    drawn = {
        name: check_finite(name, as_real_array(name, np.ravel(np.asarray(values)), ndim=1))
        for name, values in groups.items()
    }
    if not drawn or not all(len(values) for values in drawn.values()):
        raise ValueError("groups must each hold at least one number, got nothing to draw")
    end = max(float(np.percentile(values, _SHOWN)) for values in drawn.values())
    edges = np.linspace(0, end if end > 0 else 1.0, _BINS + 1)

    def draw(figure: Figure) -> None:
        panel = figure.subplots()
        for i, (name, values) in enumerate(drawn.items()):
            density = np.histogram(values, edges)[0] / (len(values) * np.diff(edges))
            look = {"label": _style.label_of(name), "linewidth": 1.8, **_style.line_style(i)}
            panel.stairs(density, edges, **look)
        panel.set(xlabel=_style.label_of(quantity), ylabel="density", xlim=(0, edges[-1]))
        panel.legend()

    parts = "; ".join(
        f"{name}: mean {values.mean():.3g}, median {np.median(values):.3g} of {len(values)}"
        for name, values in drawn.items()
    )
    return ReportFigure(title, f"Density of the {quantity}. {parts}.", draw)


def training_figure(
    histories: Mapping[str, Sequence[Mapping[str, float]]], quantities: Mapping[str, str]
) -> ReportFigure:
    """Draw measurements after each epoch, one panel per quantity and a line per system.

    Parameters
    ----------
    histories : mapping of str to sequence of mapping of str to float
        Of each system what its epochs measured, as in `kernelcore.deep.History.epochs`.
        An epoch that lacks a quantity leaves a gap.
    quantities : mapping of str to str
        Which of these to draw, and what to call them.

    Returns
    -------
    ReportFigure

    Raises
    ------
    ValueError
        If there is nothing to draw.

    Examples
    --------
    >>> from kernelcore.report.figures import training_figure
    >>> epochs = [{"dev_loss": 0.5}, {"dev_loss": 0.25}]
    >>> training_figure({"AP": epochs}, {"dev_loss": "loss"}).alt
    'loss by epoch. AP: 0.5 to 0.25 in 2 epochs.'
    """
    drawn = {name: epochs for name, epochs in histories.items() if epochs}
    if not quantities or not drawn:
        raise ValueError("histories and quantities must hold something to draw, got nothing")

    def draw(figure: Figure) -> None:
        panels = _style.grid_of(figure, len(quantities), 1)
        for panel, (key, heading) in zip(panels, quantities.items(), strict=True):
            for i, (name, epochs) in enumerate(drawn.items()):
                values = [epoch.get(key, np.nan) for epoch in epochs]
                numbers = np.arange(1, len(epochs) + 1)
                panel.plot(numbers, values, label=_style.label_of(name), **_style.line_style(i))
            panel.set(title=heading, xlabel="epoch")
            _style.mark_whole_numbers(panel.xaxis)
        _style.legend_below(panels[0], figure)

    parts = "; ".join(
        f"{name}: {epochs[0][key]:.3g} to {epochs[-1][key]:.3g} in {len(epochs)} epochs"
        for key in quantities
        for name, epochs in drawn.items()
        if key in epochs[0] and key in epochs[-1]
    )
    alt = f"{' and '.join(quantities.values())} by epoch. {parts}."
    return ReportFigure("Training", alt, draw, (_WIDTH, len(quantities) * _PANEL + _LEGEND))


def alignment_figure(
    picture: Pixels,
    boxes: npt.ArrayLike,
    products: npt.ArrayLike,
    fragments: Sequence[str],
    *,
    title: str,
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
    >>> from kernelcore.report.figures import alignment_figure
    >>> figure = alignment_figure(
    ...     np.zeros((8, 8, 3), np.uint8), [[0, 0, 8, 8], [2, 2, 4, 4]], [[0.5], [2.0]],
    ...     ["black dog"], title="A black dog.",
    ... )
    >>> figure.alt
    'A photo of 8 by 8 pixels with the best region of 1 fragment: black dog 2.00.'
    """
    photo = regions.as_picture("picture", picture)
    found = regions.best_regions(boxes, products, fragments)
    heights = [_PHOTO, *([_LINE * len(ranked)] if ranked else [])]

    def draw(figure: Figure) -> None:
        panels = figure.subplots(len(heights), squeeze=False, height_ratios=heights)[:, 0]
        regions.aligned_regions(photo, boxes, products, fragments, ax=panels[0])
        if ranked:
            _write_ranked(panels[1], ranked)

    height, width = photo.shape[:2]
    alt = (
        f"A photo of {width} by {height} pixels with the best region of "
        f"{counted(len(found), 'fragment')}: {'; '.join(label for label, _ in found)}."
    )
    if ranked:
        n_own = sum(is_own for _, is_own in ranked)
        alt += f" Below are the {len(ranked)} captions ranked first, {n_own} of them its own."
    return ReportFigure(title, alt, draw, (_WIDE, sum(heights)))


def region_figure(
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
    >>> from kernelcore.report.figures import region_figure
    >>> photo = np.zeros((8, 8, 3), np.uint8)
    >>> region_figure([photo], [[0, 0, 4, 4]], [1.5], title="black dog").alt
    '1 region with score 1.50, each drawn as a box in its photo.'
    """
    photos, corners, values = zip(*regions.regions_in(pictures, boxes, scores), strict=True)
    n = len(values)

    def draw(figure: Figure) -> None:
        panels = _style.grid_of(figure, n, regions.N_COLUMNS)
        regions.found_regions(photos, corners, values, axes=panels)

    span = f"{values[0]:.2f}" if n == 1 else f"{values[0]:.2f} to {values[-1]:.2f}"
    alt = f"{counted(n, 'region')} with score {span}, each drawn as a box in its photo."
    return ReportFigure(title, alt, draw, (_WIDE, -(-n // regions.N_COLUMNS) * _CELL))


def counted(n: int, noun: str) -> str:
    """Return a number with its noun, in the plural unless it is one."""
    return f"{n} {noun}{'' if n == 1 else 's'}"


def _write_ranked(axes: Axes, ranked: Sequence[tuple[str, bool]]) -> None:
    """Write captions under each other, with a mark for each that is one of the photo's."""
    axes.set(xlim=(0, 1), ylim=(len(ranked), 0))
    for place, (text, is_own) in enumerate(ranked):
        mark, colour = ("\u2713", 2) if is_own else ("\u2717", 1)
        mark_style = {"color": _style.COLOURS[colour], "weight": "bold"}
        line = shorten(text, _N_CHARACTERS, placeholder=" ...")
        axes.text(0.01, place + 0.5, mark, mark_style, va="center")
        axes.text(0.035, place + 0.5, _style.literal(line), va="center")
    axes.set_axis_off()
