"""Figures of report pages: a plot with a title and an alternative text."""

from __future__ import annotations

import io
import os
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from kernelcore import _extras
from kernelcore._check import check_choice
from kernelcore._store import make_folder, replacing

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Theme: TypeAlias = Literal["light", "dark"]

THEMES = ("light", "dark")

DOTS_PER_INCH = 160

_GROUND = {"light": "#ffffff", "dark": "#171b21"}
_INK = {"light": "#1f2328", "dark": "#e3e7ec"}
_FAINT = {"light": "#6b727b", "dark": "#98a1ac"}
_NAME_LENGTH = 60


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
        matplotlib = _extras.require("matplotlib")
        figures = _extras.require("matplotlib.figure")
        ground, ink, faint = _GROUND[theme], _INK[theme], _FAINT[theme]
        settings = {
            "figure.facecolor": ground,
            "savefig.facecolor": ground,
            "axes.facecolor": ground,
            "text.color": ink,
            "axes.labelcolor": ink,
            "axes.titlecolor": ink,
            "axes.edgecolor": faint,
            "xtick.color": faint,
            "xtick.labelcolor": ink,
            "ytick.color": faint,
            "ytick.labelcolor": ink,
            "grid.color": faint,
            "grid.alpha": 0.25,
            "axes.grid": True,
            "axes.axisbelow": True,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.titlesize": 11,
            "axes.titleweight": "bold",
            "figure.constrained_layout.h_pad": 0.09,
            "font.family": "DejaVu Sans",
            "font.size": 10,
            "legend.frameon": False,
            "lines.linewidth": 1.8,
        }
        with matplotlib.rc_context(settings):
            figure: Figure = figures.Figure(figsize=self.size, layout="constrained")
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

    def save(self, path: str | os.PathLike[str], *, theme: Theme = "light") -> None:
        """Write the figure in the format that the end of `path` names: png, pdf, svg."""
        figure = self.to_matplotlib(theme)
        kind = Path(path).suffix.removeprefix(".").lower()
        check_choice("path ending", kind, sorted(figure.canvas.get_supported_filetypes()))
        with replacing(path) as temporary:
            figure.savefig(temporary, format=kind, dpi=DOTS_PER_INCH)


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
