import dataclasses
import pickle
from pathlib import Path

import numpy as np
import pytest

from kernelcore.datasets import CaptionedImages


def photos(**changes):
    fields = {
        "name": "garden",
        "image_ids": ("a", "b", "c"),
        "paths": (Path("a.jpg"), None, Path("c.jpg")),
        "captions": (("one", "two"), (), ("three",)),
        "caption_ids": (("a#0", "a#3"), (), ("c#0",)),
        "caption_numbers": ((0, 3), (), (0,)),
        "splits": {"train": [2, 0], "test": [1]},
    }
    return CaptionedImages(**{**fields, **changes})


def test_counts_and_repr():
    dataset = photos()
    assert len(dataset) == 3
    assert dataset.n_captions == 3
    assert repr(dataset) == (
        "CaptionedImages('garden', 3 images (2 files), 3 captions, train 2, test 1)"
    )


@pytest.mark.parametrize(
    ("paths", "text"),
    [((Path("a"),) * 3, "3 images,"), ((None,) * 3, "3 images without files,")],
)
def test_repr_tells_about_the_files(paths, text):
    assert text in repr(photos(paths=paths))


def test_split_keeps_the_order_of_its_file_and_is_read_only():
    dataset = photos()
    np.testing.assert_array_equal(dataset.split("train"), [2, 0])
    assert dataset.split("train").dtype == np.intp
    with pytest.raises(ValueError, match="read-only"):
        dataset.split("train")[0] = 1


def test_splits_are_copied():
    members = np.array([2, 0])
    dataset = photos(splits={"train": members})
    members[0] = 1
    np.testing.assert_array_equal(dataset.split("train"), [2, 0])
    assert members.flags.writeable


def test_unknown_split_names_those_there_are():
    with pytest.raises(ValueError, match=r"of garden \('train', 'test'\), got 'dev'"):
        photos().split("dev")
    with pytest.raises(ValueError, match=r"\(none\), got 'dev'"):
        photos(splits={}).split("dev")


def test_subset_takes_everything_along_in_the_order_asked_for():
    part = photos().subset([2, 0])
    assert part.image_ids == ("c", "a")
    assert part.paths == (Path("c.jpg"), Path("a.jpg"))
    assert part.captions == (("three",), ("one", "two"))
    assert part.caption_ids == (("c#0",), ("a#0", "a#3"))
    assert part.caption_numbers == ((0,), (0, 3))
    assert part.name == "garden"
    assert list(part.splits) == ["train"]
    np.testing.assert_array_equal(part.split("train"), [0, 1])


def test_subset_of_a_split_is_that_split():
    dataset = photos()
    part = dataset.subset(dataset.split("train"))
    np.testing.assert_array_equal(part.split("train"), [0, 1])
    assert part.image_ids == ("c", "a")


def test_empty_subset():
    part = photos().subset([])
    assert len(part) == 0
    assert part.splits == {}


@pytest.mark.parametrize(
    ("indices", "error", "message"),
    [
        ([0, 3], ValueError, r"indices must lie in \[0, 3\), got values from 0 to 3"),
        ([-1], ValueError, r"indices must lie in \[0, 3\), got values from -1"),
        ([1, 0, 1], ValueError, "indices must name no image twice, got 1 repeatedly"),
        ([0.0], TypeError, "indices must hold integers"),
        ([True, False, True], TypeError, "indices must hold integers, got dtype bool"),
        ([[0]], ValueError, "indices must be a 1-D array"),
    ],
)
def test_subset_refuses_bad_indices(indices, error, message):
    with pytest.raises(error, match=message):
        photos().subset(indices)


@pytest.mark.parametrize("part", ["paths", "captions", "caption_ids", "caption_numbers"])
def test_parts_must_be_as_long_as_the_ids(part):
    with pytest.raises(ValueError, match=rf"{part} must have one entry per image \(3\), got 2"):
        photos(**{part: getattr(photos(), part)[:2]})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"image_ids": ("a", "b", "a")}, "image_ids must be unique"),
        ({"caption_ids": (("a#0",), (), ("c#0",))}, r"2 captions, 1 ids and 2 numbers for 'a'"),
        ({"caption_numbers": ((0, 1), (), ())}, r"1 captions, 1 ids and 0 numbers for 'c'"),
        ({"caption_numbers": ((3, 3), (), (0,))}, r"unique within an image, got \(3, 3\)"),
        (
            {"splits": {"dev": [0, 3]}},
            r"splits\['dev'\] must lie in \[0, 3\), got values from 0 to 3",
        ),
        ({"splits": {"dev": [1, 1]}}, r"splits\['dev'\] must name no image twice"),
    ],
)
def test_contradictions_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        photos(**changes)


def test_split_of_floats_is_refused():
    with pytest.raises(TypeError, match=r"splits\['dev'\] must hold integers"):
        photos(splits={"dev": [0.5]})


def test_records_are_frozen_hashable_and_travel_by_pickle():
    dataset = photos()
    with pytest.raises(dataclasses.FrozenInstanceError):
        dataset.name = "x"
    assert len({dataset, dataset, photos()}) == 2
    copy = pickle.loads(pickle.dumps(dataset))
    assert copy.captions == dataset.captions
    np.testing.assert_array_equal(copy.split("train"), dataset.split("train"))


def test_pool_of_all_captions_and_of_one_number():
    record = CaptionedImages(
        name="x",
        image_ids=("a", "b", "c"),
        paths=(None,) * 3,
        captions=(("One.", "Two."), (), ("Three.",)),
        caption_ids=(("a#0", "a#2"), (), ("c#2",)),
        caption_numbers=((0, 2), (), (2,)),
    )
    pool = record.pool()
    assert pool.captions == ("One.", "Two.", "Three.")
    assert pool.caption_ids == ("a#0", "a#2", "c#2")
    np.testing.assert_array_equal(pool.caption_image, [0, 0, 2])
    some = record.subset([2, 0]).pool(2)
    assert (some.captions, some.caption_ids) == (("Three.", "Two."), ("c#2", "a#2"))
    np.testing.assert_array_equal(some.caption_image, [0, 1])
    with pytest.raises(ValueError, match="caption number 2, and 1 have none, the first is 'b'"):
        record.pool(2)
    with pytest.raises(TypeError, match="number must be an integer"):
        record.pool("2")


def test_split_sets_are_collections_of_their_own():
    dataset = photos()
    train, test = dataset.split_sets("train", "test")
    assert (train.image_ids, test.image_ids) == (("c", "a"), ("b",))
    assert list(train.splits) == ["train"]
    with pytest.raises(ValueError, match=r"\('train', 'test'\), got 'dev'"):
        dataset.split_sets()
    shared = photos(splits={"train": [2, 0], "dev": [1], "test": [0]})
    with pytest.raises(ValueError, match="share no image, got 'a' in more than one"):
        shared.split_sets()
    assert [len(part) for part in shared.split_sets("dev", "test")] == [1, 1]


def test_images_are_files_or_sources():
    assert photos().images == photos().paths
    dataset = photos(sources=(None, b"content", None))
    assert dataset.images == (Path("a.jpg"), b"content", Path("c.jpg"))
    assert dataset.subset([1, 2]).images == (b"content", Path("c.jpg"))


@pytest.mark.parametrize(
    ("sources", "message"),
    [
        ((None, b"x"), r"sources must have one entry per image \(3\), got 2"),
        ((b"x", None, None), "an image must have a path or a source, got both for 'a'"),
    ],
)
def test_contradictions_of_sources_are_refused(sources, message):
    with pytest.raises(ValueError, match=message):
        photos(sources=sources)
