"""Figure of the links between the images and the sentences of a document."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt

from kernelcore import _extras
from kernelcore._check import Array, as_real_array, check_finite, check_integer
from kernelcore.datasets import Document
from kernelcore.images import UnreadableImageError, read_image
from kernelcore.images.read import limit_side
from kernelcore.matching import linear_assignment
from kernelcore.plots._style import COLOURS, GREY, SMALL, literal
from kernelcore.report.drawing import ReportFigure, new_figure

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


def document_links(
    document: Document,
    scores: npt.ArrayLike,
    images: Mapping[str, Source] | None = None,
    *,
    n_links: int = 5,
    max_rows: int = 20,
    system: str = "",
) -> ReportFigure:
    """Draw the links that a system predicts within a document, beside the true ones.

    Of the assignment of sentences to images with the greatest sum of scores, the links with
    the highest scores are drawn; the higher the score, the wider the line.

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
    n_links : int, default=5
        How many predicted links to draw.
    max_rows : int, default=20
        How many images and how many sentences to show. Those with links come first, and the
        caption counts those that are left out.
    system : str, optional
        Name of the system, for the title.

    Returns
    -------
    ReportFigure

    Raises
    ------
    TypeError, ValueError
        If `document` is something else, the scores are not finite or do not fit it, or a
        number is out of range.
    MissingExtraError
        If there are images and OpenCV is not installed.

    References
    ----------
    .. [1] J. Hessel, L. Lee and D. Mimno, "Unsupervised discovery of multimodal links in
       multi-image, multi-sentence documents", EMNLP-IJCNLP 2019, figure 4.

    Examples
    --------
    >>> from kernelcore.datasets import Document
    >>> from kernelcore.report import document_links
    >>> garden = Document("garden", ("A dog digs.", "It was May."), ("dog", "tree"), {(0, 0)})
    >>> figure = document_links(garden, [[0.9, 0.1], [0.2, 0.3]], system="AP")
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
    kinds = _kinds(document, matrix, check_integer("n_links", n_links, minimum=1))
    max_rows = check_integer("max_rows", max_rows, minimum=1)
    shown = [_chosen([link[side] for link in kinds], size[side], max_rows) for side in (0, 1)]
    pictures = {i: _picture(document.images[i], images) for i in shown[1]}

    def draw() -> Figure:
        height = max(len(shown[0]) * _SENTENCE_ROW, len(shown[1]) * _IMAGE_ROW)
        figure = new_figure(_WIDTH, height + _FOOT, layout=None)
        axes = figure.add_axes((0, 0, 1, 1))
        middles = [(np.arange(len(part)) + 0.5) * height / len(part) for part in shown]
        for image, y in zip(shown[1], middles[1], strict=True):
            _draw_image(axes, document.images[image], pictures[image], y)
        for sentence, y in zip(shown[0], middles[0], strict=True):
            _draw_sentence(axes, document.sentences[sentence], y)
        _draw_links(axes, kinds, matrix, shown, middles)
        axes.text(_MARGIN, height + _FOOT / 2, _rest(size, shown), va="center", fontsize=_FONT)
        axes.set(xlim=(0, _WIDTH), ylim=(height + _FOOT, 0), aspect="auto")
        axes.set_axis_off()
        return figure

    name = f" by {system}" if system else ""
    return ReportFigure(f"Links in {document.doc_id}{name}", _describe(document, kinds), draw)


def _kinds(document: Document, scores: Array, n_links: int) -> dict[Link, str]:
    """Links to draw: predicted ones by descending score, then missed ones."""
    rows, columns = linear_assignment(scores, maximize=True)
    best = np.argsort(-scores[rows, columns], kind="stable")[:n_links]
    predicted = list(zip(rows[best].tolist(), columns[best].tolist(), strict=True))
    if document.links is None:
        return dict.fromkeys(predicted, _PREDICTED)
    kinds = {link: _FOUND if link in document.links else _WRONG for link in predicted}
    return kinds | {link: _MISSED for link in sorted(document.links) if link not in kinds}


def _chosen(linked: list[int], n: int, max_rows: int) -> list[int]:
    """Positions to show, in the order of the document; those with links have precedence."""
    return sorted(list(dict.fromkeys([*linked, *range(n)]))[:max_rows])


