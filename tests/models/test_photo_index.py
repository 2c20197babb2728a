"""Indices of photos: growing, shrinking, files that other programs read."""

import io
import json
import re
import sqlite3
import tracemalloc
from contextlib import closing
from itertools import product

import numpy as np
import pytest
from refusals import refuses
from resealed import parts_of, reseal

from kernelcore.models import PhotoFile, PhotoIndex

FACTS = [PhotoFile(10 * i, 2**60 + i, f"{i:032x}") for i in range(4)]


@pytest.fixture
def index():
    vectors = np.arange(12, dtype=np.float32).reshape(4, 3)
    return PhotoIndex(["a.jpg", "b/ü.jpg", "c.jpg", "d\n.jpg"], vectors, "1f0e", files=FACTS)


def equal(one, other):
    for name in ("names", "model", "files"):
        assert getattr(one, name) == getattr(other, name)
    np.testing.assert_array_equal(one.projections, other.projections)
    assert one.projections.dtype == other.projections.dtype
    np.testing.assert_array_equal(one.numbers, other.numbers)


def test_a_saved_index_is_the_same(index, tmp_path):
    less = index.without_photos(["a.jpg", "c.jpg", "nowhere"])
    one_photo, none = np.ones((1, 2)), np.empty((0, 5), "f4")
    others = PhotoIndex(["x"], one_photo, "m"), PhotoIndex([], none, "m")
    for number, one in enumerate([index, less, *others]):
        one.save(tmp_path / str(number))
        equal(PhotoIndex.load(tmp_path / str(number)), one)


def test_other_programs_read_the_folder(index, tmp_path):
    index.without_photos(["a.jpg"]).save(tmp_path / "index")
    parts = parts_of(tmp_path / "index" / "index.json")
    vectors = np.load(parts / "vectors.npy", allow_pickle=False)
    query = "SELECT number, row, name, size, modified, digest FROM photos ORDER BY row"
    with closing(sqlite3.connect(parts / "photos.sqlite")) as table:
        rows = table.execute(query).fetchall()
    assert rows == [(i, i - 1, index.names[i], *FACTS[i]) for i in range(1, 4)]
    np.testing.assert_array_equal(vectors, index.projections[1:])
    assert json.loads((tmp_path / "index" / "index.json").read_text())["model"] == "1f0e"


def test_photos_keep_their_numbers_when_others_come_and_go(index):
    new = np.zeros((2, 3), np.float32)
    grown = index.without_photos(["b/ü.jpg"])
    grown = grown.with_photos(["e.jpg", "f.jpg"], new, files=FACTS[:2])
    assert grown.names == ("a.jpg", "c.jpg", "d\n.jpg", "e.jpg", "f.jpg")
    assert grown.numbers.tolist() == [0, 2, 3, 4, 5]
    less = grown.without_photos(["f.jpg", "e.jpg"])
    again = less.with_photos(["g.jpg"], new[:1], files=FACTS[:1])
    assert again.numbers.tolist() == [0, 2, 3, 6]  # no number is given twice
    assert grown.files == (*FACTS[:1], *FACTS[2:], *FACTS[:2])
    np.testing.assert_array_equal(grown.projections[:3], index.projections[[0, 2, 3]])
    known = PhotoIndex(["a", "b"], [[1.0], [2.0]], "m", is_known=[True, False])
    assert known.without_photos(["a"]).is_known.tolist() == [False]
    assert known.with_photos(["c"], [[3.0]]).is_known.tolist() == [True, False, False]
    assert grown.is_known is None


def test_a_name_that_is_no_text_is_not_saved(tmp_path):
    index = PhotoIndex(["a.jpg", "bad\udcff.jpg"], [[1.0], [2.0]], "model")
    refuses(ValueError, r".*bad\\udcff\.jpg", index.save, tmp_path / "index")
    assert not (tmp_path / "index").exists()


