"""KCCA and its factorisation: against the dense problem, scikit-learn and known answers."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refuses
from scipy.spatial.distance import cdist

from kernelcore.kcca import KCCA, KCCAFactorization, KernelBasis, factorize, kernel_basis
from kernelcore.kcca.kcca import _signs
from kernelcore.reference.matching import center
from kernelcore.reference.matching import kcca as reference_kcca

both = pytest.mark.parametrize("decomposition", ["gram_schmidt", "eigen"])
OPTIONS = [
    {"decomposition": "gram_schmidt", "tolerance": 0.01, "max_rank": None},
    {"decomposition": "eigen", "tolerance": 0.0, "max_rank": 7},
]
each_option = pytest.mark.parametrize("options", OPTIONS, ids=lambda o: o["decomposition"])


def rbf(X, Y, width=10.0):
    return np.exp(-cdist(X, Y, "sqeuclidean") / width)


def views(n, seed=0):
    """Two correlated views of n samples."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 6))
    Y = X[:, :4] @ rng.normal(size=(4, 4)) + 0.5 * rng.normal(size=(n, 4))
    return X, Y


X, Y = views(50)
X_NEW, Y_NEW = views(9, seed=1)
KX, KY = rbf(X, X), rbf(Y, Y)
KX_NEW, KY_NEW = rbf(X_NEW, X), rbf(Y_NEW, Y)


@both
@given(
    seed=st.integers(0, 2**32 - 1), n=st.integers(3, 25), kappa_x=st.floats(1e-3, 10.0),
    kappa_y=st.floats(1e-3, 10.0),
)  # fmt: skip
@settings(max_examples=40, deadline=None)
def test_equals_the_dense_generalised_eigenproblem(decomposition, seed, n, kappa_x, kappa_y):
    A, B = views(n, seed)
    Kx, Ky = rbf(A, A), B @ B.T
    rho, a, b = reference_kcca(Kx, Ky, regularization=(kappa_x, kappa_y))
    options = {"decomposition": decomposition, "tolerance": 0.0}
    kcca = KCCA(regularization=(kappa_x, kappa_y), **options).fit(Kx, Ky)
    k = min(len(rho), len(kcca.correlations_))
    np.testing.assert_allclose(kcca.correlations_[:k], rho[:k], atol=1e-8)
    assert (rho[k:] < 1e-5).all()
    assert (kcca.correlations_[k:] < 1e-5).all()
    # The scores of one component are determined as far as its correlation stands alone.
    gaps = np.abs(np.diff(rho, prepend=np.inf, append=-np.inf))
    alone = np.flatnonzero((np.minimum(gaps[:-1], gaps[1:]) > 1e-3)[:k] & (rho[:k] > 1e-3))
    for scores, K, coefficients in ((kcca.x_scores_, Kx, a), (kcca.y_scores_, Ky, b)):
        expected, found = (center(K, K) @ coefficients)[:, alone], scores[:, alone]
        expected *= np.sign((expected * found).sum(axis=0))  # the reference leaves signs open
        np.testing.assert_allclose(expected, found, atol=1e-6)


@both
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_training_rows_have_their_scores_again(decomposition, dtype):
    Kx, Ky = KX.astype(dtype), KY.astype(dtype)
    kcca = KCCA(10, regularization=0.1, decomposition=decomposition, tolerance=1e-4)
    kcca.fit(Kx, Ky)
    again = kcca.transform_x(Kx), kcca.transform_y(Ky)
    assert kcca.transform_x(Kx[:0]).shape == (0, 10)
    for scores, same in zip((kcca.x_scores_, kcca.y_scores_), again, strict=True):
        assert scores.dtype == same.dtype == kcca.correlations_.dtype == dtype
        np.testing.assert_allclose(same, scores, atol=1e4 * np.finfo(dtype).eps)


@both
def test_shifted_features_change_nothing(decomposition):
    """phi + c has the kernel k + <phi, c> + <c, phi'> + <c, c>, new rows too."""
    shift = np.array([3.0, -2.0, 5.0, 0.0, 1.0, 4.0])
    plain = KCCA(4, decomposition=decomposition).fit(X @ X.T, KY)
    moved = KCCA(4, decomposition=decomposition).fit((X + shift) @ (X + shift).T, KY + 7.0)
    np.testing.assert_allclose(moved.correlations_, plain.correlations_, atol=1e-9)
    np.testing.assert_allclose(moved.x_scores_, plain.x_scores_, atol=1e-8)
    new = moved.transform_x((X_NEW + shift) @ (X + shift).T)
    same = plain.transform_x(X_NEW @ X.T)
    np.testing.assert_allclose(new, same, atol=1e-8)
    new, same = moved.transform_y(KY_NEW + 7.0), plain.transform_y(KY_NEW)
    np.testing.assert_allclose(new, same, atol=1e-8)


@both
def test_directions_of_rounding_are_no_components(decomposition):
    kcca = KCCA(regularization=0.0, decomposition=decomposition, tolerance=0.0)
    assert len(kcca.fit(X @ X.T, KY).correlations_) == 6
    assert len(kcca.fit(KX, Y @ Y.T).correlations_) == 4


