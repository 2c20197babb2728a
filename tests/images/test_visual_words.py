import multiprocessing
import os
import threading

import cv2
import numpy as np
import pytest

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
    read_image,
)
from kernelcore.reference.images import count_words, nearest_word

SMALL = {"colour": 5, "texture": 6, "sift": 7}


def make_photos(n_images, seed=0):
    """Blurred noise in colour, of several sizes and shapes."""
    rng = np.random.default_rng(seed)
    photos = []
    for _ in range(n_images):
        height, width = rng.integers(30, 60, 2)
        noise = rng.integers(0, 256, (height, width, 3), np.uint8)
        photos.append(cv2.GaussianBlur(noise, (0, 0), 1.5))
    return photos


PHOTOS = make_photos(12)


@pytest.fixture(scope="module")
def words():
    return VisualWords(n_words=SMALL, n_sample_points=200).fit(PHOTOS)


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
        assert histograms.counts.tobytes() == other[name].counts.tobytes(), name
        assert histograms.totals.tobytes() == other[name].totals.tobytes(), name


def test_features_are_what_their_parts_say(words, features):
    assert isinstance(features, ImageFeatures)
    assert list(features) == ["colour", "texture", "sift"]
    assert features.rows.tolist() == list(range(12))
    assert features.failures == {}
    photo = PHOTOS[3]
    dense = {
        "colour": cielab(photo),
        "texture": oriented_energy(photo),
        "sift": dense_sift(photo),
    }
    for name, histograms in features.items():
        assert isinstance(histograms, SpatialHistograms)
        assert histograms.counts.shape == (12, 21, SMALL[name])
        assert histograms.counts.dtype == np.uint16
        values, y, x = dense[name]
        word_map = nearest_word(dense[name].points, words.codebooks_[name].centers)
        expected = count_words(
            word_map.reshape(len(y), len(x)),
            y,
            x,
            photo.shape[:2],
            n_words=SMALL[name],
            n_levels=3,
        )
        # A point as near to two words as float32 can tell may have either.
        assert np.abs(histograms.counts[3].astype(int) - expected).sum() <= 12
        assert histograms.totals[3] == values[0].size


def test_fit_repeats_itself_and_follows_rng(words):
    def centers(**options):
        learned = VisualWords(n_words=SMALL, n_sample_points=200, **options).fit(PHOTOS)
        return [codebook.centers.tobytes() for codebook in learned.codebooks_.values()]

    original = [codebook.centers.tobytes() for codebook in words.codebooks_.values()]
    assert centers() == original
    assert centers(rng=np.random.default_rng(0)) == original
    assert centers(rng=1) != original


@pytest.mark.parametrize("n_threads", [1, 2, 5])
def test_same_bits_for_every_number_of_threads(words, features, n_threads):
    same_bits(words.transform(PHOTOS, n_threads=n_threads), features)
    again = VisualWords(n_words=SMALL, n_sample_points=200).fit(PHOTOS, n_threads=n_threads)
    for name, codebook in again.codebooks_.items():
        assert codebook.centers.tobytes() == words.codebooks_[name].centers.tobytes()


def transform_in_child(words, queue):
    queue.put({name: h.counts for name, h in words.transform(PHOTOS, n_threads=2).items()})


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_same_bits_in_a_forked_child(words, features):
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=transform_in_child, args=(words, queue))
    child.start()
    counts = queue.get(timeout=60)
    child.join(60)
    assert child.exitcode == 0
    for name, histograms in features.items():
        assert counts[name].tobytes() == histograms.counts.tobytes()


def test_an_image_does_not_depend_on_the_others(words, features):
    some = words.transform([PHOTOS[7], PHOTOS[2]])
    same_bits(some, {name: h.select([7, 2]) for name, h in features.items()})


def test_settings_of_the_libraries_are_put_back(words):
    log = getattr(cv2.utils, "logging", cv2)
    before = cv2.getNumThreads(), log.getLogLevel()
    inside = []
    words.transform(PHOTOS[:2], progress=lambda *_: inside.append(cv2.getNumThreads()))
    assert inside == [1, 1]
    assert (cv2.getNumThreads(), log.getLogLevel()) == before


