"""KCCA and its factorisation: against the dense problem, scikit-learn and known answers."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cdist
from sklearn.base import clone

from kernelcore._estimator import NotFittedError
from kernelcore.kcca import KCCA, KCCAFactorization, factorize, kernel_basis
from kernelcore.kcca.kcca import _signs
from kernelcore.kernels import ridge
from kernelcore.reference.matching import center
from kernelcore.reference.matching import kcca as reference_kcca

DECOMPOSITIONS = ["gram_schmidt", "eigen"]
both = pytest.mark.parametrize("decomposition", DECOMPOSITIONS)


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


def aligned(scores, like):
    """Scores with the signs of `like`: the reference leaves them open."""
    return scores * np.sign((scores * like).sum(axis=0))


@both
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(3, 25),
    kappa_x=st.floats(1e-3, 10.0),
    kappa_y=st.floats(1e-3, 10.0),
)
@settings(max_examples=40, deadline=None)
def test_equals_the_dense_generalised_eigenproblem(decomposition, seed, n, kappa_x, kappa_y):
    A, B = views(n, seed)
    Kx, Ky = rbf(A, A), B @ B.T
    rho, a, b = reference_kcca(Kx, Ky, regularization=(kappa_x, kappa_y))
    kcca = KCCA(
        regularization=(kappa_x, kappa_y), decomposition=decomposition, tolerance=0.0
    ).fit(Kx, Ky)
    k = min(len(rho), len(kcca.correlations_))
    np.testing.assert_allclose(kcca.correlations_[:k], rho[:k], atol=1e-8)
    assert (rho[k:] < 1e-5).all()
    assert (kcca.correlations_[k:] < 1e-5).all()
    # The scores of one component are determined as far as its correlation stands alone.
    gaps = np.abs(np.diff(rho, prepend=np.inf, append=-np.inf))
    alone = np.flatnonzero((np.minimum(gaps[:-1], gaps[1:]) > 1e-3)[:k] & (rho[:k] > 1e-3))
    for scores, K, coefficients in ((kcca.x_scores_, Kx, a), (kcca.y_scores_, Ky, b)):
        expected = (center(K, K) @ coefficients)[:, alone]
        np.testing.assert_allclose(
            aligned(expected, scores[:, alone]), scores[:, alone], atol=1e-6
        )


@both
def test_maximises_the_quotient_it_says_it_does(decomposition):
    """The definition itself, with coefficients recovered from the scores."""
    kappa_x, kappa_y = 0.3, 0.7
    kcca = KCCA(
        regularization=(kappa_x, kappa_y), decomposition=decomposition, tolerance=0.0
    ).fit(KX, KY)
    Cx, Cy = center(KX, KX), center(KY, KY)
    a, b = (
        np.linalg.lstsq(C, scores, rcond=None)[0]
        for C, scores in ((Cx, kcca.x_scores_), (Cy, kcca.y_scores_))
    )
    k = 10
    for C, kappa, v in ((Cx, kappa_x, a), (Cy, kappa_y, b)):
        norms = v.T @ (C @ C + kappa * C) @ v
        np.testing.assert_allclose(norms[:k, :k], np.eye(k), atol=1e-6)
    cross = (a.T @ Cx @ Cy @ b)[:k, :k]
    np.testing.assert_allclose(cross, np.diag(kcca.correlations_[:k]), atol=1e-6)


@both
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_training_rows_have_their_scores_again(decomposition, dtype):
    Kx, Ky = KX.astype(dtype), KY.astype(dtype)
    kcca = KCCA(10, regularization=0.1, decomposition=decomposition, tolerance=1e-4)
    kcca.fit(Kx, Ky)
    slack = 1e4 * np.finfo(dtype).eps
    for scores, again in (
        (kcca.x_scores_, kcca.transform_x(Kx)),
        (kcca.y_scores_, kcca.transform_y(Ky)),
    ):
        assert scores.dtype == again.dtype == dtype
        np.testing.assert_allclose(again, scores, atol=slack)
    assert kcca.correlations_.dtype == dtype


@both
def test_shifted_features_change_nothing(decomposition):
    """phi + c has the kernel k + <phi, c> + <c, phi'> + <c, c>, new rows too."""
    shift = np.array([3.0, -2.0, 5.0, 0.0, 1.0, 4.0])
    plain = KCCA(4, decomposition=decomposition).fit(X @ X.T, KY)
    moved = KCCA(4, decomposition=decomposition).fit((X + shift) @ (X + shift).T, KY + 7.0)
    np.testing.assert_allclose(moved.correlations_, plain.correlations_, atol=1e-9)
    np.testing.assert_allclose(moved.x_scores_, plain.x_scores_, atol=1e-8)
    np.testing.assert_allclose(
        moved.transform_x((X_NEW + shift) @ (X + shift).T),
        plain.transform_x(X_NEW @ X.T),
        atol=1e-8,
    )
    np.testing.assert_allclose(
        moved.transform_y(KY_NEW + 7.0), plain.transform_y(KY_NEW), atol=1e-8
    )


