"""Fragments of captions and regions of photos."""

import numpy as np
import pytest
from refusals import refuses_each

pytest.importorskip("matplotlib")

from kernelcore.plots import aligned_regions, alignments, found_regions

PHOTO = np.full((30, 40, 3), 120, np.uint8)
BOXES = [[0, 0, 40, 30], [5, 5, 20, 25], [1, 2, 3, 4]]
PRODUCTS = [[0.1, 2.0, -1.0], [0.7, 1.0, -2.0], [0.2, 0.5, -3.0]]
NAMES = ["dog", "$black", "_sea"]


@pytest.fixture
def ax(figure):
    return figure.subplots()


def boxes(ax):
    return [(*p.get_xy(), p.get_width(), p.get_height()) for p in ax.patches]


def legend(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def test_a_row_per_fragment_with_its_best_region_framed(ax):
    alignments(PRODUCTS, NAMES, ax=ax)
    (image,) = ax.get_images()
    assert image.get_array().tolist() == np.transpose(PRODUCTS).tolist()
    assert image.get_clim() == (-3, 3)  # 0 is the middle of the colours
    assert boxes(ax) == [(0.5, -0.5, 1, 1), (-0.5, 0.5, 1, 1), (-0.5, 1.5, 1, 1)]
    names = [label.get_text() for label in ax.get_yticklabels()]
    assert names == ["dog", r"\$black", "\u200b_sea"]
    assert ax.get_xlabel() == "region"


def test_products_of_zero_are_drawn(ax):
    alignments(np.zeros((2, 1)), ["dog"], ax=ax)
    assert ax.get_images()[0].get_clim() == (-1, 1)
    ax.figure.draw_without_rendering()


def test_alignments_that_do_not_fit_are_refused(ax):
    odd = {
        "products": [[[np.nan, 0]], [1.0], np.empty((0, 2))],
        "fragments": [["dog"], [], 3, "dog"],
    }
    usual = {"products": [[1.0, 1.0]], "fragments": ["dog", "cat"]}
    refuses_each(alignments, odd, **usual, ax=ax)


def test_each_fragment_has_its_best_region_on_the_photo(ax):
    aligned_regions(PHOTO, BOXES, PRODUCTS, NAMES, ax=ax)
    assert (ax.get_images()[0].get_array() == PHOTO).all()
    assert boxes(ax) == [(0, 0, 40, 30), (5, 5, 15, 20), (0, 0, 40, 30)]
    assert legend(ax) == [r"\$black 2.00", "dog 0.70", "\u200b_sea -1.00"]
    assert len({patch.get_edgecolor() for patch in ax.patches}) == 3
    assert not ax.axison


def test_six_fragments_are_shown(ax):
    aligned_regions(PHOTO, BOXES, np.ones((3, 1)) * np.arange(8.0), list("abcdefgh"), ax=ax)
    assert legend(ax) == [f"{name} {i}.00" for i, name in zip("765432", "hgfedc", strict=True)]


def test_frames_of_one_region_lie_in_each_other(ax):
    aligned_regions(PHOTO, BOXES, PRODUCTS, NAMES, ax=ax)
    assert boxes(ax) == [(0, 0, 40, 30), (5, 5, 15, 20), (0, 0, 40, 30)]
    outer, other, inner = (patch.get_linewidth() for patch in ax.patches)
    assert outer > inner == other > 0
    handles = ax.get_legend().get_patches()
    assert [handle.get_linewidth() for handle in handles] == [inner] * 3
    assert [h.get_edgecolor() for h in handles] == [p.get_edgecolor() for p in ax.patches]


def test_a_caption_without_fragments_is_a_photo(ax):
    aligned_regions(PHOTO, BOXES, np.zeros((3, 0)), [], ax=ax)
    assert boxes(ax) == []
    assert ax.get_legend() is None


def test_regions_that_do_not_fit_are_refused(figure):
    odd = {
        "picture": [PHOTO / 2, PHOTO[0], "a.jpg"],
        "boxes": [BOXES[:2], np.zeros((3, 3)), np.full((3, 4), np.inf)],
        "products": [np.full((3, 3), np.nan), [1.0]],
        "fragments": [NAMES[:2]],
    }
    usual = {"picture": PHOTO, "boxes": BOXES, "products": PRODUCTS, "fragments": NAMES}
    refuses_each(aligned_regions, odd, **usual, ax=figure.subplots())


def test_found_regions_stand_in_their_photos(figure):
    given = figure.subplots(1, 2)
    photos = [PHOTO, PHOTO + 1]
    found = found_regions(photos, BOXES[:2], [2.0, 1.0], axes=given)
    for ax, photo, box in zip(found, photos, [(0, 0, 40, 30), (5, 5, 15, 20)], strict=True):
        assert (ax.get_images()[0].get_array() == photo).all()
        assert boxes(ax) == [box]
    assert [ax.get_title() for ax in found] == ["2.00", "1.00"]


def test_a_new_figure_has_six_photos_in_a_row(pyplot):
    found = found_regions([PHOTO] * 8, [BOXES[1]] * 8, np.arange(8, 0, -1))
    assert len(found) == len(found[0].figure.axes) == 8
    found[0].figure.draw_without_rendering()
    tops = [round(ax.get_position().y1, 6) for ax in found]
    assert len(set(tops[:6])) == len(set(tops[6:])) == 1
    assert tops[0] > tops[6]


def test_found_regions_that_do_not_fit_are_refused(figure):
    odd = {
        "pictures": [[], [PHOTO / 2], [PHOTO[0]]],
        "boxes": [BOXES, np.zeros((0, 4))],
        "scores": [[1.0, 2.0], [np.nan], []],
    }
    usual = {"pictures": [PHOTO], "boxes": BOXES[:1], "scores": [1.0]}
    refuses_each(found_regions, odd, **usual, axes=[figure.subplots()])