def test_correlations_fall_and_stay_within_one():
    for kappa in (0.0, 1e-6, 0.1, 10.0):
        correlations = KCCA(regularization=kappa, tolerance=0.0).fit(KX, KY).correlations_
        assert (np.diff(correlations) <= 0.0).all()
        assert correlations.min() >= 0.0
        assert correlations.max() <= 1.0


@both
def test_signs_do_not_depend_on_the_order_of_the_samples(decomposition):
    order = np.random.default_rng(5).permutation(len(KX))
    kcca = KCCA(6, decomposition=decomposition, tolerance=0.0)
    scores = kcca.fit(KX, KY).x_scores_.copy()
    largest = np.abs(scores).argmax(axis=0)
    assert (scores[largest, np.arange(6)] > 0.0).all()
    permuted = kcca.fit(KX[np.ix_(order, order)], KY[np.ix_(order, order)]).x_scores_
    np.testing.assert_allclose(permuted, scores[order], atol=1e-7)


def test_sign_of_a_symmetric_component_follows_its_first_sample():
    K = np.outer([1.0, -1.0], [1.0, -1.0])
    assert KCCA().fit(K, K).x_scores_[0, 0] > 0.0
    assert KCCA().fit(K, K).x_scores_[1, 0] < 0.0


@both
def test_one_factorization_serves_every_setting(decomposition):
    factorization = factorize(KX, KY, decomposition=decomposition)
    for kappa in ((0.1, 0.1), (2.0, 0.01)):
        for n in (1, 7):
            kcca = KCCA.from_factorization(factorization, n, regularization=kappa)
            alone = KCCA(n, regularization=kappa, decomposition=decomposition).fit(KX, KY)
            np.testing.assert_array_equal(kcca.correlations_, alone.correlations_)
            np.testing.assert_array_equal(kcca.x_scores_, alone.x_scores_)
            np.testing.assert_array_equal(kcca.transform_y(KY_NEW), alone.transform_y(KY_NEW))


@both
def test_a_basis_serves_again(decomposition):
    options = {"decomposition": decomposition, "max_rank": 20}
    expected = factorize(KX, KY, **options).directions(regularization=0.3)
    basis, other = (kernel_basis(K, **options) for K in (KX, KY))
    for factorization in (
        *(factorize(basis, KY, **options), factorize(basis, other)),
        KCCAFactorization(basis, other),
    ):
        found = factorization.directions(regularization=0.3)
        assert all(map(np.array_equal, found, expected))


@each_option
def test_an_estimator_of_a_factorization_tells_how_it_was_made(options):
    kcca = KCCA.from_factorization(factorize(KX, KY, **options), 3, regularization=(0.5, 0.25))
    own = {"n_components": 3, "regularization": (0.5, 0.25), "n_threads": None}
    assert kcca.get_params() == own | options
    fitted = KCCA(**kcca.get_params()).fit(KX, KY)
    np.testing.assert_array_equal(fitted.x_scores_, kcca.x_scores_)
    first, second = kernel_basis(KX, **options), kernel_basis(KY)  # the first view decides
    for basis, other in ((first, second), (second, first)):
        factorization = KCCAFactorization(basis, other)
        params = KCCA.from_factorization(factorization).get_params()
        assert params.items() >= basis.options.items()