@both
def test_new_rows_do_not_depend_on_their_company(decomposition):
    kcca = KCCA(5, decomposition=decomposition).fit(KX, KY)
    whole = kcca.transform_x(KX_NEW)
    one_by_one = np.vstack([kcca.transform_x(row[np.newaxis]) for row in KX_NEW])
    np.testing.assert_allclose(one_by_one, whole, atol=1e-12)


@both
def test_linear_views_that_share_one_direction(decomposition):
    rng = np.random.default_rng(3)
    shared, own_x, own_y = np.linalg.qr(rng.normal(size=(40, 4)) - 0.0)[0][:, :3].T
    shared, own_x, own_y = (v - v.mean() for v in (shared, own_x, own_y))
    A = np.column_stack([shared, own_x])
    B = np.column_stack([2.0 * shared, own_y])
    kcca = KCCA(1, regularization=0.0, decomposition=decomposition).fit(A @ A.T, B @ B.T)
    np.testing.assert_allclose(kcca.correlations_, [1.0])
    scores = kcca.x_scores_[:, 0]
    assert abs(np.corrcoef(scores, shared)[0, 1]) == pytest.approx(1.0)


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


def test_same_scores_for_one_thread_and_two():
    one, two = (
        KCCA(5, decomposition="eigen", n_threads=n).fit(KX, KY).x_scores_ for n in (1, 2)
    )
    assert one.tobytes() == two.tobytes()


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
    basis = kernel_basis(KX, **options)
    for factorization in (
        factorize(basis, KY, **options),
        factorize(basis, kernel_basis(KY, **options)),
        KCCAFactorization(basis, kernel_basis(KY, **options)),
    ):
        for part, same in zip(
            factorization.directions(regularization=0.3), expected, strict=True
        ):
            np.testing.assert_array_equal(part, same)
    with pytest.raises(ValueError, match="the same training samples, got 50 and 3"):
        factorize(basis, np.eye(3))
    with pytest.raises(ValueError, match="K must be symmetric"):
        kernel_basis(KX_NEW[:, :9])


@pytest.mark.parametrize("factors", [(1.0, 3.0), (2.0, 1.0), (1.5, 4.0)])
def test_ridge_only_shifts_the_eigenvalues(factors):
    KX_like_text = KX.copy()
    KX_like_text[7] = KX_like_text[3]  # a sample twice: eigenvalue 0 besides the constant's
    KX_like_text[:, 7] = KX_like_text[:, 3]
    KX_like_text[7, 7] = KX_like_text[3, 3]
    factorization = factorize(KX_like_text, KY, decomposition="eigen", tolerance=0.0)
    shifted = KCCA.from_factorization(
        factorization, 8, regularization=(0.2, 0.4), ridge=factors
    )
    with_ridge = KCCA(8, regularization=(0.2, 0.4), decomposition="eigen", tolerance=0.0).fit(
        ridge(KX_like_text, factors[0]), ridge(KY, factors[1])
    )
    np.testing.assert_allclose(shifted.correlations_, with_ridge.correlations_, atol=1e-10)
    np.testing.assert_allclose(shifted.x_scores_, with_ridge.x_scores_, atol=1e-8)
    np.testing.assert_allclose(
        shifted.transform_x(KX_NEW), with_ridge.transform_x(KX_NEW), atol=1e-7
    )
    np.testing.assert_allclose(
        shifted.transform_y(KY_NEW), with_ridge.transform_y(KY_NEW), atol=1e-8
    )


def test_ridge_needs_a_constant_diagonal():
    factorization = factorize(X @ X.T, KY)
    with pytest.raises(
        ValueError, match=r"ridge must be 1 unless .* constant diagonal, got 2.0"
    ):
        factorization.lifted((2.0, 1.0))


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
    np.testing.assert_allclose(
        basis.coordinates(KX), basis.vectors * basis.eigenvalues, atol=1e-9
    )


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


