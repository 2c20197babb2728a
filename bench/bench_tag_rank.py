"""The tag-rank Gram matrix of a training set's captions, against scikit-learn's chi-square."""

import time
from dataclasses import replace

import numpy as np
import pytest

from kernelcore.kernels import TagRank
from kernelcore.reference.tag_rank import absolute_ranks, relative_ranks, training_positions
from kernelcore.reference.tag_rank import tag_rank as reference_tag_rank


@pytest.fixture(scope="module")
def known_captions(captions):
    """Every word in the vocabulary, as the reference has it."""
    ids, words = np.unique(captions.word_ids, return_inverse=True)
    return replace(captions, word_ids=words, n_words=len(ids))


@pytest.fixture(scope="module")
def kernel(known_captions):
    return TagRank().fit(known_captions)


def as_lists(captions):
    return [[c.tolist() for c in captions.captions_of(i)] for i in range(len(captions))]


def check(captions, kernel):
    """The first images against the definition, with the training set's statistics."""
    few = captions.select(range(3))
    lists = as_lists(few)
    kernel = TagRank(
        absolute_width=kernel.absolute_width_, relative_width=kernel.relative_width_
    )
    expected = reference_tag_rank(
        lists,
        lists,
        lists,
        absolute_width=kernel.absolute_width,
        relative_width=kernel.relative_width,
    )
    np.testing.assert_allclose(kernel.fit(few).gram(few), expected, rtol=1e-5)


@pytest.mark.usefixtures("isa")
def test_tag_rank(measure, known_captions, kernel):
    check(known_captions, kernel)
    out = np.empty((len(known_captions), len(known_captions)))
    measure("tag rank, one input", kernel.gram, known_captions, out=out)


def test_fit(benchmark, known_captions):
    benchmark.group = "tag rank, fit"
    benchmark.pedantic(TagRank().fit, args=(known_captions,), rounds=3, warmup_rounds=1)


def test_ratio_to_scikit_learn(measure, known_captions, kernel):
    """Its additive chi-square of dense rank vectors, one thread each, 400 single captions."""
    pairwise = pytest.importorskip("sklearn.metrics.pairwise")
    some = known_captions.select(range(400)).with_caption(0)
    texts = [image[0] for image in as_lists(some)]
    positions = training_positions(texts)
    columns = {word: k for k, word in enumerate(positions)}
    dense = np.zeros((2, len(texts), len(columns)))
    for row, text in enumerate(texts):
        for kind, ranks in enumerate((absolute_ranks(text), relative_ranks(text, positions))):
            dense[kind, row, [columns[word] for word in ranks]] = list(ranks.values())
    widths = np.array([0.7, 1.3])

    def peer():
        return sum(
            np.exp(pairwise.additive_chi2_kernel(ranks) / (2 * width)) / 2
            for ranks, width in zip(dense, widths, strict=True)
        )

    ours = TagRank(absolute_width=widths[0], relative_width=widths[1]).fit(some)
    np.testing.assert_allclose(ours.gram(some), peer(), rtol=1e-5)
    start = time.perf_counter()
    peer()
    peer_rate = len(texts) ** 2 / (time.perf_counter() - start) / 1e6

    group = "tag rank, one thread, against scikit-learn"
    measure(group, kernel.gram, known_captions, n_threads=1, peer=peer_rate)
