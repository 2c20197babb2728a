"""Partial Gram-Schmidt of matrices and of columns on demand: the reference and SciPy."""

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelcore import kernels
from kernelcore._threads import one_blas_thread
from kernelcore.captions import EncodedCaptions
from kernelcore.images import SpatialHistograms
from kernelcore.kcca import KernelColumns, gram_schmidt, partial_gram_schmidt
from kernelcore.reference.matching import partial_gram_schmidt as reference_gram_schmidt

DTYPES = [np.float32, np.float64]


def random_gram(seed, n, d, dtype=np.float64):
    features = np.random.default_rng(seed).normal(size=(n, d)) * np.linspace(1.0, 0.2, d)
    return (features @ features.T).astype(dtype)


def on_demand(K, asked=None):
    def columns(indices):
        if asked is not None:
            asked.append(indices)
        return K[:, indices]

    return KernelColumns(columns, K.diagonal())


@given(
    seed=st.integers(0, 2**32 - 1), n=st.integers(1, 60), d=st.integers(1, 40),
    dtype=st.sampled_from(DTYPES),
    stop=st.tuples(st.sampled_from([0.0, 1e-6, 0.05, 0.5]), st.integers(1, 70)),
)  # fmt: skip
@settings(max_examples=120, deadline=None)
def test_a_matrix_and_its_columns_give_the_reference(seed, n, d, dtype, stop):
    tolerance, max_rank = stop
    K, asked = random_gram(seed, n, d, dtype), []
    result = partial_gram_schmidt(on_demand(K, asked), tolerance=tolerance, max_rank=max_rank)
    assert result.features.dtype == dtype
    R, pivots, _ = reference_gram_schmidt(K, tolerance=tolerance, max_rank=min(max_rank, n))
    # Whether a residual near the rounding still counts may differ, the others may not.
    rank = min(len(pivots), len(result.pivots), d - 1)
    slack = 1e4 * np.finfo(dtype).eps
    assert result.pivots[:rank].tolist() == pivots[:rank].tolist()
    np.testing.assert_allclose(result.features[:, :rank], R[:, :rank], atol=slack)
    found = result.features @ result.features.T
    np.testing.assert_allclose(found, R @ R.T, atol=slack * max(1.0, K.max()))
    whole = partial_gram_schmidt(K, tolerance=tolerance, max_rank=max_rank)
    assert whole.pivots.tolist() == result.pivots.tolist()
    np.testing.assert_array_equal(whole.features, result.features)
    assert sum(map(len, asked)) <= 2 * len(result.pivots) + 1
    assert all(len(set(indices)) == len(indices) <= 64 for indices in asked)


def test_blocks_grow_where_candidates_serve_and_shrink_where_they_do_not():
    asked = []
    partial_gram_schmidt(on_demand(np.eye(400), asked), tolerance=0.0, max_rank=300)
    assert list(map(len, asked)) == [1, 2, 4, 8, 16, 32, 64, 64, 64, 45]
    twins = np.kron(np.diag(np.arange(20.0, 0.0, -1.0)), np.ones((6, 6)))
    asked.clear()
    result = partial_gram_schmidt(on_demand(twins, asked), tolerance=0.0, max_rank=20)
    assert result.pivots.tolist() == list(range(0, 120, 6))
    assert max(map(len, asked)) <= 2


HISTOGRAMS = np.random.default_rng(0).dirichlet(np.ones(30), 70)
WORDS = np.random.default_rng(1).integers(0, 12, (70, 2, 4)).tolist()
CAPTIONS = EncodedCaptions.from_lists(WORDS, n_words=12)
CELLS = np.random.default_rng(2).integers(0, 5, (70, 16, 6))
KERNELS = {
    "floats": (kernels.histogram_intersection, HISTOGRAMS),
    "float32": (kernels.histogram_intersection, HISTOGRAMS.astype(np.float32)),
    "lists": (kernels.histogram_intersection, HISTOGRAMS.tolist()),
    "counts": (kernels.histogram_intersection, (HISTOGRAMS * 1000).astype(np.uint16)),
    "words": (kernels.bag_of_words, CAPTIONS),
    "sequences": (kernels.word_sequence, CAPTIONS),
    "pyramids": (kernels.spatial_pyramid, SpatialHistograms.from_finest(CELLS, n_levels=3)),
    "sparse": (lambda X, Y: (X @ Y.T).toarray(), scipy.sparse.csr_array(HISTOGRAMS)),
}


