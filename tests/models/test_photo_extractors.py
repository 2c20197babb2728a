"""Photos described by objects of others: damaged files, loading, refits."""

from pathlib import Path

import cv2
import numpy as np
import pytest
from sklearn.base import clone

from kernelcore.datasets import make_scenes
from kernelcore.images import UnreadableImagesError, UnreadableImagesWarning, VisualWords
from kernelcore.models import PhotoRanker

SCENES = make_scenes(24, size=(32, 40))
PHOTOS = list(SCENES.images)
CAPTIONS = SCENES.dataset.captions
WORDS = VisualWords(n_words={"colour": 6}, n_sample_images=6, n_sample_points=50)
SMALL = {
    "n_components_grid": (4,),
    "regularization_grid": (0.3,),
    "correlation_power_grid": (1.0,),
}


class Thumbnails:
    """Pixels of a small copy; it trusts that every file can be read."""

    def __init__(self):
        self.seen = []

    def transform(self, images):
        self.seen.append(list(images))
        rows = [cv2.imread(str(i)) if isinstance(i, (str, type(None))) else i for i in images]
        small = [cv2.resize(row, (6, 6), interpolation=cv2.INTER_AREA) for row in rows]
        return np.stack(small).reshape(len(rows), -1) / 255 - 0.4


def fitted(features, photos=PHOTOS, captions=CAPTIONS, **options):
    return PhotoRanker(features, **SMALL).fit(photos, captions, **options)


@pytest.fixture
def files(tmp_path):
    """Photos as files, of which number 3 is cut off, 5 is missing and 7 is empty."""
    paths = [str(tmp_path / f"{i}.png") for i in range(len(PHOTOS))]
    for i, (path, photo) in enumerate(zip(paths, PHOTOS, strict=True)):
        _, content = cv2.imencode(".png", photo)
        whole = content.tobytes()
        if i != 5:
            Path(path).write_bytes({3: whole[:200], 7: b""}.get(i, whole))
    return paths


DAMAGED = [3, 5, 7]


def without(items, numbers=DAMAGED):
    return [item for i, item in enumerate(items) if i not in numbers]


def test_damaged_files_are_named_and_no_extractor_sees_them(files):
    extractor = Thumbnails()
    with pytest.warns(UserWarning, match=r"3\.png") as told:
        ranker = fitted(extractor, files, on_error="skip")
    (message,) = {str(warning.message) for warning in told}
    assert all(f"{i}.png" in message for i in DAMAGED)
    assert extractor.seen == [without(files)]
    assert len(ranker.training_) == len(PHOTOS) - len(DAMAGED)
    expected = fitted(Thumbnails(), without(files), without(CAPTIONS))
    assert ranker.fingerprint == expected.fingerprint
    with pytest.warns(UserWarning, match=r"5\.png"):
        index = ranker.index(files[4:7], on_error="skip")
    assert index.names == (files[4], files[6])
    assert extractor.seen[-1] == [files[4], files[6]]


@pytest.mark.parametrize("features", [WORDS, [clone(WORDS), Thumbnails()]])
def test_what_is_left_out_is_told_once_and_to_the_caller(features, files):
    ranker = PhotoRanker(features, **SMALL)
    with pytest.warns(UnreadableImagesWarning) as told:
        ranker.fit(files, CAPTIONS, on_error="skip")
    (warning,) = told
    assert warning.filename == __file__
    assert str(warning.message).startswith("3 of 24 images cannot be read")
    with pytest.warns(UnreadableImagesWarning) as told:
        ranker.index(files, on_error="skip")
    assert [warning.filename for warning in told] == [__file__]


def test_damaged_files_of_dev_are_left_out_too(files):
    extractor = Thumbnails()
    dev = files[:8], CAPTIONS[:8]
    with pytest.warns(UserWarning, match=r"3\.png"):
        ranker = PhotoRanker(extractor, **SMALL).fit(
            files[8:], CAPTIONS[8:], dev=dev, on_error="skip"
        )
    assert ranker.n_dev_[0] == 5
    assert extractor.seen[-1] == without(files[:8])


