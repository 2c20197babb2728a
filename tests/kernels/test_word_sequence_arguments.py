"""What a kernel of word sequences takes, and what it refuses by name."""

import numpy as np
import pytest
import scipy.sparse as sp

from kernelcore import _core
from kernelcore.captions import EncodedCaptions
from kernelcore.kernels import word_sequence, word_sequence_components
from kernelcore.kernels._texts import as_word_kernel

N_WORDS = 7


def encode(images, n_words=N_WORDS):
    return EncodedCaptions.from_lists(images, n_words=n_words)


def random_images(rng, n_images):
    """Two captions of six words each; some words are outside the vocabulary."""
    return rng.integers(-2, N_WORDS, (n_images, 2, 6)).tolist()


def test_dtype_and_out(tmp_path):
    X = encode([[[0, 1]], [[1]]], 2)
    K = word_sequence(X)
    assert K.dtype == np.float64
    out = np.memmap(tmp_path / "K.bin", np.float32, "w+", shape=(2, 2))
    for kernel in (None, np.eye(2)):
        assert word_sequence(X, word_kernel=kernel, dtype=np.float32, out=out) is out
        np.testing.assert_allclose(out, K, rtol=1e-6)
    parts = np.empty((2, 2, 3), np.float32)
    assert word_sequence_components(X, dtype=np.float32, out=parts) is parts
    with pytest.raises(TypeError, match="out must have dtype float64, got float32"):
        word_sequence(X, out=out)
    with pytest.raises(ValueError, match=r"out must have shape \(2, 2\), got \(2, 3\)"):
        word_sequence(X, out=np.empty((2, 3)))
    with pytest.raises(TypeError, match="dtype must be float32 or float64, got int64"):
        word_sequence(X, dtype=int)


def test_max_length_beyond_the_texts_adds_nothing():
    texts = ["a b c", "c b a b"]
    assert (
        word_sequence(texts, max_length=10**9).tobytes()
        == word_sequence(texts, max_length=4).tobytes()
    )
    assert (word_sequence_components(texts, max_length=6)[..., 4:] == 0).all()


@pytest.mark.parametrize("kernel", [None, np.zeros((3, 3))])
def test_nothing_to_compare(kernel):
    empty, wordless = encode([], 3), encode([[], [[]], [[], []]], 3)
    some = encode([[[0, 1]]], 3)
    assert word_sequence(empty, word_kernel=kernel).shape == (0, 0)
    assert word_sequence(some, empty, word_kernel=kernel).shape == (1, 0)
    assert word_sequence(empty, some, word_kernel=kernel).shape == (0, 1)
    assert (word_sequence(wordless, word_kernel=kernel) == 0).all()
    assert (word_sequence(wordless, some, word_kernel=kernel) == 0).all()
    assert (word_sequence_components(some, wordless, word_kernel=kernel) == 0).all()


