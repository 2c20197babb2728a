"""Histogram intersection against faiss, SciPy and scikit-learn.

The Gram matrix of m x n rows of d bins takes m * n * d minima: `extra_info` holds that count
and the achieved rate, so that one table compares sizes and types.
"""

import importlib.util

import numpy as np
import pytest

from kernelcore.kernels import histogram_intersection
from kernelcore.reference.histogram_intersection import (
    histogram_intersection as reference_intersection,
)

M, N, D = 1000, 1000, 13_440
SPARSE_SHAPE, DENSITY = (1000, 500, 20_000), 0.005


def inputs(dtype, rows):
    rng = np.random.default_rng(0)
    if np.dtype(dtype).kind == "u":
        counts = rng.integers(0, 5, (rows, D)).astype(dtype)
        counts[:, 0] = np.iinfo(dtype).max // 2  # the whole width of the type is needed
        return counts
    return rng.random((rows, D), np.float32).astype(dtype)


def check(X, Y, gram):
    few = slice(0, 5)
    expected = reference_intersection(X[few].astype(np.float64), Y[few].astype(np.float64))
    np.testing.assert_allclose(gram[few, few], expected, rtol=1e-4)


def group(dtype, n_threads, inputs="two inputs"):
    threads = "1 thread" if n_threads == 1 else f"{n_threads} threads"
    return f"histogram intersection, {M} x {N} x {D}, {np.dtype(dtype)}, {inputs}, {threads}"


def measure(benchmark, function, elements, rounds=3):
    result = benchmark.pedantic(function, rounds=rounds, warmup_rounds=1)
    benchmark.extra_info["elements"] = elements
    benchmark.extra_info["G_elements_per_s"] = elements / benchmark.stats["min"] / 1e9
    return result


@pytest.mark.parametrize("n_threads", [1, 2])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.uint8, np.uint16])
def test_histogram_intersection(benchmark, dtype, n_threads):
    X, Y = inputs(dtype, M), inputs(dtype, N)[::-1].copy()
    check(X, Y, histogram_intersection(X, Y))
    benchmark.group = group(dtype, n_threads)
    measure(benchmark, lambda: histogram_intersection(X, Y, n_threads=n_threads), M * N * D)


@pytest.mark.parametrize("n_threads", [1, 2])
def test_histogram_intersection_symmetric(benchmark, n_threads):
    X = inputs(np.float32, M)
    check(X, X, histogram_intersection(X))
    benchmark.group = group(np.float32, n_threads, "one input")
    measure(benchmark, lambda: histogram_intersection(X, n_threads=n_threads), M * M * D)


@pytest.mark.skipif(importlib.util.find_spec("faiss") is None, reason="faiss is not installed")
@pytest.mark.parametrize("n_threads", [1, 2])
def test_faiss_city_block(benchmark, n_threads):
    import faiss

    X, Y = inputs(np.float32, M), inputs(np.float32, N)[::-1].copy()
    mass = X.sum(1)[:, None] + Y.sum(1)
    faiss.omp_set_num_threads(n_threads)

    def city_block():
        return faiss.pairwise_distances(X, Y, metric=faiss.METRIC_L1)

    check(X, Y, (mass - city_block()) / 2)
    benchmark.group = group(np.float32, n_threads)
    measure(benchmark, city_block, M * N * D)


def test_scipy_city_block(benchmark):
    from scipy.spatial.distance import cdist

    X, Y = inputs(np.float64, M), inputs(np.float64, N)[::-1].copy()
    mass = X[:5].sum(1)[:, None] + Y[:5].sum(1)
    check(X, Y, (mass - cdist(X[:5], Y[:5], "cityblock")) / 2)
    benchmark.group = group(np.float64, 1)
    measure(benchmark, lambda: cdist(X, Y, "cityblock"), M * N * D, rounds=1)


@pytest.fixture(scope="module")
def sparse():
    import scipy.sparse as sp

    rng = np.random.default_rng(1)
    m, n, d = SPARSE_SHAPE
    return [
        sp.random_array((rows, d), density=DENSITY, rng=rng, format="csr") for rows in (m, n)
    ]


def sparse_group():
    m, n, d = SPARSE_SHAPE
    return f"histogram intersection, {m} x {n} x {d}, CSR of {DENSITY:.1%}, 1 thread"


def check_sparse(X, Y, gram):
    few = slice(0, 20)
    expected = reference_intersection(X[few].toarray(), Y[few].toarray())
    np.testing.assert_allclose(gram[few, few], expected, rtol=1e-9, atol=1e-12)


def test_sparse_intersection(benchmark, sparse):
    X, Y = sparse
    check_sparse(X, Y, histogram_intersection(X, Y))
    benchmark.group = sparse_group()
    benchmark.pedantic(
        lambda: histogram_intersection(X, Y, n_threads=1), rounds=10, warmup_rounds=1
    )


def test_scikit_learn_manhattan_distances(benchmark, sparse):
    from sklearn.metrics.pairwise import manhattan_distances

    X, Y = sparse
    masses = X.sum(1)[:, None] + Y.sum(1)
    benchmark.group = sparse_group()
    distances = benchmark.pedantic(lambda: manhattan_distances(X, Y), rounds=3)
    check_sparse(X, Y, (masses - distances) / 2)
