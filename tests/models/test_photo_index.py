"""Indices of photos: growing, shrinking, files that other programs read."""

import json
import sqlite3
import tracemalloc
from contextlib import suppress

import numpy as np
import pytest
from resealed import parts_of, reseal

from kernelcore.models import PhotoFile, PhotoIndex

FILES = [PhotoFile(10 * i, 2**60 + i, f"{i:032x}") for i in range(4)]


@pytest.fixture
def index():
    vectors = np.arange(12, dtype=np.float32).reshape(4, 3)
    return PhotoIndex(["a.jpg", "b/ü.jpg", "c.jpg", "d\n.jpg"], vectors, "1f0e", files=FILES)


def equal(one, other):
    assert one.names == other.names
    assert one.model == other.model
    assert one.files == other.files
    np.testing.assert_array_equal(one.projections, other.projections)
    assert one.projections.dtype == other.projections.dtype
    np.testing.assert_array_equal(one.numbers, other.numbers)


def test_a_saved_index_is_the_same(index, tmp_path):
    for number, one in enumerate(
        [
            index,
            index.without_photos(["a.jpg", "c.jpg", "nowhere"]),
            PhotoIndex(["x"], np.ones((1, 2)), "m"),
            PhotoIndex([], np.empty((0, 5), np.float32), "m"),
        ]
    ):
        one.save(tmp_path / str(number))
        equal(PhotoIndex.load(tmp_path / str(number)), one)


def test_other_programs_read_the_folder(index, tmp_path):
    index.without_photos(["a.jpg"]).save(tmp_path / "index")
    parts = parts_of(tmp_path / "index" / "index.json")
    vectors = np.load(parts / "vectors.npy", allow_pickle=False)
    with sqlite3.connect(parts / "photos.sqlite") as table:
        rows = table.execute(
            "SELECT number, row, name, size, modified, digest FROM photos ORDER BY row"
        ).fetchall()
    table.close()
    assert rows == [(i, i - 1, index.names[i], *FILES[i]) for i in range(1, 4)]
    np.testing.assert_array_equal(vectors, index.projections[1:])
    assert json.loads((tmp_path / "index" / "index.json").read_text())["model"] == "1f0e"


def test_photos_keep_their_numbers_when_others_come_and_go(index):
    grown = index.without_photos(["b/ü.jpg"]).with_photos(
        ["e.jpg", "f.jpg"], np.zeros((2, 3), np.float32), files=FILES[:2]
    )
    assert grown.names == ("a.jpg", "c.jpg", "d\n.jpg", "e.jpg", "f.jpg")
    assert grown.numbers.tolist() == [0, 2, 3, 4, 5]
    less = grown.without_photos(["f.jpg", "e.jpg"])
    again = less.with_photos(["g.jpg"], np.zeros((1, 3), np.float32), files=FILES[:1])
    assert again.numbers.tolist() == [0, 2, 3, 6]  # no number is given twice
    assert grown.files == (FILES[0], FILES[2], FILES[3], FILES[0], FILES[1])
    np.testing.assert_array_equal(grown.projections[:3], index.projections[[0, 2, 3]])
    known = PhotoIndex(["a", "b"], [[1.0], [2.0]], "m", is_known=[True, False])
    assert known.without_photos(["a"]).is_known.tolist() == [False]
    assert known.with_photos(["c"], [[3.0]]).is_known.tolist() == [True, False, False]
    assert grown.is_known is None


@pytest.mark.parametrize(
    ("names", "vectors", "files", "message"),
    [
        (["a.jpg"], np.ones((1, 3)), FILES[:1], "names must be new, got 'a.jpg'"),
        (["x"], np.ones((1, 2)), FILES[:1], "projections must have 3 components, got 2"),
        (["x"], np.ones((1, 3)), None, "files must be given as the index has them"),
        (["x"], np.ones((2, 3)), FILES[:2], "names must have one entry per photo"),
        (["x"], np.ones((1, 3)), FILES[:2], "files must have one entry per photo"),
    ],
)
def test_photos_that_do_not_fit_are_refused(index, names, vectors, files, message):
    with pytest.raises(ValueError, match=message):
        index.with_photos(names, vectors, files=files)


@pytest.mark.parametrize("numbers", [[0, 0], [1], [-1, 2], [[0], [1]]])
def test_bad_numbers_are_refused(numbers):
    with pytest.raises(ValueError, match="numbers must"):
        PhotoIndex(["a", "b"], np.ones((2, 1)), "m", numbers=numbers)
    with pytest.raises(TypeError, match="numbers must"):
        PhotoIndex(["a", "b"], np.ones((2, 1)), "m", numbers=[0.5, 1])


