"""Karpathy's and COCO's JSON files."""

import json

import numpy as np
import pytest

from kernelcore.datasets import DatasetWarning, load_coco_captions, load_flickr, load_karpathy


def karpathy(*images, **more):
    return {"dataset": "tiny", "images": list(images), **more}


def entry(filename, split, *texts, first_id=None, **more):
    sentences = [{"raw": text} for text in texts]
    if first_id is not None:
        for i, sentence in enumerate(sentences):
            sentence["sentid"] = first_id + i
    return {"filename": filename, "split": split, "sentences": sentences, **more}


def write(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def touch(folder, *names):
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"")


def coco(images, annotations):
    return {
        "images": [{"id": i, "file_name": name} for i, name in images],
        "annotations": [
            {"id": i, "image_id": image, "caption": text} for i, image, text in annotations
        ],
    }


def test_karpathy_images_captions_and_splits(tmp_path):
    content = karpathy(
        entry("b.jpg", "test", "One.", "Two.", first_id=5),
        entry("a.jpg", "val", "Three."),
        entry("c.jpg", "train", "Four.", first_id=9),
        entry("d.jpg", "restval", "Five."),
    )
    dataset = load_karpathy(write(tmp_path / "in" / "dataset_x.json", content))
    assert dataset.name == "tiny"
    assert dataset.image_ids == ("b.jpg", "a.jpg", "c.jpg", "d.jpg")
    assert dataset.captions[0] == ("One.", "Two.")
    assert dataset.caption_ids == (("5", "6"), ("a.jpg#0",), ("9",), ("d.jpg#0",))
    assert dataset.caption_numbers == ((0, 1), (0,), (0,), (0,))
    assert dataset.paths == (None,) * 4
    splits = {name: members.tolist() for name, members in dataset.splits.items()}
    assert splits == {"train": [2], "dev": [1], "test": [0], "restval": [3]}
    assert list(splits) == ["train", "dev", "test", "restval"]


def test_karpathy_file_of_coco_finds_photos_in_their_folders_and_flat(tmp_path):
    content = karpathy(
        entry("COCO_val2014_7.jpg", "test", "One.", cocoid=7, filepath="val2014"),
        entry("COCO_train2014_8.jpg", "train", "Two.", cocoid=8, filepath="train2014"),
    )
    path = write(tmp_path / "json" / "dataset_coco.json", content)
    nested = tmp_path / "nested"
    touch(nested, "val2014/COCO_val2014_7.jpg", "train2014/COCO_train2014_8.jpg")
    dataset = load_karpathy(path, images=nested)
    assert dataset.image_ids == ("7", "8")
    assert dataset.paths[1] == nested / "train2014" / "COCO_train2014_8.jpg"
    flat = tmp_path / "flat"
    touch(flat, "COCO_val2014_7.jpg", "COCO_train2014_8.jpg")
    assert load_karpathy(path, images=flat).paths[0] == flat / "COCO_val2014_7.jpg"


def test_load_flickr_dispatches_to_the_json(tmp_path):
    content = karpathy(entry("a.jpg", "val", "One."))
    path = write(tmp_path / "dataset_flickr8k.json", content)
    touch(tmp_path / "images", "a.jpg")
    for root in (tmp_path, path):
        dataset = load_flickr(root)
        np.testing.assert_array_equal(dataset.split("dev"), [0])
        assert dataset.paths == (tmp_path / "images" / "a.jpg",)
    (tmp_path / "Flickr8k.token.txt").write_text("a.jpg#0\tFrom the token file.\n")
    assert load_flickr(tmp_path).captions == (("From the token file.",),)


def test_karpathy_oddities_come_in_one_warning(tmp_path):
    content = karpathy(
        entry("a.jpg", "train", "One.", " ", "Three."),
        entry("a.jpg", "train", "Again."),
        entry("b.jpg", "train"),
        entry("gone.jpg", "train", "Lost."),
    )
    touch(tmp_path / "images", "a.jpg", "b.jpg", "spare.png")
    with pytest.warns(DatasetWarning) as caught:
        dataset = load_karpathy(write(tmp_path / "dataset_x.json", content))
    (warning,) = caught
    message = str(warning.message)
    for part in (
        "1 images listed before (kept the first): images[1]",
        "1 empty captions (left out): a.jpg#1",
        "2 photos without captions (left out): b.jpg, spare.png",
        "(left out): gone.jpg#0",
        "2 names in split 'train' that no captioned photo has: b.jpg, gone.jpg",
    ):
        assert part in message
    assert dataset.caption_numbers == ((0, 2),)


def test_karpathy_image_in_two_splits_is_an_error(tmp_path):
    content = karpathy(entry("a.jpg", "train", "One."), entry("a.jpg", "test", "One."))
    with pytest.raises(ValueError, match=r"one split only, got 'a.jpg' in 'train' and 'test'"):
        load_karpathy(write(tmp_path / "dataset_x.json", content))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "must be JSON"),
        ('{"images": [', "damaged or truncated"),
        ("[]", "must have 'images' of type list"),
        ("null", "must have 'images' of type list"),
        ({"images": {"a": 1}}, "must have 'images' of type list"),
        ({"images": ["a"]}, r"images\[0\] must have 'filename'"),
        (karpathy({"split": "train"}), r"images\[0\] must have 'filename' of type str"),
        (karpathy({"filename": "a"}), r"images\[0\] must have 'split' of type str"),
        (karpathy({"filename": "a", "split": "x"}), r"images\[0\] must have 'sentences'"),
        (
            karpathy({"filename": "a", "split": "x", "sentences": [{"raw": 1}]}),
            r"images\[0\]: sentences\[0\] must have 'raw' of type str, got 1",
        ),
        (
            karpathy({"filename": "a", "split": "x", "sentences": ["text"]}),
            r"images\[0\]: sentences\[0\] must have 'raw' of type str",
        ),
        (karpathy(), "must hold captions of photos, got none"),
    ],
)
def test_broken_karpathy_files(tmp_path, content, message):
    path = write(tmp_path / "dataset_x.json", content)
    with pytest.raises(ValueError, match=message) as caught:
        load_karpathy(path)
    assert str(path) in str(caught.value)


