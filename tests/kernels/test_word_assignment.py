"""The word-assignment similarity against its definition."""

import numpy as np
import pytest
from scipy import sparse

from kernelcore.captions import EncodedCaptions
from kernelcore.kernels import word_assignment
from kernelcore.reference.kernels import word_assignment as reference_assignment

N_WORDS = 30


def drawn(rng, n_images, longest=12):
    lists = [
        [rng.integers(-3, N_WORDS, rng.integers(0, longest)).tolist() for _ in range(n)]
        for n in rng.integers(0, 4, n_images)
    ]
    lengths = [len(caption) for image in lists for caption in image]
    captions = EncodedCaptions(
        word_ids=np.array(
            [word for image in lists for caption in image for word in caption], np.int32
        ),
        caption_offsets=np.concatenate(([0], np.cumsum(lengths, dtype=np.int64))),
        image_offsets=np.concatenate(([0], np.cumsum([len(image) for image in lists]))),
        caption_numbers=np.concatenate([np.arange(len(image)) for image in lists]).astype(int),
        n_words=N_WORDS,
    )
    return lists, captions


def drawn_kernel(rng, share):
    values = rng.uniform(-0.3, 1, (N_WORDS, N_WORDS)) * (rng.random((N_WORDS, N_WORDS)) < share)
    kernel = np.triu(values, 1)
    return (kernel + kernel.T + np.eye(N_WORDS)).astype(np.float32)


def kappa_of(kernel, weights, unknown):
    def kappa(a, b):
        if a < 0 or b < 0:
            return unknown * (a == b)
        return float(kernel[a, b]) * np.sqrt(weights[a] * weights[b])

    return kappa


@pytest.mark.parametrize("share", [0.05, 1.0])
@pytest.mark.parametrize("normalize", [False, True])
def test_equals_the_definition(isa, share, normalize):
    rng = np.random.default_rng(4)
    lists_X, X = drawn(rng, 14)
    lists_Y, Y = drawn(rng, 9, longest=40)
    kernel, weights = drawn_kernel(rng, share), rng.uniform(0, 2, N_WORDS)
    kappa = kappa_of(kernel, weights, 1.5)
    options = {"word_weights": weights, "unknown_weight": 1.5, "normalize": normalize}
    for lists, other in ((lists_X, None), (lists_Y, Y)):
        expected = reference_assignment(lists_X, lists, kappa=kappa, normalize=normalize)
        for given_kernel in (kernel, sparse.csr_array(kernel)):
            K = word_assignment(X, other, word_kernel=given_kernel, **options)
            np.testing.assert_allclose(K, expected, rtol=1e-5, atol=1e-6)
            single = word_assignment(
                X, other, word_kernel=given_kernel, dtype=np.float32, n_threads=3, **options
            )
            np.testing.assert_array_equal(single, K.astype(np.float32))
        if other is None:
            assert (K == K.T).all()
            if normalize:
                assert set(np.diag(K)) <= {0.0, 1.0}


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


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"normalize": 1}, TypeError, "normalize must be True or False, got 1"),
        ({"dtype": int}, TypeError, "dtype must be float32 or float64"),
        ({"word_kernel": np.eye(2)}, ValueError, r"word_kernel must have shape \(30, 30\)"),
        ({"word_weights": np.full(N_WORDS, -1.0)}, ValueError, "word_weights must be non-neg"),
        ({"unknown_weight": np.nan}, ValueError, "unknown_weight must be finite"),
        ({"out": np.empty((1, 1))}, ValueError, r"out must have shape \(14, 14\)"),
    ],
)
def test_bad_input_is_named(options, error, message):
    _, X = drawn(np.random.default_rng(4), 14)
    with pytest.raises(error, match=message):
        word_assignment(X, **options)


def test_out_and_progress():
    seen = []
    _, X = drawn(np.random.default_rng(5), 200)
    out = np.empty((200, 200))
    K = word_assignment(X, out=out, progress=lambda *steps: seen.append(steps), n_threads=1)
    assert K is out
    assert seen[-1][0] == seen[-1][1]
    with pytest.raises(ValueError, match=r"word_kernel must have shape \(0, 0\)"):
        word_assignment(["a"], word_kernel=np.eye(1))


def test_an_image_is_like_itself_unless_told_otherwise():
    np.testing.assert_array_equal(word_assignment(["a a", "b"]), np.eye(2))