def test_a_single_negative_eigenvalue_does_not_mix_with_the_constant_vector():
    v = np.array([1.0, -1.0, 0.0, 0.0])
    K = np.eye(4) * 1e-3 - np.outer(v, v)
    basis = kernel_basis(K, decomposition="eigen", tolerance=0.0)
    np.testing.assert_allclose(basis.vectors.sum(axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(basis.eigenvalues, [1e-3, 1e-3, 1e-3 - 2.0])


def test_negative_eigenvalues_are_left_out_until_a_ridge_lifts_them():
    indefinite = np.array([[1.0, 0.9, 0.9], [0.9, 1.0, -0.9], [0.9, -0.9, 1.0]])
    factorization = factorize(indefinite, np.eye(3), decomposition="eigen", tolerance=0.0)
    assert factorization.x.eigenvalues.min() < 0.0
    assert len(factorization.directions(regularization=0.1).correlations) == 1
    lifted = factorization.lifted(3.0).directions(regularization=0.1)
    assert len(lifted.correlations) == 2


@both
def test_coordinates_of_training_rows_are_the_scaled_basis(decomposition):
    basis = factorize(KX, KY, decomposition=decomposition, max_rank=20).x
    np.testing.assert_allclose(basis.vectors.T @ basis.vectors, np.eye(20), atol=1e-12)
    np.testing.assert_allclose(basis.vectors.sum(axis=0), 0.0, atol=1e-9)
    assert (np.diff(basis.eigenvalues) <= 0.0).all()
    expected = basis.vectors * basis.eigenvalues
    np.testing.assert_allclose(basis.coordinates(KX), expected, atol=1e-9)


def test_eigenvectors_are_cut_by_tolerance_and_rank():
    eigenvalues = np.linalg.eigvalsh(center(KX, KX))[::-1]
    for tolerance in (0.5, 0.1, 1e-3):
        rank = len(factorize(KX, KY, decomposition="eigen", tolerance=tolerance).x.eigenvalues)
        left_out = eigenvalues[rank:].sum() / eigenvalues.sum()
        one_less = eigenvalues[rank - 1 :].sum() / eigenvalues.sum()
        assert left_out <= tolerance < one_less
    whole = factorize(KX, KY, decomposition="eigen", tolerance=0.0)
    assert len(whole.x.eigenvalues) == len(KX) - 1
    cut = factorize(KX, KY, decomposition="eigen", tolerance=0.0, max_rank=5)
    np.testing.assert_allclose(cut.x.eigenvalues, eigenvalues[:5])


@each_option
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_saved_and_loaded(options, dtype, tmp_path):
    basis, new = kernel_basis(KX.astype(dtype), **options), KX_NEW.astype(dtype)
    kcca = KCCA(np.int64(3), regularization=(0.1, np.float64(2.0)), **options)
    kcca.fit(basis, KY.astype(dtype))
    kcca.save(tmp_path / "model")
    basis.save(tmp_path / "basis")
    again, basis_again = KCCA.load(tmp_path / "model"), KernelBasis.load(tmp_path / "basis")
    assert again.get_params() == kcca.get_params()
    assert basis_again.options == basis.options == options
    for name in ("vectors", "eigenvalues", "columns", "expansion"):
        array = getattr(basis_again, name)
        np.testing.assert_array_equal(array, getattr(basis, name))
        assert array.dtype == getattr(basis, name).dtype
    for name in ("correlations_", "x_scores_", "y_scores_"):
        np.testing.assert_array_equal(getattr(again, name), getattr(kcca, name))
    for one, other in (
        (again.transform_x(new), kcca.transform_x(new)),
        (again.transform_y(KY_NEW), kcca.transform_y(KY_NEW)),
        (basis_again.coordinates(new), basis.coordinates(new)),
    ):
        np.testing.assert_array_equal(one, other)
    assert {path.name for path in tmp_path.iterdir()} == {"basis", "model"}
    refuses(ValueError, "kernel basis", KernelBasis.load, tmp_path / "model")
    if options["decomposition"] == "eigen":  # eigenvectors are written once
        assert basis_again.all_expansion is basis_again.all_vectors


@pytest.mark.parametrize("diagonal", [None, 2.5])
def test_a_loaded_basis_knows_whether_a_ridge_is_possible(diagonal, tmp_path):
    K = X @ X.T if diagonal is None else diagonal * KX
    kernel_basis(K, decomposition="eigen", tolerance=0.0).save(tmp_path / "basis")
    again = KernelBasis.load(tmp_path / "basis")
    assert again.diagonal == diagonal
    if diagonal is None:
        refuses(ValueError, "ridge", again.lifted, 2.0)
    else:
        np.testing.assert_allclose(again.lifted(2.0).spectrum(), again.eigenvalues + diagonal)


def test_few_components_are_the_first_of_all():
    """Few of many are computed in another way; both give the same."""
    rng = np.random.default_rng(5)
    A = rng.normal(size=(320, 12))
    B = A[:, :6] @ rng.normal(size=(6, 6)) + rng.normal(size=(320, 6))
    factorization = factorize(rbf(A, A, 30.0), rbf(B, B, 30.0), decomposition="eigen")
    assert min(len(factorization.x.eigenvalues), len(factorization.y.eigenvalues)) > 200
    whole = KCCA.from_factorization(factorization, regularization=0.5)
    few = KCCA.from_factorization(factorization, 10, regularization=0.5)
    np.testing.assert_allclose(few.correlations_, whole.correlations_[:10], atol=1e-13)
    np.testing.assert_allclose(few.x_scores_, whole.x_scores_[:, :10], atol=1e-10)
    np.testing.assert_allclose(few.y_scores_, whole.y_scores_[:, :10], atol=1e-10)


def test_the_first_of_the_largest_decides_the_sign():
    """What differs by no more than the root of the machine epsilon is as large."""
    near = 1 - 2.0**-26
    columns = np.array([[-near, -near + 2.0**-50, 0.0], [1.0, 1.0, 0.0]])
    assert _signs(columns).tolist() == [-1, 1, 1]


def test_a_row_whose_projection_overflows_is_refused():
    kcca = KCCA(n_components=3, regularization=0.1).fit(KX / 1000, KY)
    usual, huge = KX_NEW[:1], 2e307 * np.random.default_rng(0).normal(size=(1, 50))
    assert np.isfinite(kcca.transform_x(usual)).all()
    refuses(ValueError, "K", kcca.transform_x, np.vstack([usual, huge]))


def test_there_are_as_many_components_as_the_smaller_view_has_dimensions():
    few = KX[:, :3] @ KX[:, :3].T
    for pair in ((few, KY), (KY, few)):
        assert factorize(*pair, decomposition="eigen", tolerance=1e-6).rank == 3
