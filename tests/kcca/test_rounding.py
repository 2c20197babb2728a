"""Which directions are rounding: those of float32 beside those of float64, at every size."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from kernelcore.kcca import (
    KCCA,
    KernelColumns,
    LandmarkFeatures,
    feature_basis,
    kernel_basis,
    partial_gram_schmidt,
)
from kernelcore.kcca.decompositions import residual_rounding

DTYPES = [np.float32, np.float64]
SLOW = [pytest.param(n, marks=pytest.mark.slow) for n in (10**6, 10**7)]
SIZES = [10**3, 10**4, 10**5, *SLOW]
EPS = np.finfo(np.float32).eps
_ROWS = 2**16


def features_of(n, lengths, dtype=np.float32, seed=0):
    """Rows of one standard deviation a column."""
    F = np.random.default_rng(seed).standard_normal((n, len(lengths)), dtype=np.float32)
    F *= np.asarray(lengths, dtype=np.float32)
    return F.astype(dtype, copy=False)


def on_demand(F):
    return KernelColumns(lambda indices: F @ F[indices].T, np.einsum("ij,ij->i", F, F))


def exact_eigenvalues(F):
    """Eigenvalues of the centred kernel F F', in float64, a few rows at a time."""
    mean = F.mean(axis=0, dtype=np.float64)
    gram = np.zeros((F.shape[1], F.shape[1]))
    for start in range(0, len(F), _ROWS):
        rows = F[start : start + _ROWS] - mean
        gram += rows.T @ rows
    return np.linalg.eigvalsh(gram)[::-1]


def test_directions_of_a_hundredth_of_the_length_are_kept():
    F = features_of(100_000, [1.0] * 30 + [0.01] * 20)
    assert partial_gram_schmidt(on_demand(F), tolerance=0.0, max_rank=60).pivots.size == 50
    assert len(feature_basis(F, tolerance=0.0).eigenvalues) == 50


@pytest.mark.parametrize("n", [2**20, pytest.param(2**23, marks=pytest.mark.slow)])
def test_a_unit_diagonal_of_millions_of_samples_is_not_rounding(n):
    angles = np.linspace(0.0, 0.1, n, dtype=np.float32)
    F = np.column_stack([np.cos(angles), np.sin(angles)])
    K = KernelColumns(lambda indices: F @ F[indices].T, np.ones(n, np.float32))
    assert partial_gram_schmidt(K, tolerance=0.0, max_rank=5).pivots.size == 2


def test_landmarks_of_a_million_samples():
    X = features_of(10**6, [1.0, 0.05])
    landmarks = LandmarkFeatures(lambda A, B: A @ B.T, n_landmarks=6).fit(X)
    assert len(landmarks.landmarks_) == 2


def test_features_of_a_million_samples_reach_kernel_cca():
    """Once rank 1 of 3: "n_components must be at most the smaller rank"."""
    F = features_of(10**6, [1.0, 0.1**0.5, 0.1])
    basis = feature_basis(F, tolerance=0.0)
    assert len(basis.eigenvalues) == len(basis.spectrum()) == 3
    kcca = KCCA(3, regularization=0.0).fit(basis, feature_basis(F[:, ::-1], tolerance=0.0))
    np.testing.assert_allclose(kcca.correlations_, 1.0, atol=1e-4)


@pytest.mark.parametrize("n", SIZES)
def test_float32_features_have_the_rank_and_the_spectrum_of_float64(n):
    """Six directions, of which the last is a thousandth, and two copies of the first ones."""
    F = features_of(n, [1.0, 0.5, 0.1, 0.05, 0.01, 0.001], seed=n)
    F = np.hstack([F, F[:, :2]]) + np.float32(0.25)
    exact = exact_eigenvalues(F)
    basis = feature_basis(F, tolerance=0.0)
    assert len(basis.eigenvalues) == len(basis.spectrum()) == 6
    slack = 10 * EPS * np.sqrt(exact[0])
    np.testing.assert_allclose(np.sqrt(basis.eigenvalues), np.sqrt(exact[:6]), atol=slack)
    assert abs(basis.vectors[:, -1].sum(dtype=np.float64)) < 1e-2 * np.sqrt(n)


