"""The word-sequence kernel: the reference, another route, strkernels, worked examples."""

import math
import sys
from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from kernel_table import draw_captions
from refusals import refuses

from kernelcore.captions import EncodedCaptions, Vocabulary
from kernelcore.kernels import word_sequence, word_sequence_components
from kernelcore.kernels.word_sequence import _count_subsequences
from kernelcore.reference.kernels import word_sequence as reference_word_sequence

N_WORDS = 7


def tolerance(max_length, n_words, n_captions=1):
    """What the header promises of float32 sums, relative to the kernel of |kappa|."""
    return max_length * (n_words + n_captions + 4) * np.finfo(np.float32).eps


def encode(images, n_words=N_WORDS):
    return EncodedCaptions.from_lists(images, n_words=n_words)


random_images = partial(draw_captions, n_words=N_WORDS, n_unknown=2)


def random_kernel(rng, n_words=N_WORDS):
    kernel = rng.random((n_words, n_words)).astype(np.float32)
    return np.where(kernel + kernel.T > 1, kernel + kernel.T, 0).astype(np.float32)


def similarity_of(kernel, weights, unknown_weight):
    def similarity(a, b):
        if a < 0 or b < 0:
            return unknown_weight * (a == b)
        return kernel[a, b] * math.sqrt(weights[a] * weights[b])

    return similarity


def compare(X, Y, *, kernel=None, weights, gap_decay, max_length, layout=np.asarray):
    """Both inputs and one, raw, normalised and by length, against the reference.

    Few rows are compared without looking for prefixes, copies of them with it.
    """
    unknown = 2.0
    similarity = similarity_of(np.eye(N_WORDS) if kernel is None else kernel, weights, unknown)
    options = {"max_length": max_length, "gap_decay": gap_decay}
    ours = {
        "word_kernel": None if kernel is None else layout(kernel), "word_weights": weights,
        "unknown_weight": unknown, **options,
    }  # fmt: skip
    rtol = tolerance(max_length, 16, 3)
    for left, right in ((X, Y), (X, X)):
        second = None if right is left else encode(right)
        for normalize in (False, True):
            how = {"match_decay": 0.7, "normalize": normalize}
            expected = reference_word_sequence(left, right, similarity, **how, **options)
            K = word_sequence(encode(left), second, **how, **ours)
            np.testing.assert_allclose(K, expected, rtol=2 * rtol, atol=0)
            many = word_sequence(encode(4 * left), encode(right), **how, **ours)
            np.testing.assert_allclose(many, 4 * [*expected], rtol=2 * rtol, atol=0)
            if second is None:
                np.testing.assert_array_equal(K, K.T)
                if normalize:
                    assert set(K.diagonal()) <= {0.0, 1.0}
        parts = word_sequence_components(encode(left), second, **ours)
        assert parts.shape == (len(left), len(right), max_length)
        many = word_sequence_components(encode(4 * left), encode(right), **ours)
        np.testing.assert_allclose(many, 4 * [*parts], rtol=rtol)
        for length in range(1, max_length + 1):
            own = {"match_decay": 1.0, "gap_decay": gap_decay, "max_length": length}
            expected = reference_word_sequence(left, right, similarity, **own)
            np.testing.assert_allclose(parts[..., :length].sum(-1), expected, rtol=rtol)


WAYS = [*((np.asarray, n) for n in (1, 2, 3, 5)), (sp.csr_array, 3), (sp.csc_matrix, 2)]


@pytest.mark.parametrize("gap_decay", [1.0, 0.6, 0.0])
@pytest.mark.parametrize(("layout", "max_length"), WAYS)
def test_soft_matches_equal_the_reference(isa, layout, max_length, gap_decay, monkeypatch):
    module = sys.modules["kernelcore.kernels._texts"]
    monkeypatch.setattr(module, "_DENSE_SHARE", 2.0)  # keep what is sparse sparse
    rng = np.random.default_rng(max_length)
    X, Y = random_images(rng, 9), random_images(rng, 6)
    options = {"gap_decay": gap_decay, "max_length": max_length, "layout": layout}
    compare(X, Y, kernel=random_kernel(rng), weights=rng.random(N_WORDS), **options)


