"""Kernel CCA: partial Gram-Schmidt, landmarks, a grid of settings, and cca-zoo at full rank.

Kernels are given as Gram matrices, but for landmarks and columns on demand: there a matrix
would take 3.6 or 7.2 GB. Scikit-learn's Nystroem has the same landmarks and the same kernel
function; it takes a root of their matrix by its singular values where we solve with its
triangle. cca-zoo's shrinkage c in (1 - c) K^2 / (n - 1)
+ c K is kappa = (n - 1) c / (1 - c) here; it does the same eigen-decompositions, followed by a
generalised eigenproblem of twice the size where one singular value decomposition suffices.
Full-rank fits are compared on one thread each.
"""

from functools import partial

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from kernelcore.kcca import (
    KCCA,
    KernelColumns,
    LandmarkFeatures,
    factorize,
    partial_gram_schmidt,
)
from kernelcore.kernels import histogram_intersection
from kernelcore.models import select_kcca
from kernelcore.reference.kcca import center
from kernelcore.reference.kcca import kcca as reference_kcca
from kernelcore.reference.partial_gram_schmidt import (
    partial_gram_schmidt as reference_gram_schmidt,
)

N, RANK = 3000, 300
N_GRID, RANK_GRID, N_DEV = 6000, 1000, 1000
N_FULL, SHRINKAGE = 2000, 0.01
N_LARGE = 30_000
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


@pytest.fixture(scope="module")
def exact_fit(grams):
    return KCCA(20, regularization=1.0, tolerance=0.0, max_rank=RANK).fit(*grams)


@pytest.mark.parametrize("dtype", DTYPES, ids=["float32", "float64"])
def test_fit_from_gram_matrices(benchmark, grams, exact_fit, dtype):
    Kx, Ky = (K.astype(dtype) for K in grams)
    kcca = KCCA(20, regularization=1.0, tolerance=0.0, max_rank=RANK)
    benchmark.group = f"KCCA by partial Gram-Schmidt, n = {N}, rank {RANK}, {np.dtype(dtype)}"
    benchmark.pedantic(kcca.fit, args=(Kx, Ky), rounds=5, warmup_rounds=1)
    norms = np.array([s.T @ s for s in (kcca.x_scores_, kcca.y_scores_)])
    cross = kcca.x_scores_.T @ kcca.y_scores_
    assert (norms.diagonal(axis1=1, axis2=2) <= 1.0 + 1e-5).all()
    np.testing.assert_allclose(cross, np.diag(kcca.correlations_), atol=1e-4)
    difference = np.abs(kcca.correlations_ - exact_fit.correlations_).max()
    assert difference <= 1e4 * np.finfo(dtype).eps
    benchmark.extra_info["difference_from_float64"] = float(difference)


@pytest.mark.parametrize("rank", [300, 1000])
def test_columns_on_demand(benchmark, rank):
    histograms = np.random.default_rng(0).gamma(0.2, size=(N_LARGE, 200)).astype(np.float32)
    histograms /= histograms.sum(axis=1, keepdims=True)

    def factorise(X, max_rank):
        K = KernelColumns.of(histogram_intersection, X)
        return partial_gram_schmidt(K, tolerance=0.0, max_rank=max_rank)

    few = histograms[:500]
    expected = reference_gram_schmidt(histogram_intersection(few), tolerance=0.0, max_rank=50)
    assert (factorise(few, 50).pivots == expected[1]).all()
    benchmark.group = f"partial Gram-Schmidt by columns, n = {N_LARGE}, rank {rank}, float32"
    result = benchmark.pedantic(factorise, args=(histograms, rank), rounds=2)
    assert result.rank == rank


@pytest.mark.parametrize("how", ["kernelcore", "sklearn"])
def test_landmark_features(benchmark, how):
    nystroem = pytest.importorskip("sklearn.kernel_approximation").Nystroem
    X = views(N_LARGE)[0]
    kernel = partial(pytest.importorskip("sklearn.metrics.pairwise").rbf_kernel, gamma=1 / 40)

    def by_kernelcore():
        estimator = LandmarkFeatures(kernel, n_landmarks=RANK, choice="random", rng=0)
        return estimator.fit_transform(X), estimator.landmarks_

    def by_sklearn():
        estimator = nystroem("rbf", gamma=1 / 40, n_components=RANK, random_state=0)
        return estimator.fit_transform(X), estimator.component_indices_

    benchmark.group = f"landmark features, n = {N_LARGE}, {RANK} random landmarks, float64"
    run = by_kernelcore if how == "kernelcore" else by_sklearn
    features, landmarks = benchmark.pedantic(run, rounds=3)
    exact = kernel(X[:500], X[landmarks])
    np.testing.assert_allclose(features[:500] @ features[landmarks].T, exact, atol=1e-5)


