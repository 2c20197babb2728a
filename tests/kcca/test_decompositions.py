import numpy as np
import pytest

from kernelcore.kcca.decompositions import eigh, thin_svd

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


def test_failure_of_lapack_is_an_error():
    with pytest.raises(np.linalg.LinAlgError, match="did not converge"):
        thin_svd(np.full((3, 3), np.nan))