@pytest.mark.parametrize("gap_decay", [1.0, 0.6, 0.0])
@pytest.mark.parametrize("max_length", [1, 3, 4])
@pytest.mark.parametrize("is_listed", [True, False])
def test_exact_matches_equal_the_reference(monkeypatch, is_listed, max_length, gap_decay):
    if not is_listed:  # they go the way of soft ones
        module = sys.modules["kernelcore.kernels.word_sequence"]
        monkeypatch.setattr(module, "_is_listable", lambda *_: False)
    rng = np.random.default_rng(max_length)
    X, Y = random_images(rng, 9), random_images(rng, 6)
    options = {"gap_decay": gap_decay, "max_length": max_length}
    compare(X, Y, weights=rng.random(N_WORDS), **options)


captions = st.lists(st.integers(-2, 3), max_size=6)
images = st.lists(st.lists(captions, max_size=2), min_size=1, max_size=4)


@given(
    X=images, Y=images, max_length=st.integers(1, 4), gap=st.sampled_from([0.0, 0.5, 1.0]),
    copies=st.sampled_from([1, 20]),
)  # fmt: skip
@settings(max_examples=60, deadline=None)
def test_any_integer_sequences(X, Y, max_length, gap, copies):
    """Repeated words, duplicates, prefixes of one another, empty captions and images."""
    expected = reference_word_sequence(X, Y, max_length=max_length, gap_decay=gap)
    X, expected = copies * X, copies * [*expected]
    options = {"max_length": max_length, "gap_decay": gap, "normalize": False}
    exact = word_sequence(encode(X, 4), encode(Y, 4), **options)
    np.testing.assert_allclose(exact, expected, rtol=1e-13)
    soft = word_sequence(encode(X, 4), encode(Y, 4), word_kernel=np.eye(4), **options)
    np.testing.assert_allclose(soft, expected, rtol=tolerance(max_length, 12, 2))


def cumulative(s, t, kappa, max_length):
    """All lengths by sums over rectangles, in float64: another route than index tuples."""
    matches = kappa[np.ix_(s, t)]
    total, ended = 0.0, matches
    for length in range(1, max_length + 1):
        total += 0.25**length * ended.sum()
        before = np.zeros_like(ended)
        before[1:, 1:] = ended.cumsum(0).cumsum(1)[:-1, :-1]
        ended = matches * before
    return total


@pytest.mark.parametrize("max_length", [2, 3, 4])
def test_long_texts(isa, max_length, monkeypatch):
    """Texts of up to 300 words, in one batch of words and in many."""
    rng = np.random.default_rng(11)
    n_words = 60
    kappa = random_kernel(rng, n_words).astype(np.float64)
    lengths = [*(300, 1, 200, 77, 200, 5), *range(1, 15)]
    texts = [rng.integers(0, n_words, length) for length in lengths]
    X = encode([[text.tolist()] for text in texts], n_words)
    expected = np.array([[cumulative(s, t, kappa, max_length) for t in texts] for s in texts])
    for kernel in (kappa, sp.csr_array(kappa)):
        for rows, Y in ((20, None), (20, X.select(range(20))), (6, X)):
            options = {"word_kernel": kernel, "normalize": False, "max_length": max_length}
            K = word_sequence(X.select(range(rows)), Y, **options)
            np.testing.assert_allclose(K, expected[:rows], rtol=tolerance(max_length, 600))


def test_rows_too_long_for_one_table(isa):
    """A row text of 20,000 words leaves room for few words of the columns at a time."""
    rng = np.random.default_rng(12)
    n_words = 400
    kappa = np.eye(n_words) + 0.1
    long_text = rng.integers(0, n_words, 20_000)
    short = [rng.integers(0, n_words, length) for length in (30, 30, 4)]
    # prefixes of one another share a path that batches cut in two
    texts = [long_text, *short, np.concatenate([short[0], short[2]])]
    X = encode([[text.tolist()] for text in texts], n_words)
    options = {"word_kernel": kappa, "normalize": False, "max_length": 2}
    expected = [cumulative(long_text, t, kappa, 2) for t in texts[1:]]
    for n in (1, 17):
        K = word_sequence(X.select(n * [0]), X.select([1, 2, 3, 4]), **options)
        np.testing.assert_allclose(K, n * [expected], rtol=tolerance(2, 20_034))


