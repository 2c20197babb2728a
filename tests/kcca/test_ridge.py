"""The ridge has one meaning: the diagonal of the training kernel is multiplied, then solved."""

import numpy as np
import pytest
from refusals import refuses

from kernelcore.kcca import KCCA, KCCAFactorization, KernelBasis, factorize, kernel_basis
from kernelcore.kcca.basis import constant_diagonal
from kernelcore.kernels import ridge
from kernelcore.reference.matching import center

RNG = np.random.default_rng(0)
N = 40


def cosine(A, B):
    unit_A, unit_B = (Z / np.linalg.norm(Z, axis=1, keepdims=True) for Z in (A, B))
    return unit_A @ unit_B.T


SHARED = RNG.normal(size=(N + 10, 3))
X = np.hstack([SHARED, RNG.normal(size=(N + 10, 2))])
Y = np.hstack([SHARED, RNG.normal(size=(N + 10, 4))]) @ RNG.normal(size=(7, 7))
LOW_X, LOW_Y = cosine(X, X[:N]), cosine(Y, Y[:N])  # of rank 5 and 7
FULL_X, FULL_Y = np.exp(LOW_X - 1.0), np.exp(3.0 * (LOW_Y - 1.0))
KERNELS = {"low": (LOW_X, LOW_Y), "full": (FULL_X, FULL_Y), "mixed": (LOW_X, FULL_Y)}
FACTORS = [1.0, 1.01, 1.3, 4.0]


def training(kernels, dtype=np.float64):
    return [K[:N].astype(dtype) for K in KERNELS[kernels]]


def projections(kcca, Kx, Ky):
    return kcca.x_scores_, kcca.y_scores_, kcca.transform_x(Kx), kcca.transform_y(Ky)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("factors", [(1.3, 1.3), (1.0, 4.0), (1.05, 1.0)])
@pytest.mark.parametrize("kernels", KERNELS)
@pytest.mark.parametrize(
    "options", [{}, {"tolerance": 0.0}, {"tolerance": 5e-4}, {"max_rank": 4}], ids=str
)
def test_a_lift_is_the_factorisation_with_a_ridge(kernels, factors, options, dtype):
    options = {"decomposition": "eigen", **options}
    Kx, Ky = training(kernels, dtype)
    setting = {"n_components": 3, "regularization": (0.3, 0.7)}
    kcca = KCCA.from_factorization(factorize(Kx, Ky, **options), ridge=factors, **setting)
    explicit = KCCA(**setting, **options).fit(ridge(Kx, factors[0]), ridge(Ky, factors[1]))
    slack = 3e3 * np.finfo(dtype).eps
    np.testing.assert_allclose(kcca.correlations_, explicit.correlations_, atol=slack)
    new = [K[N:].astype(dtype) for K in KERNELS[kernels]]
    for got, expected in zip(projections(kcca, *new), projections(explicit, *new), strict=True):
        np.testing.assert_allclose(got, expected, atol=10 * slack)


@pytest.mark.parametrize("tolerance", [0.0, 1e-6, 0.05, 0.3])
@pytest.mark.parametrize("max_rank", [None, 3, 20])
@pytest.mark.parametrize("factor", FACTORS)
def test_the_spectrum_is_cut_after_the_lift(tolerance, max_rank, factor):
    K = training("full")[1]
    options = {"decomposition": "eigen", "tolerance": tolerance, "max_rank": max_rank}
    lifted = kernel_basis(K, **options).lifted(factor)
    expected = kernel_basis(ridge(K, factor), **options)
    np.testing.assert_allclose(lifted.spectrum(), expected.eigenvalues, atol=1e-12)
    assert lifted.vectors.shape == (N, len(expected.eigenvalues))
    grams = [(own.vectors * own.eigenvalues) @ own.vectors.T for own in (lifted, expected)]
    np.testing.assert_allclose(*grams, atol=1e-12)


def test_all_directions_of_a_kernel_of_low_rank_are_lifted():
    basis = kernel_basis(training("low")[0], decomposition="eigen")
    assert len(basis.eigenvalues) == len(basis.spectrum()) == 5
    assert basis.vectors.shape == (N, 5)
    eigenvalues = np.linalg.eigvalsh(center(*2 * (ridge(training("low")[0], 1.5),)))[::-1]
    np.testing.assert_allclose(basis.lifted(1.5).spectrum(), eigenvalues[: N - 1], atol=1e-12)