def test_a_file_that_no_feature_can_read_is_left_out_of_all(files):
    words = clone(WORDS).fit(PHOTOS)
    with pytest.warns(UserWarning, match=r"3\.png"):
        ranker = fitted([words, Thumbnails()], files, on_error="skip")
    assert len(ranker.training_) == len(PHOTOS) - len(DAMAGED)


def test_damaged_bytes_are_left_out_and_pixels_are_not_looked_at():
    _, whole = cv2.imencode(".png", PHOTOS[0])
    photos = [whole.tobytes(), whole.tobytes()[:200], PHOTOS[1], PHOTOS[2].astype(float)]

    class Means:
        def transform(self, images):
            return np.array([np.frombuffer(bytes(i)[:80], "u1").astype(float) for i in images])

    many = photos * 6
    with pytest.warns(UserWarning, match=r"images\[1\]"):
        ranker = fitted(Means(), many, on_error="skip")
    assert len(ranker.training_) == 18


def test_if_no_file_can_be_read_that_is_said(files):
    extractor = Thumbnails()
    with pytest.raises(UnreadableImagesError, match=r"3\.png"):
        fitted(extractor, [files[3], files[5], files[7]], CAPTIONS[:3], on_error="skip")
    assert extractor.seen == []


def test_without_skip_the_extractor_decides_what_it_reads(files):
    class Names:
        def transform(self, images):
            return np.array([[len(name), int(name[-5]), hash(name) % 97] for name in images])

    assert len(fitted(Names(), files).training_) == len(PHOTOS)


@pytest.fixture
def folder(tmp_path):
    fitted([WORDS, Thumbnails()]).save(tmp_path / "model")
    return tmp_path / "model"


def test_a_model_that_lacks_a_feature_says_which_before_it_learns(folder):
    loaded = PhotoRanker.load(folder)
    said = r"features\[1\] must be given again.* its extractor Thumbnails.*set_params"
    for ranker in (loaded, clone(loaded)):
        with pytest.raises(ValueError, match=said):
            ranker.fit(["nowhere.png"] * 24, CAPTIONS)
    for call in (loaded.index, lambda photos: loaded.scores(photos, ["A dog."])):
        with pytest.raises(ValueError, match=said):
            call(PHOTOS)
    assert "Thumbnails" in repr(loaded.features[1])
    assert isinstance(loaded.features[0], VisualWords)


def test_a_model_whose_feature_is_given_again_can_be_refitted(folder, tmp_path):
    original = fitted([WORDS, Thumbnails()])
    given = PhotoRanker.load(folder, features=Thumbnails())
    assert given.fit(PHOTOS, CAPTIONS).fingerprint == original.fingerprint
    anew = PhotoRanker.load(folder).set_params(features=[WORDS, Thumbnails()])
    assert anew.fit(PHOTOS, CAPTIONS).fingerprint == original.fingerprint
    # What was lacking is still known after another turn.
    PhotoRanker.load(folder).save(tmp_path / "again")
    again = PhotoRanker.load(tmp_path / "again", features=Thumbnails())
    assert again.scores(PHOTOS, ["A dog."]).shape == (24, 1)


def test_a_model_without_its_only_feature_learns_from_vectors_or_names_it(tmp_path):
    original = fitted(Thumbnails())
    original.save(tmp_path / "model")
    loaded = PhotoRanker.load(tmp_path / "model")
    for photos in (PHOTOS, ["nowhere.png"] * 24):
        with pytest.raises(ValueError, match=r"its extractor Thumbnails; pass it as load"):
            loaded.fit(photos, CAPTIONS)
    vectors = Thumbnails().transform(PHOTOS)
    assert loaded.fit(vectors, CAPTIONS).fingerprint == original.fingerprint
    assert loaded.fit(vectors[:, :5], CAPTIONS).training_.photos[0].n_features == 5
