"""Visual words: settings, threads, and photos that cannot be read."""

import multiprocessing
import os

import cv2
import numpy as np
import pytest
from refusals import refuses
from sklearn.base import clone

from kernelcore.images import (
    Codebook,
    ImageFeatures,
    SpatialHistograms,
    VisualWords,
    cielab,
    dense_sift,
    oriented_energy,
)
from kernelcore.reference.images import count_words, nearest_word

SMALL = {"colour": 5, "texture": 6, "sift": 7}


def blurred(rng):
    """Noise in colour, of some size and shape."""
    height, width = rng.integers(30, 60, 2)
    noise = rng.integers(0, 256, (height, width, 3), np.uint8)
    return cv2.GaussianBlur(noise, (0, 0), 1.5)


NOISE = np.random.default_rng(0)
PHOTOS = [blurred(NOISE) for _ in range(12)]
SAMPLE = {"n_words": SMALL, "n_sample_points": 200}


@pytest.fixture(scope="module")
def words():
    return VisualWords(**SAMPLE).fit(PHOTOS)


@pytest.fixture(scope="module")
def features(words):
    return words.transform(PHOTOS)


def same_bits(one, other):
    assert list(one) == list(other)
    for name, histograms in one.items():
        for part in ("counts", "totals"):
            found, expected = getattr(histograms, part), getattr(other[name], part)
            assert found.tobytes() == expected.tobytes(), name


def test_features_are_what_their_parts_say(words, features):
    assert isinstance(features, ImageFeatures)
    assert list(features) == ["colour", "texture", "sift"]
    assert features.rows.tolist() == list(range(12))
    assert features.failures == {}
    photo = PHOTOS[3]
    dense = cielab(photo), oriented_energy(photo), dense_sift(photo)
    for (name, histograms), own in zip(features.items(), dense, strict=True):
        assert isinstance(histograms, SpatialHistograms)
        assert histograms.counts.shape == (12, 21, SMALL[name])
        assert histograms.counts.dtype == np.uint16
        values, y, x = own
        found = nearest_word(own.points, words.codebooks_[name].centers)
        size = {"n_words": SMALL[name], "n_levels": 3}
        expected = count_words(found.reshape(len(y), len(x)), y, x, photo.shape[:2], **size)
        # A point as near to two words as float32 can tell may have either.
        assert np.abs(histograms.counts[3].astype(int) - expected).sum() <= 12
        assert histograms.totals[3] == values[0].size


def bits_of(words):
    return [codebook.centers.tobytes() for codebook in words.codebooks_.values()]


def test_fit_repeats_itself_and_follows_rng(words):
    def centers(**options):
        learned = VisualWords(**SAMPLE, **options).fit(PHOTOS)
        return bits_of(learned)

    assert centers() == centers(rng=np.random.default_rng(0)) == bits_of(words)
    assert centers(rng=1) != bits_of(words)


def transform_in_child(words, queue):
    queue.put(dict(words.transform(PHOTOS, n_threads=2)))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_same_bits_in_a_forked_child(words, features):
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=transform_in_child, args=(words, queue))
    child.start()
    same_bits(queue.get(timeout=60), features)
    child.join(60)
    assert child.exitcode == 0


def test_settings_of_the_libraries_are_put_back(words):
    log = getattr(cv2.utils, "logging", cv2)
    before = cv2.getNumThreads(), log.getLogLevel()
    inside = []
    words.transform(PHOTOS[:2], progress=lambda *_: inside.append(cv2.getNumThreads()))
    assert inside == [1, 1]
    assert (cv2.getNumThreads(), log.getLogLevel()) == before


def test_large_photos_are_shrunk_first(words):
    large = np.kron(PHOTOS[0], np.ones((9, 9, 1), np.uint8))
    histograms = words.transform([large])["colour"]
    height, width = (round(side * 255 / max(large.shape)) for side in large.shape[:2])
    assert histograms.totals == [height * width]
    assert histograms.counts.dtype == np.uint16


def test_chosen_features_and_levels_only():
    words = VisualWords(n_words={"sift": 4, "colour": 3}, n_levels=1).fit(PHOTOS)
    features = words.transform(PHOTOS)
    shapes = {name: h.counts.shape for name, h in features.items()}
    assert shapes == {"colour": (12, 1, 3), "sift": (12, 1, 4)}


