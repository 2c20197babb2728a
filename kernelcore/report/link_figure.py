"""Figure of the links between the images and the sentences of a document."""

from __future__ import annotations

import os
from collections.abc import Mapping
from textwrap import wrap
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt

from kernelcore import _extras
from kernelcore._check import Array, as_real_array, check_finite
from kernelcore._store import counted
from kernelcore.datasets import Document
from kernelcore.images import UnreadableImageError, read_image
from kernelcore.images.read import limit_side
from kernelcore.matching import linear_assignment
from kernelcore.plots._style import COLOURS, GREY, SMALL, draw_box, literal
from kernelcore.report.figures import ReportFigure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Source: TypeAlias = str | os.PathLike[str] | npt.NDArray[np.uint8] | None
Link: TypeAlias = tuple[int, int]

# Colour, dashes and legend of each kind of link.
_FOUND, _WRONG, _MISSED, _PREDICTED = "found", "wrong", "missed", "predicted"
_STYLES = {
    _FOUND: (COLOURS[2], "-", "predicted, true"),
    _WRONG: (COLOURS[1], (0, (5, 1.5)), "predicted, not true"),
    _MISSED: (GREY, (0, (1.2, 1.8)), "true, not predicted"),
    _PREDICTED: (COLOURS[0], "-", "predicted"),
}

# Places in inches.
_WIDTH = 8.2
_MARGIN = 0.12
_SIDE = 0.66
_LINES = (_MARGIN + _SIDE + 0.06, 3.35)
_IMAGE_ROW, _SENTENCE_ROW, _FOOT = 0.74, 0.42, 0.34
_CHARACTERS, _TEXT_LINES = 58, 2
_PIXELS = 160
_FONT = 9

_N_LINKS = 5
_MOST_ROWS = 20


def link_figure(
    document: Document,
    scores: npt.ArrayLike,
    images: Mapping[str, Source] | None = None,
    *,
    system: str = "",
) -> ReportFigure:
    """Draw the links that a system predicts within a document, beside the true ones.

    Of the assignment of sentences to images with the greatest sum of scores, the five links
    with the highest scores are drawn; the higher the score, the wider the line. At most 20
    images and 20 sentences are shown, those with links first; the others are counted.

    Parameters
    ----------
    document : Document
        With true links, or without: then predictions are not judged.
    scores : array_like of shape (n_sentences, n_images)
        Higher is better; finite.
    images : mapping of str to path or ndarray of uint8, optional
        The picture of each image id, as a file or as pixels that
        `kernelcore.images.read_image` takes. An image that is missing, None or cannot be read
        is an empty frame with its id.
    system : str, optional
        Name of the system, for the title.

    Returns
    -------
    ReportFigure

    Raises
    ------
    TypeError, ValueError
        If `document` is something else, or the scores are not finite or do not fit it.
    MissingExtraError
        If there are images and OpenCV is not installed.

    References
    ----------
    .. [1] J. Hessel, L. Lee and D. Mimno, "Unsupervised discovery of multimodal links in
       multi-image, multi-sentence documents", EMNLP-IJCNLP 2019, figure 4.

    Examples
    --------
    >>> from kernelcore.datasets import Document
    >>> from kernelcore.report import link_figure
    >>> garden = Document("garden", ("A dog digs.", "It was May."), ("dog", "tree"), {(0, 0)})
    >>> figure = link_figure(garden, [[0.9, 0.1], [0.2, 0.3]], system="AP")
    >>> figure.title
    'Links in garden by AP'
    >>> print(figure.alt)
    2 sentences and 2 images with 1 true link. Of the 2 predicted links 1 is true.
    """
    if not isinstance(document, Document):
        raise TypeError(f"document must be a Document, got {type(document).__name__}")
    matrix = check_finite("scores", as_real_array("scores", scores, ndim=2))
    size = len(document.sentences), len(document.images)
    if matrix.shape != size:
        raise ValueError(
            f"scores must have the shape of the document, {size}, got {matrix.shape}"
        )
    kinds = _kinds(document, matrix)
    # Rows to show, in the order of the document; those with links have precedence.
    linked = [[*(link[side] for link in kinds), *range(size[side])] for side in (0, 1)]
    shown = [sorted(list(dict.fromkeys(rows))[:_MOST_ROWS]) for rows in linked]
    pictures = {i: _picture(document.images[i], images) for i in shown[1]}
    height = max(len(shown[0]) * _SENTENCE_ROW, len(shown[1]) * _IMAGE_ROW)

    def draw(figure: Figure) -> None:
        figure.set_layout_engine("none")
        axes = figure.add_axes((0, 0, 1, 1))
        sentence_y, image_y = (
            {row: (i + 0.5) * height / len(rows) for i, row in enumerate(rows)}
            for rows in shown
        )
        for image, y in image_y.items():
            _draw_image(axes, document.images[image], pictures[image], y)
        for sentence, y in sentence_y.items():
            text = " ".join(document.sentences[sentence].split())
            lines = wrap(text, _CHARACTERS, max_lines=_TEXT_LINES, placeholder=" …")
            written = _printable("\n".join(lines))
            axes.text(_LINES[1] + 0.08, y, written, va="center", fontsize=_FONT)
        ends = {
            (s, i): (image_y[i], sentence_y[s])
            for s, i in kinds
            if s in sentence_y and i in image_y
        }
        _draw_links(axes, kinds, matrix, ends)
        rest = [
            f"{n - len(rows)} more {name}"
            for n, rows, name in zip(size, shown, ("sentences", "images"), strict=True)
            if n > len(rows)
        ]
        if rest:
            foot = f"and {' and '.join(rest)}"
            axes.text(_MARGIN, height + _FOOT / 2, foot, va="center", fontsize=_FONT)
        axes.set(xlim=(0, _WIDTH), ylim=(height + _FOOT, 0), aspect="auto")
        axes.set_axis_off()

    title = f"Links in {document.doc_id}{f' by {system}' if system else ''}"
    return ReportFigure(title, _describe(document, kinds), draw, (_WIDTH, height + _FOOT))


