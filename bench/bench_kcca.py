"""Kernel CCA: partial Gram-Schmidt, landmarks, a grid of settings, and cca-zoo at full rank.

Kernels are given as Gram matrices, but for landmarks and columns on demand: there a matrix
would take 3.6 or 7.2 GB. Scikit-learn's Nystroem has the same landmarks and the same kernel
function; it takes a root of their matrix by its singular values where we solve with its
triangle. cca-zoo's shrinkage c in (1 - c) K^2 / (n - 1) + c K is kappa = (n - 1) c / (1 - c)
here; it does the same eigen-decompositions, followed by a generalised eigenproblem of twice
the size where one singular value decomposition suffices.
"""

from functools import partial

import data
import numpy as np
import pytest
from data import blobs, rbf
from results import target

from kernelcore.kcca import (
    KCCA,
    KernelColumns,
    LandmarkFeatures,
    factorize,
    partial_gram_schmidt,
)
from kernelcore.kernels import histogram_intersection, prepare
from kernelcore.models import select_kcca
from kernelcore.reference.matching import center
from kernelcore.reference.matching import kcca as reference_kcca
from kernelcore.reference.matching import (
    partial_gram_schmidt as reference_gram_schmidt,
)

N, RANK = data.size(3000, 400), data.size(300, 40)
N_GRID, RANK_GRID, N_DEV = data.size(6000, 500), data.size(1000, 300), 1000
N_FULL, SHRINKAGE = data.size(2000, 200), 0.01
N_LARGE = data.size(30_000, 2000)
DTYPES = [np.float32, np.float64]
REASON = (
    "both sides are LAPACK: decompositions of two matrices and of their product here, one "
    "generalised problem of twice the size there"
)


@pytest.fixture(scope="module")
def grams():
    return tuple(rbf(V, V) for V in blobs(N))


@pytest.mark.ways("kernelcore", "kernelcore, prepared", "numpy, by definition")
@pytest.mark.parametrize("n_threads", [1, 2])
@pytest.mark.parametrize("dtype", DTYPES, ids=["float32", "float64"])
def test_partial_gram_schmidt(measure, grams, dtype, n_threads):
    """With all checks, from a matrix checked once, and NumPy without any check."""
    K = center(grams[0], grams[0]).astype(dtype)
    prepared = prepare(K)

    def by_kernelcore(matrix=K):
        result = partial_gram_schmidt(matrix, tolerance=0.0, max_rank=RANK, n_threads=n_threads)
        return result.features, result.pivots

    def by_definition():
        return reference_gram_schmidt(K, tolerance=0.0, max_rank=RANK)[:2]

    features, pivots = by_definition()

    def check(answer):
        assert (answer[1] == pivots).all()
        np.testing.assert_allclose(answer[0], features, atol=1e4 * np.finfo(dtype).eps)

    measure(
        f"partial Gram-Schmidt, {np.dtype(dtype)}",
        {
            "kernelcore": by_kernelcore,
            "kernelcore, prepared": lambda: by_kernelcore(prepared),
            "numpy, by definition": by_definition,
        },
        check=check,
        n_threads=n_threads,
        shape=f"n = {N:,}, rank {RANK}",
        targets=[
            target("time <= 1.2 x numpy, by definition"),
            target("time <= 1 x numpy, by definition", of="kernelcore, prepared"),
        ]
        if dtype == np.float64
        else [],
    )


@pytest.mark.ways("kernelcore", "numpy, a copy alone")
def test_prepare(measure, grams):
    measure(
        "prepare a Gram matrix",
        {
            "kernelcore": lambda: prepare(grams[0], n_threads=2).samples,
            "numpy, a copy alone": grams[0].copy,
        },
        check=lambda K: np.testing.assert_array_equal(K, grams[0]),
        n_threads=2,
        shape=f"n = {N:,}, float64",
    )


@pytest.mark.ways("kernelcore", "kernelcore, float32")
def test_fit_from_gram_matrices(measure, grams):
    kcca = KCCA(20, regularization=1.0, tolerance=0.0, max_rank=RANK)
    exact = kcca.fit(*grams).correlations_

    def check(fitted):
        scores = fitted.x_scores_, fitted.y_scores_
        assert all(np.diag(s.T @ s).max() <= 1.0 + 1e-5 for s in scores)
        cross = scores[0].T @ scores[1]
        np.testing.assert_allclose(cross, np.diag(fitted.correlations_), atol=1e-4)
        tolerance = 1e4 * np.finfo(fitted.x_scores_.dtype).eps
        np.testing.assert_allclose(fitted.correlations_, exact, rtol=0, atol=tolerance)

    narrow = tuple(K.astype(np.float32) for K in grams)
    measure(
        "KCCA by partial Gram-Schmidt, Gram matrices given",
        {
            "kernelcore": lambda: kcca.fit(*grams),
            "kernelcore, float32": lambda: kcca.fit(*narrow),
        },
        check=check,
        n_threads=2,
        shape=f"n = {N:,}, rank {RANK}",
        targets=[target("seconds <= 0.2")],
    )


