"""A `WordKernel` itself is taken where its matrix is."""

from functools import partial

import numpy as np
import pytest
from scipy.sparse import csr_array

from kernelcore.captions import EncodedCaptions
from kernelcore.kernels import word_assignment, word_sequence, word_sequence_components
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
