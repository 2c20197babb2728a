"""The order of images and texts, by hand."""

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("cv2")

from kernelcore.experiments.corpus import Pool
from kernelcore.experiments.khojasteh2019 import PUBLISHED, joined_pool, measure_order


def test_the_table_of_the_thesis_is_read_as_it_is_printed():
    assert len(PUBLISHED) == 16 + 6
    rows = {row.system: row.values for row in PUBLISHED}
    scan = {"R@1": 0.727, "R@5": 0.948, "R@10": 0.984}
    assert rows["SCAN, COCO-1K"]["annotation"] == pytest.approx(scan)
    hm_lstm = {"R@1": 0.361, "R@10": 0.867, "median_rank": 3}
    assert rows["HM-LSTM, COCO-1K"]["search"] == pytest.approx(hm_lstm)
    assert rows["DeepTwt, COCO-5K"]["search"]["median_rank"] == 3


def test_joined_texts_are_a_pool_of_one_text_for_each_photo():
    pool = Pool(("a", "b", "c"), np.array([0, 0, 1]), np.array([5, 2, 5]))
    found = joined_pool(pool)
    assert found.texts == ("b", "a c")
    np.testing.assert_array_equal(found.photos, [2, 5])
    np.testing.assert_array_equal(found.numbers, [0, 0])


class Fixed:
    """A ranker with these penalties: images in rows, texts in columns."""

    def __init__(self, penalties, similarity="texts below"):
        self.matrix, self.similarity = np.array(penalties, np.float32), similarity

    def penalties(self, images, texts, *, reverse):
        return self.matrix + (1 if reverse is (self.similarity != "images below") else 0)

    def embed_images(self, images):
        return np.array([[3, 0], [0, 3], [3, 0], [0, 3]], np.float32)

    def embed_captions(self, texts):
        return np.array([[2, 1], [2, 1]], np.float32)


def measured(*options):
    return measure_order(Fixed(*options), np.zeros((4, 1)), ["a", "b"], np.array([0, 1]))


@pytest.mark.parametrize("similarity", ["texts below", "images below", "cosine"])
def test_pairs_are_compared_by_the_order_that_was_trained(similarity):
    rows = [[0.1, 0.4], [0.5, 0.2], [0.1, 0.1], [0.3, 0.9]]
    numbers, arrays = measured(rows, similarity)
    assert numbers["true"] == pytest.approx(0.15)
    assert numbers["reverse"] == pytest.approx(1.15)
    assert numbers["mismatched"] == pytest.approx(np.mean([0.5, 0.1, 0.3, 0.4, 0.1, 0.9]))
    # 0.5, a half for 0.1, and 0.3; then 0.4 and 0.9
    np.testing.assert_allclose(arrays["shares"], [2.5 / 3, 2 / 3])
    np.testing.assert_allclose(arrays["ratios"], [0.1 / 0.3, 0.2 / (1.4 / 3)], rtol=1e-6)
    assert numbers["below reverse (%)"] == 100
    assert numbers["ratio"] == pytest.approx(arrays["ratios"].mean())
    assert (numbers["spread of images"], numbers["spread of texts"]) == (0.5, 0.0)


def test_texts_that_lie_below_everything_are_no_nearer_to_their_own_image():
    _, arrays = measured(np.zeros((4, 2)))
    np.testing.assert_array_equal(arrays["ratios"], [1, 1])
    np.testing.assert_array_equal(arrays["shares"], [0.5, 0.5])


def test_a_text_with_a_penalty_of_its_own_image_alone_has_no_ratio():
    assert "ratio" not in measured([[0, 0], [0, 0.4], [0, 0], [0, 0]])[0]