def _kinds(document: Document, scores: Array) -> dict[Link, str]:
    """Return the links to draw: predicted ones by descending score, then missed ones."""
    rows, columns = linear_assignment(scores, maximize=True)
    best = np.argsort(-scores[rows, columns], kind="stable")[:_N_LINKS]
    predicted = list(zip(rows[best].tolist(), columns[best].tolist(), strict=True))
    if document.links is None:
        return dict.fromkeys(predicted, _PREDICTED)
    kinds = {link: _FOUND if link in document.links else _WRONG for link in predicted}
    return kinds | {link: _MISSED for link in sorted(document.links) if link not in kinds}


def _picture(image_id: str, images: Mapping[str, Source] | None) -> Array | None:
    source = None if images is None else images.get(image_id)
    try:
        return None if source is None else limit_side(read_image(source), _PIXELS)
    except UnreadableImageError:
        return None


def _draw_image(axes: Axes, image_id: str, picture: Array | None, y: float) -> None:
    if picture is not None:
        height, width = (_SIDE * side / max(picture.shape[:2]) for side in picture.shape[:2])
        x = _MARGIN + (_SIDE - width) / 2
        axes.imshow(picture, extent=(x, x + width, y + height / 2, y - height / 2))
        return
    draw_box(axes, (_MARGIN, y - _SIDE / 2, _MARGIN + _SIDE, y + _SIDE / 2), edgecolor=GREY)
    label = _printable("\n".join(wrap(image_id, 8, max_lines=4, placeholder="…")))
    axes.text(_MARGIN + _SIDE / 2, y, label, ha="center", va="center", fontsize=SMALL)


def _draw_links(
    axes: Axes,
    kinds: Mapping[Link, str],
    scores: Array,
    ends: Mapping[Link, tuple[float, float]],
) -> None:
    """Draw a line for each link: the higher the score, the wider."""
    values = np.array([scores[link] for link in ends])
    span = np.ptp(values) if np.ptp(values) > 0 else 1.0
    for kind, (colour, dashes, label) in _STYLES.items():
        own = [link for link in ends if kinds[link] == kind]
        for link in own:
            width = 0.8 + 1.6 * (scores[link] - values.min()) / span
            named = label if link == own[0] else None
            look = {"color": colour, "linestyle": dashes, "linewidth": width, "label": named}
            axes.plot(_LINES, ends[link], **look)
    n_kinds = len({kinds[link] for link in ends})
    axes.legend(loc="lower right", ncols=n_kinds, borderaxespad=0.2, fontsize=_FONT)


def _printable(text: str) -> str:
    """Return `text` for drawing, with a mark for each character that the font lacks."""
    fonts = _extras.require("matplotlib.font_manager")
    font = fonts.get_font(fonts.findfont("DejaVu Sans"))
    known = (c if c == "\n" or font.get_char_index(ord(c)) else "\ufffd" for c in text)
    return literal("".join(known))


def _describe(document: Document, kinds: Mapping[Link, str]) -> str:
    found, missed = (list(kinds.values()).count(kind) for kind in (_FOUND, _MISSED))
    predicted = counted(len(kinds) - missed, "predicted link")
    sentences = counted(len(document.sentences), "sentence")
    size = f"{sentences} and {counted(len(document.images), 'image')}"
    if document.links is None:
        return f"{size}, whose true links are unknown, with {predicted}."
    links = counted(len(document.links), "true link")
    true = "is true" if found == 1 else "are true"
    return f"{size} with {links}. Of the {predicted} {found} {true}."