def test_json_of_another_encoding_is_an_error(tmp_path):
    path = tmp_path / "dataset_x.json"
    path.write_bytes(b'{"images":\n ["\xe9"]}')
    with pytest.raises(ValueError, match="0xe9 in line 2"):
        load_karpathy(path)


def test_missing_json(tmp_path):
    with pytest.raises(FileNotFoundError):
        load_karpathy(tmp_path / "none.json")
    with pytest.raises(FileNotFoundError):
        load_coco_captions(tmp_path / "none.json")


def test_coco_images_and_captions(tmp_path):
    content = coco(
        [(7, "7.jpg"), (3, "3.jpg")],
        [(70, 7, "One.\n"), (30, 3, "Two."), (71, 7, "Three.")],
    )
    path = write(tmp_path / "annotations" / "captions_tiny.json", content)
    dataset = load_coco_captions(path)
    assert dataset.name == "captions_tiny"
    assert dataset.image_ids == ("7", "3")
    assert dataset.captions == (("One.", "Three."), ("Two.",))
    assert dataset.caption_ids == (("70", "71"), ("30",))
    assert dataset.caption_numbers == ((0, 1), (0,))
    assert dataset.splits == {}
    assert dataset.paths == (None, None)
    touch(tmp_path / "val2017", "7.jpg", "3.jpg")
    assert load_coco_captions(path).paths == (
        tmp_path / "val2017" / "7.jpg",
        tmp_path / "val2017" / "3.jpg",
    )


def test_coco_oddities_come_in_one_warning(tmp_path):
    content = coco(
        [(7, "7.jpg"), (3, "3.jpg"), (7, "7b.jpg"), (4, "4.jpg"), (5, "5.jpg")],
        [
            (70, 7, "One."),
            (70, 7, "Again."),
            (90, 9, "Nowhere."),
            (30, 3, ""),
            (50, 5, "Gone."),
        ],
    )
    touch(tmp_path / "photos", "7.jpg", "3.jpg", "4.jpg")
    with pytest.warns(DatasetWarning) as caught:
        dataset = load_coco_captions(write(tmp_path / "captions.json", content))
    (warning,) = caught
    message = str(warning.message)
    for part in (
        "1 images listed before (kept the first): images[2]",
        "1 captions listed before (kept the first): annotations[1]",
        "1 captions of images that are not listed (left out): 90",
        "1 empty captions (left out): 30",
        "2 photos without captions (left out): 3, 4",
        "(left out): 50",
    ):
        assert part in message
    assert dataset.image_ids == ("7",)
    assert dataset.captions == (("One.",),)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"images": []}, "must have 'annotations' of type list"),
        (coco([(None, "a")], []), r"images\[0\] must have 'id' of type int or str, got None"),
        (coco([(1, 2)], []), r"images\[0\] must have 'file_name' of type str"),
        (coco([(1, "a")], [(1, 1, None)]), r"annotations\[0\] must have 'caption' of type str"),
        (coco([(1, "a")], [(1, 1.5, "x")]), r"annotations\[0\] must have 'image_id'"),
        (coco([(True, "a")], []), r"images\[0\] must have 'id' of type int or str, got True"),
        (coco([(1, "a")], [(False, 1, "x")]), r"annotations\[0\] must have 'id'.*got False"),
        (coco([(1, "a")], []), "got none to use; 1 photos without captions"),
    ],
)
def test_broken_coco_files(tmp_path, content, message):
    with pytest.raises(ValueError, match=message):
        load_coco_captions(write(tmp_path / "captions.json", content))


@pytest.mark.realdata
def test_coco_val2017(data_root):
    dataset = load_coco_captions(data_root / "coco" / "captions_val2017.json")
    assert (len(dataset), dataset.n_captions) == (5000, 25014)
    image = dataset.image_ids.index("179765")
    assert dataset.captions[image][0] == (
        "A black Honda motorcycle parked in front of a garage."
    )
    assert dataset.caption_ids[image][0] == "38"
    lengths = np.bincount([len(captions) for captions in dataset.captions])
    assert lengths[5:].tolist() == [4987, 12, 1]
    assert all(text == text.strip() for captions in dataset.captions for text in captions)


def test_names_that_are_too_long_are_those_of_no_photo(tmp_path):
    (tmp_path / "a.jpg").touch()
    path = tmp_path / "captions.json"
    path.write_text(
        json.dumps(
            {
                "images": [{"id": 1, "file_name": "x" * 300}, {"id": 2, "file_name": "a.jpg"}],
                "annotations": [{"id": i, "image_id": i, "caption": "A dog."} for i in (1, 2)],
            }
        )
    )
    with pytest.warns(DatasetWarning, match="photos that are not there"):
        assert load_coco_captions(path).image_ids == ("2",)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ('{"images": ' + "7" * 4301, "4300 digits"),
        ("[" * 200_000, "nested too deeply"),
        ('{"images": [{"file_name": "\\ud800"}]}', "surrogates"),
    ],
)
def test_json_that_python_refuses(tmp_path, content, reason):
    (tmp_path / "c.json").write_text(content)
    with pytest.raises(ValueError, match=rf"c\.json must be JSON and is damaged .*{reason}"):
        load_coco_captions(tmp_path / "c.json")
