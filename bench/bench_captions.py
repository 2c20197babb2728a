"""Bags of words and tag ranks of a training set, beside scikit-learn and NumPy."""

from dataclasses import replace

import numpy as np
import pytest
from common import as_lists, size, training_captions
from scipy.sparse import csr_array

from kernelcore.kernels import TagRank, bag_of_words, bag_of_words_f1, prepare
from kernelcore.reference import kernels as reference


def word_counts(images):
    """Counts over words inside and outside the vocabulary, made by SciPy alone."""
    ids, columns = np.unique(images.word_ids, return_inverse=True)
    starts = images.caption_offsets[images.image_offsets]
    counts = csr_array((np.ones(len(columns)), columns, starts), shape=(len(images), len(ids)))
    counts.sum_duplicates()
    return counts


def cosines_by_numpy(counts):
    unit = counts / np.sqrt((counts**2).sum(1, keepdims=True))
    return unit @ unit.T


@pytest.mark.parametrize(
    "peer",
    [
        *("kernelcore", "kernelcore, prepared"),
        *("sklearn.metrics.pairwise.cosine_similarity", "numpy, of dense counts"),
    ],
)
@pytest.mark.parametrize("n_threads", [1, 2])
@pytest.mark.parametrize("n", [2, 1500, 3000, 6000])
def test_bag_of_words(benchmark, peer, n, n_threads):
    from sklearn.metrics.pairwise import cosine_similarity

    images = training_captions().select(range(size(n, 300)))
    benchmark.extra_info["work"] = "bag of words, cosine"
    benchmark.extra_info["size"] = f"{len(images):,} images"
    prepared, dense = prepare(images), word_counts(images).toarray()
    call = {
        "kernelcore": lambda: bag_of_words(images, n_threads=n_threads),
        "kernelcore, prepared": lambda: bag_of_words(prepared, n_threads=n_threads),
        "sklearn.metrics.pairwise.cosine_similarity": lambda: cosine_similarity(
            word_counts(images)
        ),
        "numpy, of dense counts": lambda: cosines_by_numpy(dense),
    }[peer]
    expected = cosines_by_numpy(dense[:50])
    np.testing.assert_allclose(np.asarray(call())[:50, :50], expected, rtol=1e-9, atol=1e-12)
    benchmark(call)


@pytest.mark.parametrize("n_threads", [2])
def test_bag_of_words_f1(benchmark, n_threads):
    images = training_captions().select(range(size(3000, 300)))
    benchmark.extra_info["work"] = "bag of words, F1"
    benchmark.extra_info["size"] = f"{len(images):,} images"
    counts = word_counts(images.select(range(50))).toarray()
    mass = counts.sum(1)
    expected = 2 * np.minimum(counts[:, np.newaxis], counts).sum(2)
    gram = bag_of_words_f1(images)
    np.testing.assert_allclose(
        gram[:50, :50], expected / (mass[:, np.newaxis] + mass), rtol=1e-9
    )
    benchmark(bag_of_words_f1, images)


def known_captions():
    """Every word in the vocabulary, as the reference has it."""
    captions = training_captions()
    ids, words = np.unique(captions.word_ids, return_inverse=True)
    return replace(captions, word_ids=words, n_words=len(ids))


@pytest.mark.parametrize("n_threads", [2])
def test_tag_rank(benchmark, n_threads):
    captions = known_captions()
    benchmark.extra_info["work"] = "tag rank, one input"
    benchmark.extra_info["size"] = f"{captions.n_captions:,} captions"
    kernel = TagRank().fit(captions)
    out = np.empty((len(captions),) * 2)
    benchmark(kernel.gram, captions, out=out, n_threads=n_threads)


@pytest.mark.parametrize(
    "peer", ["kernelcore", "sklearn.metrics.pairwise.additive_chi2_kernel"]
)
@pytest.mark.parametrize("n", [2, 100, 200, 400])
def test_tag_rank_of_single_captions(benchmark, peer, n):
    """Scikit-learn has the ranks of all words in dense rows, made beforehand."""
    from sklearn.metrics.pairwise import additive_chi2_kernel

    benchmark.extra_info["work"] = "tag rank of single captions"
    benchmark.extra_info["size"] = f"{n} captions"
    some = known_captions().select(range(size(n, 60))).with_caption(0)
    texts = [image[0] for image in as_lists(some)]
    positions = reference.training_positions(texts)
    columns = {word: k for k, word in enumerate(positions)}
    dense = np.zeros((2, len(texts), len(columns)))
    for row, text in enumerate(texts):
        kinds = reference.absolute_ranks(text), reference.relative_ranks(text, positions)
        for kind, ranks in enumerate(kinds):
            dense[kind, row, [columns[word] for word in ranks]] = list(ranks.values())

    def by_scikit_learn():
        absolute, relative = (additive_chi2_kernel(ranks) for ranks in dense)
        return (np.exp(absolute / 1.4) + np.exp(relative / 2.6)) / 2

    kernel = TagRank(absolute_width=0.7, relative_width=1.3).fit(some)
    np.testing.assert_allclose(kernel.gram(some), by_scikit_learn(), rtol=1e-5)
    if peer == "kernelcore":
        benchmark(kernel.gram, some, n_threads=1)
    else:
        benchmark(by_scikit_learn)
