from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.metrics.pairwise import cosine_similarity

from kernelcore.captions import EncodedCaptions, Vocabulary
from kernelcore.kernels import bag_of_words, bag_of_words_f1

N_WORDS = 4
WEIGHTS = np.array([1.0, 0.5, 2.0, 0.0])
UNKNOWN_WEIGHT = 3.0
FUNCTIONS = [bag_of_words, bag_of_words_f1]

images = st.lists(
    st.lists(st.lists(st.sampled_from([0, 1, 2, 3, -5, -9]), max_size=6), max_size=3),
    max_size=5,
)


def encode(nested):
    return EncodedCaptions.from_lists(nested, n_words=N_WORDS)


def bags(nested):
    return [Counter(word for caption in image for word in caption) for image in nested]


def weight(word):
    return WEIGHTS[word] if word >= 0 else UNKNOWN_WEIGHT


def slow_cosine(a, b):
    def product(u, v):
        return sum(weight(w) ** 2 * u[w] * v[w] for w in u)

    scale = np.sqrt(product(a, a) * product(b, b))
    return product(a, b) / scale if scale else 0.0


def slow_f1(a, b):
    overlap = sum(weight(w) * min(a[w], b[w]) for w in a)
    if not overlap:
        return 0.0
    precision = overlap / sum(weight(w) * a[w] for w in a)
    recall = overlap / sum(weight(w) * b[w] for w in b)
    return 2 * precision * recall / (precision + recall)


@pytest.mark.parametrize(
    ("function", "slow"), [(bag_of_words, slow_cosine), (bag_of_words_f1, slow_f1)]
)
@given(X=images, Y=images)
@settings(max_examples=150, deadline=None)
def test_equals_the_definition(function, slow, X, Y):
    options = {"word_weights": WEIGHTS, "unknown_weight": UNKNOWN_WEIGHT}
    result = function(encode(X), encode(Y), **options)
    expected = [[slow(a, b) for b in bags(Y)] for a in bags(X)]
    np.testing.assert_allclose(result, np.reshape(expected, (len(X), len(Y))), atol=1e-14)
    symmetric = function(encode(X), **options)
    assert (symmetric == symmetric.T).all()
    assert set(symmetric.diagonal()) <= {0.0, 1.0}
    assert not result.size or (result.min() >= 0.0 and result.max() <= 1.0 + 1e-15)


def test_cosine_equals_scikit_learn():
    texts = ["a dog runs on grass", "two dog dog run", "grass and sky", "sky"]
    counts = CountVectorizer(token_pattern=r"\w+").fit_transform(texts)
    vocabulary = Vocabulary.from_captions([[text.split()] for text in texts])
    captions = vocabulary.encode([[text.split()] for text in texts])
    np.testing.assert_allclose(bag_of_words(captions), cosine_similarity(counts), atol=1e-15)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_captions_of_an_image_are_merged(function):
    five = encode([[[0, 1], [1, 2], [0]], [[2], [3]]])
    merged = encode([[[0, 1, 1, 2, 0]], [[2, 3]]])
    np.testing.assert_array_equal(function(five), function(merged))
    assert function(five.caption_as_image()).shape == (5, 5)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_unknown_words_match_themselves_alone(function):
    result = function(encode([[[-7]], [[-8]], [[0]]]), encode([[[-7, -7]]]))
    assert (result[:, 0] > 0).tolist() == [True, False, False]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_images_without_words_are_like_nothing(function):
    result = function(encode([[], [[]], [[0]]]))
    np.testing.assert_array_equal(result, [[0, 0, 0], [0, 0, 0], [0, 0, 1]])
    assert function(encode([])).shape == (0, 0)
    assert function(encode([[[0]]]), encode([])).shape == (1, 0)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_words_of_weight_zero_do_not_count(function):
    result = function(encode([[[3]], [[3, 0]], [[0]]]), word_weights=WEIGHTS)
    np.testing.assert_array_equal(result, [[0, 0, 0], [0, 1, 1], [0, 1, 1]])


