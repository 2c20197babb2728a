"""Run by test_cuda_simulated.py where CUDA is simulated."""

import math
import sys

import numpy as np
import pytest
import scipy.sparse as sp

from kernelcore import kernels
from kernelcore.captions import EncodedCaptions
from kernelcore.kernels.cuda import _sequence_device, word_sequence
from kernelcore.reference.word_sequence import word_sequence as reference_word_sequence

FACADE = sys.modules["kernelcore.kernels.cuda.word_sequence"]
N_WORDS, UNKNOWN_WEIGHT = 7, 2.0


def tolerance(max_length, n_words, n_captions=1):
    """What the CPU promises of float32 sums of similarities >= 0."""
    return max_length * (n_words + n_captions + 4) * np.finfo(np.float32).eps


@pytest.fixture
def narrow(monkeypatch):
    """Warps of 4 lanes and small tiles: several groups, blocks and tiles of few captions."""
    monkeypatch.setattr(FACADE, "_LANES", 4)
    monkeypatch.setattr(_sequence_device, "_WARPS", 2)
    monkeypatch.setattr(_sequence_device, "_ITEMS_PER_WARP", 1)
    monkeypatch.setattr(FACADE, "_MOST_ROW_CAPTIONS", 5)
    monkeypatch.setattr(FACADE, "_MOST_SUMS", 20)


def encode(images, n_words=N_WORDS):
    return EncodedCaptions.from_lists(images, n_words=n_words)


def random_images(rng, n_images, n_words=N_WORDS, longest=8):
    """Images of 0 to 3 captions of 0 to `longest` words, some outside the vocabulary."""
    return [
        [
            rng.integers(-2, n_words, rng.integers(0, longest + 1)).tolist()
            for _ in range(rng.integers(0, 4))
        ]
        for _ in range(n_images)
    ]


def random_kernel(rng, n_words=N_WORDS):
    kernel = rng.random((n_words, n_words)).astype(np.float32)
    return np.where(kernel + kernel.T > 1, kernel + kernel.T, 0).astype(np.float32)


def similarity_of(kernel, weights):
    def similarity(a, b):
        if a < 0 or b < 0:
            return UNKNOWN_WEIGHT * (a == b)
        return kernel[a, b] * math.sqrt(weights[a] * weights[b])

    return similarity


@pytest.mark.usefixtures("narrow")
@pytest.mark.parametrize(
    ("max_length", "gap_decay"), [(1, 0.6), (3, 1.0), (3, 0.6), (3, 0.0), (5, 0.6)]
)
@pytest.mark.parametrize("layout", [None, np.asarray, sp.csr_array])
def test_equals_the_reference(monkeypatch, layout, max_length, gap_decay):
    module = sys.modules["kernelcore.kernels._soft_matches"]
    monkeypatch.setattr(module, "_DENSE_SHARE", 2.0)  # keep what is sparse sparse
    rng = np.random.default_rng(max_length)
    X, Y = random_images(rng, 5), random_images(rng, 4)
    kernel, weights = np.eye(N_WORDS), rng.random(N_WORDS)
    if layout is not None:
        kernel = random_kernel(rng)
    options = {"max_length": max_length, "gap_decay": gap_decay, "match_decay": 0.7}
    for right, normalize in ((Y, False), (Y, True), (X, True)):
        expected = reference_word_sequence(
            X, right, similarity_of(kernel, weights), normalize=normalize, **options
        )
        K = word_sequence(
            encode(X),
            None if right is X else encode(right),
            word_kernel=None if layout is None else layout(kernel),
            word_weights=weights,
            unknown_weight=UNKNOWN_WEIGHT,
            normalize=normalize,
            **options,
        )
        rtol = 2 * tolerance(max_length, 16, 3)
        np.testing.assert_allclose(K, expected, rtol=rtol, atol=0)
        if right is X:
            np.testing.assert_array_equal(K, K.T)
            assert set(K.diagonal()) <= {0.0, 1.0}


@pytest.mark.usefixtures("narrow")
@pytest.mark.parametrize("n_carried", [1, 2**25])
@pytest.mark.parametrize(("max_length", "gap_decay"), [(3, 0.9), (10, 1.0)])
def test_long_texts(monkeypatch, max_length, gap_decay, n_carried):
    """Longer than the registers hold, with room for few of the sums that are carried."""
    monkeypatch.setattr(_sequence_device, "_MOST_CARRIED", n_carried)
    rng = np.random.default_rng(11)
    n_words = 12
    kernel = random_kernel(rng, n_words)
    images = [[rng.integers(0, n_words, n).tolist()] for n in (37, 1, 16, 17, 5, 40)]
    images[1].append(images[0][0][:20])
    X = encode(images, n_words)
    options = {
        "word_kernel": kernel,
        "max_length": max_length,
        "gap_decay": gap_decay,
        "normalize": False,
        "match_decay": 0.2,
    }
    K = word_sequence(X.select([0, 1, 2]), X, **options)
    expected = kernels.word_sequence(X.select([0, 1, 2]), X, **options)
    np.testing.assert_allclose(K, expected, rtol=2 * tolerance(max_length, 80, 2))


