"""What is done to Gram matrices: centred, normalised, raised, averaged."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from refusals import refuses
from sklearn.preprocessing import KernelCenterer

from kernelcore._estimator import NotFittedError
from kernelcore.kernels import GramCenterer, average, normalize, power, ridge

RNG = np.random.default_rng(0)
FEATURES = RNG.normal(size=(12, 4)) + 3.0
NEW_FEATURES = RNG.normal(size=(5, 4)) - 1.0
K = FEATURES @ FEATURES.T
K_NEW = NEW_FEATURES @ FEATURES.T
DTYPES = [np.float32, np.float64]
UNARY = {
    "center": lambda K: GramCenterer().fit_transform(K), "normalize": normalize,
    "power": lambda K: power(K, 3), "ridge": lambda K: ridge(K, 2.5),
    "average": lambda K: average([K, np.multiply(K, 3.0)]),
}  # fmt: skip


@pytest.fixture(params=UNARY)
def operation(request):
    return UNARY[request.param]


@pytest.mark.parametrize("dtype", DTYPES)
def test_dtype_stays_and_the_input_is_left_alone(operation, dtype):
    given_K = K.astype(dtype)
    given_K.flags.writeable = False
    result = operation(given_K)
    assert result.dtype == dtype
    assert (given_K == K.astype(dtype)).all()
    assert not np.shares_memory(result, given_K)


def test_every_layout_gives_the_same(operation):
    expected = operation(K)
    for other in (np.asfortranarray(K), K.astype(">f8"), np.repeat(K, 2, axis=1)[:, ::2]):
        np.testing.assert_array_equal(operation(other), expected)
    for other in (K.tolist(), K.astype(np.longdouble)):
        np.testing.assert_array_equal(operation(other), expected)


def test_kinds_must_be_finite_real_matrices(operation):
    for bad in (np.nan, np.inf, -np.inf):
        broken = K.copy()
        broken[3, 2] = bad
        refuses(ValueError, r"\[3, 2\]", operation, broken)
    refuses(TypeError, "must hold real numbers", operation, K.astype(complex))
    refuses(ValueError, "2-D", operation, K[0])


def test_training_matrices_must_be_square():
    for name in ("center", "normalize", "ridge"):
        for shape in ((3, 4), (0, 0)):
            refuses(ValueError, "K", UNARY[name], np.ones(shape))


NUMBERS = st.floats(-1e150, 1e150).filter(lambda x: x == 0 or abs(x) > 1e-150)


class TestCenterer:
    def test_equals_features_minus_their_training_mean(self):
        mean = FEATURES.mean(axis=0)
        centerer = GramCenterer().fit(K)
        for rows, kernel in ((FEATURES, K), (NEW_FEATURES, K_NEW)):
            expected = (rows - mean) @ (FEATURES - mean).T
            np.testing.assert_allclose(centerer.transform(kernel), expected, atol=1e-12)
        again = GramCenterer.from_means(centerer.column_means_)
        np.testing.assert_array_equal(again.transform(K_NEW), centerer.transform(K_NEW))
        assert centerer.transform(np.empty((0, 12))).shape == (0, 12)

    @pytest.mark.parametrize("dtype", DTYPES)
    def test_equals_scikit_learn(self, dtype):
        peer = KernelCenterer().fit(K)
        centerer = GramCenterer().fit(K.astype(dtype))
        atol = 8 * np.finfo(dtype).eps * np.abs(K).max()
        for matrix in (K, K_NEW):
            found, expected = centerer.transform(matrix.astype(dtype)), peer.transform(matrix)
            np.testing.assert_allclose(found, expected, rtol=0, atol=atol)

    def test_must_be_fitted_and_given_training_columns(self):
        refuses(NotFittedError, "GramCenterer", GramCenterer().transform, K)
        refuses(ValueError, r"\(12\)", GramCenterer().fit(K).transform, K_NEW[:, :11])


class TestNormalize:
    def test_diagonal_becomes_exactly_one(self):
        values = normalize(K)
        assert (values.diagonal() == 1.0).all()
        np.testing.assert_allclose(values[2, 5], K[2, 5] / np.sqrt(K[2, 2] * K[5, 5]))

    def test_rows_against_columns(self):
        diagonals = (NEW_FEATURES**2).sum(axis=1), (FEATURES**2).sum(axis=1)
        lengths = (np.linalg.norm(A, axis=1) for A in (NEW_FEATURES, FEATURES))
        np.testing.assert_allclose(normalize(K_NEW, *diagonals), K_NEW / np.outer(*lengths))

    def test_bad_diagonals(self):
        ones = np.ones(12), np.ones(5)
        refuses(ValueError, "both or neither", normalize, K, diagonal_X=ones[0])
        refuses(ValueError, "diagonal_Y .* 12, got 5", normalize, K_NEW, ones[1], ones[1])
        refuses(ValueError, "diagonal_X .* 5, got 12", normalize, K_NEW, ones[0], ones[0])
        refuses(ValueError, "diagonal_X .* -1.0", normalize, K_NEW, -ones[1], ones[0])
        refuses(ValueError, "the diagonal of K", normalize, [[-1.0]])
        refuses(ValueError, "K must be 0 wherever", normalize, [[0.0, 2.0], [2.0, 1.0]])
        refuses(ValueError, "K must be 0 wherever", normalize, [[1.0, 2.0]], [1.0], [0.0, 1.0])

    @pytest.mark.parametrize("size", [0.0, 5e-324, 1e-200, 1e200, 1.7e308])
    def test_range_of_the_diagonal_does_not_matter(self, size):
        expected = [[float(size > 0), 0.0], [0.0, 1.0]]
        np.testing.assert_array_equal(normalize([[size, 0.0], [0.0, 2.0]]), expected)

    @given(hnp.arrays(np.float64, (6, 3), elements=NUMBERS))
    @settings(max_examples=50, deadline=None)
    def test_stays_within_one(self, features):
        values = normalize(features @ features.T)
        assert np.abs(values).max() <= 1.0 + 1e-12
        assert set(values.diagonal()) <= {0.0, 1.0}


class TestPower:
    @pytest.mark.parametrize("dtype", DTYPES)
    @pytest.mark.parametrize("exponent", [1, 2, 3, 5, 2.0, 0.5, 1.5])
    def test_equals_numpy(self, dtype, exponent):
        matrix = np.abs(K).astype(dtype)
        expected, rtol = matrix.astype(np.float64) ** exponent, 8 * np.finfo(dtype).eps
        np.testing.assert_allclose(power(matrix, exponent), expected, rtol=rtol)

    def test_whole_powers_keep_the_sign(self):
        np.testing.assert_array_equal(power([[-2.0, 1.0]], 3), [[-8.0, 1.0]])
        refuses(ValueError, "K .* -2.0", power, [[-2.0, 1.0]], 0.5)
        for odd in (0, -1, "2"):
            refuses((TypeError, ValueError), "exponent", power, K, odd)

    def test_many_row_blocks(self):
        tall = np.arange(600_000.0).reshape(-1, 3) % 7
        np.testing.assert_array_equal(power(tall, 2), tall**2)


class TestRidge:
    def test_multiplies_the_diagonal_alone(self):
        np.testing.assert_array_equal(ridge(K, 4.0), K + 3.0 * np.diag(K.diagonal()))
        refuses(ValueError, "factor", ridge, K, 0.5)


class TestAverage:
    def test_weighted_mean(self):
        others = [K, 2.0 * K, -K]
        np.testing.assert_allclose(average(others), 2.0 / 3.0 * K)
        np.testing.assert_allclose(average(others, weights=[1, 1, 2]), 0.25 * K)
        np.testing.assert_array_equal(average([K]), K)
        assert average([K.astype(np.float32), K]).dtype == np.float64

    def test_bad_input(self):
        refuses(ValueError, "at least one", average, [])
        refuses(ValueError, r"matrices .* \(12, 12\) and \(5, 12\)", average, [K, K_NEW])
        refuses(ValueError, r"matrices .* \(12, 12\) and \(12, 5\)", average, [K, K_NEW.T])
        refuses(ValueError, r"\(1\), got 2", average, [K], weights=[1, 2])
        for odd in ([0, 0], [1, -1], [1, np.nan]):
            refuses(ValueError, "weights", average, [K, K], weights=odd)
