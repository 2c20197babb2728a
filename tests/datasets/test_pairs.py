"""Collections made of pairs of photos and captions."""

import pickle
from pathlib import Path

import numpy as np
import pytest
from refusals import refuses

from kernelcore.datasets import CaptionedImages, DatasetWarning

SNOW, NIGHT = np.full((8, 8, 3), 255, np.uint8), np.zeros((8, 8, 3), np.uint8)
gathered = CaptionedImages.from_pairs


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("a.jpg", "b.jpg", "c.jpg"):
        (tmp_path / name).write_bytes(name.encode())
    return tmp_path


def pillow(pixels):
    return pytest.importorskip("PIL.Image").fromarray(pixels)


@pytest.mark.usefixtures("folder")
def test_captions_are_gathered_by_photo_in_the_order_of_the_photos():
    pairs = [
        ("b.jpg", "A cat.", "val"), (Path("a.jpg"), ["A dog.", "A hound."], "train"),
        ["b.jpg", " A tom. ", "validation"], ("c.jpg", "A fox.", None),
    ]  # fmt: skip
    photos = gathered(iter(pairs), name="garden")
    assert photos.name == "garden"
    assert photos.image_ids == ("b.jpg", "a.jpg", "c.jpg")
    assert photos.captions == (("A cat.", "A tom."), ("A dog.", "A hound."), ("A fox.",))
    assert photos.caption_ids[0] == ("b.jpg#0", "b.jpg#1")
    assert photos.paths == tuple(map(Path, photos.image_ids)) == photos.images
    assert photos.sources == (None,) * 3
    found = [(name, list(own)) for name, own in photos.splits.items()]
    assert found == [("train", [1]), ("dev", [0])]


def test_photos_in_memory_are_known_by_their_content():
    pairs = [
        (SNOW, "White."),
        (NIGHT, "Dark."),
        (pillow(SNOW.copy()), "Snow."),
        ({"bytes": b"content", "path": None}, ["A dog.", "A pet."]),  # of Hugging Face
        (bytearray(b"content"), "A hound."),
    ]
    photos = gathered(pairs)
    assert photos.captions == (
        ("White.", "Snow."), ("Dark.",), ("A dog.", "A pet.", "A hound.")
    )  # fmt: skip
    assert photos.images[0] is SNOW
    assert photos.images[2] == b"content"
    assert photos.image_ids == gathered(pairs).image_ids
    assert {len(image_id) for image_id in photos.image_ids} == {16}
    own = gathered([(SNOW, "White.", None, 7), (SNOW, "Ice.", None, 8), (NIGHT, "!", "dev", 7)])
    assert own.image_ids == ("7", "8")
    assert own.captions == (("White.", "!"), ("Ice.",))
    assert own.images[0] is SNOW


@pytest.mark.usefixtures("folder")
def test_files_and_photos_in_memory_may_be_mixed():
    photos = gathered([(b"x", "X."), ("a.jpg", "A.")])
    assert photos.images == (b"x", Path("a.jpg"))
    assert photos.subset([1, 0]).images[1] == b"x"
    assert pickle.loads(pickle.dumps(photos)).images == photos.images


def test_paths_may_start_from_a_folder_and_stay_in_it(folder, monkeypatch):
    monkeypatch.chdir("/")
    pairs = [("a.jpg", "A."), ("b.jpg", "B."), ("c.jpg", "C.")]
    assert gathered(pairs, images_dir=folder).paths[0] == folder / "a.jpg"
    (folder / "in").mkdir()
    up = [("../a.jpg", "A.")]
    refuses(ValueError, r"pairs: pairs\[0\]", gathered, up, images_dir=folder / "in")
    refuses(FileNotFoundError, "images_dir", gathered, pairs, images_dir=folder / "none")


@pytest.mark.usefixtures("folder")
def test_what_is_left_out_is_named_once():
    pairs = [("a.jpg", "A."), ("z.jpg", "Z."), ("z\0", "Z."), (None, "N."), ("b.jpg", None)]
    with pytest.warns(DatasetWarning) as caught:
        photos = gathered([*pairs, ("c.jpg", ["", float("nan"), "C."])])
    (warning,) = caught
    assert warning.filename == __file__
    kinds = str(warning.message).removeprefix("pairs: ").split("; ")
    assert [(kind.split()[0], kind.partition(": ")[2]) for kind in kinds] == [
        ("1", "pairs[3]"), ("2", "pairs[4], pairs[5]"), ("2", "z.jpg, z\\x00"), ("1", "c.jpg"),
        ("1", "b.jpg"),
    ]  # fmt: skip
    assert photos.image_ids == ("a.jpg", "c.jpg")


REFUSED = [
    (TypeError, "pairs .*int", 3), (TypeError, "pairs .*str", "ab"), (ValueError, "pairs", []),
    (ValueError, r"z\.jpg", [("z.jpg", "Z.")]), (TypeError, r"pairs\[0\]", [("a.jpg",)]),
    (TypeError, r"pairs\[0\] .*'ab'", ["ab"]),
    (TypeError, r"pairs\[0\] .*photo .*int", [(3, "A.")]),
    (TypeError, r"pairs\[0\] .*photo .*float64", [(SNOW / 2, "A.")]),
    (TypeError, r"pairs\[0\] captions", [(b"x", 3)]),
    (TypeError, r"pairs\[0\] .*captions .*3", [(b"x", ["A.", 3])]),
    (TypeError, r"pairs\[0\] .*split .*3", [(b"x", "A.", 3)]),
    (TypeError, r"pairs\[0\] .*split", [(b"x", "A.", "")]),
    (ValueError, "'train' and 'test'", [(b"x", "A.", "train"), (b"x", "B.", "test")]),
]  # fmt: skip


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(("error", "named", "pairs"), REFUSED)
def test_what_is_refused(error, named, pairs):
    refuses(error, named, gathered, pairs)


def test_a_damaged_image_of_pillow_is_named(tmp_path):
    path = tmp_path / "a.png"
    pillow(np.random.default_rng(0).integers(0, 256, (64, 64, 3), np.uint8)).save(path)
    path.write_bytes(path.read_bytes()[:2000])
    with pytest.importorskip("PIL.Image").open(path) as damaged:
        refuses(ValueError, r"pairs\[0\]", gathered, [(damaged, "A.")])


@pytest.mark.usefixtures("folder")
def test_rows_of_a_data_frame():
    columns = {"image": ["a.jpg", None], "caption": ["A.", "B."], "split": ["train", None]}
    frame = pytest.importorskip("pandas").DataFrame(columns)
    for table in (frame, frame.convert_dtypes()):
        with pytest.warns(DatasetWarning, match=r"1 rows without a photo \(left out\)"):
            photos = gathered(table.itertuples(index=False))
        assert photos.captions == (("A.",),)
