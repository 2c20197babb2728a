"""Photos that cannot be read are listed and tried again."""

import numpy as np
import pytest

from kernelcore.datasets import make_scenes
from kernelcore.distributed import extract_features, open_features
from kernelcore.images import CNN

SMALL = CNN(input_size=64)


@pytest.fixture
def photos(tmp_path):
    make_scenes(5, rng=0, size=(64, 64)).write(tmp_path / "scenes")
    return sorted((tmp_path / "scenes").rglob("*.png"))


def test_photos_that_fail_are_zeros_and_can_be_tried_again(tmp_path, photos):
    whole = photos[3].read_bytes()
    photos[3].write_bytes(b"no photo")
    found = extract_features(photos, SMALL, tmp_path / "s", shard_photos=2)
    assert list(found.failures) == [3]
    assert photos[3].name in found.failures[3]
    rows = found.rows.read(0, 5)
    assert not rows[3].any()
    assert rows[[0, 1, 2, 4]].any(axis=1).all()
    photos[3].write_bytes(whole)
    assert list(extract_features(photos, SMALL, tmp_path / "s", shard_photos=2).failures) == [3]
    again = extract_features(photos, SMALL, tmp_path / "s", shard_photos=2, retry_failed=True)
    assert again.failures == {}
    expected = SMALL.transform(photos).features
    np.testing.assert_array_equal(again.rows.read(0, 5), expected)
    assert again.photos == [str(path) for path in photos]
    assert open_features(tmp_path / "s").photos == again.photos


def test_a_shard_without_readable_photos_is_zeros(tmp_path, photos):
    for path in photos[:2]:
        path.write_bytes(b"")
    found = extract_features(photos, SMALL, tmp_path / "s", shard_photos=2)
    assert sorted(found.failures) == [0, 1]
    assert not found.rows.read(0, 2).any()


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"photos": []}, ValueError, "photos must hold at least one path"),
        ({"photos": [b"abc"]}, TypeError, r"photos\[0\] must be a path"),
        ({"photos": ["a\udc80.png"]}, ValueError, "must be a name in UTF-8"),
        ({"cnn": "efficientnet"}, TypeError, "cnn must be a CNN"),
        ({"cnn": CNN(device="cuda")}, ValueError, "cnn must run on the CPU"),
        ({"cnn": CNN(network=object())}, TypeError, "cnn must have a network that workers"),
        ({"shard_photos": 0}, ValueError, "shard_photos must be"),
    ],
)
def test_bad_input_is_named(tmp_path, changes, error, message):
    given = {"photos": ["a.png"], "cnn": SMALL} | changes
    photos, cnn = given.pop("photos"), given.pop("cnn")
    with pytest.raises(error, match=message):
        extract_features(photos, cnn, tmp_path / "s", **given)
    assert not (tmp_path / "s").exists()


def test_another_network_is_another_store(tmp_path, photos):
    extract_features(photos, SMALL, tmp_path / "s")
    with pytest.raises(ValueError, match="must be empty or the same store"):
        extract_features(photos, CNN(input_size=96), tmp_path / "s")