@both
def test_saved_and_loaded(decomposition, tmp_path):
    kcca = KCCA(
        np.int64(3), regularization=(0.1, np.float64(2.0)), decomposition=decomposition
    ).fit(KX, KY)
    kcca.save(tmp_path / "model.safetensors")
    again = KCCA.load(tmp_path / "model.safetensors")
    assert again.get_params() == kcca.get_params()
    for name in ("correlations_", "x_scores_", "y_scores_"):
        np.testing.assert_array_equal(getattr(again, name), getattr(kcca, name))
    np.testing.assert_array_equal(again.transform_x(KX_NEW), kcca.transform_x(KX_NEW))
    np.testing.assert_array_equal(again.transform_y(KY_NEW), kcca.transform_y(KY_NEW))
    assert [path.name for path in tmp_path.iterdir()] == ["model.safetensors"]


def test_files_that_are_not_models(tmp_path):
    with pytest.raises(FileNotFoundError, match="no such file"):
        KCCA.load(tmp_path / "absent")
    with pytest.raises(NotFittedError, match="KCCA must be fitted first"):
        KCCA().save(tmp_path / "unfitted")


def test_is_a_scikit_learn_estimator():
    kcca = KCCA(4, regularization=(0.1, 1.0)).fit(KX, KY)
    fresh = clone(kcca)
    assert fresh.get_params() == kcca.get_params()
    assert not hasattr(fresh, "correlations_")
    assert fresh.set_params(n_components=2, tolerance=0.1) is fresh
    assert (fresh.n_components, fresh.tolerance) == (2, 0.1)
    assert repr(fresh) == "KCCA(n_components=2, regularization=(0.1, 1.0), tolerance=0.1)"
    with pytest.raises(ValueError, match="KCCA has no parameter 'kappa'; it has "):
        fresh.set_params(kappa=1)


@both
@pytest.mark.parametrize(
    ("Kx", "Ky", "error", "message"),
    [
        (np.ones((3, 2)), np.eye(3), ValueError, "Kx must be square and not empty"),
        (np.eye(3), np.eye(4), ValueError, "the same training samples, got 3 and 4"),
        (np.eye(1), np.eye(1), ValueError, "Kx must not be constant"),
        (
            np.eye(3),
            [[1.0, 2.0, 3.0]] * 3,
            ValueError,
            "Ky must be symmetric, got elements that",
        ),
        (np.full((3, 3), 0.3), np.eye(3), ValueError, "Kx must not be constant"),
        (np.eye(3), np.full((3, 3), 0.3), ValueError, "Ky must not be constant"),
        (np.eye(3), np.full((3, 3), np.inf), ValueError, "Ky must be finite, got inf"),
        (np.eye(3).astype(complex), np.eye(3), TypeError, "Kx must hold real numbers"),
    ],
)
def test_bad_kernels(decomposition, Kx, Ky, error, message):
    with pytest.raises(error, match=message):
        KCCA(decomposition=decomposition).fit(Kx, Ky)


@pytest.mark.parametrize(
    ("params", "error", "message"),
    [
        ({"n_components": 0}, ValueError, "n_components must be an integer >= 1, got 0"),
        ({"n_components": 50}, ValueError, r"at most the smaller rank \(49\), got 50"),
        ({"n_components": 2.0}, TypeError, "n_components must be an integer"),
        ({"regularization": -1.0}, ValueError, "regularization must be a number >= 0.0"),
        ({"regularization": (0.1, -1)}, ValueError, r"regularization\[1\] must be a number"),
        ({"regularization": (0.1,)}, ValueError, "a number or a pair of numbers"),
        ({"regularization": "strong"}, TypeError, "regularization must be a real number"),
        ({"decomposition": "svd"}, ValueError, "decomposition must be one of 'gram_schmidt'"),
        ({"tolerance": 2.0}, ValueError, "tolerance must be a number <= 1.0"),
        ({"max_rank": 0}, ValueError, "max_rank must be an integer >= 1"),
        ({"n_threads": 0}, ValueError, "n_threads must be an integer >= 1"),
    ],
)
def test_bad_parameters(params, error, message):
    with pytest.raises(error, match=message):
        KCCA(**{"tolerance": 0.0, **params}).fit(KX, KY)


def test_new_rows_must_fit():
    kcca = KCCA(2).fit(KX, KY)
    with pytest.raises(ValueError, match=r"one column per training sample \(50\)"):
        kcca.transform_x(KX_NEW[:, :49])
    with pytest.raises(ValueError, match="K must be finite, got nan"):
        kcca.transform_y(np.full((1, 50), np.nan))
    with pytest.raises(NotFittedError, match="must be fitted first"):
        KCCA().transform_x(KX_NEW)
    assert kcca.transform_x(np.empty((0, 50))).shape == (0, 2)


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
