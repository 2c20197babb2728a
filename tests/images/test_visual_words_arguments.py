"""What cannot be described, or how, is refused by name."""

import numpy as np
import pytest

from kernelcore.images import (
    VisualWords,
)

PHOTOS = list(np.random.default_rng(0).integers(0, 256, (3, 20, 24, 3), np.uint8))


@pytest.fixture(scope="module")
def words():
    return VisualWords(n_words={"colour": 2}).fit(PHOTOS)


@pytest.mark.parametrize(
    ("images", "error", "match"),
    [
        ([], ValueError, "images must hold at least one image"),
        ("photo.jpg", TypeError, "images must be a sequence of photos .* got str"),
        (iter(["photo.jpg"]), TypeError, "images must be a sequence"),
        (PHOTOS[0], ValueError, "a 4-D array of them, got an array of shape"),
        (
            ["photo.jpg", None],
            TypeError,
            r"images\[1\] must be a path, .* got None",
        ),
        ([PHOTOS[0] / 255], TypeError, r"images\[0\] must be .* got an array of float64"),
        ([PHOTOS[0][:, :, :2]], ValueError, r"images\[0\] must have shape"),
    ],
)
def test_bad_images(words, images, error, match):
    with pytest.raises(error, match=match):
        words.transform(images)
    with pytest.raises(error, match=match):
        VisualWords().fit(images)


@pytest.mark.parametrize(
    ("options", "error", "match"),
    [
        ({"n_words": 5}, TypeError, "n_words must map features to numbers of words"),
        ({"n_words": {}}, ValueError, "n_words must name at least one feature"),
        ({"n_words": {"color": 5}}, ValueError, "feature in n_words must be .* got 'color'"),
        ({"n_words": {"sift": 0}}, ValueError, r"n_words\['sift'\] must be an integer >= 1"),
        ({"n_levels": 0}, ValueError, "n_levels must be an integer >= 1"),
        ({"sift_step": 0}, ValueError, "sift_step must be"),
        ({"sift_bin_size": np.nan}, ValueError, "sift_bin_size must be finite"),
        ({"n_sample_images": 0}, ValueError, "n_sample_images must be"),
        ({"n_sample_points": 1.5}, TypeError, "n_sample_points must be"),
        ({"max_pixels": 0}, ValueError, "max_pixels must be"),
    ],
)
def test_bad_settings(options, error, match):
    with pytest.raises(error, match=match):
        VisualWords(**options).fit(PHOTOS)


def test_bad_call_options(words):
    for method in (words.transform, VisualWords().fit):
        with pytest.raises(ValueError, match="on_error must be one of 'raise', 'skip'"):
            method(PHOTOS, on_error="ignore")
        with pytest.raises(ValueError, match="n_threads must be an integer >= 1"):
            method(PHOTOS, n_threads=0)
