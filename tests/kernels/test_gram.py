import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.base import clone
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
    "center": lambda K: GramCenterer().fit_transform(K),
    "normalize": normalize,
    "power": lambda K: power(K, 3),
    "ridge": lambda K: ridge(K, 2.5),
    "average": lambda K: average([K, np.multiply(K, 3.0)]),
}


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


@pytest.mark.parametrize(
    "layout",
    [
        np.asfortranarray,
        lambda A: A.astype(">f8"),
        lambda A: np.repeat(A, 2, axis=1)[:, ::2],
        lambda A: A.tolist(),
        lambda A: A.astype(np.longdouble),
    ],
    ids=["fortran", "byte-swapped", "strided", "lists", "longdouble"],
)
def test_every_layout_gives_the_same(operation, layout):
    np.testing.assert_array_equal(operation(layout(K)), operation(K))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_values_must_be_finite(operation, bad):
    broken = K.copy()
    broken[3, 2] = bad
    with pytest.raises(ValueError, match=r"must be finite, got .* at \[3, 2\]"):
        operation(broken)


def test_kinds_must_be_real_matrices(operation):
    with pytest.raises(TypeError, match="must hold real numbers"):
        operation(K.astype(complex))
    with pytest.raises(ValueError, match="must be a 2-D array"):
        operation(K[0])


@pytest.mark.parametrize("function", [UNARY["center"], UNARY["normalize"], UNARY["ridge"]])
@pytest.mark.parametrize("shape", [(3, 4), (0, 0)])
def test_training_matrices_must_be_square(function, shape):
    with pytest.raises(ValueError, match=r"K must be square and not empty, got shape \("):
        function(np.ones(shape))


class TestCenterer:
    def test_equals_features_minus_their_training_mean(self):
        mean = FEATURES.mean(axis=0)
        centerer = GramCenterer()
        np.testing.assert_allclose(
            centerer.fit_transform(K), (FEATURES - mean) @ (FEATURES - mean).T, atol=1e-12
        )
        np.testing.assert_allclose(
            centerer.transform(K_NEW), (NEW_FEATURES - mean) @ (FEATURES - mean).T, atol=1e-12
        )

    @pytest.mark.parametrize("dtype", DTYPES)
    def test_equals_scikit_learn(self, dtype):
        peer = KernelCenterer().fit(K)
        centerer = GramCenterer().fit(K.astype(dtype))
        tolerance = 8 * np.finfo(dtype).eps * np.abs(K).max()
        for matrix in (K, K_NEW):
            np.testing.assert_allclose(
                centerer.transform(matrix.astype(dtype)),
                peer.transform(matrix),
                rtol=0,
                atol=tolerance,
            )

    def test_from_means_is_the_fitted_one(self):
        fitted = GramCenterer().fit(K)
        again = GramCenterer.from_means(fitted.column_means_)
        np.testing.assert_array_equal(again.transform(K_NEW), fitted.transform(K_NEW))

    def test_must_be_fitted_and_given_training_columns(self):
        with pytest.raises(NotFittedError, match="GramCenterer must be fitted first"):
            GramCenterer().transform(K)
        with pytest.raises(ValueError, match=r"one column per training sample \(12\)"):
            GramCenterer().fit(K).transform(K_NEW[:, :11])

    def test_no_rows_are_no_rows(self):
        assert GramCenterer().fit(K).transform(np.empty((0, 12))).shape == (0, 12)

    def test_clones(self):
        assert isinstance(clone(GramCenterer()), GramCenterer)