def _picture(image_id: str, images: Mapping[str, Source] | None) -> Array | None:
    source = None if images is None else images.get(image_id)
    if source is None:
        return None
    try:
        return limit_side(read_image(source), _PIXELS)
    except UnreadableImageError:
        return None


def _draw_image(axes: Axes, image_id: str, picture: Array | None, y: float) -> None:
    if picture is not None:
        height, width = (_SIDE * side / max(picture.shape[:2]) for side in picture.shape[:2])
        x = _MARGIN + (_SIDE - width) / 2
        axes.imshow(picture, extent=(x, x + width, y + height / 2, y - height / 2))
        return
    rectangle = _extras.require("matplotlib.patches").Rectangle
    axes.add_patch(
        rectangle((_MARGIN, y - _SIDE / 2), _SIDE, _SIDE, fill=False, edgecolor=GREY)
    )
    label = "\n".join(textwrap.wrap(image_id, 8, max_lines=4, placeholder="…"))
    x = _MARGIN + _SIDE / 2
    axes.text(x, y, _printable(label), ha="center", va="center", fontsize=SMALL)


def _draw_sentence(axes: Axes, sentence: str, y: float) -> None:
    text = " ".join(sentence.split())
    lines = textwrap.wrap(text, _CHARACTERS, max_lines=_TEXT_LINES, placeholder=" …")
    axes.text(_LINES[1] + 0.08, y, _printable("\n".join(lines)), va="center", fontsize=_FONT)


def _draw_links(
    axes: Axes,
    kinds: Mapping[Link, str],
    scores: Array,
    shown: list[list[int]],
    middles: list[Array],
) -> None:
    sentence_y, image_y = (
        dict(zip(part, ys, strict=True)) for part, ys in zip(shown, middles, strict=True)
    )
    drawn = [link for link in kinds if link[0] in sentence_y and link[1] in image_y]
    values = np.array([scores[link] for link in drawn])
    span = np.ptp(values) if np.ptp(values) > 0 else 1.0
    n_kinds = 0
    for kind, (colour, dashes, label) in _STYLES.items():
        links = [link for link in drawn if kinds[link] == kind]
        n_kinds += bool(links)
        for i, (sentence, image) in enumerate(links):
            axes.plot(
                _LINES,
                (image_y[image], sentence_y[sentence]),
                color=colour,
                linestyle=dashes,
                linewidth=0.8 + 1.6 * (scores[sentence, image] - values.min()) / span,
                label=label if i == 0 else None,
            )
    axes.legend(loc="lower right", ncols=n_kinds, borderaxespad=0.2, fontsize=_FONT)


def _printable(text: str) -> str:
    """Return `text` for drawing, with a mark for each character that the font lacks."""
    fonts = _extras.require("matplotlib.font_manager")
    font = fonts.get_font(fonts.findfont("DejaVu Sans"))
    known = (c if c == "\n" or font.get_char_index(ord(c)) else "\ufffd" for c in text)
    return literal("".join(known))


def _rest(size: tuple[int, int], shown: list[list[int]]) -> str:
    """Describe the part of the document that is not shown."""
    parts = [
        f"{n - len(part)} more {name}"
        for n, part, name in zip(size, shown, ("sentences", "images"), strict=True)
        if n > len(part)
    ]
    return f"and {' and '.join(parts)}" if parts else ""


def _describe(document: Document, kinds: Mapping[Link, str]) -> str:
    counts = {kind: list(kinds.values()).count(kind) for kind in _STYLES}
    predicted = _counted(len(kinds) - counts[_MISSED], "predicted link")
    size = (
        f"{_counted(len(document.sentences), 'sentence')} and "
        f"{_counted(len(document.images), 'image')}"
    )
    if document.links is None:
        return f"{size}, whose true links are unknown, with {predicted}."
    true = "is true" if counts[_FOUND] == 1 else "are true"
    return (
        f"{size} with {_counted(len(document.links), 'true link')}. Of the {predicted} "
        f"{counts[_FOUND]} {true}."
    )


def _counted(n: int, noun: str) -> str:
    return f"{n} {noun}{'' if n == 1 else 's'}"
