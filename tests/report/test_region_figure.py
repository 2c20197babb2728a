"""Regions of photos in a report."""

import numpy as np
import pytest
from legible import assert_legible
from refusals import refuses

pytest.importorskip("matplotlib")

from kernelcore.report import aligned_regions, found_regions

PHOTO = np.full((30, 40, 3), 120, np.uint8)
BOXES = [[0, 0, 40, 30], [5, 5, 20, 25], [1, 2, 3, 4]]
PRODUCTS = [[0.1, 2.0, -1.0], [0.7, 1.0, -2.0], [0.2, 0.5, -3.0]]
NAMES = ["dog", "$black", "_sea"]


def rectangles(axes):
    return [(*p.get_xy(), p.get_width(), p.get_height()) for p in axes.patches]


def test_each_fragment_has_its_best_region():
    figure = aligned_regions(PHOTO, BOXES, PRODUCTS, NAMES, title="A dog.", n_fragments=2)
    assert figure.title == "A dog."
    assert figure.alt == (
        "A photo of 40 by 30 pixels with the best region of 2 fragments: $black 2.00; dog 0.70."
    )
    drawn = figure.to_matplotlib()
    (axes,) = drawn.axes
    assert rectangles(axes) == [(0, 0, 40, 30), (5, 5, 15, 20)]
    labels = [text.get_text() for text in axes.get_legend().get_texts()]
    assert labels == [r"\$black 2.00", "dog 0.70"]
    assert_legible(drawn)
    assert figure.to_png()[:4] == b"\x89PNG"


def test_a_caption_without_fragments_is_a_photo():
    figure = aligned_regions(PHOTO, BOXES, np.zeros((3, 0)), [], title="Hm.")
    assert figure.alt.endswith("of 0 fragments: .")
    assert rectangles(figure.to_matplotlib().axes[0]) == []


def test_captions_ranked_first_are_marked():
    ranked = [("A dog.", True), ("The $sea.", False)]
    figure = aligned_regions(PHOTO, BOXES, PRODUCTS, NAMES, title="A dog.", ranked=ranked)
    assert figure.alt.endswith("Below are the 2 captions ranked first, 1 of them its own.")
    drawn = figure.to_matplotlib("dark")
    texts = [text.get_text() for text in drawn.axes[1].texts]
    assert texts == ["\u2713", "A dog.", "\u2717", r"The \$sea."]
    assert_legible(drawn)


def test_found_regions_stand_in_their_photos():
    figure = found_regions([PHOTO] * 7, [BOXES[1]] * 7, np.arange(7, 0, -1), title="dog")
    assert figure.alt == "7 regions with score 7.00 to 1.00, each drawn as a box in its photo."
    axes = figure.to_matplotlib().axes
    drawn = [panel for panel in axes if panel.patches]
    assert len(drawn) == 7
    assert drawn[0].get_title() == "7.00"
    assert rectangles(drawn[6]) == [(5, 5, 15, 20)]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: aligned_regions(PHOTO / 2, BOXES, PRODUCTS, NAMES, title=""), "uint8"),
        (lambda: aligned_regions(PHOTO, BOXES[:2], PRODUCTS, NAMES, title=""), "boxes"),
        (
            lambda: aligned_regions(PHOTO, BOXES, PRODUCTS, NAMES[:2], title=""),
            "one per column",
        ),
        (
            lambda: aligned_regions(PHOTO, BOXES, np.full((3, 3), np.nan), NAMES, title=""),
            "products",
        ),
        (
            lambda: aligned_regions(PHOTO, BOXES, PRODUCTS, NAMES, title="", n_fragments=0),
            "n_fragments",
        ),
        (lambda: found_regions([], np.zeros((0, 4)), [], title=""), "at least one"),
        (lambda: found_regions([PHOTO], BOXES, [1.0], title=""), "one entry per region"),
        (lambda: found_regions([PHOTO[0]], BOXES[:1], [1.0], title=""), r"pictures\[0\]"),
    ],
)
def test_what_does_not_fit_is_refused(call, message):
    refuses((TypeError, ValueError), message, call)
