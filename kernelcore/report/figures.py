"""Figures of a report: matplotlib drawings that know their title and say what they show."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from kernelcore import _extras
from kernelcore._files import replacing
from kernelcore._validation import check_choice, check_finite, check_integer
from kernelcore.evaluation import RetrievalResult
from kernelcore.evaluation._gold import as_caption_image
from kernelcore.evaluation.ranks import as_scores

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Theme: TypeAlias = Literal["light", "dark"]

THEMES = ("light", "dark")

TASKS = {"annotation": "Image annotation", "search": "Image search"}

# Okabe and Ito's colours that keep apart for every kind of colour vision, on either ground.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
_DASHES = ("-", (0, (6, 2)), (0, (2, 1.5)), (0, (6, 2, 1, 2)))
_GROUND = {"light": "#ffffff", "dark": "#171b21"}
_INK = {"light": "#1f2328", "dark": "#e3e7ec"}
_FAINT = {"light": "#6b727b", "dark": "#98a1ac"}
DOTS_PER_INCH = 160


@dataclass(frozen=True)
class ReportFigure:
    r"""A figure that is drawn when it is needed, on a light or on a dark ground.

    Attributes
    ----------
    title : str
        Heading over the figure.
    alt : str
        What it shows, for those who do not see it.
    draw : callable
        Returns a matplotlib Figure. It is called with the colours of the theme set as
        matplotlib's defaults.

    Examples
    --------
    >>> from kernelcore.evaluation import evaluate
    >>> from kernelcore.report import figures
    >>> figure = figures.recall_curves([evaluate([[0.9, 0.1], [0.8, 0.3]], system="toy")])
    >>> figure.title
    'Recall at k'
    >>> figure.to_png("dark")[:4]
    b'\x89PNG'
    """

    title: str
    alt: str
    draw: Callable[[], Figure]

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
            "font.family": "DejaVu Sans",
            "font.size": 9,
            "legend.frameon": False,
            "lines.linewidth": 1.8,
        }
        with matplotlib.rc_context(settings):
            figure = self.draw()
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


def recall_curves(
    results: Sequence[RetrievalResult], *, max_k: int | None = None
) -> ReportFigure:
    """Recall at every k, both directions, of all systems against chance.

    Parameters
    ----------
    results : sequence of RetrievalResult
        Systems measured on one pool: the numbers of candidates and of relevant items agree.
    max_k : int, optional
        End of the curves; the default is the number of candidates.

    Returns
    -------
    ReportFigure

    Raises
    ------
    ValueError
        If there are no results or they come from different pools.
    """
    results = tuple(results)
    if not results:
        raise ValueError("results must hold at least one result, got none")
    first = results[0]
    for result in results[1:]:
        for task in TASKS:
            ours, theirs = getattr(first, task), getattr(result, task)
            if ours.n_candidates != theirs.n_candidates or not np.array_equal(
                ours.n_relevant, theirs.n_relevant
            ):
                raise ValueError(
                    "results must come from one pool, and those of "
                    f"{first.system!r} and {result.system!r} differ in {task}"
                )
    if max_k is not None:
        max_k = check_integer("max_k", max_k, minimum=2)

    def draw() -> Figure:
        figure = _figure(8.2, 3.9)
        panels = figure.subplots(1, 2, sharey=True)
        for panel, (task, heading) in zip(panels, TASKS.items(), strict=True):
            metrics = [getattr(result, task) for result in results]
            last = min(max_k or metrics[0].n_candidates, metrics[0].n_candidates)
            ks = np.arange(1, last + 1)
            for i, (result, one) in enumerate(zip(results, metrics, strict=True)):
                panel.plot(
                    ks,
                    100 * one.recall_curve(last),
                    label=_literal(result.system or "(unnamed)"),
                    color=_COLOURS[i % len(_COLOURS)],
                    linestyle=_DASHES[i // len(_COLOURS) % len(_DASHES)],
                )
            panel.plot(
                ks,
                100 * metrics[0].chance_recall_curve(last),
                label="expected by chance",
                color="#888888",
                linestyle=":",
            )
            panel.set(title=heading, xlabel="k", xscale="log", xlim=(1, max(last, 2)))
            panel.xaxis.set_major_formatter("{x:,.0f}")
        panels[0].set(ylabel="R@k (%)", ylim=(0, 100))
        figure.legend(
            *panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=4
        )
        return figure

    return ReportFigure("Recall at k", _describe_recall(results), draw)


def similarity_matrix(
    scores: npt.ArrayLike,
    caption_image: npt.ArrayLike | None = None,
    *,
    max_images: int = 40,
    system: str = "",
) -> ReportFigure:
    """Scores of the first images and their captions; the gold pairs are framed.

    Parameters
    ----------
    scores : array_like of shape (n_images, n_captions)
        Higher is better; finite.
    caption_image : array_like of int, shape (n_captions,), optional
        Row of the image that each caption belongs to. Omit it where caption i belongs to
        image i.
    max_images : int, default=40
        Images to show, from the first on, with all their captions.
    system : str, optional
        Name of the system, for the title.

    Returns
    -------
    ReportFigure

    Raises
    ------
    TypeError, ValueError
        If `scores` is not a finite matrix or `caption_image` does not fit it.
    """
    matrix = check_finite("scores", as_scores("scores", scores))
    owner = as_caption_image(caption_image, matrix.shape)
    n_shown = min(check_integer("max_images", max_images, minimum=1), len(matrix))
    shown = np.flatnonzero(owner < n_shown)
    captions = shown[np.argsort(owner[shown], kind="stable")]
    part = matrix[:n_shown, captions]
    gold_rows = owner[captions]

    def draw() -> Figure:
        figure = _figure(5.6, 4.9)
        axes = figure.subplots()
        low, high = np.percentile(part, [1, 99])
        image = axes.imshow(
            part, cmap="viridis", vmin=low, vmax=high, aspect="auto", interpolation="nearest"
        )
        frame = _extras.require("matplotlib.patches").Rectangle
        for column, row in enumerate(gold_rows):
            axes.add_patch(
                frame(
                    (column - 0.45, row - 0.45),
                    width=0.9,
                    height=0.9,
                    fill=False,
                    edgecolor="white",
                    linewidth=1.1,
                )
            )
        axes.grid(visible=False)
        axes.set(xlabel="caption", ylabel="image")
        figure.colorbar(image, label="score", extend="both")
        return figure

    mean_gold = part[gold_rows, np.arange(len(captions))].mean()
    name = f" of {system}" if system else ""
    return ReportFigure(
        title=f"Similarity matrix{name}",
        alt=(
            f"Scores{name} of the first {n_shown} of {len(matrix)} images by their "
            f"{len(captions)} captions. The pairs that belong together are framed; their mean "
            f"score is {mean_gold:.3g}, that of all pairs shown {part.mean():.3g}."
        ),
        draw=draw,
    )


def _figure(width: float, height: float) -> Figure:
    figure_module = _extras.require("matplotlib.figure")
    figure: Figure = figure_module.Figure(figsize=(width, height), layout="constrained")
    return figure


def _literal(text: str) -> str:
    """Return `text` as a label that is neither mathematics nor hidden from the legend."""
    visible = "\u200b" + text if text.startswith("_") else text
    return visible.replace("$", r"\$")


def _describe_recall(results: Sequence[RetrievalResult]) -> str:
    sentences = []
    for task, heading in TASKS.items():
        first = getattr(results[0], task)
        k = min(10, first.n_candidates)
        shares = [
            (result.system or "(unnamed)", getattr(result, task).recall_curve(k)[-1])
            for result in results
        ]
        shares.append(("expected by chance", first.chance_recall_curve(k)[-1]))
        parts = [f"{name} {100 * share:.1f} %" for name, share in shares]
        sentences.append(f"{heading}, recall at {k}: {', '.join(parts)}.")
    return " ".join(sentences)