def test_real_warps():
    rng = np.random.default_rng(12)
    X = encode(random_images(rng, 3))
    kernel = random_kernel(rng)
    K = word_sequence(X, word_kernel=kernel, word_weights=np.full(N_WORDS, 0.5))
    expected = kernels.word_sequence(X, word_kernel=kernel, word_weights=np.full(N_WORDS, 0.5))
    np.testing.assert_allclose(K, expected, rtol=2 * tolerance(3, 16, 3))


@pytest.mark.usefixtures("narrow")
def test_is_repeatable():
    X = encode(random_images(np.random.default_rng(13), 5))
    kernel = random_kernel(np.random.default_rng(14))
    first = word_sequence(X, word_kernel=kernel)
    assert word_sequence(X, word_kernel=kernel).tobytes() == first.tobytes()


@pytest.mark.usefixtures("narrow")
def test_tables_without_room(monkeypatch):
    images = [[[0, 1, 2, 3, 4, 5], [1, 2]], [[2, 3, 4, 5, 6]], [[0, 0, 1]], [[6, 5]]]
    X = encode(images)
    expected = word_sequence(X)
    monkeypatch.setattr(FACADE, "_MOST_LINES", 8 * 6)
    np.testing.assert_allclose(word_sequence(X), expected, rtol=1e-6)
    monkeypatch.setattr(FACADE, "_MOST_LINES", 8 * 6 - 1)
    with pytest.raises(ValueError, match=r"shorter texts .* kernelcore.kernels.word_sequence"):
        word_sequence(X)


@pytest.mark.usefixtures("narrow")
def test_strings_dtype_and_out(tmp_path):
    texts = ["dog chase cat", "cat chase dog", "", "bird"]
    K = word_sequence(texts, normalize=False, match_decay=1)
    assert K.dtype == np.float64
    assert K.tolist() == [[7, 3, 0, 0], [3, 7, 0, 0], [0, 0, 0, 0], [0, 0, 0, 1]]
    out = np.memmap(tmp_path / "K.bin", np.float32, "w+", shape=(4, 4))
    options = {"normalize": False, "match_decay": 1, "dtype": np.float32}
    assert word_sequence(texts, out=out, **options) is out
    assert out.tolist() == K.tolist()
    with pytest.raises(TypeError, match="out must have dtype float64, got float32"):
        word_sequence(texts, out=out)


@pytest.mark.usefixtures("narrow")
@pytest.mark.parametrize("kernel", [None, np.zeros((3, 3))])
def test_nothing_to_compare(kernel):
    empty, wordless = encode([], 3), encode([[], [[]], [[], []]], 3)
    some = encode([[[0, 1]]], 3)
    assert word_sequence(empty, word_kernel=kernel).shape == (0, 0)
    assert word_sequence(some, empty, word_kernel=kernel).shape == (1, 0)
    assert word_sequence(empty, some, word_kernel=kernel).shape == (0, 1)
    assert (word_sequence(wordless, word_kernel=kernel) == 0).all()
    assert (word_sequence(wordless, some, word_kernel=kernel) == 0).all()
    assert (word_sequence(some, wordless, word_kernel=kernel) == 0).all()


@pytest.mark.usefixtures("narrow")
def test_progress_counts_to_the_end():
    seen = []
    X = encode([[[0, 1]]] * 11)
    word_sequence(X, X.select([0]), progress=lambda *step: seen.append(step))
    assert seen == [(done, 7) for done in range(1, 8)]  # 3 row tiles twice, and one of Y
    seen.clear()
    word_sequence(X, normalize=False, progress=lambda *step: seen.append(step))
    assert seen == [(1, 3), (2, 3), (3, 3)]


X2 = encode([[[0, 1]], [[1, 0]]], 2)


@pytest.mark.usefixtures("narrow")
@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: word_sequence("a b"), TypeError, "X must be EncodedCaptions or a list of str"),
        (lambda: word_sequence(X2, encode([], 3)), ValueError, "n_words 2 and 3"),
        (lambda: word_sequence(X2, word_kernel=np.eye(3)), ValueError, r"shape \(2, 2\)"),
        (lambda: word_sequence(X2, word_kernel=[[1, np.nan], [0, 1]]), ValueError, "finite"),
        (
            lambda: word_sequence(X2, word_weights=[1, -1]),
            ValueError,
            "word_weights must be",
        ),
        (
            lambda: word_sequence(X2, match_decay=0),
            ValueError,
            "match_decay must be a",
        ),
        (lambda: word_sequence(X2, gap_decay=1.5), ValueError, "gap_decay must be a"),
        (
            lambda: word_sequence(X2, max_length=0),
            ValueError,
            "max_length must be an",
        ),
        (lambda: word_sequence(X2, normalize=1), TypeError, "normalize must be True or False"),
        (lambda: word_sequence(X2, dtype=int), TypeError, "dtype must be float32 or float64"),
        (lambda: word_sequence(X2, match_decay=1e12), ValueError, "max_length must be small"),
        (
            lambda: word_sequence(X2, word_kernel=[[0, -1], [-1, 0]]),
            ValueError,
            "word_kernel must not give an image a negative .* at position 0",
        ),
    ],
)
def test_bad_input_is_named(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_the_example(run_examples):
    run_examples(word_sequence)