@pytest.mark.parametrize("name", KERNELS)
def test_every_kernel_gives_columns_of_its_items(name):
    kernel, items = KERNELS[name]
    K = KernelColumns.of(kernel, items)
    assert len(K) == 70
    held = items if not isinstance(items, list) else np.array(items)
    whole = np.asarray(kernel(held, held), dtype=K.diagonal.dtype)
    assert K.diagonal.dtype == (np.float32 if whole.dtype == np.float32 else np.float64)
    np.testing.assert_allclose(K.diagonal, whole.diagonal(), rtol=1e-6)
    np.testing.assert_allclose(K.columns([5, 69, 0]), whole[:, [5, 69, 0]], rtol=1e-6)
    result = partial_gram_schmidt(K, tolerance=0.0, max_rank=15)
    expected = partial_gram_schmidt(whole, tolerance=0.0, max_rank=15)
    assert result.pivots.tolist() == expected.pivots.tolist()
    slack = 1e4 * np.finfo(whole.dtype).eps * whole.max()
    np.testing.assert_allclose(result.features, expected.features, atol=slack)


@pytest.mark.parametrize("dtype", DTYPES)
def test_full_rank_is_a_pivoted_cholesky_decomposition(dtype):
    K = random_gram(1, 40, 60, dtype)
    result = partial_gram_schmidt(K, tolerance=0.0)
    assert sorted(result.pivots) == list(range(40))
    triangle = result.features[result.pivots]
    np.testing.assert_array_equal(triangle, np.tril(triangle))
    pivoted = K[np.ix_(result.pivots, result.pivots)]
    expected, slack = scipy.linalg.cholesky(pivoted, lower=True), 1e3 * np.finfo(dtype).eps
    np.testing.assert_allclose(triangle, expected, atol=slack)
    assert (np.diff(triangle.diagonal()) <= 0).all()
    np.testing.assert_array_equal(result.residual, 0.0)


def test_pivots_ranks_and_residuals_by_hand():
    tied = partial_gram_schmidt(np.diag([1.0, 3.0, 2.0, 3.0]), tolerance=0.0)
    assert tied.pivots.tolist() == [1, 3, 2, 0]
    K = np.diag([8.0, 1.0, 0.75, 0.25])
    for tolerance, rank in [(0.2, 1), (0.19, 2), (0.1, 2), (0.099, 3), (0.0, 4), (1.0, 0)]:
        result = partial_gram_schmidt(K, tolerance=tolerance)
        assert len(result.pivots) == rank
        assert result.residual.sum() <= tolerance * K.trace()
    for dtype in DTYPES:
        degenerate = random_gram(2, 50, 7, dtype)
        assert partial_gram_schmidt(degenerate, tolerance=0.0).pivots.size == 7
    assert partial_gram_schmidt(np.zeros((3, 3)), tolerance=0.0).pivots.size == 0
    K = random_gram(3, 30, 20)
    result = partial_gram_schmidt(K, max_rank=8)
    left = (K - result.features @ result.features.T).diagonal()
    np.testing.assert_allclose(result.residual, left, atol=1e-12)
    indefinite = partial_gram_schmidt(np.diag([2.0, -1.0]), tolerance=0.0)
    np.testing.assert_array_equal(indefinite.features, [[np.sqrt(2.0)], [0.0]])


def test_every_layout_gives_the_same():
    K = random_gram(7, 20, 5)
    expected = partial_gram_schmidt(K).features
    for other in (np.asfortranarray(K), K.astype(">f8"), np.repeat(K, 2, axis=0)[::2]):
        other.flags.writeable = False
        np.testing.assert_array_equal(partial_gram_schmidt(other).features, expected)
    np.testing.assert_array_equal(partial_gram_schmidt(K.tolist()).features, expected)


@pytest.mark.parametrize("dtype", DTYPES)
def test_pieces_of_a_product_have_the_same_bits_on_any_number_of_threads(dtype):
    rng = np.random.default_rng(1)
    features = rng.normal(size=(130, 2 * gram_schmidt._PANEL + 77)).astype(dtype)
    block = rng.normal(size=(64, features.shape[1])).astype(dtype)
    candidates = rng.permutation(features.shape[1])[:64]
    pieces = {}
    for n_threads in (1, 2, 3):
        product = block.copy()
        with one_blas_thread():
            gram_schmidt._subtract_product(product, features, candidates, n_threads)
        pieces[product.tobytes()] = product
    assert len(pieces) == 1
    whole = block - features[:, candidates].T.astype(float) @ features
    np.testing.assert_allclose(product, whole, rtol=0, atol=2000 * np.finfo(dtype).eps)


@pytest.mark.parametrize("most", [2**53, 1, 4])
def test_candidates_are_those_of_a_stable_sort(most):
    residual = np.random.default_rng(2).integers(0, most, 500).astype(float)
    for count in (1, 2, 64, 499, 500):
        expected = np.argsort(-residual, kind="stable")[:count]
        np.testing.assert_array_equal(gram_schmidt._largest(residual, count), expected)
