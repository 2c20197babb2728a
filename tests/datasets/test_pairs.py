"""Collections made of pairs of photos and captions."""

import pickle
from pathlib import Path

import numpy as np
import pytest

from kernelcore.datasets import CaptionedImages, DatasetWarning

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
        assert photos.sources == (None,) * 3
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
            ([("a.jpg",)], TypeError, r"pairs\[0\] must be \(photo, caption\), "),
            (["ab"], TypeError, r"pairs\[0\] must be \(photo, caption\), .* got 'ab'"),
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

    def test_rows_may_have_ids_of_their_own(self):
        pairs = [(SNOW, "White.", None, 7), (SNOW, "Snow.", None, 8), (NIGHT, "Ice.", "dev", 7)]
        photos = CaptionedImages.from_pairs(pairs)
        assert photos.image_ids == ("7", "8")
        assert photos.captions == (("White.", "Ice."), ("Snow.",))
        assert photos.images[0] is SNOW

    def test_rows_of_hugging_face(self):
        rows = [{"image": {"bytes": b"a", "path": None}, "caption": ["A.", "B."]}]
        photos = CaptionedImages.from_pairs((row["image"], row["caption"]) for row in rows)
        assert (photos.images[0], photos.captions) == (b"a", (("A.", "B."),))

    def test_rows_of_a_data_frame(self, folder):
        frame = pytest.importorskip("pandas").DataFrame(
            {"image": ["a.jpg", None], "caption": ["A.", "B."], "split": ["train", None]}
        )
        for table in (frame, frame.convert_dtypes()):
            with pytest.warns(DatasetWarning, match=r"1 rows without a photo \(left out\)"):
                photos = CaptionedImages.from_pairs(table.itertuples(index=False))
            assert photos.captions == (("A.",),)
