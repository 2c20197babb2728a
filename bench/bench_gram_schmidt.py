"""Partial Gram-Schmidt beside its definition in NumPy, and landmarks beside scikit-learn.

Kernels are given as Gram matrices, but for landmarks and columns on demand: there a matrix
would take 3.6 or 7.2 GB. Scikit-learn's Nystroem has the same landmarks and the same kernel
function; it takes a root of their matrix by its singular values where we solve with its
triangle.
"""

from functools import cache, partial

import numpy as np
import pytest
from common import blobs, rbf, size

from kernelcore.kcca import KernelColumns, LandmarkFeatures, partial_gram_schmidt
from kernelcore.kernels import histogram_intersection, prepare
from kernelcore.reference import matching as reference

RANK, N_LARGE = size(300, 40), size(30_000, 2000)


@cache
def gram(n):
    return rbf(*[blobs(n)[0]] * 2)


@pytest.mark.parametrize(
    "peer", ["kernelcore", "kernelcore, prepared", "numpy, the definition without checks"]
)
@pytest.mark.parametrize("n_threads", [1, 2])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n", [1500, 3000, 6000])
def test_partial_gram_schmidt(benchmark, peer, n, dtype, n_threads):
    benchmark.extra_info["work"] = f"partial Gram-Schmidt, {dtype}"
    K = reference.center(*[gram(size(n, 400))] * 2).astype(dtype)
    benchmark.extra_info["size"] = f"n = {len(K):,}, rank {RANK}"
    by_definition = partial(reference.partial_gram_schmidt, K, tolerance=0.0, max_rank=RANK)
    features, pivots, *_ = by_definition()
    if peer.startswith("numpy"):
        benchmark(by_definition)
        return
    matrix = prepare(K) if "prepared" in peer else K
    options = {"tolerance": 0.0, "max_rank": RANK, "n_threads": n_threads}
    found = partial_gram_schmidt(matrix, **options)
    assert (found.pivots == pivots).all()
    np.testing.assert_allclose(found.features, features, atol=1e4 * np.finfo(dtype).eps)
    benchmark(partial_gram_schmidt, matrix, **options)


@pytest.mark.parametrize("peer", ["kernelcore", "numpy.ndarray.copy"])
@pytest.mark.parametrize("n_threads", [2])
@pytest.mark.parametrize("n", [1500, 3000, 6000])
def test_prepare(benchmark, peer, n, n_threads):
    benchmark.extra_info["work"] = "prepare a Gram matrix"
    K = gram(size(n, 400))
    benchmark.extra_info["size"] = f"n = {len(K):,}, float64"
    np.testing.assert_array_equal(prepare(K, n_threads=n_threads).samples, K)
    if peer == "kernelcore":
        benchmark(prepare, K, n_threads=n_threads)
    else:
        benchmark(K.copy)


@pytest.mark.parametrize("n_threads", [2])
@pytest.mark.parametrize("rank", [300, 1000])
def test_columns_on_demand(benchmark, rank, n_threads):
    benchmark.extra_info["work"] = "partial Gram-Schmidt by columns on demand"
    benchmark.extra_info["size"] = f"n = {N_LARGE:,}, rank {rank:,}"
    histograms = np.random.default_rng(0).gamma(0.2, size=(N_LARGE, 200)).astype(np.float32)
    histograms /= histograms.sum(axis=1, keepdims=True)

    def factorise(X, max_rank):
        K = KernelColumns.of(histogram_intersection, prepare(X))
        return partial_gram_schmidt(K, tolerance=0.0, max_rank=max_rank)

    few = histogram_intersection(histograms[:500])
    _, pivots, *_ = reference.partial_gram_schmidt(few, tolerance=0.0, max_rank=50)
    assert (factorise(histograms[:500], 50).pivots == pivots).all()
    benchmark(factorise, histograms, rank)


@pytest.mark.parametrize("peer", ["kernelcore", "sklearn.kernel_approximation.Nystroem"])
@pytest.mark.parametrize("n_threads", [1, 2])
@pytest.mark.parametrize("n", [7500, 15_000, 30_000])
def test_landmark_features(benchmark, peer, n, n_threads):
    from sklearn.kernel_approximation import Nystroem
    from sklearn.metrics.pairwise import rbf_kernel

    n = size(n, 2000)
    benchmark.extra_info["work"] = "landmark features, random landmarks"
    benchmark.extra_info["size"] = f"n = {n:,}, {RANK} landmarks"
    X = blobs(n)[0]
    kernel = partial(rbf_kernel, gamma=1 / 40)

    def by_kernelcore():
        estimator = LandmarkFeatures(
            kernel, n_landmarks=RANK, choice="random", rng=0, n_threads=n_threads
        )
        return estimator.fit_transform(X), estimator.landmarks_

    def by_scikit_learn():
        estimator = Nystroem("rbf", gamma=1 / 40, n_components=RANK, random_state=0)
        return estimator.fit_transform(X), estimator.component_indices_

    call = by_kernelcore if peer == "kernelcore" else by_scikit_learn
    features, landmarks = call()
    exact = kernel(X[:500], X[landmarks])
    np.testing.assert_allclose(features[:500] @ features[landmarks].T, exact, atol=1e-5)
    benchmark(call)
