"""What photos and sentences cannot be ranked, or how, is refused by name."""

import math

import numpy as np
import pytest

from kernelcore.datasets import make_scenes
from kernelcore.images import VisualWords
from kernelcore.models import PhotoIndex, PhotoRanker

SCENES = make_scenes(12, size=(48, 64))
CAPTIONS = SCENES.dataset.captions
SENTENCES = [own[2] for own in CAPTIONS[8:]]


@pytest.fixture(scope="module")
def words():
    n_words = {"colour": 6, "texture": 6, "sift": 6}
    return VisualWords(n_words=n_words, n_sample_points=50).fit(SCENES.images)


@pytest.fixture(scope="module")
def features(words):
    return words.transform(SCENES.images)


@pytest.fixture(scope="module")
def ranker(words, features):
    return PhotoRanker(features=words).fit(part(features, range(8)), CAPTIONS[:8])


@pytest.fixture(scope="module")
def index(ranker):
    return ranker.index(SCENES.images[8:])


def part(features, rows):
    return {name: histograms.select(list(rows)) for name, histograms in features.items()}


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"image_power": (0.0,)}, ValueError, "image_power must be a number > 0"),
        ({"image_power": ()}, ValueError, "image_power must hold at least one value"),
        ({"n_components": (2.5,)}, TypeError, "n_components must be an integer"),
        ({"regularization": (-1.0,)}, ValueError, r"regularization must be a number >= 0"),
        ({"correlation_power": ("x",)}, TypeError, "correlation_power must be a real number"),
        ({"max_rank": 0}, ValueError, "max_rank must be an integer >= 1"),
        ({"caption_kernel": "bow"}, ValueError, "caption_kernel must be one of 'bag_of_words'"),
        ({"scaling": ("none",)}, ValueError, "scaling must be one of 'square_roots', 'length'"),
        ({"scaling": "length"}, TypeError, "scaling must be a sequence of values"),
        ({"hub_neighbors": (-1,)}, ValueError, "hub_neighbors must be an integer >= 0"),
        ({"hub_neighbors": None}, TypeError, "hub_neighbors must be a sequence of values"),
        ({"features": "cnn"}, TypeError, "features must be VisualWords.*got 'cnn'"),
        ({"features": ()}, ValueError, "features must hold at least one description"),
        ({"features": ("precomputed", VisualWords())}, ValueError, "features must be .* alone"),
        ({"dev_share": 0.95}, ValueError, "dev_share must be a number <= 0.9"),
    ],
)
def test_bad_parameters_are_refused_before_any_photo_is_read(options, error, message):
    with pytest.raises(error, match=message):
        PhotoRanker(**options).fit(["nowhere.jpg"] * 3, [["a"]] * 3)


@pytest.mark.parametrize(
    ("captions", "error", "message"),
    [
        (
            [["a dog"]],
            ValueError,
            r"captions must hold the captions of each photo \(3\), got 1",
        ),
        ([["a"], [], ["b"]], ValueError, r"got none for \[1\]"),
        ([["a dog"], "a cat", ["b"]], TypeError, r"nested as photos, captions: \[1\] is a str"),
        ("abc", TypeError, "captions must be a sequence"),
    ],
)
def test_bad_captions(captions, error, message, words, features):
    three = part(features, range(3))
    with pytest.raises(error, match=message):
        PhotoRanker(features=words).fit(three, captions)
    with pytest.raises(error, match="dev"):
        PhotoRanker(features=words).fit(three, [["a"]] * 3, dev=(three, captions))


