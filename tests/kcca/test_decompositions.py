"""Eigenvalues and singular values, against NumPy."""

import numpy as np
import pytest
from refusals import refuses

from kernelcore.kcca import feature_basis
from kernelcore.kcca.decompositions import eigh, leading_svd, thin_svd

DTYPES = [np.float32, np.float64]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [1, 2, 30, 200])
def test_eigh_equals_numpy(dtype, n):
    A = np.random.default_rng(n).normal(size=(n, n))
    A = (A + A.T).astype(dtype)
    before = A.copy()
    eigenvalues, vectors = eigh(A)
    np.testing.assert_array_equal(A, before)
    assert eigenvalues.dtype == vectors.dtype == dtype
    slack = 20 * n * np.finfo(dtype).eps
    np.testing.assert_allclose(eigenvalues, np.linalg.eigvalsh(A)[::-1], atol=slack)
    np.testing.assert_allclose(A @ vectors, vectors * eigenvalues, atol=slack)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(n), atol=slack)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(1, 1), (7, 3), (3, 7), (200, 30), (30, 200), (60, 60)])
def test_thin_svd_equals_numpy(dtype, shape):
    A = np.random.default_rng(shape[0]).normal(size=shape).astype(dtype)
    before = A.copy()
    U, singular_values, Vt = thin_svd(A)
    np.testing.assert_array_equal(A, before)
    k = min(shape)
    assert (U.shape, singular_values.shape, Vt.shape) == ((shape[0], k), (k,), (k, shape[1]))
    assert U.dtype == singular_values.dtype == Vt.dtype == dtype
    slack = 20 * max(shape) * np.finfo(dtype).eps
    np.testing.assert_allclose(singular_values, np.linalg.svd(A)[1], atol=slack)
    np.testing.assert_allclose((U * singular_values) @ Vt, A, atol=slack)
    np.testing.assert_allclose(U.T @ U, np.eye(k), atol=slack)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("steep", [False, True])
@pytest.mark.parametrize(
    ("shape", "k"), [((9, 7), 2), ((220, 300), 20), ((300, 220), 44), ((220, 220), 45)]
)
def test_leading_svd_is_the_beginning_of_the_whole(shape, k, dtype, steep):
    """Also where squares of singular values would lose the small ones."""
    m = min(shape)
    rng = np.random.default_rng(k)
    left, right = (np.linalg.qr(rng.normal(size=(n, m)))[0] for n in shape)
    values = np.geomspace(1.0, 1e-4 if steep else 0.7, k + 1)
    values = np.concatenate([values, np.linspace(values[-1] / 2, 0.0, m - k - 1)])
    A = ((left * values) @ right.T).astype(dtype)
    before = A.copy()
    U, singular_values, Vt = leading_svd(A, k)
    np.testing.assert_array_equal(A, before)
    assert (U.shape, singular_values.shape, Vt.shape) == ((shape[0], k), (k,), (k, shape[1]))
    assert U.dtype == singular_values.dtype == Vt.dtype == dtype
    eps = np.finfo(dtype).eps
    np.testing.assert_allclose(singular_values, values[:k], atol=50 * eps)
    for vectors, exact in ((U, left[:, :k]), (Vt.T, right[:, :k])):
        np.testing.assert_allclose(vectors.T @ vectors, np.eye(k), atol=2000 * eps)
        nearest = np.abs((vectors * exact).sum(axis=0))
        gaps = values[:k] - values[1 : k + 1]
        assert (1.0 - nearest <= (1000 * eps / gaps) ** 2 + 100 * eps).all()
    np.testing.assert_allclose(A @ Vt.T, U * singular_values, atol=500 * eps)


def test_leading_svd_of_equal_singular_values():
    A = np.linalg.qr(np.random.default_rng(0).normal(size=(260, 260)))[0]
    U, singular_values, Vt = leading_svd(A, 30)
    np.testing.assert_allclose(singular_values, 1.0, atol=1e-13)
    np.testing.assert_allclose(U.T @ U, np.eye(30), atol=1e-12)
    np.testing.assert_allclose(A @ Vt.T, U, atol=1e-12)
    zero = leading_svd(np.zeros((260, 260)), 3)
    np.testing.assert_array_equal(zero[1], 0.0)


def test_failure_of_lapack_is_an_error():
    refuses(np.linalg.LinAlgError, "converge", thin_svd, np.full((3, 3), np.nan))


def test_a_share_of_the_trace_that_is_met_exactly_is_left_out(monkeypatch):
    svd = np.eye(4)[:, :2], np.ones(2), np.eye(2)
    monkeypatch.setattr("kernelcore.kcca.basis.thin_svd", lambda centred: svd)
    features = [[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]]
    for tolerance, rank in ((0.5, 1), (0.49, 2)):
        assert feature_basis(features, tolerance=tolerance).eigenvalues.tolist() == [1] * rank
