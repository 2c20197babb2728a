"""The tag-rank kernel: the reference, scikit-learn, worked examples, odd captions."""

import math
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernel_table import draw_captions
from refusals import refuses

from kernelcore._estimator import NotFittedError
from kernelcore.captions import EncodedCaptions, Vocabulary
from kernelcore.kernels import TagRank, tag_rank
from kernelcore.reference.kernels import absolute_ranks, relative_ranks, training_positions
from kernelcore.reference.kernels import tag_rank as reference_tag_rank

N_WORDS = 8
EPS = np.finfo(np.float32).eps


def encode(images, n_words=N_WORDS):
    return EncodedCaptions.from_lists(images, n_words=n_words)


random_images = partial(draw_captions, n_words=N_WORDS, n_unknown=2)


def tolerance(n_words, width):
    """What the header promises, relative: ranks are at most 1."""
    return (n_words + 4) * EPS * (1 + n_words / (2 * width))


@pytest.mark.parametrize("widths", [(None, None), (0.4, 2.5), (None, 0.7)])
def test_equals_the_reference(isa, widths):
    rng = np.random.default_rng(0)
    X, Y = random_images(rng, 25), random_images(rng, 9)
    training = random_images(rng, 20, n_words=6, n_unknown=0)  # words 6 and 7 are not in it
    options = dict(zip(("absolute_width", "relative_width"), widths, strict=True))
    kernel = TagRank(**options).fit(encode(training))
    narrow = min(kernel.absolute_width_, kernel.relative_width_)
    for right in (X, Y):
        second = None if right is X else encode(Y)
        K = kernel.gram(encode(X), second)
        expected = reference_tag_rank(X, right, training, **options)
        np.testing.assert_allclose(K, expected, rtol=tolerance(16, narrow))
        single = kernel.gram(encode(X), second, dtype=np.float32)
        assert single.dtype == np.float32
        np.testing.assert_allclose(single, K, rtol=EPS)
        if second is None:
            np.testing.assert_array_equal(K, K.T)


captions = st.lists(st.integers(0, 3), max_size=5)
images = st.lists(st.lists(captions, max_size=2), min_size=1, max_size=3)


@given(X=images, training=images)
@settings(max_examples=60, deadline=None)
def test_any_captions(X, training):
    """Repeated words, duplicates, empty captions, images and training."""
    widths = {"absolute_width": 0.5, "relative_width": 0.25}
    K = tag_rank(encode(X, 4), training=encode(training, 4), **widths)
    expected = reference_tag_rank(X, X, training, **widths)
    np.testing.assert_allclose(K, expected, rtol=tolerance(10, 0.25))


def test_distances_are_those_of_scikit_learn(isa):
    """Dense rank vectors and an independent chi-square; single captions."""
    pairwise = pytest.importorskip("sklearn.metrics.pairwise")
    rng = np.random.default_rng(1)
    texts = [rng.integers(0, N_WORDS, rng.integers(1, 9)).tolist() for _ in range(40)]
    positions = training_positions(texts)
    dense = np.zeros((2, len(texts), N_WORDS))
    for row, text in enumerate(texts):
        for kind, ranks in enumerate((absolute_ranks(text), relative_ranks(text, positions))):
            dense[kind, row, list(ranks)] = list(ranks.values())
    chi2 = [-pairwise.additive_chi2_kernel(ranks) for ranks in dense]
    n = len(texts)
    widths = [distances.sum() / (n * (n - 1)) for distances in chi2]
    X = encode([[text] for text in texts])
    kernel = TagRank().fit(X)
    found = [kernel.absolute_width_, kernel.relative_width_]
    np.testing.assert_allclose(found, widths, rtol=1e-12)
    expected = sum(np.exp(-d / (2 * w)) / 2 for d, w in zip(chi2, widths, strict=True))
    K = kernel.gram(X)
    np.testing.assert_allclose(K, expected, rtol=tolerance(16, min(widths)))
    assert (K.diagonal() == 1).all()


