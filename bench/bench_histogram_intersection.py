"""Histogram intersection beside faiss, PyTorch, SciPy, scikit-learn and a Numba loop.

Peers that know no intersection compute city-block distances, from which it follows:
sum_b min(x_b, y_b) = (sum_b x_b + sum_b y_b - sum_b |x_b - y_b|) / 2. The conversion is not
timed. SciPy and scikit-learn get the float64 that they would convert to.
"""

from functools import cache

import numpy as np
import pytest
import scipy.sparse as sp
from common import size
from scipy.spatial.distance import cdist

from kernelcore.kernels import histogram_intersection
from kernelcore.reference.kernels import histogram_intersection as reference

SHAPES = [(2, 3), (1000, 500), (1000, 2000), (500, 13_440)]
FEW = slice(0, 5)


@cache
def histograms(n_rows, n_bins):
    return np.random.default_rng(0).random((n_rows, n_bins), np.float32)


@cache
def counts(dtype, n_rows, n_bins):
    """Counts that need the whole width of the type, so that they are not narrowed."""
    X = np.random.default_rng(0).integers(0, 5, (n_rows, n_bins)).astype(dtype)
    X[:, 0] = np.iinfo(dtype).max // 2
    return X


def check(X, Y, gram):
    expected = reference(X[FEW].astype(np.float64), Y[FEW].astype(np.float64))
    np.testing.assert_allclose(gram[FEW, FEW], expected, rtol=1e-4, atol=1e-12)


def size_of(X, Y):
    return f"{X.shape[0]:,} x {Y.shape[0]:,} x {X.shape[1]:,}"


def by_kernelcore(X, Y, n_threads):
    return lambda: histogram_intersection(X, Y, n_threads=n_threads)


def of_one_input(X, Y, n_threads):
    return lambda: histogram_intersection(X, n_threads=n_threads)[:, ::-1]


def by_faiss(X, Y, n_threads):
    import faiss

    return lambda: faiss.pairwise_distances(X, Y, metric=faiss.METRIC_L1)


def by_torch(X, Y, n_threads):
    import torch

    left, right = torch.from_numpy(X), torch.from_numpy(Y)
    return lambda: torch.cdist(left, right, p=1.0).numpy()


def by_scikit_learn(X, Y, n_threads):
    from sklearn.metrics import pairwise_distances

    wide = X.astype(np.float64), Y.astype(np.float64)
    return lambda: pairwise_distances(*wide, metric="manhattan", n_jobs=n_threads)


def by_scipy(X, Y, n_threads):
    wide = X.astype(np.float64), Y.astype(np.float64)
    return lambda: cdist(*wide, "cityblock")


@cache
def numba_loop():
    import numba

    @numba.njit(parallel=True, fastmath=True)
    def intersection(X, Y):
        K = np.empty((len(X), len(Y)), X.dtype)
        for i in numba.prange(len(X)):
            for j in range(len(Y)):
                total = X.dtype.type(0)
                for b in range(X.shape[1]):
                    total += min(X[i, b], Y[j, b])
                K[i, j] = total
        return K

    return intersection


OURS = {"kernelcore": by_kernelcore, "kernelcore, one input": of_one_input}
LOOP = {"numba, a loop": lambda X, Y, n_threads: lambda: numba_loop()(X, Y)}
DISTANCES = {
    "faiss.pairwise_distances": by_faiss,
    "torch.cdist": by_torch,
    "sklearn.metrics.pairwise_distances": by_scikit_learn,
    "scipy.spatial.distance.cdist": by_scipy,
}
PEERS = {**OURS, **LOOP, **DISTANCES}


def compare(benchmark, peer, X, n_threads):
    Y = X[::-1].copy()
    benchmark.extra_info["size"] = size_of(X, Y)
    call = PEERS[peer](X, Y, n_threads)
    answer = call()
    if peer in DISTANCES:
        masses = X.sum(1, dtype=np.float64)[:, np.newaxis] + Y.sum(1, dtype=np.float64)
        answer = (masses - answer) / 2
    check(X, Y, answer)
    benchmark(call)


