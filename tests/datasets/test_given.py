"""Collections made of what the user or another library holds."""

import pickle
import sys
from pathlib import Path

import numpy as np
import pytest

from kernelcore.datasets import CaptionedImages, DatasetWarning
from kernelcore.errors import MissingExtraError

SNOW, NIGHT = np.full((8, 8, 3), 255, np.uint8), np.zeros((8, 8, 3), np.uint8)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("a.jpg", "b.jpg", "c.jpg"):
        (tmp_path / name).write_bytes(name.encode())
    return tmp_path


def pillow(pixels):
    return pytest.importorskip("PIL.Image").fromarray(pixels)


class TestPairs:
    def test_captions_are_gathered_by_photo_in_the_order_of_the_photos(self, folder):
        photos = CaptionedImages.from_pairs(
            iter(
                [
                    ("b.jpg", "A cat.", "val"),
                    (Path("a.jpg"), ["A dog.", "A hound."], "train"),
                    ["b.jpg", " A tom. ", "validation"],
                    ("c.jpg", "A fox.", None),
                ]
            ),
            name="garden",
        )
        assert photos.name == "garden"
        assert photos.image_ids == ("b.jpg", "a.jpg", "c.jpg")
        assert photos.captions == (("A cat.", "A tom."), ("A dog.", "A hound."), ("A fox.",))
        assert photos.caption_ids[0] == ("b.jpg#0", "b.jpg#1")
        assert photos.paths == tuple(map(Path, photos.image_ids)) == photos.images
        assert photos.sources == ()
        assert list(photos.splits) == ["train", "dev"]
        np.testing.assert_array_equal(photos.split("dev"), [0])

    def test_photos_in_memory_are_known_by_their_content(self):
        pairs = [
            (SNOW, "White."),
            (NIGHT, "Dark."),
            (pillow(SNOW.copy()), "Snow."),
            (b"content", "A dog."),
            (bytearray(b"content"), "A hound."),
        ]
        photos = CaptionedImages.from_pairs(pairs)
        assert photos.captions == (("White.", "Snow."), ("Dark.",), ("A dog.", "A hound."))
        assert photos.images[0] is SNOW
        assert photos.images[2] == b"content"
        assert photos.image_ids == CaptionedImages.from_pairs(pairs).image_ids
        assert {len(image_id) for image_id in photos.image_ids} == {16}

    def test_files_and_photos_in_memory_may_be_mixed(self, folder):
        photos = CaptionedImages.from_pairs([(b"x", "X."), ("a.jpg", "A.")])
        assert list(photos.images) == [b"x", Path("a.jpg")]
        assert list(photos.images[1:]) == [Path("a.jpg")]
        assert photos.subset([1, 0]).images[1] == b"x"
        assert (
            repr(photos)
            == "CaptionedImages('photos', 2 images (1 files, 1 others), 2 captions)"
        )
        assert list(pickle.loads(pickle.dumps(photos)).images) == list(photos.images)

    def test_paths_may_start_from_a_folder_and_stay_in_it(self, folder, monkeypatch):
        monkeypatch.chdir("/")
        pairs = [("a.jpg", "A."), ("b.jpg", "B."), ("c.jpg", "C.")]
        photos = CaptionedImages.from_pairs(pairs, images_dir=folder)
        assert photos.paths[0] == folder / "a.jpg"
        (folder / "in").mkdir()
        with pytest.raises(ValueError, match=r"pairs: pairs\[0\] must name a photo within"):
            CaptionedImages.from_pairs([("../a.jpg", "A.")], images_dir=folder / "in")
        with pytest.raises(FileNotFoundError, match="images_dir must be a folder of photos"):
            CaptionedImages.from_pairs(pairs, images_dir=folder / "none")

    def test_what_is_left_out_is_named_once(self, folder):
        pairs = [("a.jpg", "A."), ("z.jpg", "Z."), ("z\0", "Z."), (None, "N."), ("b.jpg", None)]
        with pytest.warns(DatasetWarning) as caught:
            photos = CaptionedImages.from_pairs([*pairs, ("c.jpg", ["", float("nan"), "C."])])
        (warning,) = caught
        assert warning.filename == __file__
        assert str(warning.message) == (
            "pairs: 1 rows without a photo (left out): pairs[3]; "
            "2 rows without a caption (left out): pairs[4], pairs[5]; "
            "2 captions of photos that are not there (left out): z.jpg, z\\x00; "
            "1 empty captions (left out): c.jpg; "
            "1 photos without captions (left out): b.jpg"
        )
        assert photos.image_ids == ("a.jpg", "c.jpg")

    @pytest.mark.parametrize(
        ("pairs", "error", "message"),
        [
            (3, TypeError, "pairs must be an iterable of pairs, got type int"),
            ("ab", TypeError, "pairs must be an iterable of pairs, got type str"),
            ([], ValueError, "pairs must hold captions of photos, got none to use"),
            ([("z.jpg", "Z.")], ValueError, "photos that are not there .* z.jpg"),
            ([("a.jpg",)], TypeError, r"pairs\[0\] must be \(photo, caption\) or"),
            (["ab"], TypeError, r"pairs\[0\] must be \(photo, caption\) or .* got 'ab'"),
            (
                [(3, "A.")],
                TypeError,
                r"pairs\[0\] must have a photo that is a path, .* got type int",
            ),
            ([(SNOW / 2, "A.")], TypeError, "got an array of float64"),
            ([(b"x", 3)], TypeError, r"pairs\[0\] captions must be text or a list of texts"),
            ([(b"x", ["A.", 3])], TypeError, "must have captions that are text, got 3"),
            ([(b"x", "A.", 3)], TypeError, "must have a split that is a name, got 3"),
            ([(b"x", "A.", "")], TypeError, "must have a split that is a name, got ''"),
            (
                [(b"x", "A.", "train"), (b"x", "B.", "test")],
                ValueError,
                "an image must be in one split only",
            ),
        ],
    )
    def test_what_is_refused(self, folder, pairs, error, message):
        with pytest.raises(error, match=message):
            CaptionedImages.from_pairs(pairs)

    def test_a_damaged_image_of_pillow_is_named(self, tmp_path):
        path = tmp_path / "a.png"
        pillow(np.random.default_rng(0).integers(0, 256, (64, 64, 3), np.uint8)).save(path)
        path.write_bytes(path.read_bytes()[:2000])
        damaged = pytest.importorskip("PIL.Image").open(path)
        with pytest.raises(ValueError, match=r"pairs\[0\] must have a photo that can be read"):
            CaptionedImages.from_pairs([(damaged, "A.")])
        damaged.close()


