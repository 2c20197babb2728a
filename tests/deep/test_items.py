"""Tables of regions, of which rows are taken and drawn, and of sentences."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from kernelcore.captions import Vocabulary  # noqa: E402
from kernelcore.deep.items import RegionTable, Sentences  # noqa: E402
from kernelcore.deep.training import seeded_generator  # noqa: E402

OFFSETS = np.array([0, 4, 5, 12, 14])
TABLE = RegionTable(np.arange(14.0)[:, np.newaxis], OFFSETS)
CPU = torch.device("cpu")


def draw(images, n_regions, seed=0):
    rows, offsets = TABLE.take(np.array(images), CPU, n_regions, seeded_generator(seed))
    return np.split(rows[:, 0].numpy().astype(int), offsets[1:-1])


def test_the_first_region_is_always_drawn_and_the_others_equally_often():
    seen = np.zeros(14)
    for seed in range(400):
        drawn = draw([2, 0, 1, 3], 3, seed)
        assert [len(rows) for rows in drawn] == [3, 3, 1, 2]
        for image, rows in zip((2, 0, 1, 3), drawn, strict=True):
            assert rows[0] == OFFSETS[image]
            assert (np.diff(rows) > 0).all()
            assert rows[-1] < OFFSETS[image + 1]
            seen[rows] += 1
    assert (seen[OFFSETS[:-1]] == 400).all()
    np.testing.assert_allclose(seen[1:4] / 400, 2 / 3, atol=0.08)
    np.testing.assert_allclose(seen[6:12] / 400, 2 / 6, atol=0.08)


def test_as_many_as_there_are_is_all():
    images = np.array([3, 2, 3])
    rows, offsets = TABLE.take(images, CPU, 7, seeded_generator(0))
    every, expected = TABLE.take(images, CPU)
    assert torch.equal(rows, every)
    np.testing.assert_array_equal(offsets, expected)
    assert rows.dtype == torch.float32


def test_words_count_from_one_and_unknown_ones_are_zero():
    vocabulary = Vocabulary.from_captions([[["a", "dog", "runs"]]])
    texts = [["runs", "zzz", "a", "dog"], [], ["dog"]]
    table = Sentences.of(texts, vocabulary, max_tokens=3)
    index = {word: vocabulary.index[word] + 1 for word in ("a", "dog", "runs")}
    expected = [[index["runs"], 0, index["a"]], [0, 0, 0], [index["dog"], 0, 0]]
    np.testing.assert_array_equal(table.word_ids, expected)
    np.testing.assert_array_equal(table.lengths, [3, 1, 1])
    part = table.take(torch.tensor([2, 1, 2]))
    np.testing.assert_array_equal(part.word_ids, [[index["dog"]], [0], [index["dog"]]])
    assert Sentences.of([[], []], vocabulary, max_tokens=3).word_ids.shape == (2, 1)


@pytest.mark.parametrize("regions", ["all", "first", "mean"])
def test_a_photo_in_pixels_is_one_region(regions):
    for n_photos in (3, 8):  # 8: as many as a photo is high
        pixels = np.random.default_rng(0).integers(0, 256, (n_photos, 8, 6, 3), np.uint8)
        table = RegionTable.of("images", pixels, regions)
        np.testing.assert_array_equal(table.rows, pixels)
        assert len(table) == n_photos
