"""An index that follows a folder."""

import os
import shutil
from pathlib import Path

import numpy as np
import pytest
from refusals import refuses

from kernelcore.images import UnreadableImagesError
from kernelcore.models import Encoders, PhotoIndex
from kernelcore.search import update_index
from kernelcore.search.update import Changes


@pytest.fixture
def place(files, tmp_path):
    photos = tmp_path / "photos"
    (photos / "sub").mkdir(parents=True)
    for i, name in enumerate(["a.png", "b.png", "sub/c.png"]):
        shutil.copy(files[i], photos / name)
    return photos


class Seen:
    """Encoders that note which photos they are given."""

    def __init__(self):
        self.photos = []
        self.model = Encoders(self.captions, self.images, name="sizes")

    def images(self, paths):
        self.photos += [Path(path).name for path in paths]
        return [[Path(path).stat().st_size, 1.0] for path in paths]

    def captions(self, texts):
        return [[len(text), 1.0] for text in texts]


def names(place):
    return sorted(p.relative_to(place).as_posix() for p in place.rglob("*.png"))


def test_only_new_photos_are_placed(place, files):
    seen = Seen()
    index, changes = update_index(None, seen.model, place, names(place))
    assert changes == Changes(3, 0)
    assert index.names == ("a.png", "b.png", "sub/c.png")
    assert seen.photos == ["a.png", "b.png", "c.png"]
    again, changes = update_index(index, seen.model, place, names(place))
    assert again is index
    assert changes == Changes(0, 0)
    assert len(seen.photos) == 3

    shutil.copy(files[3], place / "0.png")
    (place / "a.png").unlink()
    grown, changes = update_index(index, seen.model, place, names(place))
    assert changes == Changes(1, 1)
    assert seen.photos[3:] == ["0.png"]
    assert grown.names == ("b.png", "sub/c.png", "0.png")
    assert grown.numbers.tolist() == [1, 2, 3]


def test_a_photo_that_changes_is_placed_anew_and_one_that_is_touched_is_not(place, files):
    seen = Seen()
    index, _ = update_index(None, seen.model, place, names(place))
    os.utime(place / "b.png", ns=(1, 1))
    touched, changes = update_index(index, seen.model, place, names(place))
    assert changes == Changes(0, 0)
    assert touched.files[1].modified == 1
    assert len(seen.photos) == 3
    shutil.copy(files[5], place / "b.png")
    changed, changes = update_index(touched, seen.model, place, names(place))
    assert changes == Changes(1, 1)
    assert seen.photos[3:] == ["b.png"]
    assert changed.numbers.tolist() == [0, 2, 3]
    assert changed.files[2].size == (place / "b.png").stat().st_size


def test_a_model_that_learned_places_them_the_same(ranker, place):
    index, _ = update_index(None, ranker, place, names(place)[:2])
    grown, _ = update_index(index, ranker, place, names(place))
    whole = ranker.index([place / name for name in names(place)])
    np.testing.assert_allclose(grown.projections, whole.projections, atol=1e-5)


def test_a_photo_with_a_new_name_keeps_its_vector_and_its_number(place):
    seen = Seen()
    index, _ = update_index(None, seen.model, place, names(place))
    (place / "a.png").rename(place / "sub" / "z.png")
    index, changes = update_index(index, seen.model, place, names(place))
    assert changes == Changes(0, 0)
    assert index.names == ("sub/z.png", "b.png", "sub/c.png")
    shutil.copy(place / "b.png", place / "twin.png")
    moved, changes = update_index(index, seen.model, place, names(place))
    assert changes == Changes(1, 0)
    assert seen.photos[3:] == ["twin.png"]
    assert moved.names == ("sub/z.png", "b.png", "sub/c.png", "twin.png")
    assert moved.numbers.tolist() == [0, 1, 2, 3]


def test_names_that_are_no_text_stop_or_are_left_out(place, files):
    shutil.copy(files[3], os.fsencode(place) + b"/bad\xff.png")
    bad = r"bad\\udcff\.png"
    refuses(UnreadableImagesError, bad, update_index, None, Seen().model, place, names(place))
    index, changes = update_index(None, Seen().model, place, names(place), on_error="skip")
    assert index.names == ("a.png", "b.png", "sub/c.png")
    (reason,) = changes.unreadable
    assert reason.encode().isascii()


def test_links_out_of_the_folder_stop_or_are_left_out(place, files, tmp_path):
    shutil.copy(files[3], tmp_path / "private.png")
    (place / "inside.png").symlink_to(place / "a.png")
    plain, _ = update_index(None, Seen().model, place, names(place))
    assert "inside.png" in plain.names
    (place / "b.png").unlink()
    (place / "b.png").symlink_to(tmp_path / "private.png")
    (tmp_path / "other").mkdir()
    shutil.copy(files[3], tmp_path / "other" / "x.png")
    (place / "other").symlink_to(tmp_path / "other")
    given = [*names(place), "other/x.png"]
    refuses(UnreadableImagesError, r"b\.png", update_index, plain, Seen().model, place, given)
    index, changes = update_index(plain, Seen().model, place, given, on_error="skip")
    assert set(index.names) == {"a.png", "inside.png", "sub/c.png"}
    assert (changes.removed, len(changes.unreadable)) == (1, 2)
    whole, _ = update_index(plain, Seen().model, place, given, outside="allow")
    assert set(whole.names) == set(given)


def test_unreadable_photos_stop_or_are_left_out(place):
    seen = Seen()
    (place / "bad.png").write_text("no photo")
    arguments = None, seen.model, place, names(place)
    refuses(UnreadableImagesError, r"bad\.png", update_index, *arguments)
    assert seen.photos == []
    index, changes = update_index(None, seen.model, place, names(place), on_error="skip")
    assert (changes.added, len(index)) == (3, 3)
    assert len(changes.unreadable) == 1
    assert "bad.png" in changes.unreadable[0]
    for name in ("a.png", "b.png", "sub/c.png"):
        (place / name).unlink()
    with pytest.raises(ValueError, match="must hold photos that can be read"):
        update_index(index, seen.model, place, names(place), on_error="skip")


def test_indices_that_cannot_grow_are_refused(place):
    model = Seen().model
    other = PhotoIndex([], np.empty((0, 2)), "m")
    plain = model.index(np.ones((1, 2)), names=["a.png"])  # it knows no files
    for index in (other, plain):
        refuses(ValueError, "index", update_index, index, model, place, names(place))
    for odd in ({"on_error": "stop"}, {"outside": "yes"}):
        refuses(ValueError, next(iter(odd)), update_index, None, model, place, [], **odd)


def test_facts_about_files_are_kept(place, tmp_path):
    os.utime(place / "b.png", ns=(1, 123_456_789_012_345_678))
    shutil.copy(place / "b.png", place / "twin.png")
    index, _ = update_index(None, Seen().model, place, names(place))
    facts = dict(zip(index.names, index.files, strict=True))
    assert facts["b.png"].size == (place / "b.png").stat().st_size
    assert facts["b.png"].modified == 123_456_789_012_345_678
    assert facts["b.png"].digest == facts["twin.png"].digest != facts["a.png"].digest
