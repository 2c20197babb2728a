"""Kernel CCA from Gram matrices: one fit, a grid of settings, and cca-zoo at full rank.

cca-zoo's shrinkage c in (1 - c) K^2 / (n - 1) + c K is kappa = (n - 1) c / (1 - c)
here; it does the same eigen-decompositions, followed by a generalised eigenproblem of twice
the size where one singular value decomposition suffices.
"""

from functools import cache, partial

import numpy as np
import pytest
from common import blobs, rbf, size

from kernelcore.kcca import KCCA, factorize
from kernelcore.models import select_kcca

N, RANK = size(3000, 400), size(300, 40)
N_GRID, RANK_GRID = size(6000, 500), size(1000, 300)
SHRINKAGE = 0.01


@cache
def grams(n):
    return tuple(rbf(V, V) for V in blobs(n))


@pytest.mark.parametrize("peer", ["kernelcore", "kernelcore, float32"])
@pytest.mark.parametrize("n_threads", [2])
def test_fit_from_gram_matrices(benchmark, peer, n_threads):
    benchmark.extra_info["work"] = "KCCA by partial Gram-Schmidt"
    benchmark.extra_info["size"] = f"n = {N:,}, rank {RANK}"
    kcca = KCCA(20, regularization=1.0, tolerance=0.0, max_rank=RANK)
    exact = kcca.fit(*grams(N)).correlations_
    matrices = [K.astype(np.float32) if "float32" in peer else K for K in grams(N)]
    fitted = kcca.fit(*matrices)
    scores = fitted.x_scores_, fitted.y_scores_
    assert all(np.diag(s.T @ s).max() <= 1.0 + 1e-5 for s in scores)
    cross = scores[0].T @ scores[1]
    np.testing.assert_allclose(cross, np.diag(fitted.correlations_), atol=1e-4)
    tolerance = 1e4 * np.finfo(fitted.x_scores_.dtype).eps
    np.testing.assert_allclose(fitted.correlations_, exact, rtol=0, atol=tolerance)
    benchmark(kcca.fit, *matrices)


@pytest.mark.parametrize("peer", ["kernelcore", "kernelcore, one fit"])
@pytest.mark.parametrize("n_threads", [2])
def test_grid_beside_one_fit(benchmark, peer, n_threads):
    benchmark.extra_info["work"] = "KCCA grid of 6 x 15 settings"
    benchmark.extra_info["size"] = f"n = {N_GRID:,}, rank {RANK_GRID:,}"
    both = blobs(N_GRID + 1000)
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
        return factorization.directions(regularization=1.0, n_components=150).correlations

    np.testing.assert_array_equal(grid(), one_fit())
    benchmark(grid if peer == "kernelcore" else one_fit)


def by_kernelcore(Kx, Ky, kappa):
    options = {"decomposition": "eigen", "tolerance": 0.0, "n_threads": 1}
    kcca = KCCA(10, regularization=kappa, **options).fit(Kx, Ky)
    return kcca.x_scores_, kcca.y_scores_


def by_cca_zoo(Kx, Ky, kappa):
    from cca_zoo import nonparametric

    shrinkage = kappa / (kappa + len(Kx) - 1)
    model = nonparametric.KCCA(10, center=False, kernel="precomputed", shrinkage=shrinkage)
    return model.fit([Kx, Ky]).transform([Kx, Ky])


def check_scores(found, expected):
    """Equal but for their signs and scale, and so their canonical correlations."""
    correlations = []
    for views_scores in (found, expected):
        pairs = zip(*(scores.T for scores in views_scores), strict=True)
        correlations.append([np.corrcoef(a, b)[0, 1] for a, b in pairs])
    np.testing.assert_allclose(*correlations, atol=1e-6)
    for mine, theirs in zip(found, expected, strict=True):
        for a, b in zip(mine.T, theirs.T, strict=True):
            assert abs(np.corrcoef(a, b)[0, 1]) == pytest.approx(1.0, abs=1e-6)


@pytest.mark.parametrize("peer", ["kernelcore", "cca_zoo.nonparametric.KCCA"])
@pytest.mark.parametrize("n", [500, 1000, 2000])
def test_full_rank(benchmark, peer, n):
    n = size(n, 200)
    benchmark.extra_info["work"] = "KCCA at full rank"
    benchmark.extra_info["size"] = f"n = {n:,}, float64"
    kappa = (n - 1) * SHRINKAGE / (1 - SHRINKAGE)
    call = partial(by_kernelcore if peer == "kernelcore" else by_cca_zoo, *grams(n), kappa)
    if peer != "kernelcore":
        check_scores(call(), by_kernelcore(*grams(n), kappa))
    benchmark(call)
