"""Figures of report pages: plots with a title and an alternative text, in two themes."""

from __future__ import annotations

import io
import os
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from kernelcore import _extras
from kernelcore._check import check_choice
from kernelcore._store import make_folder, replacing
from kernelcore.evaluation import Result
from kernelcore.plots import _style, ranking

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Theme: TypeAlias = Literal["light", "dark"]

THEMES = ("light", "dark")

DOTS_PER_INCH = 160

_STYLES = Path(__file__).with_name("templates")
_NAME_LENGTH = 60

# Inches. Panels stand under each other, so that a narrow screen shows them in full size.
_WIDTH, _PANEL, _LEGEND = 4.6, 2.7, 0.7


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
