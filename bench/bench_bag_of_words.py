"""Bag-of-words Gram of a training set's captions, against scikit-learn's cosine similarity."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from kernelcore.kernels import bag_of_words, bag_of_words_f1

GROUP = "bag of words, cosine of {} images"


@pytest.fixture(scope="module")
def images(captions):
    return captions.select(np.arange(min(3000, len(captions))))


def word_counts(images):
    """Counts over words inside and outside the vocabulary, made by SciPy alone."""
    ids, columns = np.unique(images.word_ids, return_inverse=True)
    starts = images.caption_offsets[images.image_offsets]
    shape = (len(images), len(ids))
    counts = csr_array((np.ones(len(columns)), columns, starts), shape=shape)
    counts.sum_duplicates()
    return counts


def test_bag_of_words(benchmark, images):
    benchmark.group = GROUP.format(len(images))
    benchmark.pedantic(lambda: bag_of_words(images), rounds=3, warmup_rounds=1)


def test_scikit_learn_cosine_similarity(benchmark, images):
    from sklearn.metrics.pairwise import cosine_similarity

    def cosine():
        return cosine_similarity(word_counts(images))

    np.testing.assert_allclose(cosine(), bag_of_words(images), rtol=1e-9, atol=1e-12)
    benchmark.group = GROUP.format(len(images))
    benchmark.pedantic(cosine, rounds=3, warmup_rounds=1)


def test_numpy_cosine_of_dense_counts(benchmark, images):
    counts = word_counts(images).toarray()

    def cosine():
        unit = counts / np.sqrt((counts**2).sum(1, keepdims=True))
        return unit @ unit.T

    np.testing.assert_allclose(cosine(), bag_of_words(images), rtol=1e-9, atol=1e-12)
    benchmark.group = GROUP.format(len(images))
    benchmark.pedantic(cosine, rounds=3, warmup_rounds=1)


def test_bag_of_words_f1(benchmark, images):
    few = images.select(np.arange(50))
    counts = word_counts(few).toarray()
    overlap = np.minimum(counts[:, None], counts).sum(2)
    mass = counts.sum(1)
    expected = 2 * overlap / (mass[:, None] + mass)
    np.testing.assert_allclose(bag_of_words_f1(few), expected, rtol=1e-9)
    benchmark.group = GROUP.format(len(images)).replace("cosine", "F1")
    benchmark.pedantic(lambda: bag_of_words_f1(images), rounds=3, warmup_rounds=1)
