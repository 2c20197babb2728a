import numpy as np
import pytest
from scipy import sparse

from kernelcore.lexical import word_kernel


@pytest.fixture
def vectors():
    rng = np.random.default_rng(1)
    return sparse.csr_array(np.where(rng.random((20, 8)) < 0.4, rng.normal(size=(20, 8)), 0))


@pytest.mark.parametrize("block_rows", [1, 3, 19, 20, 512])
def test_blocks_do_not_show(vectors, monkeypatch, block_rows):
    words = [f"w{i}" for i in range(20)]
    index = {word: i for i, word in enumerate(words)}
    monkeypatch.setattr(word_kernel, "_BLOCK_ROWS", block_rows)
    kernel = word_kernel.cosine_kernel(words, index, vectors, -1.0).to_dense()
    dense = vectors.toarray()
    lengths = np.maximum(np.linalg.norm(dense, axis=1), 1e-300)
    expected = dense @ dense.T / np.outer(lengths, lengths)
    np.fill_diagonal(expected, 1)
    np.testing.assert_allclose(kernel, expected, atol=1e-6)
    np.testing.assert_array_equal(kernel, kernel.T)


def test_a_similarity_of_the_threshold_stays():
    vectors = sparse.csr_array(np.array([[1.0, 0.0], [2.0, 0.0], [0.0, 1.0]]))
    index = {"a": 0, "b": 1, "c": 2}
    kernel = word_kernel.cosine_kernel(index, index, vectors, 1.0)
    assert kernel.most_similar("a") == [("b", 1.0)]


def test_the_smaller_form_is_taken():
    index = {"a": 0, "b": 1, "c": 2}
    alike = sparse.csr_array(np.ones((3, 1)))
    assert isinstance(word_kernel.cosine_kernel(index, index, alike, 0.0).matrix, np.ndarray)
    apart = sparse.csr_array(np.eye(3))
    assert sparse.issparse(word_kernel.cosine_kernel(index, index, apart, 0.0).matrix)