def test_files_and_arrays_give_the_same(words, features, photo_files):
    same_bits(words.transform(photo_files), features)
    same_bits(words.transform(tuple(map(str, photo_files))), features)
    stack = np.stack([photo[:30, :30] for photo in PHOTOS])
    same_bits(words.transform(stack), words.transform(list(stack)))


def test_large_photos_are_shrunk_first(words):
    large = np.kron(PHOTOS[0], np.ones((9, 9, 1), np.uint8))
    histograms = words.transform([large])["colour"]
    height, width = (round(side * 255 / max(large.shape)) for side in large.shape[:2])
    assert histograms.totals == [height * width]
    assert histograms.counts.dtype == np.uint16


@pytest.mark.parametrize("shape", [(1, 1), (1, 70), (2, 3), (5, 5), (13, 4)])
def test_tiny_photos(words, shape):
    tiny = np.random.default_rng(0).integers(0, 256, (*shape, 3), np.uint8)
    features = words.transform([tiny])
    assert features["colour"].totals == [shape[0] * shape[1]]
    assert features["sift"].totals >= [1]


def test_chosen_features_and_levels_only():
    words = VisualWords(n_words={"sift": 4, "colour": 3}, n_levels=1).fit(PHOTOS)
    features = words.transform(PHOTOS)
    assert {name: h.counts.shape for name, h in features.items()} == {
        "colour": (12, 1, 3),
        "sift": (12, 1, 4),
    }


def test_settings_reach_the_features():
    base = {"n_words": {"texture": 6, "sift": 6}, "n_sample_points": 100}
    plain = VisualWords(**base).fit(PHOTOS)
    assert plain.codebooks_["texture"].n_dims == 18
    sparse = VisualWords(**base, sift_step=5).fit(PHOTOS).transform(PHOTOS)["sift"]
    assert (sparse.totals * 4 < plain.transform(PHOTOS)["sift"].totals).all()
    coarse = VisualWords(**base, sift_bin_size=6.0).fit(PHOTOS)
    assert not np.allclose(
        coarse.codebooks_["sift"].centers, plain.codebooks_["sift"].centers, atol=0.01
    )


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


def test_save_and_load(words, features, tmp_path):
    words.save(tmp_path / "words.safetensors")
    loaded = VisualWords.load(tmp_path / "words.safetensors")
    assert loaded.get_params() == words.get_params()
    same_bits(loaded.transform(PHOTOS), features)
    with pytest.raises(FileNotFoundError):
        VisualWords.load(tmp_path / "absent")


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
    clone = pytest.importorskip("sklearn.base").clone
    copy = clone(words)
    assert copy.get_params() == words.get_params()
    assert not hasattr(copy, "codebooks_")
    assert copy.set_params(n_levels=2) is copy
    assert copy.fit(PHOTOS, None).transform(PHOTOS[:1])["colour"].n_levels == 2
    with pytest.raises(ValueError, match="VisualWords must be fitted first"):
        VisualWords().transform(PHOTOS)
    with pytest.raises(ValueError, match="VisualWords must be fitted first"):
        VisualWords().save("words")


def test_progress_counts_images(words):
    steps = []
    words.transform(PHOTOS, n_threads=2, progress=lambda *step: steps.append(step))
    assert steps == [(i, 12) for i in range(1, 13)]
    steps.clear()
    VisualWords(n_words=SMALL).fit(PHOTOS, progress=lambda *step: steps.append(step))
    assert steps == [*((i, 12) for i in range(1, 13)), (1, 3), (2, 3), (3, 3)]


@pytest.fixture
def odd_files(photo_files, tmp_path):
    """Good photos at 0, 2, 4 and 7; everything else cannot be read."""
    files = {
        1: ("text.jpg", b"A dog runs."),
        3: ("empty.jpg", b""),
        6: ("cut.png", photo_files[6].read_bytes()[:-200]),
    }
    for i, (name, content) in files.items():
        photo_files[i] = tmp_path / name
        photo_files[i].write_bytes(content)
    photo_files[5] = tmp_path / "absent.jpg"
    return photo_files[:8]