@pytest.mark.parametrize("tolerance", [0.0, 0.01])
def test_nothing_depends_on_the_basis_of_the_null_space(tolerance):
    """The solver gives another one when the samples come in another order."""
    order = np.random.default_rng(3).permutation(N)
    options = {"decomposition": "eigen", "tolerance": tolerance}
    setting = {"n_components": 3, "regularization": 0.5, "ridge": (1.02, 1.05)}
    Kx, Ky = training("low")
    factorization = factorize(Kx, Ky, **options)
    lifted = factorization.lifted(setting["ridge"])
    assert lifted.x.vectors.shape[1] == lifted.y.vectors.shape[1] == N - 1
    plain = KCCA.from_factorization(factorization, **setting)
    permuted = (K[np.ix_(order, order)] for K in (Kx, Ky))
    swapped = KCCA.from_factorization(factorize(*permuted, **options), **setting)
    np.testing.assert_allclose(swapped.correlations_, plain.correlations_, atol=1e-12)
    np.testing.assert_allclose(swapped.x_scores_, plain.x_scores_[order], atol=1e-9)
    np.testing.assert_allclose(swapped.y_scores_, plain.y_scores_[order], atol=1e-9)


def test_lifts_share_the_product_of_the_bases():
    factorization = factorize(*training("low"), decomposition="eigen")
    whole = factorization.lifted(2.0)
    assert whole.cross.base is factorization.lifted((1.0, 3.0)).cross.base
    np.testing.assert_allclose(whole.cross, whole.x.vectors.T @ whole.y.vectors, atol=1e-14)
    cut = factorize(*training("full"), decomposition="eigen", max_rank=6)
    assert cut.lifted(2.0).cross is cut.cross
    assert cut.lifted(1.0) is cut


def test_a_basis_keeps_no_more_than_a_ridge_may_lift():
    K = training("low")[0]
    uneven = K * np.outer(np.linspace(1, 2, N), np.linspace(1, 2, N))
    for basis in (
        kernel_basis(K, decomposition="eigen", tolerance=0.0),
        kernel_basis(K, decomposition="eigen", max_rank=4),
        kernel_basis(K),
        kernel_basis(uneven, decomposition="eigen"),
    ):
        assert basis.all_vectors.shape == (N, basis.rank) == basis.vectors.shape
        assert len(basis.all_eigenvalues) == basis.rank
    assert kernel_basis(K, decomposition="eigen", max_rank=9).all_vectors.shape == (N, 9)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_what_a_tolerance_left_out_is_in_the_file(dtype, tmp_path):
    basis = kernel_basis(training("low", dtype)[0], decomposition="eigen", max_rank=30)
    basis.save(tmp_path / "basis")
    again, new = KernelBasis.load(tmp_path / "basis"), LOW_X[N:].astype(dtype)
    assert again.rounding == basis.rounding > 0.0
    assert again.lifted(1.7).vectors.shape == (N, 30)
    again.lifted(1.7).save(tmp_path / "lifted")
    for one, other in (
        *((basis, again), (basis.lifted(1.7), again.lifted(1.7))),
        (basis.lifted(1.7), KernelBasis.load(tmp_path / "lifted")),
    ):
        np.testing.assert_array_equal(one.vectors, other.vectors)
        np.testing.assert_array_equal(one.eigenvalues, other.eigenvalues)
        np.testing.assert_array_equal(one.coordinates(new), other.coordinates(new))


def test_a_ridge_that_pivots_or_the_range_do_not_hold_is_refused():
    for options, factor in (({}, 2), ({"max_rank": 3}, 2), ({"tolerance": 0.5}, (1, 2))):
        refuses(ValueError, "ridge", factorize(*training("low"), **options).lifted, factor)
    factorization = factorize(*training("low", np.float32), decomposition="eigen")
    refuses(ValueError, "ridge .* float32", factorization.lifted, 1e39)
    assert isinstance(factorization.lifted(1e30), KCCAFactorization)


@pytest.mark.parametrize("decomposition", ["gram_schmidt", "eigen"])
def test_pivots_of_all_directions_are_lifted_as_well(decomposition):
    Kx, Ky = (K + 0.1 * np.eye(N) for K in training("full"))
    factorization = factorize(Kx, Ky, decomposition=decomposition, tolerance=0.0)
    lifted = KCCA.from_factorization(factorization, 3, regularization=0.3, ridge=2.0)
    explicit = KCCA(3, regularization=0.3, tolerance=0.0).fit(ridge(Kx, 2.0), ridge(Ky, 2.0))
    np.testing.assert_allclose(lifted.correlations_, explicit.correlations_, atol=1e-12)
    new, expected = lifted.transform_x(FULL_X[N:]), explicit.transform_x(FULL_X[N:])
    np.testing.assert_allclose(new, expected, atol=1e-10)


def test_a_diagonal_is_constant_if_all_of_it_is():
    assert constant_diagonal(np.diag([2.0, 2.0 + 2**-50, 2.0])) == pytest.approx(2.0)
    assert constant_diagonal(np.diag([1.0, 2.0, 3.0])) is None  # one is the mean of all
