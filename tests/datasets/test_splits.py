"""Random splits, and photos that two collections share whatever they are called."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelcore.datasets import (
    CaptionedImages,
    Leak,
    find_leaks,
    load_folder,
    make_scenes,
    random_splits,
)

PIXELS = np.random.default_rng(0).integers(0, 256, (4, 8, 8, 3), np.uint8)


def collection(**photos):
    return CaptionedImages.from_pairs(
        (photo, "A photo.", None, name) for name, photo in photos.items()
    )


def test_files_of_other_names(tmp_path):
    make_scenes(6, size=(32, 40)).write(tmp_path)
    files = sorted((tmp_path / "images").iterdir())
    for folder, numbers in (("old", (0, 1, 2)), ("new", (3, 2, 1))):
        (tmp_path / folder).mkdir()
        rows = []
        for k, number in enumerate(numbers):
            (tmp_path / folder / f"{folder}{k}.png").write_bytes(files[number].read_bytes())
            rows.append(f"{folder}{k}.png\tA picture.\n")
        (tmp_path / f"{folder}.tsv").write_text("".join(rows))
    old, new = (load_folder(tmp_path / f, tmp_path / f"{f}.tsv") for f in ("old", "new"))
    assert find_leaks(old, new) == (
        Leak(("old1.png",), ("new2.png",)),
        Leak(("old2.png",), ("new1.png",)),
    )
    assert find_leaks(new.subset([0]), old) == ()


def test_all_ids_of_a_photo_are_named():
    train = collection(a=b"one", b=b"two", c=b"one", d=b"six")
    test = collection(e=b"one", f=b"three", g=b"two", h=b"two")
    assert find_leaks(train, test) == (
        Leak(("a", "c"), ("e",)),
        Leak(("b",), ("g", "h")),
    )


def test_pixels_are_compared_however_they_are_held():
    pillow = pytest.importorskip("PIL.Image")
    train = collection(a=PIXELS[0], b=PIXELS[1], c=PIXELS[2].reshape(4, 16, 3))
    test = collection(
        d=pillow.fromarray(PIXELS[1]), e=np.asfortranarray(PIXELS[0]), f=PIXELS[2]
    )
    assert find_leaks(train, test) == (Leak(("a",), ("e",)), Leak(("b",), ("d",)))


def test_palettes_count():
    pillow = pytest.importorskip("PIL.Image")
    red, blue = (pillow.new("P", (4, 4)) for _ in range(2))
    red.putpalette([255, 0, 0])
    blue.putpalette([0, 0, 255])
    assert find_leaks(collection(a=red), collection(b=blue)) == ()
    assert len(find_leaks(collection(a=red), collection(b=red.copy()))) == 1


def test_what_cannot_be_compared_is_named(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(TypeError, match="train must be CaptionedImages, got type list"):
        find_leaks([], [])
    scenes = make_scenes(2, size=(32, 32)).dataset
    with pytest.raises(
        ValueError, match="test must have a photo of each image, got none of 's"
    ):
        find_leaks(collection(a=b"x"), scenes)
    (tmp_path / "a").write_bytes(b"x")
    gone = CaptionedImages.from_pairs([("a", "A.")])
    (tmp_path / "a").unlink()
    with pytest.raises(FileNotFoundError):
        find_leaks(gone, gone)


@pytest.fixture(scope="module")
def scenes():
    return make_scenes(23, size=(32, 32)).dataset


def sizes(dataset):
    return {name: len(members) for name, members in dataset.splits.items()}


def test_random_splits_by_number(scenes):
    split = random_splits(scenes, 10, 5, 8, rng=1)
    assert sizes(split) == {"train": 10, "dev": 5, "test": 8}
    members = np.concatenate(list(split.splits.values()))
    np.testing.assert_array_equal(np.sort(members), np.arange(23))
    assert all((np.diff(part) > 0).all() for part in split.splits.values())
    assert split.image_ids == scenes.image_ids
    assert not np.array_equal(split.split("train"), np.arange(10))


def test_random_splits_leave_the_rest_out_and_drop_empty_ones(scenes):
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
    split = random_splits(scenes, train, dev, test, rng=seed)
    got = sizes(split)
    assert sum(got.values()) == 23
    for name, share in (("train", train), ("dev", dev), ("test", test)):
        assert abs(got.get(name, 0) - 23 * share) <= 1.0 + 1e-6


def test_the_same_rng_gives_the_same_splits(scenes):
    first = random_splits(scenes, 0.5, 0.25, 0.25, rng=5)
    again = random_splits(scenes, 0.5, 0.25, 0.25, rng=np.random.default_rng(5))
    other = random_splits(scenes, 0.5, 0.25, 0.25, rng=6)
    np.testing.assert_array_equal(first.split("dev"), again.split("dev"))
    assert not np.array_equal(first.split("dev"), other.split("dev"))


@pytest.mark.parametrize(
    ("parts", "error", "message"),
    [
        ((20, 3, 1), ValueError, "together be at most 23 images, got 24"),
        ((0.9, 0.1, 0.1), ValueError, "together be at most 23 images"),
        ((-1, 3, 1), ValueError, "train must be an integer >= 0, got -1"),
        ((0.5, -0.1, 0.1), ValueError, "dev must be a number >= 0, got -0.1"),
        ((0.5, float("nan"), 0.1), ValueError, "dev must be finite"),
        ((0.5, 3, 0.1), TypeError, "all be integers or all be floats"),
        (("half", 3, 1), TypeError, "train must be an integer"),
    ],
)
def test_bad_sizes(scenes, parts, error, message):
    with pytest.raises(error, match=message):
        random_splits(scenes, *parts)
