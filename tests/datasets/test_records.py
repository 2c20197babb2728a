"""Collections of captioned photos, their splits, and photos that two of them share."""

import dataclasses
import pickle
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refuses

from kernelcore.datasets import (
    CaptionedImages,
    Leak,
    find_leaks,
    load_folder,
    make_scenes,
    random_splits,
)

PIXELS = np.random.default_rng(0).integers(0, 256, (4, 8, 8, 3), np.uint8)
PARTS = {
    "name": "garden", "image_ids": ("a", "b", "c"),
    "paths": (Path("a.jpg"), None, Path("c.jpg")), "captions": (("one", "two"), (), ("three",)),
    "caption_ids": (("a#0", "a#3"), (), ("c#3",)), "caption_numbers": ((0, 3), (), (3,)),
    "splits": {"train": [2, 0], "test": [1]},
}  # fmt: skip


def photos(**changes):
    return CaptionedImages(**{**PARTS, **changes})


def sizes(dataset):
    return {name: len(members) for name, members in dataset.splits.items()}


def test_splits_are_read_only_copies_in_the_order_given():
    members = np.array([2, 0])
    dataset = photos(splits={"train": members})
    members[0] = 1
    np.testing.assert_array_equal(dataset.split("train"), [2, 0])
    assert dataset.split("train").dtype == np.intp
    refuses(ValueError, "read-only", dataset.split("train").__setitem__, 0, 1)
    refuses(ValueError, r"split .*'train', 'test'.* 'dev'", photos().split, "dev")
    refuses(ValueError, "split .*none.* 'dev'", photos(splits={}).split, "dev")


def test_subset_takes_everything_along_in_the_order_asked_for():
    dataset = photos(sources=(None, b"content", None))
    for part in (dataset.subset([2, 0]), dataset.subset(dataset.split("train"))):
        for name in PARTS.keys() - {"name", "splits"}:
            whole = getattr(dataset, name)
            assert getattr(part, name) == (whole[2], whole[0])
        assert (part.name, list(part.splits)) == ("garden", ["train"])
        np.testing.assert_array_equal(part.split("train"), [0, 1])
    assert dataset.subset([1, 2]).images == (b"content", Path("c.jpg"))
    assert (len(dataset.subset([])), dataset.subset([]).splits) == (0, {})


def test_images_are_files_or_sources():
    assert photos().images == PARTS["paths"]
    dataset = photos(sources=(None, b"content", None))
    assert dataset.images == (Path("a.jpg"), b"content", Path("c.jpg"))


BAD_INDICES = [
    (ValueError, [0, 3]), (ValueError, [-1]), (ValueError, [1, 0, 1]), (TypeError, [0.0]),
    (TypeError, [True, False, True]), (ValueError, [[0]]),
]  # fmt: skip


@pytest.mark.parametrize(("error", "indices"), BAD_INDICES)
def test_positions_must_be_distinct_and_in_range(error, indices):
    refuses(error, "indices", photos().subset, indices)
    refuses(error, r"splits\['dev'\]", photos, splits={"dev": indices})


@pytest.mark.parametrize(
    ("named", "changes"),
    [
        *((part, {part: PARTS[part][:2]}) for part in PARTS if part[:2] in {"pa", "ca"}),
        ("sources", {"sources": (None, b"x")}),
        ("path or a source, .*'a'", {"sources": (b"x", None, None)}),
        ("image_ids", {"image_ids": ("a", "b", "a")}),
        ("caption_ids .*'a'", {"caption_ids": (("a#0",), (), ("c#0",))}),
        ("caption_numbers .*'c'", {"caption_numbers": ((0, 1), (), ())}),
        ("caption_numbers .*'a'", {"caption_numbers": ((3, 3), (), (0,))}),
    ],
)
def test_parts_that_do_not_fit_are_refused(named, changes):
    refuses(ValueError, named, photos, **changes)


def test_records_are_frozen_hashable_and_travel_by_pickle():
    dataset = photos()
    with pytest.raises(dataclasses.FrozenInstanceError):
        dataset.name = "x"
    assert len({dataset, dataset, photos()}) == 2
    copy = pickle.loads(pickle.dumps(dataset))
    assert copy.captions == dataset.captions
    np.testing.assert_array_equal(copy.split("train"), dataset.split("train"))


def test_pool_of_all_captions_and_of_one_number():
    pool = photos().pool()
    assert pool.captions == ("one", "two", "three")
    assert pool.caption_ids == ("a#0", "a#3", "c#3")
    np.testing.assert_array_equal(pool.caption_image, [0, 0, 2])
    some = photos().subset([2, 0]).pool(3)
    assert (some.captions, some.caption_ids) == (("three", "two"), ("c#3", "a#3"))
    np.testing.assert_array_equal(some.caption_image, [0, 1])
    refuses(ValueError, "number 3, .* 1 .*'b'", photos().pool, 3)
    refuses(TypeError, "number", photos().pool, "2")


def test_split_sets_are_collections_of_their_own():
    train, test = photos().split_sets("train", "test")
    assert (train.image_ids, test.image_ids) == (("c", "a"), ("b",))
    assert list(train.splits) == ["train"]
    refuses(ValueError, "split .*'dev'", photos().split_sets)
    shared = photos(splits={"train": [2, 0], "dev": [1], "test": [0]})
    refuses(ValueError, "splits .*'a'", shared.split_sets)
    assert [len(part) for part in shared.split_sets("dev", "test")] == [1, 1]