class TestNormalize:
    def test_diagonal_becomes_exactly_one(self):
        values = normalize(K)
        assert (values.diagonal() == 1.0).all()
        np.testing.assert_allclose(values[2, 5], K[2, 5] / np.sqrt(K[2, 2] * K[5, 5]))

    def test_rows_against_columns(self):
        diagonals = (NEW_FEATURES**2).sum(axis=1), (FEATURES**2).sum(axis=1)
        lengths = (np.linalg.norm(A, axis=1) for A in (NEW_FEATURES, FEATURES))
        np.testing.assert_allclose(normalize(K_NEW, *diagonals), K_NEW / np.outer(*lengths))

    def test_zero_length_gives_zero(self):
        np.testing.assert_array_equal(
            normalize([[0.0, 0.0], [0.0, 2.0]]), [[0.0, 0.0], [0.0, 1.0]]
        )

    def test_both_diagonals_or_neither(self):
        with pytest.raises(ValueError, match="both or neither"):
            normalize(K, diagonal_X=np.ones(12))
        with pytest.raises(ValueError, match="diagonal_Y must have length 12, got 5"):
            normalize(K_NEW, np.ones(5), np.ones(5))
        with pytest.raises(ValueError, match=r"diagonal_X must be non-negative, got -1.0"):
            normalize(K_NEW, -np.ones(5), np.ones(12))
        with pytest.raises(ValueError, match="the diagonal of K must be non-negative"):
            normalize([[-1.0]])

    @pytest.mark.parametrize("size", [5e-324, 1e-200, 1e200, 1.7e308])
    def test_range_of_the_diagonal_does_not_matter(self, size):
        np.testing.assert_array_equal(
            normalize([[size, 0.0], [0.0, 1.0]]), [[1.0, 0.0], [0.0, 1.0]]
        )

    @given(
        hnp.arrays(
            np.float64,
            (6, 3),
            elements=st.floats(-1e150, 1e150).filter(lambda x: x == 0 or abs(x) > 1e-150),
        )
    )
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
        np.testing.assert_allclose(
            power(matrix, exponent),
            matrix.astype(np.float64) ** exponent,
            rtol=8 * np.finfo(dtype).eps,
        )

    def test_whole_powers_keep_the_sign(self):
        np.testing.assert_array_equal(power([[-2.0, 1.0]], 3), [[-8.0, 1.0]])
        with pytest.raises(ValueError, match=r"K must be non-negative, got -2.0"):
            power([[-2.0, 1.0]], 0.5)

    @pytest.mark.parametrize("exponent", [0, -1])
    def test_exponent_must_be_positive(self, exponent):
        with pytest.raises(ValueError, match="exponent must be a number >"):
            power(K, exponent)

    def test_exponent_must_be_a_number(self):
        with pytest.raises(TypeError, match="exponent must be a real number"):
            power(K, "2")

    def test_many_row_blocks(self):
        tall = np.arange(600_000.0).reshape(-1, 3) % 7
        np.testing.assert_array_equal(power(tall, 2), tall**2)


class TestRidge:
    def test_multiplies_the_diagonal_alone(self):
        np.testing.assert_array_equal(ridge(K, 4.0), K + 3.0 * np.diag(K.diagonal()))

    def test_factor_is_at_least_one(self):
        with pytest.raises(ValueError, match=r"factor must be a number >= 1.0, got 0.5"):
            ridge(K, 0.5)


class TestAverage:
    def test_weighted_mean(self):
        others = [K, 2.0 * K, -K]
        np.testing.assert_allclose(average(others), 2.0 / 3.0 * K)
        np.testing.assert_allclose(average(others, weights=[1, 1, 2]), 0.25 * K)

    def test_one_matrix_is_itself(self):
        np.testing.assert_array_equal(average([K]), K)

    def test_wider_dtype_wins(self):
        assert average([K.astype(np.float32), K]).dtype == np.float64

    @pytest.mark.parametrize(
        ("matrices", "weights", "message"),
        [
            ([], None, "must hold at least one"),
            ([K, K_NEW], None, r"matrices must have one shape, got \(12, 12\) and \(5, 12\)"),
            ([K], [1, 2], r"one entry per matrix \(1\), got 2"),
            ([K, K], [0, 0], "weights must not all be zero"),
            ([K, K], [1, -1], "weights must be non-negative"),
            ([K, K], [1, np.nan], "weights must be finite"),
        ],
    )
    def test_bad_input(self, matrices, weights, message):
        with pytest.raises(ValueError, match=message):
            average(matrices, weights=weights)


def test_normalize_refuses_similarities_of_a_sample_of_length_zero():
    with pytest.raises(ValueError, match="K must be 0 wherever"):
        normalize([[0.0, 2.0], [2.0, 1.0]])
    np.testing.assert_array_equal(normalize([[0.0, 0.0], [0.0, 4.0]]), [[0, 0], [0, 1]])