def test_nothing_is_overwritten_unasked(index, tmp_path):
    index.save(tmp_path / "index")
    with pytest.raises(FileExistsError, match="holds an index already; overwrite"):
        index.save(tmp_path / "index")
    index.without_photos(["a.jpg"]).save(tmp_path / "index", overwrite=True)
    assert len(PhotoIndex.load(tmp_path / "index")) == 3
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "mine.txt").touch()
    for overwrite in (False, True):
        with pytest.raises(FileExistsError, match="must be a new or empty folder"):
            index.save(tmp_path / "other", overwrite=overwrite)
        with pytest.raises(FileExistsError, match="must be a new or empty folder"):
            index.save(tmp_path / "other" / "mine.txt", overwrite=overwrite)


def test_a_folder_that_is_replaced_while_it_is_read_is_read_again(index, tmp_path, monkeypatch):
    from kernelcore.models import photo_index

    index.save(tmp_path / "index")
    other = index.without_photos(["a.jpg"])
    read = photo_index.read_npy

    def replaced(path):
        monkeypatch.setattr(photo_index, "read_npy", read)
        other.save(tmp_path / "index", overwrite=True)
        return read(path)

    monkeypatch.setattr(photo_index, "read_npy", replaced)
    equal(PhotoIndex.load(tmp_path / "index"), other)


def change_table(folder, *statements):
    with sqlite3.connect(folder / "photos.sqlite") as table:
        for statement in statements:
            table.execute(statement)
    table.close()


DAMAGE = {
    "no table": lambda f: change_table(f, "DROP TABLE photos"),
    "a row less": lambda f: change_table(f, "DELETE FROM photos WHERE row = 1"),
    "a wrong row": lambda f: change_table(f, "UPDATE photos SET row = 9 WHERE row = 1"),
    "a name that is a number": lambda f: change_table(
        f, "UPDATE photos SET name = x'ff' WHERE row = 1"
    ),
    "no size": lambda f: change_table(f, "UPDATE photos SET size = NULL WHERE row = 1"),
    "a negative number": lambda f: change_table(
        f, "UPDATE photos SET number = -4 WHERE row = 1"
    ),
    "no SQLite": lambda f: (f / "photos.sqlite").write_bytes(b"SQLite format 3\0" + b"x" * 99),
    "an empty SQLite": lambda f: (f / "photos.sqlite").write_bytes(b""),
    "short vectors": lambda f: (f / "vectors.npy").write_bytes(
        (f / "vectors.npy").read_bytes()[:-1]
    ),
    "text for vectors": lambda f: (f / "vectors.npy").write_text("1 2 3"),
    "vectors of words": lambda f: np.save(f / "vectors.npy", np.array([["a"] * 3] * 4)),
    "vectors of NaN": lambda f: np.save(f / "vectors.npy", np.full((4, 3), np.nan)),
    "no JSON": lambda f: (f.parent / "index.json").write_text("{"),
    "another kind": lambda f: reseal(f.parent / "index.json", {"kind": "model", "model": "m"}),
    "no model": lambda f: reseal(f.parent / "index.json", {"kind": "photo index"}),
    "a model that is a number": lambda f: reseal(
        f.parent / "index.json", {"kind": "photo index", "model": 4, "next_number": 4}
    ),
    "no next number": lambda f: reseal(
        f.parent / "index.json", {"kind": "photo index", "model": "1f0e"}
    ),
    "a view": lambda f: change_table(
        f, "ALTER TABLE photos RENAME TO p", "CREATE VIEW photos AS SELECT * FROM p"
    ),
    "a digest that is a path": lambda f: change_table(
        f, "UPDATE photos SET digest = '../../x' WHERE row = 1"
    ),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_damage_is_named(index, tmp_path, damage):
    index.save(tmp_path / "index")
    manifest = tmp_path / "index" / "index.json"
    DAMAGE[damage](parts_of(manifest))
    with pytest.raises(ValueError, match=r"index/(\w+/)?(photos|vectors|index)"):
        PhotoIndex.load(tmp_path / "index")
    with suppress(json.JSONDecodeError):  # behind the checksums everything is checked, too
        reseal(manifest)
    with pytest.raises(ValueError, match=r"index/(\w+/)?(photos|vectors|index)"):
        PhotoIndex.load(tmp_path / "index")


@pytest.mark.parametrize("file", ["index.json", "vectors.npy", "photos.sqlite"])
def test_a_missing_file_is_named(index, tmp_path, file):
    index.save(tmp_path / "index")
    [path] = (tmp_path / "index").rglob(file)
    path.unlink()
    with pytest.raises((OSError, ValueError), match=file.replace(".", r"\.")):
        PhotoIndex.load(tmp_path / "index")
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        PhotoIndex.load(tmp_path / "nowhere")


def test_an_index_is_written_without_a_copy_of_its_vectors(tmp_path):
    index = PhotoIndex([f"{i}" for i in range(1000)], np.ones((1000, 2000), np.float32), "m")
    tracemalloc.start()
    index.save(tmp_path / "index")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < index.projections.nbytes / 2
    vectors = np.load(parts_of(tmp_path / "index" / "index.json") / "vectors.npy")
    np.testing.assert_array_equal(vectors, index.projections)