@pytest.mark.parametrize("what", ["one fit", "grid of 6 x 15"])
def test_grid_beside_one_fit(benchmark, what):
    both = views(N_GRID + N_DEV)
    training = [V[:N_GRID] for V in both]
    Kx, Ky = (rbf(V, V, 40.0) for V in training)
    dev = [rbf(V[N_GRID:], T, 40.0) for V, T in zip(both, training, strict=True)]

    def one_fit():
        kcca = KCCA(150, regularization=1.0, tolerance=0.0, max_rank=RANK_GRID).fit(Kx, Ky)
        return kcca.correlations_

    def grid():
        factorization = factorize(Kx, Ky, tolerance=0.0, max_rank=RANK_GRID)
        selection = select_kcca(
            factorization,
            *dev,
            n_components=range(10, 160, 10),
            regularization=[0.1, 0.3, 1.0, 3.0, 10.0, 30.0],
        )
        assert len(selection.settings) == 90
        directions = factorization.directions(regularization=1.0, n_components=150)
        return directions.correlations

    benchmark.group = f"selection, n = {N_GRID}, rank {RANK_GRID}, float64"
    run = one_fit if what == "one fit" else grid
    correlations = benchmark.pedantic(run, rounds=2)
    np.testing.assert_array_equal(correlations, one_fit())


def by_kernelcore(Kx, Ky, kappa, n_components):
    kcca = KCCA(
        n_components,
        regularization=kappa,
        decomposition="eigen",
        tolerance=0.0,
        n_threads=1,
    ).fit(Kx, Ky)
    return kcca.x_scores_, kcca.y_scores_


def by_cca_zoo(Kx, Ky, kappa, n_components):
    nonparametric = pytest.importorskip("cca_zoo.nonparametric")
    n = len(Kx)
    model = nonparametric.KCCA(
        n_components, center=False, kernel="precomputed", shrinkage=kappa / (kappa + n - 1)
    )
    return model.fit([Kx, Ky]).transform([Kx, Ky])


def by_dense_reference(Kx, Ky, kappa, n_components):
    _, *coefficients = reference_kcca(Kx, Ky, regularization=(kappa, kappa))
    return [
        center(K, K) @ a[:, :n_components] for K, a in zip((Kx, Ky), coefficients, strict=True)
    ]


def full_rank_problem(n):
    kappa = (n - 1) * SHRINKAGE / (1 - SHRINKAGE)
    return *(rbf(V, V, 40.0) for V in views(n)), kappa, 10


def check_scores(got, expected):
    """Equal but for their signs and scale, and so their canonical correlations."""
    correlations = []
    for views_scores in (got, expected):
        pairs = zip(*(scores.T for scores in views_scores), strict=True)
        correlations.append([np.corrcoef(a, b)[0, 1] for a, b in pairs])
    np.testing.assert_allclose(*correlations, atol=1e-6)
    for mine, theirs in zip(got, expected, strict=True):
        for a, b in zip(mine.T, theirs.T, strict=True):
            assert abs(np.corrcoef(a, b)[0, 1]) == pytest.approx(1.0, abs=1e-6)


@pytest.mark.parametrize("run", [by_kernelcore, by_cca_zoo])
def test_full_rank(benchmark, run):
    with threadpool_limits(1):
        small = full_rank_problem(300)
        check_scores(run(*small), by_dense_reference(*small))
        problem = full_rank_problem(N_FULL)
        benchmark.group = f"KCCA at full rank, n = {N_FULL}, float64, one thread"
        rounds = 3 if run is by_kernelcore else 1
        scores = benchmark.pedantic(run, args=problem, rounds=rounds)
        if run is not by_kernelcore:
            check_scores(by_kernelcore(*problem), scores)
