"""The tag-rank Gram matrix of a training set's captions, against scikit-learn's chi-square."""

from dataclasses import replace

import data
import numpy as np
import pytest

from kernelcore.kernels import TagRank
from kernelcore.reference.kernels import absolute_ranks, relative_ranks, training_positions
from kernelcore.reference.kernels import tag_rank as reference_tag_rank


@pytest.fixture(scope="module")
def known_captions(captions):
    """Every word in the vocabulary, as the reference has it."""
    ids, words = np.unique(captions.word_ids, return_inverse=True)
    return replace(captions, word_ids=words, n_words=len(ids))


def check_definition(captions, kernel):
    """The first images against the definition, with the training set's statistics."""
    few = captions.select(range(3))
    lists = data.as_lists(few)
    widths = {
        "absolute_width": kernel.absolute_width_,
        "relative_width": kernel.relative_width_,
    }
    expected = reference_tag_rank(lists, lists, lists, **widths)
    np.testing.assert_allclose(TagRank(**widths).fit(few).gram(few), expected, rtol=1e-5)


def test_tag_rank(measure, known_captions):
    kernel = TagRank().fit(known_captions)
    check_definition(known_captions, kernel)
    n = known_captions.n_captions
    out = np.empty((len(known_captions),) * 2)
    few = known_captions.select(range(3))
    expected = kernel.gram(few)
    measure(
        "tag rank, one input",
        {"kernelcore": lambda: kernel.gram(known_captions, out=out, n_threads=2)},
        check=lambda gram: np.testing.assert_allclose(gram[:3, :3], expected, rtol=1e-5),
        n_threads=2,
        shape=f"{n:,} captions",
        size=n * (n + 1) / 2,
        unit="pairs",
    )


@pytest.mark.ways("kernelcore", "scikit-learn")
def test_beside_scikit_learn(measure, known_captions):
    """Its additive chi-square of dense rank vectors, of single captions."""
    from sklearn.metrics.pairwise import additive_chi2_kernel

    some = known_captions.select(range(data.size(400, 60))).with_caption(0)
    texts = [image[0] for image in data.as_lists(some)]
    positions = training_positions(texts)
    columns = {word: k for k, word in enumerate(positions)}
    dense = np.zeros((2, len(texts), len(columns)))
    for row, text in enumerate(texts):
        for kind, ranks in enumerate((absolute_ranks(text), relative_ranks(text, positions))):
            dense[kind, row, [columns[word] for word in ranks]] = list(ranks.values())
    widths = np.array([0.7, 1.3])

    def by_scikit_learn():
        return sum(
            np.exp(additive_chi2_kernel(ranks) / (2 * width)) / 2
            for ranks, width in zip(dense, widths, strict=True)
        )

    ours = TagRank(absolute_width=widths[0], relative_width=widths[1]).fit(some)
    check_definition(some, ours)
    expected = ours.gram(some)
    measure(
        "tag rank, beside scikit-learn",
        {"kernelcore": lambda: ours.gram(some, n_threads=1), "scikit-learn": by_scikit_learn},
        check=lambda gram: np.testing.assert_allclose(gram, expected, rtol=1e-5),
        shape=f"{len(texts):,} captions",
    )
