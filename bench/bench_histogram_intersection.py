"""Histogram intersection and spatial pyramid against faiss, SciPy and plain NumPy.

The Gram matrix of m x n rows of d bins takes m * n * d minima: `extra_info` holds that count
and the achieved rate, so that one table compares sizes and types.
"""

import importlib.util

import numpy as np
import pytest

from kernelcore.images.pyramid import SpatialHistograms
from kernelcore.kernels import histogram_intersection, spatial_pyramid
from kernelcore.reference.histogram_intersection import (
    histogram_intersection as reference_intersection,
)

M, N, D = 1000, 1000, 13_440
CELLS, WORDS = 21, 640


def inputs(dtype, rows):
    rng = np.random.default_rng(0)
    if np.dtype(dtype).kind == "u":
        return rng.integers(0, 5, (rows, D)).astype(dtype)
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


@pytest.mark.parametrize("same_size", [True, False], ids=["one-size", "many-sizes"])
def test_spatial_pyramid(benchmark, same_size):
    finest = np.random.default_rng(1).integers(0, 9, (M, 16, WORDS)).astype(np.uint16)
    level1 = finest.reshape(M, 2, 2, 2, 2, WORDS).sum((2, 4), dtype=np.uint16)
    counts = np.concatenate(
        [finest.sum(1, keepdims=True), level1.reshape(M, 4, WORDS), finest], 1
    )
    totals = counts[:, 0].sum(1, dtype=np.int64)
    if same_size:  # move the surplus into one word so that every image has the same total
        surplus = totals.max() - totals
        for cell in (0, 1, 5):
            counts[:, cell, 0] += surplus.astype(np.uint16)
        totals[:] = totals.max()
    images = SpatialHistograms(counts.astype(np.uint16), totals, n_levels=3)
    assert spatial_pyramid(images)[0, 0] == pytest.approx(1)
    benchmark.group = "spatial pyramid, one input"
    measure(benchmark, lambda: spatial_pyramid(images), M * M * CELLS * WORDS)
