"""Kernels over words: their forms, lookups, cosines, and what combines them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refuses
from scipy import sparse

from kernelcore._store import save_tensors
from kernelcore.lexical import WordKernel, combine, word_kernel

WORDS = ["bike", "cycle", "dog", "cat"]
ROWS = [1, 0.5, 0, 0.25], [0.5, 1, 0, 0.25], [0, 0, 1, -0.5], [0.25, 0.25, -0.5, 1]
MATRIX = np.array(ROWS, np.float32)


@pytest.fixture(params=["dense", "sparse"])
def kernel(request):
    matrix = MATRIX if request.param == "dense" else sparse.csr_array(MATRIX)
    return WordKernel(WORDS, matrix)


def test_the_form_it_was_given_in_is_kept(kernel):
    np.testing.assert_array_equal(kernel.to_dense(), MATRIX)
    np.testing.assert_array_equal(kernel.to_sparse().toarray(), MATRIX)
    assert kernel.matrix.dtype == np.float32
    if sparse.issparse(kernel.matrix):
        assert isinstance(kernel.matrix, sparse.csr_array)
        assert kernel.matrix.nnz == np.count_nonzero(MATRIX)
        assert kernel.matrix.has_sorted_indices
    assert len(kernel) == 4


def test_most_similar(kernel):
    assert kernel.most_similar("cat") == [("bike", 0.25), ("cycle", 0.25)]
    assert kernel.most_similar("bike", 1) == [("cycle", 0.5)]
    assert kernel.most_similar("dog", 3) == []
    np.testing.assert_array_equal(kernel.to_dense(), MATRIX)


def test_words_outside_match_themselves_only(kernel):
    assert kernel.similarity("dog", "cat") == kernel.similarity("cat", "dog") == -0.5
    assert kernel.similarity("emu", "emu") == 1
    assert kernel.similarity("emu", "cat") == kernel.similarity("cat", "emu") == 0


def test_over_other_words(kernel):
    other = kernel.over(["cat", "emu", "bike"])
    assert other.words == ("cat", "emu", "bike")
    expected = [[1, 0, 0.25], [0, 1, 0], [0.25, 0, 1]]
    np.testing.assert_array_equal(other.to_dense(), expected)
    assert sparse.issparse(other.matrix) == sparse.issparse(kernel.matrix)
    np.testing.assert_array_equal(kernel.over(["emu"]).to_dense(), [[1]])
    assert kernel.over([]).to_dense().shape == (0, 0)


@given(st.permutations(WORDS))
def test_over_the_same_words_permutes(words):
    there_and_back = WordKernel(WORDS, MATRIX).over(words).over(WORDS)
    np.testing.assert_array_equal(there_and_back.matrix, MATRIX)


@pytest.mark.parametrize("convert", [np.asarray, sparse.csr_array, sparse.csc_matrix])
def test_rounding_errors_are_rounded_away(convert):
    almost = np.array([[1 + 1e-6, 0.3 + 2e-6], [0.3, 1 - 1e-6]])
    exact = WordKernel(["a", "b"], convert(almost)).to_dense()
    np.testing.assert_array_equal(exact, exact.T)
    np.testing.assert_array_equal(exact.diagonal(), [1, 1])
    np.testing.assert_allclose(exact[0, 1], 0.300001, rtol=1e-6)
    nearly_one = WordKernel(["a", "b"], convert(np.full((2, 2), 1 + 1e-6)))
    assert nearly_one.similarity("a", "b") == 1


def test_layouts_and_dtypes():
    for matrix in (np.asfortranarray(MATRIX), MATRIX.astype(">f8"), MATRIX.tolist()):
        np.testing.assert_array_equal(WordKernel(WORDS, matrix).matrix, MATRIX)
    kernel = WordKernel(["a", "b"], np.eye(2, dtype=int))
    np.testing.assert_array_equal(kernel.matrix, np.eye(2))


@pytest.mark.parametrize(
    ("part", "values"),
    [
        *(("indices", [10**9, 1, 2]), ("indices", [-1, 1, 2]), ("indptr", [0, 1, 2])),
        *(("indptr", [0, 10**6, 3, 3]), ("indptr", [0, 2, 1, 3]), ("indptr", [1, 1, 2, 3])),
        ("indptr", [0, 2**31 - 1, -2, 3]),  # no difference is negative in 32 bits
    ],
)
def test_damaged_indices_are_refused_before_they_are_used(part, values, tmp_path):
    path, matrix = tmp_path / "kernel", sparse.csr_array(np.eye(3, dtype=np.float32))
    parts = {name: getattr(matrix, name) for name in ("data", "indices", "indptr")}
    parts[part] = np.array(values, np.int32)
    save_tensors(path, "word kernel", parts, {"words": ["a", "b", "c"]})
    refuses(ValueError, str(path), WordKernel.load, path)


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


def test_a_similarity_of_the_threshold_stays_and_the_smaller_form_is_taken():
    index = {"a": 0, "b": 1, "c": 2}
    vectors = sparse.csr_array(np.array([[1.0, 0.0], [2.0, 0.0], [0.0, 1.0]]))
    kernel = word_kernel.cosine_kernel(index, index, vectors, 1.0)
    assert kernel.most_similar("a") == [("b", 1.0)]
    alike = sparse.csr_array(np.ones((3, 1)))
    assert isinstance(word_kernel.cosine_kernel(index, index, alike, 0.0).matrix, np.ndarray)
    apart = sparse.csr_array(np.eye(3))
    assert sparse.issparse(word_kernel.cosine_kernel(index, index, apart, 0.0).matrix)


FORMS = [np.asarray, sparse.csr_array]


def of_three(ab, ac, bc, form=np.asarray):
    return WordKernel(["a", "b", "c"], form(np.array([[1, ab, ac], [ab, 1, bc], [ac, bc, 1]])))


def pairs(result):
    return [result.similarity(*pair) for pair in ("ab", "ac", "bc")]


@pytest.mark.parametrize("first", FORMS)
@pytest.mark.parametrize("second", FORMS)
def test_max_and_mean_of_several(first, second):
    one, two = of_three(0.5, 0, 0.25, first), of_three(0.25, 0, 0.75, second)
    assert pairs(combine(one, two)) == [0.5, 0, 0.75]
    assert pairs(combine(one, two, how="mean")) == [0.375, 0, 0.5]
    both_sparse = first is second is sparse.csr_array
    assert sparse.issparse(combine(one, two).matrix) == both_sparse
    assert pairs(combine(one, two, one)) == [0.5, 0, 0.75]
    assert pairs(combine(one, two, one, how="mean")) == pytest.approx([1.25 / 3, 0, 1.25 / 3])


@pytest.mark.parametrize("form", FORMS)
def test_the_threshold_cuts_without_touching_the_kernel(form):
    one = of_three(0.5, 0.25, 0.75, form)
    assert pairs(combine(one, threshold=0.5)) == [0.5, 0, 0.75]
    assert pairs(one) == [0.5, 0.25, 0.75]
