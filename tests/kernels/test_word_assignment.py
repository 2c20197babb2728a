"""The word-assignment similarity against its definition."""

import numpy as np
import pytest

from kernelcore.captions import EncodedCaptions
from kernelcore.kernels import word_assignment

N_WORDS = 30


def test_exact_matches_count_the_words_in_common():
    K = word_assignment(["a b b c", "b b b", "", "d"], normalize=False)
    np.testing.assert_array_equal(K, [[4, 2, 0, 0], [2, 3, 0, 0], [0, 0, 0, 0], [0, 0, 0, 1]])


def test_words_that_all_prefer_one_are_shared_out():
    kernel = np.array([[1, 0.9, 0.8], [0.9, 1, 0.1], [0.8, 0.1, 1]], np.float32)
    captions = EncodedCaptions.from_lists([[[0, 0]], [[1, 2, 0]]])
    K = word_assignment(captions, word_kernel=kernel, normalize=False)
    assert K[0, 1] == pytest.approx(1.9)


def test_wide_captions_and_no_images(isa):
    long = EncodedCaptions.from_lists([[list(range(N_WORDS)) * 3], [list(range(5))]])
    K = word_assignment(long, normalize=False)
    np.testing.assert_array_equal(K, [[3 * N_WORDS, 5], [5, 5]])
    assert word_assignment(long.select(np.arange(0)), long).shape == (0, 2)


def test_an_image_is_like_itself_unless_told_otherwise():
    np.testing.assert_array_equal(word_assignment(["a a", "b"]), np.eye(2))
