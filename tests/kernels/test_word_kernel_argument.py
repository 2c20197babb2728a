"""Forms of the word kernel that the text kernels take."""

from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse import csr_array

from kernelcore import _core
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
    np.testing.assert_array_equal(
        function(CAPTIONS, word_kernel=kernel), function(CAPTIONS, word_kernel=kernel.matrix)
    )
    small = WordKernel(["bike"], [[1]])
    with pytest.raises(ValueError, match=r"word_kernel must have shape \(3, 3\)"):
        function(CAPTIONS, word_kernel=small)


def test_texts_have_no_word_kernel():
    for function in (word_sequence, word_assignment):
        with pytest.raises(ValueError, match=r"word_kernel must have shape \(0, 0\)"):
            function(["a"], word_kernel=np.eye(1))


def test_a_sparse_kernel_with_repeated_entries_is_left_alone():
    twice = sp.coo_array((np.full(4, 0.5), ([0, 0, 1, 1], [0, 0, 1, 1])), shape=(3, 3))
    K = word_sequence(CAPTIONS, word_kernel=twice)
    np.testing.assert_array_equal(K, word_sequence(CAPTIONS, word_kernel=twice.toarray()))
    assert twice.nnz == 4


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
    with pytest.raises(ValueError, match=r"word_kernel must have shape \(6, 6\)"):
        word_sequence(EncodedCaptions.from_lists([[[0, 1]]], n_words=6), word_kernel=checked)