def test_bad_photos_sentences_and_names(words, features, ranker, index):
    with pytest.raises(ValueError, match=r"at least 2 to learn from .* got 2 of which 1"):
        PhotoRanker(features=words).fit(part(features, range(2)), CAPTIONS[:2])
    with pytest.raises(ValueError, match="features must be fitted"):
        PhotoRanker().fit(part(features, range(3)), CAPTIONS[:3])
    with pytest.raises(ValueError, match="histograms of colour, texture, sift, got colour"):
        ranker.index({"colour": features["colour"]})
    with pytest.raises(ValueError, match=r"names must have one entry per photo \(12\), got 1"):
        ranker.index(features, names=["a"])
    with pytest.raises(TypeError, match="captions must be a sequence of strings, got 'a dog'"):
        ranker.scores(index, "a dog")
    with pytest.raises(ValueError, match="k must be an integer >= 1"):
        ranker.search(["a dog"], index, k=0)
    with pytest.raises(ValueError, match="task must be one of"):
        ranker.scores(index, SENTENCES, task="both")
    with pytest.raises(ValueError, match=r"names must have one entry per photo \(2\), got 1"):
        PhotoIndex(["a"], [[1.0], [2.0]], "model")
    with pytest.raises(ValueError, match="projections must be finite"):
        PhotoIndex(["a"], [[math.nan]], "model")


VECTORS = np.random.default_rng(0).normal(size=(12, 5))


@pytest.mark.parametrize(
    ("dev", "message"),
    [
        ((VECTORS[:3, :4], CAPTIONS[:3]), "the images of dev must have the features of"),
        ((VECTORS[:3] * np.nan, CAPTIONS[:3]), "the images of dev must be finite"),
        (
            (["nowhere.npy"], CAPTIONS[:3]),
            r"the images\[0\] of dev must be an array or a .npy file",
        ),
        ((VECTORS[:3], ["a", "b"]), r"the captions of dev must be one per image \(3\)"),
        ((VECTORS[:3], CAPTIONS[:2]), r"the captions of dev must hold the captions of each"),
        ((VECTORS[:3], "abc"), "the captions of dev must be a sequence"),
        ((VECTORS[:3], ["a", "b"], [0, 3]), "the caption_image of dev must lie in"),
        ((VECTORS[:3], ["a", "b"], [0]), "the caption_image of dev must have one entry"),
        ((VECTORS[:3], CAPTIONS[:3], [0] * 15), "the caption.* of dev must"),
        (VECTORS, "dev must be a pair"),
    ],
)
def test_errors_about_development_items_say_so(dev, message):
    with pytest.raises((TypeError, ValueError, OSError), match=f"^{message}"):
        PhotoRanker("precomputed").fit(VECTORS, CAPTIONS, dev=dev)


@pytest.mark.parametrize(
    ("dev", "message"),
    [
        (([1, 2], CAPTIONS[:2]), r"the images\[0\] of dev must be a path"),
        (("a.jpg", CAPTIONS[:2]), "the images of dev must be a sequence of photos"),
    ],
)
def test_errors_about_development_photos_say_so(words, features, dev, message):
    with pytest.raises((TypeError, ValueError), match=f"^{message}"):
        PhotoRanker(words).fit(part(features, range(8)), CAPTIONS[:8], dev=dev)


def test_histograms_of_dev_that_lack_a_feature_are_refused(words, features):
    dev = {"colour": part(features, range(8, 12))["colour"]}, CAPTIONS[8:]
    with pytest.raises(ValueError, match=r"^the photos of dev must have the histograms of"):
        PhotoRanker(words).fit(part(features, range(8)), CAPTIONS[:8], dev=dev)


def test_errors_about_training_items_do_not_say_dev():
    with pytest.raises(ValueError, match=r"^captions must hold the captions of each photo"):
        PhotoRanker("precomputed").fit(VECTORS, CAPTIONS[:3], dev=(VECTORS, CAPTIONS))
    with pytest.raises(ValueError, match=r"^images must be finite"):
        PhotoRanker("precomputed").fit(VECTORS * np.nan, CAPTIONS, dev=(VECTORS, CAPTIONS))


@pytest.mark.parametrize(
    ("dev", "message"),
    [
        ((VECTORS[:3], ["a", "b"]), r"the captions of dev must be one per image \(3\)"),
        ((VECTORS[:3], ["a", "b"], [0, 3]), "the caption_image of dev must lie in"),
        ((VECTORS[:3] * np.nan, ["a", "b", "c"]), "dev must be finite"),
    ],
)
def test_deep_rankers_say_so_too(dev, message):
    deep = pytest.importorskip("kernelcore.deep")
    with pytest.raises((TypeError, ValueError), match=f"^{message}"):
        deep.EmbeddingRanker(min_count=1).fit(VECTORS, CAPTIONS, dev=dev)