@pytest.mark.parametrize("function", FUNCTIONS)
def test_default_weights_are_one(function):
    captions = encode([[[0, 1, -3]], [[1, -3, 2]]])
    np.testing.assert_array_equal(
        function(captions), function(captions, word_weights=np.ones(N_WORDS), unknown_weight=1)
    )


@pytest.mark.parametrize("function", FUNCTIONS)
def test_dtype_and_out(function):
    captions = encode([[[0, 1]], [[1, 2]]])
    expected = function(captions)
    single = function(captions, dtype=np.float32)
    assert single.dtype == np.float32
    np.testing.assert_array_equal(single, expected.astype(np.float32))
    out = np.empty((2, 2), np.float32)
    assert function(captions, dtype=np.float32, out=out) is out
    np.testing.assert_array_equal(out, single)
    with pytest.raises(TypeError, match="out must have dtype float64"):
        function(captions, out=out)
    with pytest.raises(TypeError, match="dtype must be float32 or float64, got int64"):
        function(captions, dtype=int)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_more_rows_than_one_block(function):
    rng = np.random.default_rng(0)
    captions = encode([[rng.integers(0, 4, 3).tolist()] for _ in range(1500)])
    result = function(captions)
    rows = [0, 698, 699, 700, 1499]
    np.testing.assert_array_equal(result[rows], function(captions.select(rows), captions))


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [1, 3, 4, 5, 17, 64, 66, 131])
def test_mirrored_half_equals_the_whole(function, dtype, n, isa):
    """A second object with the same captions is compared in full."""
    words = np.random.default_rng(n).integers(0, 4, (n, 5)).tolist()
    X, Y = (encode([[row] for row in words]) for _ in range(2))
    whole = function(X, Y, word_weights=WEIGHTS, dtype=dtype, n_threads=1)
    for n_threads in (1, 3):
        half = function(X, word_weights=WEIGHTS, dtype=dtype, n_threads=n_threads)
        np.testing.assert_array_equal(half, whole)


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"word_weights": [1.0, 2.0]}, ValueError, r"one entry per word \(4\), got 2"),
        ({"word_weights": [1, 1, 1, -1]}, ValueError, "weights must be non-negative"),
        ({"word_weights": [1, 1, np.nan, 1]}, ValueError, "weights must be finite"),
        ({"word_weights": ["a"] * 4}, TypeError, "weights must hold real numbers"),
        ({"unknown_weight": -1.0}, ValueError, "unknown_weight must be a number >= 0"),
        ({"unknown_weight": "1"}, TypeError, "unknown_weight must be a real number"),
    ],
)
def test_bad_options(function, options, error, message):
    with pytest.raises(error, match=message):
        function(encode([[[0]]]), **options)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_bad_captions(function):
    with pytest.raises(TypeError, match="X must be EncodedCaptions or a list of texts"):
        function([[0]])
    with pytest.raises(TypeError, match="Y must be EncodedCaptions or a list of texts"):
        function(encode([[[0]]]), "dog")
    other = EncodedCaptions.from_lists([[[0]]], n_words=7)
    with pytest.raises(ValueError, match="same vocabulary, got n_words 4 and 7"):
        function(encode([[[0]]]), other)


@pytest.mark.realdata
def test_five_captions_find_their_sixth_neighbour(data_root):
    """A caption is nearer to the other captions of its own photo than to most others."""
    texts: dict[str, list[list[str]]] = {}
    token_file = data_root / "flickr8k" / "Flickr8k.lemma.token.txt"
    for line in token_file.read_text(encoding="utf-8").splitlines()[:1000]:
        image, text = line.split("\t")
        texts.setdefault(image.split("#")[0], []).append(text.lower().split())
    captions = list(texts.values())
    vocabulary = Vocabulary.from_captions([image[:-1] for image in captions])
    last = vocabulary.encode([image[-1:] for image in captions])
    others = vocabulary.encode([image[:-1] for image in captions])
    for function in FUNCTIONS:
        similarity = function(
            last, others, word_weights=vocabulary.idf(), unknown_weight=vocabulary.unknown_idf
        )
        own = similarity.diagonal()[:, np.newaxis]
        assert np.median((similarity > own).sum(axis=1)) <= 2