class ArrowOnly:
    """A table that has nothing but the Arrow stream interface."""

    def __init__(self, table):
        self._table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self._table.__arrow_c_stream__(requested_schema)


COLUMNS = {
    "image": [b"one", b"two", b"one"],
    "caption": ["A dog.", "A cat.", "A hound."],
    "split": ["train", "test", "train"],
    "key": [7, 8, 7],
}


def tables():
    def of_pyarrow(columns):
        return pytest.importorskip("pyarrow").table(columns)

    return {
        "mapping": dict,
        "pandas": lambda columns: pytest.importorskip("pandas").DataFrame(columns),
        "pyarrow": of_pyarrow,
        "arrow stream": lambda columns: ArrowOnly(of_pyarrow(columns)),
        "polars": lambda columns: pytest.importorskip("polars").DataFrame(columns),
    }


@pytest.fixture(params=tables())
def table(request):
    if request.param == "polars":
        pytest.importorskip("pyarrow")
    return tables()[request.param]


class TestFrame:
    def test_every_table_gives_the_same(self, table):
        photos = CaptionedImages.from_frame(table(COLUMNS), name="three")
        assert photos.name == "three"
        assert photos.captions == (("A dog.", "A hound."), ("A cat.",))
        assert list(photos.images) == [b"one", b"two"]
        assert {name: list(of) for name, of in photos.splits.items()} == {
            "train": [0],
            "test": [1],
        }

    def test_captions_may_be_lists_and_missing(self, table):
        columns = {"image": [b"a", b"b"], "captions": [["A.", "B."], None]}
        with pytest.warns(
            DatasetWarning, match=r"1 rows without a caption .*frame, row 1"
        ) as w:
            photos = CaptionedImages.from_frame(table(columns))
        assert w[0].filename == __file__
        assert photos.captions == (("A.", "B."),)

    def test_columns_may_have_any_names_and_ids(self, table):
        columns = {
            "photo": [{"bytes": b"a", "path": "a.jpg"}, {"bytes": b"b", "path": None}],
            "en": ["A dog.", "A cat."],
            "de": ["Ein Hund.", "Eine Katze."],
            "part": ["x", "y"],
            "key": [7, 8],
        }
        photos = CaptionedImages.from_frame(
            table(columns), image="photo", caption=["en", "de"], split="part", image_id="key"
        )
        assert photos.image_ids == ("7", "8")
        assert photos.captions[1] == ("A cat.", "Eine Katze.")
        assert list(photos.images) == [b"a", b"b"]
        assert list(photos.splits) == ["x", "y"]

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"image": "photo"}, "image must be one of the columns of frame .* got 'photo'"),
            ({"caption": ["caption", "x"]}, "caption must be one of the columns .* got 'x'"),
            ({"caption": []}, "caption must name a column of frame, which has 'image', 'capt"),
            ({"split": "part"}, "split must be one of the columns of frame .* got 'part'"),
            ({"image_id": 3}, "image_id must be one of the columns of frame .* got 3"),
        ],
    )
    def test_columns_that_are_not_there(self, table, changes, message):
        with pytest.raises(ValueError, match=message):
            CaptionedImages.from_frame(table(COLUMNS), **changes)

    @pytest.mark.parametrize(
        ("frame", "error", "message"),
        [
            ([1, 2], TypeError, "frame must be a DataFrame .* got type list"),
            ({}, ValueError, "caption must name a column of frame, which has none"),
            (
                {"image": [b"a"], "caption": []},
                ValueError,
                "frame must have columns of one len",
            ),
            ({"image": 3, "caption": []}, TypeError, r"frame\['image'\] must be a sequence"),
            ({"image": [], "caption": []}, ValueError, "frame must hold captions of photos"),
        ],
    )
    def test_what_is_refused(self, frame, error, message):
        with pytest.raises(error, match=message):
            CaptionedImages.from_frame(frame)

    def test_a_row_without_its_id_is_named(self):
        frame = {"image": [b"a"], "caption": ["A."], "key": [None]}
        with pytest.raises(
            ValueError, match="frame, row 0, must have an id in 'key', got None"
        ):
            CaptionedImages.from_frame(frame, image_id="key")

    def test_columns_of_pandas_that_come_twice(self):
        pandas = pytest.importorskip("pandas")
        frame = pandas.DataFrame([[b"a", "A.", "B."]], columns=["image", "caption", "caption"])
        with pytest.raises(ValueError, match="frame must have one column 'caption', got more"):
            CaptionedImages.from_frame(frame)

    def test_what_pandas_writes_for_nothing(self):
        pandas = pytest.importorskip("pandas")
        frame = pandas.DataFrame(
            {"image": [b"a", None], "caption": ["A.", "B."], "split": ["train", None]}
        )
        for given in (frame, frame.convert_dtypes()):
            with pytest.warns(DatasetWarning, match=r"1 rows without a photo \(left out\)"):
                photos = CaptionedImages.from_frame(given)
            assert photos.captions == (("A.",),)

    def test_arrow_without_pyarrow_says_what_to_install(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "pyarrow", None)
        with pytest.raises(MissingExtraError, match=r"pip install \"kernelcore\[data\]\""):
            CaptionedImages.from_frame(ArrowOnly(None))