def test_nothing_is_overwritten_unasked(index, tmp_path):
    index.save(tmp_path / "index")
    refuses(FileExistsError, "index", index.save, tmp_path / "index")
    index.without_photos(["a.jpg"]).save(tmp_path / "index", overwrite=True)
    assert len(PhotoIndex.load(tmp_path / "index")) == 3
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "mine.txt").write_text("dear diary")
    for path, overwrite in product(("other", "other/mine.txt"), (False, True)):
        refuses(FileExistsError, path, index.save, tmp_path / path, overwrite=overwrite)
    assert (tmp_path / "other" / "mine.txt").read_text() == "dear diary"


def npy(values):
    file = io.BytesIO()
    np.save(file, values)
    return file.getvalue()


CHANGES = {
    "no table": "DROP TABLE photos",
    "a row less": "DELETE FROM photos WHERE row = 1",
    "a wrong row": "UPDATE photos SET row = 9 WHERE row = 1",
    "a name that is a number": "UPDATE photos SET name = x'ff' WHERE row = 1",
    "no size": "UPDATE photos SET size = NULL WHERE row = 1",
    "no facts": "UPDATE photos SET size = NULL, modified = NULL, digest = NULL WHERE row = 1",
    "a negative number": "UPDATE photos SET number = -4 WHERE row = 1",
    "a view": "ALTER TABLE photos RENAME TO p; CREATE VIEW photos AS SELECT * FROM p",
    "a digest that is a path": "UPDATE photos SET digest = '../../x' WHERE row = 1",
}
MANIFESTS = {
    "another kind": {"kind": "model", "model": "m", "next_number": 4},
    "no model": {"kind": "photo index", "next_number": 4},
    "a model that is a number": {"kind": "photo index", "model": 4, "next_number": 4},
    "no next number": {"kind": "photo index", "model": "1f0e"},
}
FILES = {
    "photos.sqlite": [b"SQLite format 3\0" + b"x" * 99, b""],
    "vectors.npy": [b"1 2 3", npy([["a"] * 3] * 4), npy(np.full((4, 3), np.nan)), npy([1.0])],
}


@pytest.fixture
def manifest(index, tmp_path):
    index.save(tmp_path / "index")
    return tmp_path / "index" / "index.json"


def refused(manifest, named=r"index/(\w+/)?(photos|vectors|index)\.\w+"):
    refuses((FileNotFoundError, ValueError), named, PhotoIndex.load, manifest.parent)


@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_table_is_named(manifest, change):
    with closing(sqlite3.connect(parts_of(manifest) / "photos.sqlite")) as table:
        table.executescript(CHANGES[change])
    refused(manifest)
    reseal(manifest)
    refused(manifest)  # behind the checksums everything is checked, too


def test_a_changed_file_is_named(manifest):
    for about in MANIFESTS.values():
        reseal(manifest, about)
        refused(manifest)
    manifest.write_text("{")
    refused(manifest)


@pytest.mark.parametrize("name", FILES)
def test_other_contents_are_named(manifest, name):
    for content in FILES[name]:
        (parts_of(manifest) / name).write_bytes(content)
        refused(manifest)
        reseal(manifest)
        refused(manifest)


@pytest.mark.parametrize("name", ["index.json", "vectors.npy", "photos.sqlite"])
def test_a_missing_file_is_named(manifest, name):
    [path] = manifest.parent.rglob(name)
    path.unlink()
    refused(manifest, re.escape(name))
    refuses(FileNotFoundError, "nowhere", PhotoIndex.load, manifest.parent / "nowhere")


def test_an_index_is_written_without_a_copy_of_its_vectors(tmp_path):
    index = PhotoIndex([f"{i}" for i in range(1000)], np.ones((1000, 2000), np.float32), "m")
    tracemalloc.start()
    index.save(tmp_path / "index")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < index.projections.nbytes / 2
    vectors = np.load(parts_of(tmp_path / "index" / "index.json") / "vectors.npy")
    np.testing.assert_array_equal(vectors, index.projections)