@pytest.mark.parametrize("peer", PEERS)
@pytest.mark.parametrize(
    ("dtype", "n_threads"),
    [("float32", 1), ("float32", 2), ("float64", 2)],
)
@pytest.mark.parametrize(("n_rows", "n_bins"), SHAPES)
def test_floats(benchmark, peer, dtype, n_threads, n_rows, n_bins):  # noqa: PLR0917
    is_small = n_rows < 10
    if (is_small and n_threads > 1) or (dtype == "float64" and peer.startswith("faiss")):
        pytest.skip("a small call is for one thread; faiss takes float32 alone")
    benchmark.extra_info["work"] = f"histogram intersection, {dtype}"
    X = histograms(size(n_rows, 60), n_bins).astype(dtype)
    compare(benchmark, peer, X, n_threads)


@pytest.mark.parametrize("peer", ["kernelcore", *(f"kernelcore, uint{w}" for w in (8, 16, 32))])
@pytest.mark.parametrize("n_threads", [1, 2])
def test_counts_beside_float32(benchmark, peer, n_threads):
    benchmark.extra_info["work"] = "histogram intersection of counts, beside float32"
    shape = size(1000, 60), 13_440
    X = histograms(*shape) if peer == "kernelcore" else counts(peer.split()[1], *shape)
    benchmark.extra_info["size"] = size_of(X, X)
    check(X, X[::-1], histogram_intersection(X, X[::-1], n_threads=n_threads))
    benchmark(histogram_intersection, X, X[::-1], n_threads=n_threads)


@pytest.mark.parametrize("peer", ["kernelcore", "sklearn.metrics.pairwise.manhattan_distances"])
@pytest.mark.parametrize("density", [0.0005, 0.005, 0.05])
def test_sparse(benchmark, peer, density):
    from sklearn.metrics.pairwise import manhattan_distances

    benchmark.extra_info["work"] = "histogram intersection, CSR"
    rng, n_bins = np.random.default_rng(1), 20_000
    X, Y = (
        sp.random_array((size(n, 60), n_bins), density=density, rng=rng, format="csr")
        for n in (1000, 500)
    )
    benchmark.extra_info["size"] = f"{size_of(X, Y)}, {density:.4g} filled"
    if peer == "kernelcore":
        check(X.toarray(), Y.toarray(), histogram_intersection(X, Y, n_threads=1))
        benchmark(histogram_intersection, X, Y, n_threads=1)
    else:
        masses = X.sum(axis=1)[:, np.newaxis] + Y.sum(axis=1)
        check(X.toarray(), Y.toarray(), (masses - manhattan_distances(X, Y)) / 2)
        benchmark(manhattan_distances, X, Y)


@pytest.mark.parametrize(
    "peer", ["kernelcore", "faiss.pairwise_distances", "scipy.spatial.distance.cdist"]
)
@pytest.mark.parametrize("similarity", ["jaccard", "bray_curtis"])
@pytest.mark.parametrize("n_bins", [500, 1000, 2000])
def test_ratio(benchmark, peer, similarity, n_bins):
    faiss = pytest.importorskip("faiss")
    is_jaccard = similarity == "jaccard"
    if is_jaccard and peer.startswith("scipy"):
        pytest.skip("SciPy's is of sets")
    benchmark.extra_info["work"] = f"{similarity} similarity, float32"
    X = histograms(size(500, 60), n_bins)
    Y, wide = X[::-1].copy(), X.astype(np.float64)
    benchmark.extra_info["size"] = size_of(X, Y)
    metric = faiss.METRIC_Jaccard if is_jaccard else faiss.METRIC_BrayCurtis
    call = {
        "kernelcore": lambda: histogram_intersection(X, Y, similarity=similarity, n_threads=1),
        "faiss.pairwise_distances": lambda: faiss.pairwise_distances(X, Y, metric),
        "scipy.spatial.distance.cdist": lambda: cdist(wide, wide[::-1], "braycurtis"),
    }[peer]
    found = abs((peer != "kernelcore" and not is_jaccard) - call()[FEW, FEW])
    expected = reference(X[FEW].astype(float), Y[FEW].astype(float), similarity)
    np.testing.assert_allclose(found, expected, rtol=1e-4)
    benchmark(call)
