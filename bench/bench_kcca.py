"""Kernel CCA: partial Gram-Schmidt, one fit, a grid of settings, and cca-zoo at full rank.

Kernels are given as Gram matrices everywhere. cca-zoo's shrinkage c in (1 - c) K^2 / (n - 1)
+ c K is kappa = (n - 1) c / (1 - c) here; it does the same eigen-decompositions, followed by a
generalised eigenproblem of twice the size where one singular value decomposition suffices.
Full-rank fits are compared on one thread each.
"""

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from kernelcore.kcca import KCCA, factorize, partial_gram_schmidt
from kernelcore.models import select_kcca
from kernelcore.reference.kcca import center
from kernelcore.reference.kcca import kcca as reference_kcca
from kernelcore.reference.partial_gram_schmidt import (
    partial_gram_schmidt as reference_gram_schmidt,
)

N, RANK = 3000, 300
N_FULL, SHRINKAGE = 1000, 0.01
DTYPES = [np.float32, np.float64]


def rbf(X, Y, width):
    squares = (X**2).sum(axis=1)[:, np.newaxis] + (Y**2).sum(axis=1) - 2.0 * X @ Y.T
    return np.exp(-np.maximum(squares, 0.0) / width)


def views(n):
    """Two views that share ten of their twenty directions."""
    rng = np.random.default_rng(0)
    shared = rng.normal(size=(n, 10))
    return tuple(np.hstack([shared, rng.normal(size=(n, 10))]) for _ in range(2))


@pytest.fixture(scope="module")
def grams():
    return tuple(rbf(V, V, 40.0) for V in views(N))


@pytest.mark.parametrize("dtype", DTYPES, ids=["float32", "float64"])
@pytest.mark.parametrize("how", ["kernelcore", "reference"])
def test_partial_gram_schmidt(benchmark, grams, dtype, how):
    K = center(grams[0], grams[0]).astype(dtype)

    def by_kernelcore():
        result = partial_gram_schmidt(K, tolerance=0.0, max_rank=RANK)
        return result.features, result.pivots

    def by_reference():
        return reference_gram_schmidt(K, tolerance=0.0, max_rank=RANK)[:2]

    benchmark.group = f"partial Gram-Schmidt, n = {N}, rank {RANK}, {np.dtype(dtype)}"
    run, rounds = (by_kernelcore, 5) if how == "kernelcore" else (by_reference, 1)
    (features, pivots), (expected, expected_pivots) = (
        benchmark.pedantic(run, rounds=rounds, warmup_rounds=rounds > 1),
        by_reference(),
    )
    assert (pivots == expected_pivots).all()
    np.testing.assert_allclose(features, expected, atol=1e4 * np.finfo(dtype).eps)


@pytest.mark.parametrize("dtype", DTYPES, ids=["float32", "float64"])
def test_fit_from_gram_matrices(benchmark, grams, dtype):
    Kx, Ky = (K.astype(dtype) for K in grams)
    kcca = KCCA(20, regularization=1.0, tolerance=0.0, max_rank=RANK)
    benchmark.group = f"KCCA by partial Gram-Schmidt, n = {N}, rank {RANK}, {np.dtype(dtype)}"
    benchmark.pedantic(kcca.fit, args=(Kx, Ky), rounds=5, warmup_rounds=1)
    norms = np.array([s.T @ s for s in (kcca.x_scores_, kcca.y_scores_)])
    cross = kcca.x_scores_.T @ kcca.y_scores_
    assert (norms.diagonal(axis1=1, axis2=2) <= 1.0 + 1e-5).all()
    np.testing.assert_allclose(cross, np.diag(kcca.correlations_), atol=1e-4)


@pytest.mark.parametrize("what", ["one fit", "grid of 6 x 15"])
def test_grid_beside_one_fit(benchmark, grams, what):
    Kx, Ky = grams
    new = slice(0, 200)

    def one_fit():
        kcca = KCCA(150, regularization=1.0, tolerance=0.0, max_rank=RANK).fit(Kx, Ky)
        return kcca.correlations_

    def grid():
        factorization = factorize(Kx, Ky, tolerance=0.0, max_rank=RANK)
        selection = select_kcca(
            factorization,
            Kx[new],
            Ky[new],
            n_components=range(10, 160, 10),
            regularization=[0.1, 0.3, 1.0, 3.0, 10.0, 30.0],
        )
        assert len(selection.settings) == 90
        directions = factorization.directions(regularization=1.0, n_components=150)
        return directions.correlations

    np.testing.assert_array_equal(one_fit(), grid())
    benchmark.group = f"selection, n = {N}, rank {RANK}, float64"
    benchmark.pedantic(one_fit if what == "one fit" else grid, rounds=3)


def by_kernelcore(Kx, Ky, kappa, n_components):
    kcca = KCCA(
        n_components,
        regularization=kappa,
        decomposition="eigen",
        tolerance=0.0,
        n_threads=1,
    )
    return kcca.fit(Kx, Ky).x_scores_


def by_cca_zoo(Kx, Ky, kappa, n_components):
    nonparametric = pytest.importorskip("cca_zoo.nonparametric")
    n = len(Kx)
    model = nonparametric.KCCA(
        n_components, center=False, kernel="precomputed", shrinkage=kappa / (kappa + n - 1)
    )
    return model.fit([Kx, Ky]).transform([Kx, Ky])[0]


def by_dense_reference(Kx, Ky, kappa, n_components):
    _, coefficients, _ = reference_kcca(Kx, Ky, regularization=(kappa, kappa))
    return center(Kx, Kx) @ coefficients[:, :n_components]


@pytest.fixture(scope="module")
def full_rank_problem():
    kappa = (N_FULL - 1) * SHRINKAGE / (1 - SHRINKAGE)
    problem = (*(rbf(V, V, 40.0) for V in views(N_FULL)), kappa, 10)
    with threadpool_limits(1):
        return problem, by_dense_reference(*problem)


@pytest.mark.parametrize("run", [by_kernelcore, by_cca_zoo, by_dense_reference])
def test_full_rank(benchmark, full_rank_problem, run):
    problem, expected = full_rank_problem
    benchmark.group = f"KCCA at full rank, n = {N_FULL}, float64, one thread"
    with threadpool_limits(1):
        scores = benchmark.pedantic(run, args=problem, rounds=3 if run is by_kernelcore else 1)
    for a, b in zip(scores.T, expected.T, strict=True):
        assert abs(np.corrcoef(a, b)[0, 1]) == pytest.approx(1.0, abs=1e-6)