def test_counts_of_a_worked_example():
    """abc against axbc: pairs ab, ac, bc; ab and ac leave x out, ac leaves b out twice."""
    g = 0.5
    parts = word_sequence_components(["a b c"], ["a x b c"], gap_decay=g)
    assert parts.tolist() == [[[3, g + g**3 + 1, g]]]
    options = {"gap_decay": 0, "normalize": False, "match_decay": 1}
    assert word_sequence(["a b c"], ["a x b c"], **options) == 4


def test_unknown_words_match_themselves_alone(isa):
    X = encode([[[-1, 0]], [[-2, 0]], [[-1, -2]]], 1)
    options = {"match_decay": 1, "normalize": False}
    for kernel in (None, np.ones((1, 1))):
        K = word_sequence(X, word_kernel=kernel, unknown_weight=3.0, max_length=1, **options)
        np.testing.assert_allclose(K, [[4, 1, 3], [1, 4, 3], [3, 3, 6]])
    without = word_sequence(X, unknown_weight=0.0, **options)
    assert without[2].tolist() == [0, 0, 0]


def test_matches_of_negative_similarity_count_against():
    X = encode([[[0, 1]], [[1, 0]]], 2)
    kernel = [[1, -0.5], [-0.5, 1]]
    K = word_sequence(X, word_kernel=kernel, match_decay=1, normalize=False, max_length=2)
    np.testing.assert_allclose(K, [[2 - 1 + 1, 1 + 0.25], [1 + 0.25, 2]])
    indefinite = [[0, -1], [-1, 0]]
    refuses(ValueError, "word_kernel", word_sequence, X, word_kernel=indefinite)


def test_agrees_with_strkernels():
    """Its decay counts the span: ours with both decays equal; it takes one string a sample."""
    strkernels = pytest.importorskip("strkernels")
    rng = np.random.default_rng(18)
    strings = ["".join(rng.choice(list("ACGT"), rng.integers(3, 30))) for _ in range(12)]
    kernel = strkernels.SubsequenceStringKernel(maxlen=3, ssk_lambda=0.5)
    peer = kernel(np.array(strings), np.array(strings))
    ours = word_sequence([" ".join(s) for s in strings], match_decay=0.5, gap_decay=0.5)
    np.testing.assert_allclose(ours, peer, rtol=1e-6)


@pytest.mark.parametrize("two_sides", [False, True])
def test_exact_matches_of_captions_are_listed(monkeypatch, two_sides):
    """Many captions and few words in each: the way that is several times faster."""
    module = sys.modules["kernelcore.kernels.word_sequence"]
    monkeypatch.setattr(module._core, "word_sequence", None)
    rng = np.random.default_rng(21)
    X = encode(rng.integers(0, N_WORDS, (1200, 1, 11)).tolist())
    K = word_sequence(X, X.select(np.arange(1200)) if two_sides else None, n_threads=2)
    assert (K.diagonal() == 1).all()


def test_subsequences_are_counted_before_they_are_listed():
    offsets = np.cumsum([0, 3, 2, 3, 0])
    assert [_count_subsequences(offsets, k) for k in (1, 2, 3, 9)] == [8, 15, 17, 17]


def test_max_length_beyond_the_texts_adds_nothing():
    texts = ["a b c", "c b a b"]
    long, four = (word_sequence(texts, max_length=length) for length in (10**9, 4))
    assert long.tobytes() == four.tobytes()
    assert (word_sequence_components(texts, max_length=6)[..., 4:] == 0).all()


@pytest.mark.realdata
def test_real_captions_equal_the_reference(data_root, isa):
    lines = (data_root / "flickr8k" / "Flickr8k.lemma.token.txt").read_text().splitlines()
    texts = [line.partition("\t")[2].lower().split() for line in lines[:30]]
    grouped = [[[w for w in text if w.isalpha() and len(w) > 2][:9]] for text in texts]
    vocabulary = Vocabulary.from_captions(grouped[:20])
    X = vocabulary.encode(grouped)
    rng = np.random.default_rng(22)
    kernel = random_kernel(rng, len(vocabulary))
    captions = np.split(X.word_ids, X.caption_offsets[1:-1])
    lists = [[caption.tolist()] for caption in captions]
    similarity = similarity_of(kernel, vocabulary.idf(), 1.0)
    expected = reference_word_sequence(lists, lists, similarity, normalize=True)
    K = word_sequence(X, word_kernel=kernel, word_weights=vocabulary.idf())
    np.testing.assert_allclose(K, expected, rtol=2 * tolerance(3, 18))