def test_ranks_of_a_worked_example():
    """Word 0 stands at 1 and 4 in training, word 1 at 2, 2 and 3; the pair shares word 0."""
    training = encode([[[0, 1, 1], [2, 1, 2, 0]]], 3)
    kernel = TagRank(absolute_width=1.0, relative_width=1.0).fit(training)
    K = kernel.gram(encode([[[0]]], 3), encode([[[2, 0]]], 3))
    absolute = [(1, 1 / math.log2(3)), (0, 1)]  # word 0 first against second, word 2
    relative = [(1 - 1 / 2, 1 - 1 / 2), (0, 1 - 1 / 2)]  # word 2 stands at 1 and 3
    distances = [sum((u - v) ** 2 / (u + v) for u, v in own) for own in (absolute, relative)]
    assert K[0, 0] == pytest.approx(sum(math.exp(-d / 2) / 2 for d in distances), rel=1e-6)


def test_unknown_words_are_ranked_among_all():
    """Their ids match; their relative rank comes from the positions of all training words."""
    training = encode([[[0, 1], [1]]], 3)  # positions 1, 2, 1
    kernel = TagRank(absolute_width=1e6, relative_width=1.0).fit(training)
    for unknown in (-5, 2):
        K = kernel.gram(encode([[[unknown]]], 3), encode([[[unknown, 0]], [[-7]]], 3))
        r = 1 - 2 / 3  # of the unknown word at 1; word 0 at 2 has 0 left behind it
        assert K[0, 0] == pytest.approx(1, rel=1e-5)
        assert K[0, 1] == pytest.approx((1 + math.exp(-2 * r / 2)) / 2, rel=1e-5)


def test_the_exponential_is_right_to_the_last_bits(isa):
    """Of the distance between two captions of one unknown word each."""
    training = encode([[[0, 1], [1]]], 3)  # positions 1, 2, 1
    one, other = encode([[[-5]]], 3), encode([[[-7]]], 3)
    distance = 2 * (1 - 2 / 3)
    for width in np.geomspace(0.01, 50, 60):
        kernel = TagRank(absolute_width=1e9, relative_width=width).fit(training)
        expected = (1 + math.exp(-distance / (2 * width))) / 2
        assert kernel.gram(one, other)[0, 0] == pytest.approx(expected, rel=3e-7)


def test_width_factor_scales_what_is_estimated():
    X = encode(random_images(np.random.default_rng(7), 20))
    whole, half = TagRank().fit(X), TagRank(width_factor=0.5, relative_width=3.0).fit(X)
    assert half.absolute_width_ == whole.absolute_width_ / 2
    assert half.relative_width_ == 3.0
    assert (half.gram(X) != whole.gram(X)).any()


def test_very_long_captions():
    """Many positions of a word, mean positions between whole ones, one caption of 400."""
    rng = np.random.default_rng(8)
    texts = [[rng.integers(0, 30, n).tolist()] for n in (400, 90, 90, 3)]
    K = tag_rank(encode(texts, 30))
    np.testing.assert_allclose(K, reference_tag_rank(texts, texts, texts), rtol=1e-4)


def test_nothing_to_compare():
    X, empty, wordless = encode([[[0], [1, 0]]]), encode([]), encode([[], [[]], [[], []]])
    kernel = TagRank().fit(X)
    assert kernel.gram(wordless).tolist() == [[0, 0, 0], [0, 1, 1], [0, 1, 1]]
    with_given = TagRank(absolute_width=1.0, relative_width=1.0).fit(empty)
    assert with_given.gram(X).shape == (1, 1)


def test_bad_input_is_named():
    refuses(ValueError, "absolute_width", tag_rank, encode([[[0, 1]], [[0, 1]]]))
    refuses(ValueError, "relative_width", tag_rank, encode([[[0]], [[1]]]))
    refuses(NotFittedError, "TagRank", TagRank().gram, encode([[[0, 1]]]))


@pytest.mark.realdata
def test_real_captions_equal_the_reference(data_root):
    lines = (data_root / "flickr8k" / "Flickr8k.lemma.token.txt").read_text().splitlines()
    tokens = [[line.partition("\t")[2].lower().split()] for line in lines[:70]]
    vocabulary = Vocabulary.from_captions(tokens[:50])
    training = vocabulary.encode(tokens[:50])
    K = tag_rank(vocabulary.encode(tokens[50:]), training, training=training)
    expected = reference_tag_rank(tokens[50:], tokens[:50], tokens[:50])
    np.testing.assert_allclose(K, expected, rtol=1e-5)
