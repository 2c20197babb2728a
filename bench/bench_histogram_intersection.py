"""Histogram intersection against faiss, PyTorch, SciPy, scikit-learn and Numba.

Peers that know no intersection compute city-block distances, from which it follows:
sum_b min(x_b, y_b) = (sum_b x_b + sum_b y_b - sum_b |x_b - y_b|) / 2. The conversion does not
count. A Gram matrix of m x n rows of d bins takes m * n * d minima.
"""

from functools import cache

import data
import numpy as np
import pytest
from results import target

from kernelcore.kernels import histogram_intersection
from kernelcore.reference.kernels import (
    histogram_intersection as reference_intersection,
)

N_BINS = 13_440
N_ROWS = {1: data.size(1000, 60), 2: data.size(2000, 80)}  # by threads
SPARSE_SHAPE, DENSITY = (1000, 500, 20_000), 0.005
FLOAT_TARGETS = {
    1: [
        target(
            "share >= 0.7",
            reason="the rest goes into packing panels, memory and adding up lanes",
        )
    ],
    2: [
        target("speed >= 1.5 x faiss"),
        target("speed >= 20 x scipy"),
        target("speed >= 3 x faiss", of="kernelcore, one input"),
        target("speed >= 40 x scipy", of="kernelcore, one input"),
    ],
}
COUNT_TARGETS = [
    target(
        "speed >= 4 x kernelcore, float32",
        of="kernelcore, uint8",
        reason="a vector holds four times as many bytes, so they would have to come as close "
        "to their own limit as floats do; sums of bytes go through absolute differences, which "
        "half of the vector units can do",
    ),
    target("speed >= 2.5 x kernelcore, float32", of="kernelcore, uint16"),
]


@cache
def histograms(n_rows):
    return np.random.default_rng(0).random((n_rows, N_BINS), np.float32)


@cache
def counts(dtype, n_rows):
    """Counts that need the whole width of the type, so that they are not narrowed."""
    X = np.random.default_rng(0).integers(0, 5, (n_rows, N_BINS)).astype(dtype)
    X[:, 0] = np.iinfo(dtype).max // 2
    return X


def checker(X, Y):
    few = slice(0, 5)
    expected = reference_intersection(X[few].astype(np.float64), Y[few].astype(np.float64))

    def check(gram):
        np.testing.assert_allclose(gram[few, few], expected, rtol=1e-4)

    return check


def from_distances(X, Y):
    masses = X.sum(1, dtype=np.float64)[:, None] + Y.sum(1, dtype=np.float64)
    return lambda distances: (masses - np.asarray(distances)) / 2


def faiss_city_block(X, Y):
    import faiss

    return faiss.pairwise_distances(X, Y, metric=faiss.METRIC_L1)


def torch_city_block(X, Y):
    import torch

    return torch.cdist(torch.from_numpy(X), torch.from_numpy(Y), p=1.0)


@cache
def numba_intersection():
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


def city_blocks(X, Y, n_threads):
    """What peers do; SciPy and scikit-learn get the float64 that they would convert to."""
    from scipy.spatial.distance import cdist
    from sklearn.metrics import pairwise_distances

    wide = [Z.astype(np.float64) for Z in (X, Y)]
    ways = {
        "faiss": lambda: faiss_city_block(X, Y),
        "torch": lambda: torch_city_block(X, Y),
        "scikit-learn": lambda: pairwise_distances(*wide, metric="manhattan", n_jobs=n_threads),
        "scipy": lambda: cdist(*wide, "cityblock"),
    }
    return ways, dict.fromkeys(ways, from_distances(X, Y))


def scale(X, Y):
    return {
        "shape": f"{len(X):,} x {len(Y):,} x {X.shape[1]:,}",
        "size": float(len(X) * len(Y) * X.shape[1]),
        "unit": "minima",
    }


@pytest.mark.ways(
    *("kernelcore", "kernelcore, one input", "numba"),
    *("faiss", "torch", "scikit-learn", "scipy"),
)
@pytest.mark.parametrize("n_threads", [1, pytest.param(2, marks=pytest.mark.readme)])
def test_two_inputs(measure, n_threads):
    X = histograms(N_ROWS[n_threads])
    Y = X[::-1].copy()
    others, read = city_blocks(X, Y, n_threads)
    measure(
        "histogram intersection, float32, two inputs",
        {
            "kernelcore": lambda: histogram_intersection(X, Y, n_threads=n_threads),
            "kernelcore, one input": lambda: histogram_intersection(X, n_threads=n_threads),
            "numba": lambda: numba_intersection()(X, Y),
            **others,
        },
        read={**read, "kernelcore, one input": lambda gram: gram[:, ::-1]},
        check=checker(X, Y),
        n_threads=n_threads,
        limit={"kernelcore": "float32"},
        targets=FLOAT_TARGETS[n_threads],
        **scale(X, Y),
    )


@pytest.mark.ways("kernelcore", "torch", "numba")
def test_float64(measure):
    X = histograms(N_ROWS[1]).astype(np.float64)
    Y = X[::-1].copy()
    measure(
        "histogram intersection, float64, two inputs",
        {
            "kernelcore": lambda: histogram_intersection(X, Y, n_threads=2),
            "torch": lambda: torch_city_block(X, Y),
            "numba": lambda: numba_intersection()(X, Y),
        },
        read={"torch": from_distances(X, Y)},
        check=checker(X, Y),
        n_threads=2,
        limit={"kernelcore": "float64"},
        **scale(X, Y),
    )


COUNTS = ("float32", "uint16", "uint32", "uint8")


@pytest.mark.ways(*(f"kernelcore, {name}" for name in COUNTS))
@pytest.mark.parametrize("n_threads", [1, 2])
def test_counts_beside_float32(measure, n_threads):
    n_rows = N_ROWS[1]
    floats = histograms(n_rows)

    def intersect(name):
        X = floats if name == "float32" else counts(name, n_rows)
        return lambda: (X, histogram_intersection(X, X[::-1], n_threads=n_threads))

    def check(answer):
        X, gram = answer
        checker(X, X[::-1])(gram)

    measure(
        "histogram intersection of counts",
        {f"kernelcore, {name}": intersect(name) for name in COUNTS},
        check=check,
        n_threads=n_threads,
        limit={f"kernelcore, {name}": name for name in COUNTS},
        targets=COUNT_TARGETS if n_threads == 1 else [],
        **scale(floats, floats),
    )


@pytest.mark.ways("kernelcore", "scikit-learn")
def test_sparse(measure):
    import scipy.sparse as sp
    from sklearn.metrics.pairwise import manhattan_distances

    rng = np.random.default_rng(1)
    m, n, d = SPARSE_SHAPE
    X, Y = (
        sp.random_array((rows, d), density=DENSITY, rng=rng, format="csr") for rows in (m, n)
    )
    few = slice(0, 20)
    expected = reference_intersection(X[few].toarray(), Y[few].toarray())
    measure(
        "histogram intersection, CSR",
        {
            "kernelcore": lambda: histogram_intersection(X, Y, n_threads=1),
            "scikit-learn": lambda: manhattan_distances(X, Y),
        },
        read={"scikit-learn": from_distances(X, Y)},
        check=lambda gram: np.testing.assert_allclose(
            gram[few, few], expected, rtol=1e-9, atol=1e-12
        ),
        shape=f"{m:,} x {n:,} x {d:,}, {DENSITY:.1%} filled",
        targets=[target("speed >= 8 x scikit-learn")],
    )
