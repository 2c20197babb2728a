"""Sparse input is checked whole before SciPy or the core reads it."""

from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
from refusals import refuses

from kernelcore.captions import EncodedCaptions
from kernelcore.kcca import KernelColumns, LandmarkFeatures
from kernelcore.kernels import (
    gram_blocks,
    histogram_intersection,
    word_assignment,
    word_sequence,
    word_sequence_components,
)
from kernelcore.lexical import WordKernel
from kernelcore.models import NearestNeighbourRanker

N = 20
CAPTIONS = EncodedCaptions.from_lists([[[0, 1, 2]], [[3, 4], [5, 19]]], n_words=N)
WORDS = [f"w{i}" for i in range(N)]


def good(sparse_format="csr"):
    """A word kernel of so few entries that it stays sparse, and a histogram at once."""
    matrix = np.eye(N)
    matrix[0, 3] = matrix[3, 0] = 0.5
    return sp.csr_array(matrix).asformat(sparse_format)


def damage(part, at, value):
    def apply(matrix):
        getattr(matrix, part)[at] = value

    return apply


def replace(part, change):
    def apply(matrix):
        setattr(matrix, part, change(getattr(matrix, part)))

    return apply


DAMAGES = {
    "column beyond the last": damage("indices", 0, 10**9),
    "column just beyond the last": damage("indices", 0, N),
    "negative column": damage("indices", 0, -1), "far offset": damage("indptr", 1, 10**6),
    "falling offsets": damage("indptr", 2, 0), "first offset": damage("indptr", 0, 1),
    "negative offset": damage("indptr", 1, -5), "last offset": damage("indptr", -1, 10**6),
    "too few columns": replace("indices", lambda array: array[:-3]),
    "too few values": replace("data", lambda array: array[:-3]),
    "too few offsets": replace("indptr", lambda array: array[:-1]),
    "float columns": replace("indices", lambda array: array.astype(float)),
}  # fmt: skip
CALLS = {
    "matrix": lambda m: WordKernel(WORDS, m),
    "word_kernel (word_sequence)": lambda m: word_sequence(CAPTIONS, word_kernel=m),
    "word_kernel (components)": lambda m: word_sequence_components(CAPTIONS, word_kernel=m),
    "word_kernel (word_assignment)": lambda m: word_assignment(CAPTIONS, word_kernel=m),
    "X": histogram_intersection,
    "Y": partial(histogram_intersection, good()),
    "X (gram_blocks)": lambda m: list(gram_blocks(histogram_intersection, m, block_size=7)),
    "Y (gram_blocks)": lambda m: list(gram_blocks(histogram_intersection, good(), m)),
    "items": lambda m: KernelColumns.of(histogram_intersection, m),
    "X (LandmarkFeatures)": lambda m: LandmarkFeatures(histogram_intersection).fit(m),
    "images": lambda m: NearestNeighbourRanker("precomputed", "precomputed").fit(m, good()),
    "captions": lambda m: NearestNeighbourRanker("precomputed", "precomputed").fit(good(), m),
}


@pytest.mark.parametrize("what", DAMAGES)
@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("wide", [False, True], ids=["int32", "int64"])
def test_damaged_rows_are_refused(call, what, wide):
    matrix = good()
    if wide:
        matrix.indices, matrix.indptr = matrix.indices.astype(int), matrix.indptr.astype(int)
    DAMAGES[what](matrix)
    refuses((TypeError, ValueError), f"^{call.split()[0]} must", CALLS[call], matrix)


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize(
    ("sparse_format", "part"),
    [("csc", "indices"), ("csc", "indptr"), ("bsr", "indices"), ("coo", "row"), ("coo", "col")],
)
def test_other_formats_are_checked_before_they_are_converted(call, sparse_format, part):
    matrix = good(sparse_format)
    getattr(matrix, part)[1] = 10**9
    refuses(ValueError, f"^{call.split()[0]} must", CALLS[call], matrix)


@pytest.mark.parametrize("sparse_format", ["csr", "csc", "bsr", "coo", "dia", "dok", "lil"])
def test_every_sound_format_gives_the_same(sparse_format):
    given = good(sparse_format)
    expected = word_sequence(CAPTIONS, word_kernel=good().toarray())
    np.testing.assert_array_equal(word_sequence(CAPTIONS, word_kernel=given), expected)
    np.testing.assert_array_equal(WordKernel(WORDS, given).to_dense(), good().toarray())


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.uint16, np.float32, bool])
def test_unsorted_columns_and_duplicates_add_up_beyond_their_type(dtype):
    largest = np.ones(1, dtype)[0] if dtype in (bool, np.float32) else np.iinfo(dtype).max
    parts = np.full(4, largest, dtype), [2, 0, 2, 2], [0, 3, 4]
    X = sp.csr_array(parts, shape=(2, 3), copy=False)
    before = [part.copy() for part in (X.data, X.indices, X.indptr)]
    expected = histogram_intersection([[float(largest), 0, 2.0 * largest], [0, 0, largest]])
    np.testing.assert_array_equal(histogram_intersection(X), expected)
    (block,) = gram_blocks(histogram_intersection, X)
    np.testing.assert_array_equal(block.values, expected)
    for part, was in zip((X.data, X.indices, X.indptr), before, strict=True):
        np.testing.assert_array_equal(part, was)  # the caller's stays as it was
    twice = sp.coo_array((X.data[:2], ([0, 0], [1, 1])), shape=(1, 2))
    assert histogram_intersection(twice).tolist() == [[2 * float(largest)]]


@pytest.mark.parametrize("dtype", [complex, object, "U3"])
def test_values_must_be_real(dtype):
    matrix = good()
    matrix.data = matrix.data.astype(dtype)
    for name, call in CALLS.items():
        refuses(TypeError, f"^{name.split()[0]} must", call, matrix)


def test_types_mix_as_for_dense_input():
    X = sp.random_array((4, 9), density=0.3, rng=1, dtype=np.float64, format="csr")
    X = (X * 200).astype(np.uint8)
    for dtype, result in ((np.uint32, np.uint64), (np.float32, np.float64)):
        K = histogram_intersection(X, X.astype(dtype))
        dense = histogram_intersection(X.toarray(), X.toarray().astype(dtype))
        assert K.dtype == dense.dtype == result
        assert (dense == K).all()
    assert histogram_intersection(X.astype(np.int64)).dtype == np.float64
    assert histogram_intersection(X.astype(bool)).dtype == np.float64


def test_repeated_counts_must_fit_into_32_bits():
    most = np.array([2**32 - 1, 1], np.uint32)
    X = sp.csr_array((most, np.array([0, 0]), np.array([0, 2])), shape=(1, 1))
    refuses(ValueError, "X .* 4294967296", histogram_intersection, X)