@pytest.mark.parametrize("n", SIZES)
def test_float32_pivots_end_at_the_true_rank(n):
    """Features that are all positive: their kernel has one large eigenvalue."""
    F = np.abs(features_of(n, [1.0, 0.3, 0.1, 0.03, 0.01], seed=n))
    single = partial_gram_schmidt(on_demand(F), tolerance=0.0, max_rank=9)
    assert single.pivots.size == 5
    if n <= 10**5:
        double = partial_gram_schmidt(on_demand(F.astype("f8")), tolerance=0.0, max_rank=9)
        assert double.pivots.size == 5
        assert single.pivots.tolist() == double.pivots.tolist()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("rank", [3, 40, 200])
@pytest.mark.parametrize("kind", ["signed", "positive", "steep", "unit"])
def test_pivots_end_at_the_rank_of_a_degenerate_kernel(dtype, rank, kind):
    F = features_of(700, np.geomspace(1.0, 0.03 if kind == "steep" else 1.0, rank), seed=rank)
    if kind == "positive":
        F = np.abs(F)
    if kind == "unit":
        F = 0.3 * F / np.linalg.norm(F, axis=1, keepdims=True) + np.float32(0.95 / rank**0.5)
    K = (F @ F.T).astype(dtype) if dtype == np.float32 else F.astype(dtype) @ F.T.astype(dtype)
    assert partial_gram_schmidt((K + K.T) / 2, tolerance=0.0).pivots.size == rank


