"""Square roots of features."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from kernelcore.images import square_roots

ROWS = arrays(np.float32, st.tuples(st.integers(0, 5), st.integers(1, 6)), elements=st.floats(
    -(2.0**99), 2.0**99, width=32
))  # fmt: skip


@given(ROWS)
def test_rows_have_length_one_and_keep_their_signs(rows):
    found = square_roots(rows)
    assert found.dtype == np.float32
    filled = np.abs(rows).max(axis=1, initial=0) > 1e-20
    np.testing.assert_allclose(np.linalg.norm(found[filled], axis=1), 1, rtol=1e-5)
    assert (found * np.sign(rows) >= 0).all()


def test_entries_are_roots_of_their_share():
    rows = np.array([[1.0, -4.0, 9.0, 0.0]], np.float32)
    np.testing.assert_allclose(square_roots(rows), [[1, -2, 3, 0]] / np.sqrt(14), rtol=1e-6)
    np.testing.assert_array_equal(square_roots(np.zeros((2, 3), np.float32)), np.zeros((2, 3)))


@pytest.mark.parametrize(
    ("features", "error", "message"),
    [
        ([1.0, 2.0], ValueError, "features must be a 2-D array"),
        ([[1.0, np.nan]], ValueError, "features must be finite"),
        ([[1e300]], ValueError, "features must fit into float32"),
        ([[0.0], [1e-60]], ValueError, r"features must fit into float32, got a row .* \[1\]"),
        ([[1j]], TypeError, "features must"),
        ([["a"]], TypeError, "features must"),
    ],
)
def test_what_is_no_table_of_numbers_is_refused(features, error, message):
    with pytest.raises(error, match=message):
        square_roots(features)


def test_other_numbers_become_float32():
    found = square_roots(np.array([[4, 0], [0, 9]], ">i2"))
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, np.eye(2))