def test_settings_reach_the_features():
    base = {"n_words": {"texture": 6, "sift": 6}, "n_sample_points": 100}
    plain = VisualWords(**base).fit(PHOTOS)
    assert plain.codebooks_["texture"].n_dims == 18
    sparse = VisualWords(**base, sift_step=5).fit(PHOTOS).transform(PHOTOS)["sift"]
    assert (sparse.totals * 4 < plain.transform(PHOTOS)["sift"].totals).all()
    coarse = VisualWords(**base, sift_bin_size=6.0).fit(PHOTOS).codebooks_["sift"].centers
    assert not np.allclose(coarse, plain.codebooks_["sift"].centers, atol=0.01)


def test_sample_is_as_large_as_asked(monkeypatch):
    sizes = []
    learn = VisualWords.fit.__globals__["learn_codebook"]

    def spy(points, *args, **options):
        sizes.append(len(points))
        return learn(points, *args, **options)

    monkeypatch.setitem(VisualWords.fit.__globals__, "learn_codebook", spy)
    VisualWords(n_words=SMALL, n_sample_images=3, n_sample_points=50).fit(PHOTOS)
    VisualWords(n_words=SMALL, n_sample_images=99, n_sample_points=10**6).fit(PHOTOS)
    n_pixels = sum(photo[..., 0].size for photo in PHOTOS)
    assert sizes[:3] == [150, 150, 150]
    assert sizes[3:5] == [n_pixels, n_pixels]


def test_flat_photos_have_as_many_words_as_colours():
    flat = [np.full((20, 20, 3), level, np.uint8) for level in (0, 100, 200)]
    words = VisualWords().fit(flat)
    assert {name: c.n_words for name, c in words.codebooks_.items()}["colour"] == 3
    counts = words.transform(flat)["colour"].counts[:, 0]
    assert sorted(counts.argmax(axis=1)) == [0, 1, 2]
    assert (counts.max(axis=1) == 400).all()


@pytest.mark.parametrize(
    ("rng", "kept"), [(np.random.default_rng(3), None), (None, None), (np.int64(3), 3)]
)
def test_numpy_parameters_are_saved_as_plain_numbers(tmp_path, rng, kept):
    words = VisualWords(n_words={"colour": np.int32(2)}, n_levels=np.int8(2), rng=rng)
    words.fit(PHOTOS).save(tmp_path / "words")
    loaded = VisualWords.load(tmp_path / "words")
    assert (loaded.n_words, loaded.n_levels, loaded.rng) == ({"colour": 2}, 2, kept)
    same_bits(loaded.transform(PHOTOS), words.transform(PHOTOS))


def test_scikit_learn_habits(words):
    copy = clone(words)
    assert copy.get_params() == words.get_params()
    assert not hasattr(copy, "codebooks_")
    assert copy.set_params(n_levels=2) is copy
    assert copy.fit(PHOTOS, None).transform(PHOTOS[:1])["colour"].n_levels == 2
    refuses(ValueError, "VisualWords", VisualWords().transform, PHOTOS)
    refuses(ValueError, "VisualWords", VisualWords().save, "words")


def test_codebooks_can_be_replaced(words):
    copy = VisualWords(n_words={"colour": 2}).fit(PHOTOS)
    copy.codebooks_["colour"] = Codebook([[0.0, 0.0, 0.0], [100.0, 0.0, 0.0]])
    dark_and_light = [np.zeros((4, 4), np.uint8), np.full((4, 4), 255, np.uint8)]
    assert copy.transform(dark_and_light)["colour"].counts[:, 0].tolist() == [[16, 0], [0, 16]]


def test_settings_are_checked():
    for name, values in {
        "n_words": [5, {}, {"color": 5}, {"sift": 0}], "n_levels": [0], "sift_step": [0],
        "sift_bin_size": [np.nan], "n_sample_images": [0], "n_sample_points": [1.5],
        "max_pixels": [0],
    }.items():  # fmt: skip
        for value in values:
            call = VisualWords(**{name: value}).fit
            refuses((TypeError, ValueError), f".*{name}", call, PHOTOS)