def degenerate(kind, n):
    """A positive semi-definite kernel and the rank that it has when it is centred."""
    rng = np.random.default_rng(n)
    if kind == "twins":
        return np.kron(np.eye(n // 2), np.ones((2, 2))), n // 2 - 1
    F = rng.random((n, n // 4)) if kind == "positive" else rng.normal(size=(n, n // 4))
    if kind == "unit":
        F /= np.linalg.norm(F, axis=1, keepdims=True)
    if kind == "mean":
        F = np.hstack([0.03 * F, np.ones((n, 1))])
    return F @ F.T, n // 4


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [60, 300])
@pytest.mark.parametrize("kind", ["twins", "signed", "positive", "unit", "mean"])
@pytest.mark.parametrize("decomposition", ["gram_schmidt", "eigen"])
def test_no_direction_of_a_gram_matrix_is_rounding(kind, n, dtype, decomposition):
    K, rank = degenerate(kind, n)
    K = ((K + K.T) / 2).astype(dtype)
    basis = kernel_basis(K, decomposition=decomposition, tolerance=0.0)
    assert len(basis.spectrum()) == rank


def test_small_eigenvalues_of_a_float32_gram_matrix_are_kept():
    """Below n eps of the largest, and ten times what the solver is wrong by."""
    n, rng = 1500, np.random.default_rng(0)
    U = np.linalg.qr(np.hstack([np.ones((n, 1)), rng.normal(size=(n, 6))]))[0][:, 1:]
    eigenvalues = np.array([1.0, 0.5, 1e-2, 1.5e-4, 1e-4, 6e-5])
    K = ((U * eigenvalues) @ U.T).astype(np.float32)
    assert eigenvalues[-1] < n * np.finfo(np.float32).eps
    basis = kernel_basis((K + K.T) / 2, decomposition="eigen", tolerance=0.0)
    np.testing.assert_allclose(basis.spectrum(), eigenvalues, atol=1e-6)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("mean", [0.0, 1.0, 1e3, -1e6])
def test_a_mean_adds_no_direction_to_features(dtype, mean):
    """The mean is known to more digits than one of its own dtype."""
    n = 50_000
    F = np.round(features_of(n, [3.0, 3.0], np.float64) * 16) / 16 + mean
    F = np.hstack([F, F]).astype(dtype)
    basis = feature_basis(F, tolerance=0.0)
    assert len(basis.eigenvalues) == 2
    assert np.abs(basis.vectors.sum(axis=0, dtype=np.float64)).max() < 1e-3 * np.sqrt(n)


def test_one_sample_that_differs_among_a_million():
    F = np.ones((10**6, 1), np.float32)
    F[77] += np.float32(1e-2)
    assert len(feature_basis(F).eigenvalues) == 1
    for constant in (np.full((10**6, 2), 0.1), np.full((10**6, 2), 0.1, np.float32)):
        with pytest.raises(ValueError, match="features must not be constant"):
            feature_basis(constant)


def test_means_of_a_centred_kernel_are_sums_over_the_samples():
    diagonal = np.full(3 * 2**20, 0.5, np.float32)
    unit, n_lost = residual_rounding(diagonal, centred=False)
    assert (unit, n_lost) == (2.0**-24, 10.0)
    assert residual_rounding(diagonal, centred=True) == (unit, n_lost + 3 * 2.0**-9)


RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 8))
Y = np.hstack([X[:, :4], RNG.normal(size=(300, 4))])


def rbf(A, B):
    return np.exp(-cdist(A, B, "sqeuclidean") / 16.0)


KX, KY, KX_NEW = rbf(X, X), rbf(Y, Y), rbf(RNG.normal(size=(40, 8)), X)


@pytest.mark.parametrize("kappa", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("decomposition", ["gram_schmidt", "eigen"])
def test_float32_correlations_and_projections_are_near_those_of_float64(decomposition, kappa):
    """Rounding moves the eigenvalues by n eps of the largest, and they count against kappa."""
    options = {"regularization": kappa, "decomposition": decomposition, "max_rank": 100}
    single, double = (KCCA(4, **options).fit(KX.astype(d), KY.astype(d)) for d in DTYPES)
    assert single.correlations_.dtype == single.x_scores_.dtype == np.float32
    slack = len(X) * EPS * np.linalg.eigvalsh(KX)[-1] / kappa
    assert slack < 0.06
    np.testing.assert_allclose(single.correlations_, double.correlations_, atol=slack)
    for got, expected in (
        (single.x_scores_, double.x_scores_),
        (single.transform_x(KX_NEW.astype("f4")), double.transform_x(KX_NEW)),
    ):
        lengths = np.linalg.norm(got, axis=0) * np.linalg.norm(expected, axis=0)
        assert ((got * expected).sum(axis=0) / lengths).min() > 1.0 - slack**2 - 4 * EPS


def test_float32_pivots_and_features_are_near_those_of_float64():
    options = {"tolerance": 0.0, "max_rank": 60}
    single, double = (partial_gram_schmidt(KX.astype(dtype), **options) for dtype in DTYPES)
    assert single.pivots.tolist() == double.pivots.tolist()
    # Errors grow as they pass through the triangle, by the inverse of its last pivot.
    slack = 60 * EPS / double.features[double.pivots[-1], -1]
    np.testing.assert_allclose(single.features, double.features, atol=slack)
    np.testing.assert_allclose(single.residual, double.residual, atol=slack)
    # The means are taken off in float64: only the rounding of the kernel itself is left.
    double = KCCA(3, regularization=1.0).fit(KX, KY).correlations_
    single = KCCA(3, regularization=1.0).fit((KX + 100.0).astype("f4"), KY.astype("f4"))
    np.testing.assert_allclose(single.correlations_, double, atol=3e-3)
    both = [[feature_basis(A.astype(dtype)) for A in (X + 5.0, Y)] for dtype in DTYPES]
    single, double = (KCCA(4, regularization=0.3).fit(*bases) for bases in both)
    np.testing.assert_allclose(single.correlations_, double.correlations_, atol=100 * EPS)
    # Four correlations are almost equal: only the span of their components is determined.
    spans = (own.x_scores_ @ own.x_scores_.T for own in (single, double))
    np.testing.assert_allclose(*spans, atol=100 * EPS)
