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
    UnreadableImagesError,
    UnreadableImagesWarning,
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


@pytest.fixture
def photo_files(tmp_path):
    paths = [tmp_path / f"{i}.png" for i in range(len(PHOTOS))]
    for path, photo in zip(paths, PHOTOS, strict=True):
        assert cv2.imwrite(str(path), photo[:, :, ::-1])
    return paths


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


def test_an_image_does_not_depend_on_the_others_or_its_form(words, features, photo_files):
    some = words.transform([PHOTOS[7], str(photo_files[2])])
    same_bits(some, {name: h.select([7, 2]) for name, h in features.items()})
    same_bits(words.transform(tuple(photo_files)), features)
    stack = np.stack([photo[:30, :30] for photo in PHOTOS])
    same_bits(words.transform(stack), words.transform(list(stack)))


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


def test_progress_counts_images(words):
    steps, each = [], [(i, 12) for i in range(1, 13)]
    words.transform(PHOTOS, n_threads=2, progress=lambda *step: steps.append(step))
    VisualWords(n_words=SMALL).fit(PHOTOS, progress=lambda *step: steps.append(step))
    assert steps == [*each, *each, (1, 3), (2, 3), (3, 3)]


@pytest.fixture
def odd_files(photo_files, tmp_path):
    """Good photos at 0, 2, 4 and 7; everything else cannot be read."""
    cut = photo_files[6].read_bytes()[:-200]
    files = {1: ("text.jpg", b"A dog runs."), 3: ("empty.jpg", b""), 6: ("cut.png", cut)}
    for i, (name, content) in files.items():
        photo_files[i] = tmp_path / name
        photo_files[i].write_bytes(content)
    photo_files[5] = tmp_path / "absent.jpg"
    return photo_files[:8]


ODD = {1: "text.jpg", 3: "empty.jpg", 5: "absent.jpg", 6: "cut.png"}


@pytest.mark.parametrize("n_threads", [1, 2])
def test_one_error_lists_every_unreadable_file(words, odd_files, n_threads):
    for call in (words.transform, VisualWords().fit):
        with pytest.raises(UnreadableImagesError, match="4 of 8") as caught:
            call(odd_files, n_threads=n_threads)
        assert list(caught.value.failures) == list(ODD)
        lines = str(caught.value).splitlines()[1:]
        reasons = "supported format", "empty", "no such file", "truncated"
        for line, name, reason in zip(lines, ODD.values(), reasons, strict=True):
            assert f"{name}: " in line
            assert reason in line


def test_missing_files_are_noticed_before_any_work(words, odd_files, monkeypatch):
    def refuse(*_):
        raise AssertionError("an image was described in vain")

    monkeypatch.setattr(VisualWords, "_count", refuse)
    with pytest.raises(UnreadableImagesError, match="4 of 8"):
        words.transform(odd_files)


def test_unreadable_files_are_skipped_with_one_warning_a_call(words, features, odd_files):
    with pytest.warns(UnreadableImagesWarning) as one:
        some = words.transform(odd_files, on_error="skip")
    with pytest.warns(UnreadableImagesWarning) as other:
        learned = VisualWords(n_words=SMALL).fit(odd_files, on_error="skip")
    caught = [*one, *other]
    assert [warning.filename for warning in caught] == [__file__] * 2
    assert all(name in str(warning.message) for name in ODD.values() for warning in caught)
    assert (some.rows.tolist(), list(some.failures)) == ([0, 2, 4, 7], list(ODD))
    same_bits(some, {name: h.select([0, 2, 4, 7]) for name, h in features.items()})
    assert learned.codebooks_["colour"].n_words == 5


def test_nothing_readable_is_an_error_even_when_skipping(words, odd_files):
    nothing = [odd_files[1], odd_files[5]]
    refuses(UnreadableImagesError, "2 of 2", words.transform, nothing, on_error="skip")


def test_codebooks_can_be_replaced(words):
    copy = VisualWords(n_words={"colour": 2}).fit(PHOTOS)
    copy.codebooks_["colour"] = Codebook([[0.0, 0.0, 0.0], [100.0, 0.0, 0.0]])
    dark_and_light = [np.zeros((4, 4), np.uint8), np.full((4, 4), 255, np.uint8)]
    assert copy.transform(dark_and_light)["colour"].counts[:, 0].tolist() == [[16, 0], [0, 16]]


@pytest.mark.parametrize(
    ("error", "named", "images"),
    [
        (ValueError, "images", []), (TypeError, "images .*str", "photo.jpg"),
        (TypeError, "images", iter(["photo.jpg"])), (ValueError, "images .*shape", PHOTOS[0]),
        (TypeError, r"images\[1\] .*None", ["photo.jpg", None]),
        (TypeError, r"images\[0\] .*float64", [PHOTOS[0] / 255]),
        (ValueError, r"images\[0\] .*shape", [PHOTOS[0][:, :, :2]]),
    ]
)  # fmt: skip
def test_what_are_no_photos_is_refused(words, error, named, images):
    refuses(error, named, words.transform, images)
    refuses(error, named, VisualWords().fit, images)


def test_settings_and_arguments_are_checked(words):
    for name, values in {
        "n_words": [5, {}, {"color": 5}, {"sift": 0}], "n_levels": [0], "sift_step": [0],
        "sift_bin_size": [np.nan], "n_sample_images": [0], "n_sample_points": [1.5],
        "max_pixels": [0],
    }.items():  # fmt: skip
        for value in values:
            call = VisualWords(**{name: value}).fit
            refuses((TypeError, ValueError), f".*{name}", call, PHOTOS)
    for method in (words.transform, VisualWords().fit):
        refuses(ValueError, "on_error", method, PHOTOS, on_error="ignore")
        refuses(ValueError, "n_threads", method, PHOTOS, n_threads=0)