@pytest.mark.parametrize("n_threads", [1, 2])
def test_one_error_lists_every_unreadable_file(words, odd_files, n_threads):
    with pytest.raises(UnreadableImagesError) as caught:
        words.transform(odd_files, n_threads=n_threads)
    assert list(caught.value.failures) == [1, 3, 5, 6]
    lines = str(caught.value).splitlines()
    assert lines[0] == "4 of 8 images cannot be read:"
    for line, name, reason in zip(
        lines[1:],
        ["text.jpg", "empty.jpg", "absent.jpg", "cut.png"],
        ["supported format", "it is empty", "no such file", "truncated"],
        strict=True,
    ):
        assert name in line
        assert reason in line


def test_missing_files_are_noticed_before_any_work(words, odd_files, monkeypatch):
    def refuse(*_):
        raise AssertionError("an image was described in vain")

    monkeypatch.setattr(VisualWords, "_count", refuse)
    with pytest.raises(UnreadableImagesError, match="4 of 8"):
        words.transform(odd_files)


def test_unreadable_files_are_skipped_with_one_warning(words, features, odd_files):
    with pytest.warns(UnreadableImagesWarning) as caught:
        some = words.transform(odd_files, on_error="skip")
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert all(name in str(caught[0].message) for name in ("text", "empty", "absent", "cut"))
    assert some.rows.tolist() == [0, 2, 4, 7]
    assert list(some.failures) == [1, 3, 5, 6]
    same_bits(some, {name: h.select([0, 2, 4, 7]) for name, h in features.items()})


def test_nothing_readable_is_an_error_even_when_skipping(words, odd_files):
    with pytest.raises(UnreadableImagesError, match="2 of 2 images cannot be read"):
        words.transform([odd_files[1], odd_files[5]], on_error="skip")


def test_fit_with_unreadable_files(odd_files):
    words = VisualWords(n_words=SMALL)
    with pytest.raises(UnreadableImagesError, match="4 of 8") as caught:
        words.fit(odd_files)
    assert list(caught.value.failures) == [1, 3, 5, 6]
    with pytest.warns(UnreadableImagesWarning, match="4 of 8") as warned:
        words.fit(odd_files, on_error="skip")
    assert warned[0].filename == __file__
    assert words.codebooks_["colour"].n_words == 5


def test_an_interrupt_starts_no_further_image(words, monkeypatch):
    described = threading.Semaphore(0)
    count = VisualWords._count

    def counting(self, *args):
        described.release()
        return count(self, *args)

    def interrupt(done, total):
        raise KeyboardInterrupt

    monkeypatch.setattr(VisualWords, "_count", counting)
    with pytest.raises(KeyboardInterrupt):
        words.transform(PHOTOS * 50, n_threads=2, progress=interrupt)
    n_described = 0
    while described.acquire(blocking=False):
        n_described += 1
    assert n_described < 100


def test_codebooks_can_be_replaced(words):
    copy = VisualWords(n_words={"colour": 2}).fit(PHOTOS)
    copy.codebooks_["colour"] = Codebook([[0.0, 0.0, 0.0], [100.0, 0.0, 0.0]])
    dark_and_light = [np.zeros((4, 4), np.uint8), np.full((4, 4), 255, np.uint8)]
    assert copy.transform(dark_and_light)["colour"].counts[:, 0].tolist() == [[16, 0], [0, 16]]


@pytest.mark.realdata
def test_photos_of_the_corpus(data_root):
    paths = sorted((data_root / "flickr8k/images").glob("*.jpg"))[:6]
    words = VisualWords(n_sample_points=300).fit(paths)
    features = words.transform(paths)
    for name, n_words in (("colour", 128), ("texture", 256), ("sift", 256)):
        assert features[name].counts.shape == (6, 21, n_words)
        assert features[name].counts.dtype == np.uint16
    assert (features["colour"].totals == read_image(paths[0])[..., 0].size).all()
    assert (features["sift"].totals == 106 * 106).all()
    assert (features["texture"].counts[:, 0] > 0).mean() > 0.3
