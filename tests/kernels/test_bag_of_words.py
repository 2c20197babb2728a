"""Bags of words: scikit-learn, weights, unknown words, real captions."""

import numpy as np
import pytest
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.metrics.pairwise import cosine_similarity

from kernelcore.captions import EncodedCaptions, Vocabulary
from kernelcore.kernels import bag_of_words, bag_of_words_f1

N_WORDS = 4
WEIGHTS = np.array([1.0, 0.5, 2.0, 0.0])
FUNCTIONS = [bag_of_words, bag_of_words_f1]


def encode(nested):
    return EncodedCaptions.from_lists(nested, n_words=N_WORDS)


def test_cosine_equals_scikit_learn():
    texts = ["a dog runs on grass", "two dog dog run", "grass and sky", "sky"]
    counts = CountVectorizer(token_pattern=r"\w+").fit_transform(texts)
    vocabulary = Vocabulary.from_captions([[text.split()] for text in texts])
    captions = vocabulary.encode([[text.split()] for text in texts])
    np.testing.assert_allclose(bag_of_words(captions), cosine_similarity(counts), atol=1e-15)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_words_of_weight_zero_do_not_count(function):
    result = function(encode([[[3]], [[3, 0]], [[0]]]), word_weights=WEIGHTS)
    np.testing.assert_array_equal(result, [[0, 0, 0], [0, 1, 1], [0, 1, 1]])


@pytest.mark.parametrize("function", FUNCTIONS)
def test_default_weights_are_one(function):
    captions = encode([[[0, 1, -3]], [[1, -3, 2]]])
    ones = function(captions, word_weights=np.ones(N_WORDS), unknown_weight=1)
    np.testing.assert_array_equal(function(captions), ones)
