"""The compiled pass of the checks, against NumPy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from refusals import refuses

from kernelcore import _core
from kernelcore._check import check_finite, check_non_negative, scan_gram, scan_values
from kernelcore.reference import kernels as reference

DTYPES = [np.float32, np.float64, np.uint8, np.uint16, np.uint32]


@given(array=st.sampled_from(DTYPES).flatmap(lambda d: npst.arrays(d, st.integers(0, 200))))
@settings(max_examples=150, deadline=None)
def test_equals_numpy(array):
    found, expected = scan_values(array, 2), reference.scan_values(array)
    assert found.is_finite == expected[2]
    if expected[2]:
        assert found[:2] == expected[:2]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [1, 7, 64, 100_003])
def test_every_instruction_set_and_number_of_threads(isa, dtype, n):
    array = (np.random.default_rng(n).normal(size=n) * 50 + 100).astype(dtype)
    for n_threads in (1, 2, 5):
        assert _core.scan_values(array, n_threads) == reference.scan_values(array)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [1, 3, 16, 129, 300])
def test_gap_of_a_matrix(isa, dtype, n):
    rng = np.random.default_rng(n)
    K = rng.normal(size=(n, n)).astype(dtype)
    K = (K + K.T) / 2
    assert _core.scan_gram(K, 2) == reference.scan_gram(K)
    for _ in range(5):
        i, j = rng.integers(0, n, 2)
        K[i, j] += dtype(0.5) * (i != j)
        for n_threads in (1, 3):
            copy = np.empty_like(K)
            assert _core.scan_gram(K, n_threads, copy) == reference.scan_gram(K)
            assert (copy == K).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_one_value_that_is_not_finite_is_seen_wherever_it_stands(isa, dtype, bad):
    K = np.ones((199, 199), dtype)
    for place in [0, 5, 198, 40 * 199 + 160, 150 * 199 + 3, 198 * 199 + 1, 199 * 199 - 1]:
        K.flat[place] = bad
        assert not scan_values(K, 2).is_finite
        assert not scan_gram(K, 2).is_finite
        K.flat[place] = 1
    K.flat[:2] = bad, -bad  # they do not cancel
    assert not scan_values(K, 2).is_finite


def test_the_checks_name_the_first_bad_value():
    array = np.ones((500, 900))
    assert check_finite("X", array, n_threads=2) is array
    cases = ((np.nan, check_finite), (np.nan, check_non_negative), (-2.0, check_non_negative))
    for bad, check in cases:
        array[300, 7] = array[400, 1] = bad
        refuses(ValueError, rf"^X .* {bad} at \[300, 7\]", check, "X", array, n_threads=2)


def test_what_the_pass_cannot_read_is_checked_too():
    for array in (np.ones((4, 6))[:, ::2], np.ones(3, ">f8"), np.ones(3, np.float16)):
        assert check_finite("X", array) is array
        array[-1] = np.nan
        refuses(ValueError, "^X", check_finite, "X", array)