def collection(**photos):
    pairs = ((photo, "A photo.", None, name) for name, photo in photos.items())
    return CaptionedImages.from_pairs(pairs)


def test_files_of_other_names_are_leaks(tmp_path):
    sets = []
    for folder, numbers in (("old", (0, 1, 2)), ("new", (3, 2, 1))):
        (tmp_path / folder).mkdir()
        names = [f"{folder}{k}.png" for k in range(3)]
        for name, number in zip(names, numbers, strict=True):
            (tmp_path / folder / name).write_bytes(b"photo %d" % number)
        rows = tmp_path / f"{folder}.tsv"
        rows.write_text("".join(f"{name}\tA picture.\n" for name in names))
        sets.append(load_folder(tmp_path / folder, rows))
    old, new = sets
    leaks = Leak(("old1.png",), ("new2.png",)), Leak(("old2.png",), ("new1.png",))
    assert find_leaks(old, new) == leaks
    assert find_leaks(new.subset([0]), old) == ()


def test_all_ids_of_a_photo_are_named():
    train = collection(a=b"one", b=b"two", c=b"one", d=b"six")
    test = collection(e=b"one", f=b"three", g=b"two", h=b"two")
    assert find_leaks(train, test) == (Leak(("a", "c"), ("e",)), Leak(("b",), ("g", "h")))


def test_pixels_are_compared_however_they_are_held_and_palettes_count():
    pillow = pytest.importorskip("PIL.Image")
    train = collection(a=PIXELS[0], b=PIXELS[1], c=PIXELS[2].reshape(4, 16, 3))
    others = pillow.fromarray(PIXELS[1]), np.asfortranarray(PIXELS[0]), PIXELS[2]
    test = collection(**dict(zip("def", others, strict=True)))
    assert find_leaks(train, test) == (Leak(("a",), ("e",)), Leak(("b",), ("d",)))
    red, blue = (pillow.new("P", (4, 4)) for _ in range(2))
    red.putpalette([255, 0, 0])
    blue.putpalette([0, 0, 255])
    assert find_leaks(collection(a=red), collection(b=blue)) == ()
    assert len(find_leaks(collection(a=red), collection(b=red.copy()))) == 1


def test_what_cannot_be_compared_is_named(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    refuses(TypeError, "train", find_leaks, [], [])
    refuses(ValueError, "test .*'b'", find_leaks, collection(a=b"x"), photos().subset([1]))
    (tmp_path / "a").write_bytes(b"x")
    gone = CaptionedImages.from_pairs([("a", "A.")])
    (tmp_path / "a").unlink()
    refuses(FileNotFoundError, "a", find_leaks, gone, gone)


@pytest.fixture(scope="module")
def scenes():
    return make_scenes(23, size=(32, 32)).dataset


def test_random_splits_by_number(scenes):
    split = random_splits(scenes, 10, 5, 8, rng=1)
    assert sizes(split) == {"train": 10, "dev": 5, "test": 8}
    members = np.concatenate(list(split.splits.values()))
    np.testing.assert_array_equal(np.sort(members), np.arange(23))
    assert all((np.diff(part) > 0).all() for part in split.splits.values())
    assert split.image_ids == scenes.image_ids
    assert not np.array_equal(split.split("train"), np.arange(10))
    # The rest is left out, and so are empty splits.
    assert sizes(random_splits(scenes, 3, 0, 2, rng=0)) == {"train": 3, "test": 2}
    assert sizes(random_splits(scenes, 0, 0, 0, rng=0)) == {}


@given(
    shares=st.lists(st.floats(0, 1), min_size=3, max_size=3).filter(lambda s: sum(s) > 0),
    seed=st.integers(0, 2**32),
)
def test_shares_that_fill_the_collection_never_overflow(scenes, shares, seed):
    train, dev, test = (share / sum(shares) for share in shares)
    if train + dev + test > 1:
        test = max(0.0, test - 1e-9)
    got = sizes(random_splits(scenes, train, dev, test, rng=seed))
    assert sum(got.values()) == 23
    for name, share in (("train", train), ("dev", dev), ("test", test)):
        assert abs(got.get(name, 0) - 23 * share) <= 1.0 + 1e-6


def test_the_same_rng_gives_the_same_splits(scenes):
    seeds = 5, np.random.default_rng(5), 6
    drawn = [random_splits(scenes, 0.5, 0.25, 0.25, rng=seed) for seed in seeds]
    first, again, other = (own.split("dev") for own in drawn)
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)
    # Bounds of 11.5, 17.25 and 23 images, rounded.
    rounded = {"train": 12, "dev": 5, "test": 6}
    assert sizes(random_splits(scenes, 0.5, 0.25, 0.25, rng=5)) == rounded


@pytest.mark.parametrize(
    ("error", "named", "parts"),
    [
        (ValueError, "23 .* 24", (20, 3, 1)), (ValueError, "23", (0.9, 0.1, 0.1)),
        (ValueError, "train .*-1", (-1, 3, 1)), (ValueError, r"dev .*-0\.1", (0.5, -0.1, 0.1)),
        (ValueError, "dev", (0.5, float("nan"), 0.1)),
        (TypeError, "train, dev and test", (0.5, 3, 0.1)), (TypeError, "train", ("half", 3, 1)),
    ]
)  # fmt: skip
def test_bad_sizes_are_refused(scenes, error, named, parts):
    refuses(error, named, random_splits, scenes, *parts)
