"""Forms of the word kernel that the text kernels take."""

from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
from refusals import refuses
from scipy.sparse import csr_array

from kernelcore.captions import EncodedCaptions
from kernelcore.kernels import word_assignment, word_sequence, word_sequence_components
from kernelcore.kernels._texts import as_word_kernel
from kernelcore.lexical import WordKernel

CAPTIONS = EncodedCaptions.from_lists([[[0, 1]], [[1, 2]], [[2, 0, -3]]], n_words=3)
MATRIX = [[1, 0.5, 0], [0.5, 1, 0], [0, 0, 1]]


@pytest.mark.parametrize("matrix", [np.array(MATRIX), csr_array(MATRIX)])
@pytest.mark.parametrize(
    "function",
    [partial(word_sequence, max_length=2), word_assignment, word_sequence_components],
)
def test_a_word_kernel_is_its_matrix(function, matrix):
    kernel = WordKernel(["bike", "cycle", "dog"], matrix)
    found, expected = (function(CAPTIONS, word_kernel=own) for own in (kernel, kernel.matrix))
    np.testing.assert_array_equal(found, expected)
    small = WordKernel(["bike"], [[1]])
    refuses(ValueError, r"word_kernel .* \(3, 3\)", function, CAPTIONS, word_kernel=small)


def test_texts_have_no_word_kernel():
    for function in (word_sequence, word_assignment):
        refuses(ValueError, r"word_kernel .* \(0, 0\)", function, ["a"], word_kernel=np.eye(1))


def test_a_sparse_kernel_with_repeated_entries_is_left_alone():
    twice = sp.coo_array((np.full(4, 0.5), ([0, 0, 1, 1], [0, 0, 1, 1])), shape=(3, 3))
    K = word_sequence(CAPTIONS, word_kernel=twice)
    np.testing.assert_array_equal(K, word_sequence(CAPTIONS, word_kernel=twice.toarray()))
    assert twice.nnz == 4


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
    captions = EncodedCaptions.from_lists([[[0, 1, 2]], [[1, 5]]], n_words=n_words)
    checked = as_word_kernel(matrix, n_words)
    expected = word_sequence(captions, word_kernel=matrix)
    np.testing.assert_array_equal(word_sequence(captions, word_kernel=checked), expected)
    few = EncodedCaptions.from_lists([[[0, 1]]], n_words=6)
    refuses(ValueError, r"word_kernel .* \(6, 6\)", word_sequence, few, word_kernel=checked)