class HuggingFace:
    """The part of `datasets.Dataset` that is used; it counts the photos it decodes."""

    def __init__(self, rows):
        self.rows, self.n_decoded = rows, 0

    @property
    def column_names(self):
        return list(self.rows[0])

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        self.n_decoded += "image" in self.rows[i]
        return dict(self.rows[i])

    def select_columns(self, names):
        return HuggingFace([{name: row[name] for name in names} for row in self.rows])


ROWS = [
    {"image": SNOW, "caption": ["White.", "Snow."], "split": "train"},
    {"image": NIGHT, "caption": ["Dark."], "split": "test"},
]


class TestDataset:
    @pytest.mark.parametrize("kind", [list, HuggingFace])
    def test_rows_are_images(self, kind):
        photos = CaptionedImages.from_dataset(kind(ROWS), name="two")
        assert repr(photos) == (
            "CaptionedImages('two', 2 images (0 files, 2 others), 3 captions, train 1, test 1)"
        )
        assert photos.image_ids == ("0", "1")
        assert photos.captions == (("White.", "Snow."), ("Dark.",))
        np.testing.assert_array_equal(photos.images[1], NIGHT)
        [train, test] = photos.split_sets("train", "test")
        np.testing.assert_array_equal(train.images[0], SNOW)
        np.testing.assert_array_equal(test.images[0], NIGHT)

    def test_photos_of_hugging_face_are_decoded_when_asked_for(self):
        dataset = HuggingFace(ROWS)
        photos = CaptionedImages.from_dataset(dataset)
        assert dataset.n_decoded == 0
        assert [photos.images[0] is SNOW, dataset.n_decoded] == [True, 1]

    def test_pairs_of_torchvision_and_keys_of_splits(self):
        parts = {"train": [(SNOW, ["White."])], "validation": [(pillow(NIGHT), ["Dark."])]}
        photos = CaptionedImages.from_dataset(parts)
        assert photos.image_ids == ("train/0", "validation/0")
        assert list(photos.splits) == ["train", "dev"]

    def test_rows_that_tell_their_split_know_better_than_keys(self):
        photos = CaptionedImages.from_dataset({"test": ROWS})
        assert {name: list(of) for name, of in photos.splits.items()} == {
            "train": [0],
            "test": [1],
        }

    def test_a_dataset_of_torch(self, folder):
        data = pytest.importorskip("torch.utils.data")

        class Photos(data.Dataset):
            def __len__(self):
                return 3

            def __getitem__(self, i):
                return {"file": folder / ("a.jpg", "a.jpg", "b.jpg")[i], "text": f"Text {i}."}

        photos = CaptionedImages.from_dataset(Photos(), image="file", caption="text")
        assert photos.paths == (folder / "a.jpg", folder / "b.jpg")
        assert photos.captions == (("Text 0.", "Text 1."), ("Text 2.",))

    def test_rows_with_one_id_are_one_image(self):
        rows = [
            {"image": SNOW, "caption": "White.", "id": 3},
            {"image": SNOW, "caption": "Snow.", "id": 3},
        ]
        photos = CaptionedImages.from_dataset(rows, image_id="id")
        assert (photos.image_ids, photos.captions) == (("3",), (("White.", "Snow."),))

    def test_rows_without_a_photo(self):
        rows = [*ROWS, {"image": None, "caption": "None.", "split": "test"}]
        with pytest.warns(DatasetWarning, match=r"1 rows without a photo .*dataset\[2\]"):
            assert len(CaptionedImages.from_dataset(rows)) == 2
        photos = CaptionedImages.from_dataset(HuggingFace(rows))
        with pytest.raises(ValueError, match=r"dataset\[2\] must have a photo, got none"):
            photos.images[2]

    @pytest.mark.parametrize(
        ("dataset", "error", "message"),
        [
            (3, TypeError, "dataset must have a length and rows by number, got type int"),
            (iter([]), TypeError, "dataset must have a length and rows by number"),
            ({"test": 3}, TypeError, r"dataset\['test'\] must have a length"),
            ([3], TypeError, r"dataset\[0\] must be a mapping or \(image, captions\), got 3"),
            ([{}], ValueError, r"caption must name a column of dataset\[0\], which has none"),
            (
                [{"caption": "A."}],
                ValueError,
                r"image must be one of the columns of dataset\[0\]",
            ),
            ([(3, "A.")], TypeError, r"dataset\[0\] must have a photo that is a path"),
            ([], ValueError, "dataset must hold captions of photos, got none"),
        ],
    )
    def test_what_is_refused(self, dataset, error, message):
        with pytest.raises(error, match=message):
            CaptionedImages.from_dataset(dataset)

    def test_a_ranker_takes_the_images(self):
        pytest.importorskip("cv2")
        from kernelcore.images import read_image

        photos = CaptionedImages.from_dataset([(pillow(SNOW), "White."), (NIGHT, "Dark.")])
        assert [read_image(image).mean() for image in photos.images] == [255, 0]
