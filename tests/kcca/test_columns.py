"""Kernel columns on demand: the same factorisation without the matrix."""

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelcore.captions import EncodedCaptions
from kernelcore.images import SpatialHistograms
from kernelcore.kcca import KernelColumns, partial_gram_schmidt
from kernelcore.kernels import (
    bag_of_words,
    histogram_intersection,
    spatial_pyramid,
    word_sequence,
)
from kernelcore.reference.matching import (
    partial_gram_schmidt as reference_gram_schmidt,
)

DTYPES = [np.float32, np.float64]


def random_gram(seed, n, d, dtype):
    features = np.random.default_rng(seed).normal(size=(n, d)) * np.linspace(1.0, 0.2, d)
    return (features @ features.T).astype(dtype)


def on_demand(K, asked=None):
    def columns(indices):
        if asked is not None:
            asked.append(indices)
        return K[:, indices]

    return KernelColumns(columns, K.diagonal())


@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(1, 60),
    d=st.integers(1, 40),
    dtype=st.sampled_from(DTYPES),
    stop=st.tuples(st.sampled_from([0.0, 1e-6, 0.05, 0.5]), st.integers(1, 70)),
)
@settings(max_examples=120, deadline=None)
def test_equals_the_reference_and_the_matrix(seed, n, d, dtype, stop):
    tolerance, max_rank = stop
    K = random_gram(seed, n, d, dtype)
    asked = []
    result = partial_gram_schmidt(on_demand(K, asked), tolerance=tolerance, max_rank=max_rank)
    assert result.features.dtype == dtype
    R, pivots, _ = reference_gram_schmidt(K, tolerance=tolerance, max_rank=min(max_rank, n))
    rank = min(len(pivots), len(result.pivots), d - 1)  # the last residuals are rounding
    assert result.pivots[:rank].tolist() == pivots[:rank].tolist()
    np.testing.assert_allclose(
        result.features[:, :rank], R[:, :rank], atol=1e4 * np.finfo(dtype).eps
    )
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


def histograms():
    return np.random.default_rng(0).dirichlet(np.ones(30), 70)


def captions():
    rng = np.random.default_rng(1)
    images = [[rng.integers(0, 12, 4).tolist() for _ in range(2)] for _ in range(70)]
    return EncodedCaptions.from_lists(images, n_words=12)


def pyramids():
    return SpatialHistograms.from_finest(
        np.random.default_rng(2).integers(0, 5, (70, 16, 6)), n_levels=3
    )


@pytest.mark.parametrize(
    ("kernel", "items"),
    [
        (histogram_intersection, histograms()),
        (histogram_intersection, histograms().astype(np.float32)),
        (histogram_intersection, histograms().tolist()),
        (histogram_intersection, (histograms() * 1000).astype(np.uint16)),
        (bag_of_words, captions()),
        (word_sequence, captions()),
        (spatial_pyramid, pyramids()),
        (lambda X, Y: (X @ Y.T).toarray(), scipy.sparse.csr_array(histograms())),
    ],
    ids=["floats", "float32", "lists", "counts", "words", "sequences", "pyramids", "sparse"],
)
def test_every_kernel_gives_columns_of_its_items(kernel, items):
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


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((None, [1.0]), TypeError, "columns must be callable, got None"),
        ((len, ["a"]), TypeError, "diagonal must hold real numbers"),
        ((len, [[1.0]]), ValueError, "diagonal must be a 1-D array"),
        ((len, []), ValueError, "diagonal must have at least one element, got none"),
        ((len, [1.0, -1.0]), ValueError, "diagonal must be non-negative, got -1.0"),
        ((len, [np.nan]), ValueError, "diagonal must be finite, got nan"),
    ],
)
def test_bad_kernels(arguments, error, message):
    with pytest.raises(error, match=message):
        KernelColumns(*arguments)
    with pytest.raises(ValueError, match="at least one element"):
        KernelColumns.of(histogram_intersection, np.empty((0, 3)))


@pytest.mark.parametrize(
    ("values", "error", "message"),
    [
        (np.ones((3, 2)), ValueError, r"must have shape \(3, 1\) for 1 indices, got \(3, 2\)"),
        (np.ones(3), ValueError, "must be a 2-D array"),
        (np.full((3, 1), np.inf), ValueError, "must be finite, got inf"),
        (np.full((3, 1), "a"), TypeError, "must hold real numbers"),
    ],
)
def test_bad_columns(values, error, message):
    with pytest.raises(error, match=rf"columns\(indices\) {message}"):
        partial_gram_schmidt(KernelColumns(lambda _: values, np.ones(3)), max_rank=2)


def test_columns_need_a_rank():
    with pytest.raises(ValueError, match="max_rank must be given for columns"):
        partial_gram_schmidt(on_demand(np.eye(3)))
