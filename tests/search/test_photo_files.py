"""Facts about files: digests, and looks that near duplicates share."""

import os

import cv2
import numpy as np
import pytest

from kernelcore.datasets import make_scenes
from kernelcore.images import UnreadableImageError, read_image
from kernelcore.search import photo_file
from kernelcore.search.photo_files import alike, look_of


def n_different(one, other):
    return bin((one ^ other) & (2**64 - 1)).count("1")


def test_facts_are_those_of_the_file(files, tmp_path):
    copy = tmp_path / "copy.png"
    copy.write_bytes(files[0].read_bytes())
    os.utime(copy, ns=(1, 123_456_789_012_345_678))
    one, other = photo_file(files[0]), photo_file(copy)
    assert other.size == copy.stat().st_size
    assert other.modified == copy.stat().st_mtime_ns == 123_456_789_012_345_678
    assert (one.digest, one.look) == (other.digest, other.look)
    assert photo_file(files[1]).digest != one.digest
    assert other.look == look_of(read_image(copy))


def test_a_file_that_is_no_photo_is_refused(tmp_path):
    (tmp_path / "a.png").write_text("no photo")
    with pytest.raises(UnreadableImageError, match=r"a\.png"):
        photo_file(tmp_path / "a.png")


def test_the_look_says_where_rows_become_brighter():
    ramp = np.tile(np.arange(0, 180, 20, dtype=np.uint8), (8, 1))
    pixels = np.repeat(ramp[:, :, None], 3, axis=2)
    assert look_of(pixels) == -1  # all 64 bits
    assert look_of(pixels[:, ::-1]) == 0
    half = pixels.copy()
    half[4:] = half[4:, ::-1]
    assert look_of(half) == -(2**32)  # rows from above, the first bit is the sign


def test_copies_look_alike_and_other_photos_do_not():
    scenes = make_scenes(30, size=(120, 160)).images
    looks = []
    for pixels in scenes:
        small = cv2.resize(pixels, (80, 60), interpolation=cv2.INTER_AREA)
        _, jpeg = cv2.imencode(".jpg", pixels, [cv2.IMWRITE_JPEG_QUALITY, 40])
        looks.append([look_of(pixels), look_of(small), look_of(cv2.imdecode(jpeg, 1))])
    same = [n_different(own[0], copy) for own in looks for copy in own[1:]]
    assert max(same) <= 6
    other = [n_different(looks[i][0], looks[j][0]) for i in range(30) for j in range(i)]
    assert np.median(other) > 6


def test_pairs_that_look_alike_are_found():
    rng = np.random.default_rng(0)
    looks = rng.integers(-(2**63), 2**63 - 1, 40, dtype=np.int64)
    looks[7] = looks[3] ^ 0b101
    looks[9] = looks[3] ^ 0b1011
    pairs = alike(looks, 3)
    expected = [
        [i, j]
        for i in range(40)
        for j in range(i + 1, 40)
        if n_different(int(looks[i]), int(looks[j])) <= 3
    ]
    assert pairs.tolist() == expected
    assert [3, 7] in expected
    assert [3, 9] in expected
    assert alike(looks[:1], 64).tolist() == []
    assert alike(looks[:0], 64).tolist() == []