@pytest.mark.parametrize("rank", [300, 1000])
def test_columns_on_demand(measure, rank):
    histograms = np.random.default_rng(0).gamma(0.2, size=(N_LARGE, 200)).astype(np.float32)
    histograms /= histograms.sum(axis=1, keepdims=True)

    def factorise(X, max_rank):
        K = KernelColumns.of(histogram_intersection, prepare(X))
        return partial_gram_schmidt(K, tolerance=0.0, max_rank=max_rank)

    few = histograms[:500]
    expected = reference_gram_schmidt(histogram_intersection(few), tolerance=0.0, max_rank=50)
    assert (factorise(few, 50).pivots == expected[1]).all()
    exact = histogram_intersection(histograms[:200], histograms)

    def check(result):
        chosen = result.pivots[:100]
        approximate = result.features[:200] @ result.features[chosen].T
        np.testing.assert_allclose(approximate, exact[:, chosen], atol=1e-4)

    measure(
        f"partial Gram-Schmidt by columns on demand, rank {rank}",
        {"kernelcore": lambda: factorise(histograms, rank)},
        check=check,
        n_threads=2,
        shape=f"n = {N_LARGE:,}, rank {rank}",
    )


@pytest.mark.ways("kernelcore", "scikit-learn")
@pytest.mark.parametrize("n_threads", [1, 2])
def test_landmark_features(measure, n_threads):
    from sklearn.kernel_approximation import Nystroem
    from sklearn.metrics.pairwise import rbf_kernel

    X = blobs(N_LARGE)[0]
    kernel = partial(rbf_kernel, gamma=1 / 40)

    def by_kernelcore():
        estimator = LandmarkFeatures(
            kernel, n_landmarks=RANK, choice="random", rng=0, n_threads=n_threads
        )
        return estimator.fit_transform(X), estimator.landmarks_

    def by_sklearn():
        estimator = Nystroem("rbf", gamma=1 / 40, n_components=RANK, random_state=0)
        return estimator.fit_transform(X), estimator.component_indices_

    def check(answer):
        features, landmarks = answer
        exact = kernel(X[:500], X[landmarks])
        np.testing.assert_allclose(features[:500] @ features[landmarks].T, exact, atol=1e-5)

    measure(
        "landmark features, random landmarks",
        {"kernelcore": by_kernelcore, "scikit-learn": by_sklearn},
        check=check,
        n_threads=n_threads,
        shape=f"n = {N_LARGE:,}, {RANK} landmarks",
        targets=[target("speed >= 1 x scikit-learn")],
    )


@pytest.mark.ways("kernelcore", "kernelcore, one fit")
def test_grid_beside_one_fit(measure):
    both = blobs(N_GRID + N_DEV)
    training = [V[:N_GRID] for V in both]
    Kx, Ky = (rbf(V, V) for V in training)
    dev = [rbf(V[N_GRID:], T) for V, T in zip(both, training, strict=True)]

    def one_fit():
        kcca = KCCA(150, regularization=1.0, tolerance=0.0, max_rank=RANK_GRID).fit(Kx, Ky)
        return kcca.correlations_

    def grid():
        factorization = factorize(Kx, Ky, tolerance=0.0, max_rank=RANK_GRID)
        selection = select_kcca(
            factorization,
            *dev,
            n_components_grid=range(10, 160, 10),
            regularization_grid=[0.1, 0.3, 1.0, 3.0, 10.0, 30.0],
        )
        assert len(selection.settings) == 90
        directions = factorization.directions(regularization=1.0, n_components=150)
        return directions.correlations

    expected = one_fit()
    measure(
        "KCCA grid of 6 x 15 settings",
        {"kernelcore": grid, "kernelcore, one fit": one_fit},
        check=lambda found: np.testing.assert_array_equal(found, expected),
        n_threads=2,
        shape=f"n = {N_GRID:,}, rank {RANK_GRID:,}",
        targets=[target("time <= 2 x kernelcore, one fit")],
    )


def by_kernelcore(Kx, Ky, kappa, n_components):
    kcca = KCCA(
        n_components, regularization=kappa, decomposition="eigen", tolerance=0.0, n_threads=1
    ).fit(Kx, Ky)
    return kcca.x_scores_, kcca.y_scores_


def by_cca_zoo(Kx, Ky, kappa, n_components):
    from cca_zoo import nonparametric

    model = nonparametric.KCCA(
        n_components,
        center=False,
        kernel="precomputed",
        shrinkage=kappa / (kappa + len(Kx) - 1),
    )
    return model.fit([Kx, Ky]).transform([Kx, Ky])


def by_dense_reference(Kx, Ky, kappa, n_components):
    _, *coefficients = reference_kcca(Kx, Ky, regularization=(kappa, kappa))
    return [
        center(K, K) @ a[:, :n_components] for K, a in zip((Kx, Ky), coefficients, strict=True)
    ]


def full_rank_problem(n):
    kappa = (n - 1) * SHRINKAGE / (1 - SHRINKAGE)
    return *(rbf(V, V) for V in blobs(n)), kappa, 10


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


@pytest.mark.ways("kernelcore", "cca-zoo")
@pytest.mark.parametrize(
    "n",
    [
        pytest.param(N_FULL, marks=pytest.mark.readme),
        pytest.param(data.size(3000, 300), marks=pytest.mark.slow),
    ],
)
def test_full_rank(measure, n):
    """cca-zoo takes minutes from 3,000 samples on: `-m slow`."""
    small = full_rank_problem(200)
    check_scores(by_kernelcore(*small), by_dense_reference(*small))
    problem = full_rank_problem(n)
    expected = by_kernelcore(*problem)
    measure(
        f"KCCA at full rank, {'as published' if n != N_FULL else 'smaller'}",
        {
            "kernelcore": lambda: by_kernelcore(*problem),
            "cca-zoo": lambda: by_cca_zoo(*problem),
        },
        check=lambda scores: check_scores(scores, expected),
        shape=f"n = {n:,}, float64",
        targets=[] if n == N_FULL else [target("speed >= 20 x cca-zoo", reason=REASON)],
    )