X2 = encode([[[0, 1]]], 2)
KAPPA = np.eye(2)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: word_sequence("a b"),
            TypeError,
            "X must be EncodedCaptions or a list",
        ),
        (
            lambda: word_sequence([["a"], [1]]),
            TypeError,
            "X must be EncodedCaptions or a list of",
        ),
        (
            lambda: word_sequence(["a"], X2),
            TypeError,
            "both be texts, got list and Enc",
        ),
        (
            lambda: word_sequence(X2, ["a"]),
            TypeError,
            "both be .*EncodedCaptions and list",
        ),
        (lambda: word_sequence(X2, encode([], 3)), ValueError, "n_words 2 and 3"),
        (
            lambda: word_sequence(["a"], word_kernel=KAPPA),
            ValueError,
            r"word_kernel must have shape \(0, 0\)",
        ),
        (lambda: word_sequence(X2, word_kernel=np.eye(3)), ValueError, r"shape \(2, 2\), one"),
        (lambda: word_sequence(X2, word_kernel=sp.eye_array(3)), ValueError, r"got \(3, 3\)"),
        (lambda: word_sequence(X2, word_kernel="lin"), TypeError, "word_kernel must hold real"),
        (
            lambda: word_sequence(X2, word_kernel=[["a", "b"], ["c", "d"]]),
            TypeError,
            "word_kernel must hold real numbers",
        ),
        (
            lambda: word_sequence(X2, word_kernel=[[1, 0.5], [0.2, 1]]),
            ValueError,
            "word_kernel must be symmetric, got entries that differ by 0.3",
        ),
        (
            lambda: word_sequence(X2, word_kernel=sp.csr_array([[1, 0.5], [0, 1.0]])),
            ValueError,
            "word_kernel must be symmetric, got entries that differ by 0.5",
        ),
        (
            lambda: word_sequence(X2, word_kernel=[[1, np.nan], [np.nan, 1]]),
            ValueError,
            "word_kernel must be finite",
        ),
        (
            lambda: word_sequence(X2, word_kernel=sp.csr_array([[np.inf, 0], [0, 1.0]])),
            ValueError,
            "word_kernel must be finite",
        ),
        (
            lambda: word_sequence(X2, word_kernel=[[1e300, 0], [0, 1]]),
            ValueError,
            r"word_kernel must fit into float32, got a value of 1e\+300",
        ),
        (
            lambda: word_sequence(X2, word_kernel=np.eye(2) * 1e20),
            ValueError,
            "word_kernel and match_decay must leave each image a finite",
        ),
        (
            lambda: word_sequence(X2, word_weights=[1, 2, 3]),
            ValueError,
            r"word_weights must have one entry per word \(2\), got 3",
        ),
        (lambda: word_sequence(X2, word_weights=[1, -1]), ValueError, "must be non-negative"),
        (lambda: word_sequence(X2, unknown_weight=-1), ValueError, "unknown_weight must be"),
        (lambda: word_sequence(X2, max_length=0), ValueError, "max_length must be an integer"),
        (lambda: word_sequence(X2, max_length=1.5), TypeError, "max_length must be an integer"),
        (
            lambda: word_sequence(X2, match_decay=0),
            ValueError,
            "match_decay must be a number >",
        ),
        (
            lambda: word_sequence(X2, gap_decay=1.1),
            ValueError,
            "gap_decay must be a number <= 1",
        ),
        (lambda: word_sequence(X2, gap_decay="no"), TypeError, "gap_decay must be a real numb"),
        (lambda: word_sequence(X2, normalize="cosine"), TypeError, "normalize must be True or"),
        (lambda: word_sequence(X2, n_threads=0), ValueError, "n_threads must be an integer"),
    ],
)
def test_bad_input_is_named(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_the_core_converts_nothing():
    words, captions_, images_ = (
        np.array([0, 1], np.int32),
        np.array([0, 2]),
        np.array([0, 1]),
    )
    scale, out = np.ones(2, np.float32), np.empty((1, 1))

    def call(X, sparse=None, result=out):
        _core.word_sequence(X, X, scale, None, sparse, 3, 1.0, False, True, result, 1, None)

    call((words, captions_, images_))
    assert out[0, 0] == 1
    for wrong in (
        (words.astype(np.int64), captions_, images_),
        (words, captions_.astype(np.int32), images_),
        ([0, 1], captions_, images_),
    ):
        with pytest.raises(TypeError):
            call(wrong)
    with pytest.raises(ValueError, match="offsets must end where"):
        call((words, np.array([0, 1]), images_))
    with pytest.raises(ValueError, match="image offsets must end where"):
        call((words, captions_, np.array([0, 2])))
    with pytest.raises(ValueError, match="wrong shape"):
        call((words, captions_, images_), result=np.empty((1, 2)))


@pytest.mark.parametrize("soft", [True, False])
def test_progress_counts_to_the_end(soft):
    seen = []
    X = encode(random_images(np.random.default_rng(19), 300))
    kernel = np.eye(N_WORDS) if soft else None
    word_sequence(X, word_kernel=kernel, n_threads=1, progress=lambda *step: seen.append(step))
    assert seen[-1][0] == seen[-1][1] > 1
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    assert len({total for _, total in seen}) == 1


@pytest.mark.parametrize("soft", [True, False])
def test_interruption_leaves_the_call(soft):
    def interrupt(done, total):
        raise KeyboardInterrupt

    X = encode(random_images(np.random.default_rng(20), 300))
    kernel = np.eye(N_WORDS) if soft else None
    # With two threads the other one may finish before this one asks.
    with pytest.raises(KeyboardInterrupt):
        word_sequence(X, word_kernel=kernel, n_threads=1, progress=interrupt)


def test_read_only_strided_and_swapped_word_kernels():
    rng = np.random.default_rng(21)
    X = encode(random_images(rng, 20))
    half = rng.random((N_WORDS, N_WORDS), np.float32)
    kernel = half + half.T
    expected = word_sequence(X, word_kernel=kernel)
    for changed in (
        np.asfortranarray(kernel),
        kernel.astype(">f4"),
        kernel.astype(np.float64),
        kernel.repeat(2, 0).repeat(2, 1)[::2, ::2],
        kernel.tolist(),
        sp.csr_array(kernel.astype(np.float64)),
    ):
        np.testing.assert_array_equal(word_sequence(X, word_kernel=changed), expected)
    kernel.flags.writeable = False
    np.testing.assert_array_equal(word_sequence(X, word_kernel=kernel), expected)
    twice = sp.coo_array((np.full(4, 0.5), ([0, 0, 1, 1], [0, 0, 1, 1])), shape=(7, 7))
    before = twice.nnz
    word_sequence(X, word_kernel=twice)
    assert twice.nnz == before


@pytest.mark.parametrize(("n_words", "is_dense"), [(15, True), (16, False), (40, False)])
def test_a_kernel_is_dense_if_more_than_a_sixteenth_of_its_entries_are_there(n_words, is_dense):
    _, dense, sparse, largest = as_word_kernel(2 * sp.eye_array(n_words), n_words)
    assert (dense is not None) == is_dense
    assert (sparse is None) == is_dense
    assert largest == 2


@pytest.mark.parametrize("n_words", [10, 40])
def test_a_checked_kernel_gives_what_its_matrix_gives(n_words):
    matrix = sp.csr_array(sp.eye_array(n_words) + sp.eye_array(n_words, k=1) / 2)
    matrix = (matrix + matrix.T) / 2
    captions = encode([[[0, 1, 2]], [[1, 5]]], n_words)
    checked = as_word_kernel(matrix, n_words)
    expected = word_sequence(captions, word_kernel=matrix)
    np.testing.assert_array_equal(word_sequence(captions, word_kernel=checked), expected)
    with pytest.raises(ValueError, match=r"word_kernel must have shape \(6, 6\)"):
        word_sequence(encode([[[0, 1]]], 6), word_kernel=checked)
