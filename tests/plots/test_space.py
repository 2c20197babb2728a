"""The map of photos and captions."""

import numpy as np
import pytest
from legible import assert_legible
from refusals import refuses, refuses_each

pytest.importorskip("matplotlib")

from matplotlib.offsetbox import AnnotationBbox

from kernelcore.datasets import make_scenes
from kernelcore.plots import joint_space

RNG = np.random.default_rng(0)
SCENES = make_scenes(30, rng=1, size=(32, 48))
PICTURES = list(SCENES.images)
TEXTS = [own[0] for own in SCENES.dataset.captions]
PHOTOS = RNG.normal(size=(30, 6)) * [9, 5, 1, 1, 1, 1]
CAPTIONS = PHOTOS + RNG.normal(size=(30, 6))


@pytest.fixture
def ax(figure):
    return figure.subplots()


def points(ax):
    return [line.get_xydata() for line in ax.get_lines()]


def thumbnails(ax):
    return [artist for artist in ax.artists if isinstance(artist, AnnotationBbox)]


def test_two_coordinates_are_drawn_as_they_are(ax):
    photos, captions = [[0.0, 1.0], [5.0, -2.0]], [[3.0, 3.0], [4.0, 4.0], [0.0, 0.0]]
    joint_space(photos, captions, [1, 0, 1], ax=ax)
    drawn = points(ax)
    assert drawn[0].tolist() == photos
    assert drawn[1].tolist() == captions
    (pairs,) = ax.collections
    assert [segment.tolist() for segment in pairs.get_segments()] == [
        [photos[1], captions[0]],
        [photos[0], captions[1]],
        [photos[1], captions[2]],
    ]
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["photos", "captions"]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("first coordinate", "second coordinate")


def test_longer_vectors_are_projected_on_their_principal_components(ax):
    joint_space(PHOTOS, CAPTIONS, ax=ax)
    both = np.concatenate([PHOTOS, CAPTIONS])
    both = (both - both.mean(axis=0)) / np.abs(both).max()
    _, sizes, directions = np.linalg.svd(both)
    drawn = np.concatenate(points(ax))
    for k, label in enumerate((ax.get_xlabel(), ax.get_ylabel())):
        direction = directions[k] * np.sign(directions[k][np.abs(directions[k]).argmax()])
        np.testing.assert_allclose(drawn[:, k], both @ direction, atol=1e-9)
        share = 100 * sizes[k] ** 2 / (sizes**2).sum()
        assert label.endswith(f"component, {share:.0f} % of the variance")
    assert ax.get_aspect() == 1


def test_float32_and_equal_points_are_drawn(ax):
    joint_space(np.ones((3, 4), np.float32), np.ones((3, 4), np.float32), ax=ax)
    assert np.concatenate(points(ax)).tolist() == np.zeros((6, 2)).tolist()
    assert ax.get_xlabel() == "first component, 0 % of the variance"
    ax.figure.draw_without_rendering()


@pytest.mark.parametrize(("size", "least"), [((5, 4), 1), ((9, 7), 4)])
def test_texts_and_pictures_cover_nothing(figure, size, least):
    figure.set_size_inches(size)
    ax = joint_space(PHOTOS, CAPTIONS, texts=TEXTS, pictures=PICTURES, ax=figure.subplots())
    shown = thumbnails(ax)
    assert 3 < len(shown) < 30
    assert least <= len(ax.texts) < 30
    assert_legible(figure)
    boxes = [artist.get_window_extent() for artist in (*shown, *ax.texts)]
    for i, box in enumerate(boxes):
        assert not box.count_overlaps(boxes[:i])
        assert ax.bbox.padded(0.5).contains(*box.min)
        assert ax.bbox.padded(0.5).contains(*box.max)


def test_the_first_that_fit_are_kept_in_their_places(ax):
    joint_space(PHOTOS, CAPTIONS, texts=TEXTS, pictures=PICTURES, ax=ax)
    photos, captions = points(ax)
    for artist in thumbnails(ax):
        place = np.flatnonzero((photos == artist.xy).all(axis=1))[0]
        assert (artist.offsetbox.get_data() == PICTURES[place]).all()
    for text in ax.texts:
        place = np.flatnonzero((captions == text.xy).all(axis=1))[0]
        assert TEXTS[place].startswith(text.get_text().removesuffix(" …"))
        assert len(text.get_text()) <= 32
    assert thumbnails(ax)[0].xy == pytest.approx(photos[0])


def test_what_does_not_fit_is_refused():
    odd = {
        "images": [[[1.0]] * 3, [1.0, 2.0], np.full((3, 2), np.nan), np.empty((0, 2)), "x"],
        "captions": [np.ones((3, 4)), np.full((3, 2), np.inf), None],
        "caption_image": [[0, 1], [0, 1, 3], [0, 0, 0]],
        "texts": [["a", "b"], ["a", "b", 3], 3, "abc"],
        "pictures": [PICTURES[:2], [1, 2, 3], [PICTURES[0] / 2] * 3, 3],
    }
    usual = {"images": np.eye(3)[:, :2], "captions": np.eye(3)[:, 1:]}
    usual |= {"caption_image": [0, 1, 2], "texts": ["a", "b", "c"], "pictures": PICTURES[:3]}
    refuses_each(joint_space, odd, **usual)
    refuses(ValueError, "caption_image", joint_space, PHOTOS, CAPTIONS[:20])
