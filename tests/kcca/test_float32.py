"""Single precision beside double: how far apart they may be, and that no more is lost."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from kernelcore.kcca import KCCA, feature_basis, partial_gram_schmidt

EPS = np.finfo(np.float32).eps
rng = np.random.default_rng(0)
X = rng.normal(size=(300, 8))
Y = np.hstack([X[:, :4], rng.normal(size=(300, 4))])
NEW = rng.normal(size=(40, 8))


def rbf(A, B):
    return np.exp(-cdist(A, B, "sqeuclidean") / 16.0)


KX, KY, KX_NEW = rbf(X, X), rbf(Y, Y), rbf(NEW, X)


@pytest.mark.parametrize("kappa", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("decomposition", ["gram_schmidt", "eigen"])
def test_correlations_and_projections_are_near_those_of_float64(decomposition, kappa):
    """Rounding moves the eigenvalues by n eps of the largest, and they count against kappa."""
    params = {"regularization": kappa, "decomposition": decomposition, "max_rank": 100}
    double = KCCA(4, **params).fit(KX, KY)
    single = KCCA(4, **params).fit(KX.astype("f4"), KY.astype("f4"))
    assert single.correlations_.dtype == single.x_scores_.dtype == np.float32
    largest = np.linalg.eigvalsh(KX)[-1]
    slack = len(X) * EPS * largest / kappa
    assert slack < 0.06
    np.testing.assert_allclose(single.correlations_, double.correlations_, atol=slack)
    for got, expected in (
        (single.x_scores_, double.x_scores_),
        (single.transform_x(KX_NEW.astype("f4")), double.transform_x(KX_NEW)),
    ):
        cosines = (got * expected).sum(axis=0) / (
            np.linalg.norm(got, axis=0) * np.linalg.norm(expected, axis=0)
        )
        assert cosines.min() > 1.0 - slack**2


def test_pivots_and_features_are_near_those_of_float64():
    double = partial_gram_schmidt(KX, tolerance=0.0, max_rank=60)
    single = partial_gram_schmidt(KX.astype("f4"), tolerance=0.0, max_rank=60)
    assert single.pivots.tolist() == double.pivots.tolist()
    # Errors grow as they pass through the triangle, by the inverse of its last pivot.
    slack = 60 * EPS / double.features[double.pivots[-1], -1]
    np.testing.assert_allclose(single.features, double.features, atol=slack)
    np.testing.assert_allclose(single.residual, double.residual, atol=slack)


def test_a_large_constant_in_the_kernel_costs_no_more_than_its_rounding():
    """The means are taken off in float64: only the kernel's own rounding is left."""
    single = KCCA(3, regularization=1.0).fit((KX + 100.0).astype("f4"), KY.astype("f4"))
    double = KCCA(3, regularization=1.0).fit(KX, KY)
    np.testing.assert_allclose(single.correlations_, double.correlations_, atol=3e-3)


def test_features_are_near_those_of_float64():
    double = KCCA(4, regularization=0.3).fit(feature_basis(X + 5.0), feature_basis(Y))
    single = KCCA(4, regularization=0.3).fit(
        feature_basis((X + 5.0).astype("f4")), feature_basis(Y.astype("f4"))
    )
    np.testing.assert_allclose(single.correlations_, double.correlations_, atol=100 * EPS)
    # Four correlations are almost equal: only the span of their components is determined.
    np.testing.assert_allclose(
        single.x_scores_ @ single.x_scores_.T,
        double.x_scores_ @ double.x_scores_.T,
        atol=100 * EPS,
    )
