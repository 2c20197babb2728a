"""Bag-of-words Gram of a training set's captions, against scikit-learn's cosine similarity."""

import numpy as np
import pytest
from results import target
from scipy.sparse import csr_array

from kernelcore.kernels import bag_of_words, bag_of_words_f1, prepare


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


@pytest.mark.ways(
    "kernelcore", "kernelcore, prepared", "scikit-learn", "numpy, of dense counts"
)
@pytest.mark.parametrize("n_threads", [1, 2])
def test_bag_of_words(measure, images, n_threads):
    from sklearn.metrics.pairwise import cosine_similarity

    dense = word_counts(images).toarray()

    def by_numpy():
        unit = dense / np.sqrt((dense**2).sum(1, keepdims=True))
        return unit @ unit.T

    prepared = prepare(images)
    few = dense[:50] / np.linalg.norm(dense[:50], axis=1, keepdims=True)
    measure(
        "bag of words, cosine",
        {
            "kernelcore": lambda: bag_of_words(images, n_threads=n_threads),
            "kernelcore, prepared": lambda: bag_of_words(prepared, n_threads=n_threads),
            "scikit-learn": lambda: cosine_similarity(word_counts(images)),
            "numpy, of dense counts": by_numpy,
        },
        read={"scikit-learn": np.asarray},
        check=lambda gram: np.testing.assert_allclose(
            gram[:50, :50], few @ few.T, rtol=1e-9, atol=1e-12
        ),
        shape=f"{len(images):,} images",
        n_threads=n_threads,
        targets=[target("speed >= 1 x scikit-learn")],
    )


def test_bag_of_words_f1(measure, images):
    counts = word_counts(images.select(np.arange(min(50, len(images))))).toarray()
    overlap = np.minimum(counts[:, None], counts).sum(2)
    mass = counts.sum(1)
    expected = 2 * overlap / (mass[:, None] + mass)
    measure(
        "bag of words, F1",
        {"kernelcore": lambda: bag_of_words_f1(images)},
        check=lambda gram: np.testing.assert_allclose(gram[:50, :50], expected, rtol=1e-9),
        shape=f"{len(images):,} images",
        n_threads=2,
    )
