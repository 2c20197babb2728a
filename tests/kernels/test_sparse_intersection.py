import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics.pairwise import manhattan_distances

from kernelcore import _core
from kernelcore.kernels import histogram_intersection
from kernelcore.reference.kernels import (
    histogram_intersection as reference_intersection,
)

DTYPES = [np.float32, np.float64, np.uint8, np.uint16, np.uint32]


def sparse_histograms(rng, n, d, dtype, density=0.2):
    dense = rng.integers(0, 200, (n, d)) * (rng.random((n, d)) < density)
    if np.dtype(dtype).kind == "f":
        return sp.csr_array((dense / 7).astype(dtype))
    return sp.csr_array(dense.astype(dtype))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("m", "n", "d"), [(1, 1, 1), (5, 7, 30), (130, 70, 200), (3, 0, 5)])
def test_equals_the_reference(dtype, m, n, d):
    rng = np.random.default_rng(d)
    X, Y = sparse_histograms(rng, m, d, dtype), sparse_histograms(rng, n, d, dtype)
    K = histogram_intersection(X, Y)
    exact = [A.toarray() if A.dtype.kind == "u" else A.toarray().astype(float) for A in (X, Y)]
    expected = reference_intersection(*exact)
    assert K.dtype == (np.uint64 if np.dtype(dtype).kind == "u" else dtype)
    if np.dtype(dtype).kind == "u":
        assert (expected == K).all()
    else:  # d additions in float64, rounded once
        rtol = d * np.finfo(np.float64).eps + np.finfo(dtype).eps
        np.testing.assert_allclose(K, expected, rtol=rtol)
    symmetric = histogram_intersection(X)
    assert (symmetric == symmetric.T).all()
    assert symmetric.tobytes() == histogram_intersection(X, X.copy()).tobytes()


@given(
    rows=st.lists(
        st.dictionaries(st.integers(0, 12), st.integers(0, 2**32 - 1), max_size=8), min_size=1
    )
)
@settings(max_examples=60, deadline=None)
def test_counts_are_exact(rows):
    dense = np.zeros((len(rows), 13), np.uint32)
    for row, counts in enumerate(rows):
        for bin_, count in counts.items():
            dense[row, bin_] = count
    K = histogram_intersection(sp.csr_array(dense))
    assert (reference_intersection(dense, dense) == K).all()


@pytest.mark.parametrize("to", ["csr", "csc", "coo", "lil", "dok", "bsr", "dia"])
def test_any_format(to):
    X = sparse_histograms(np.random.default_rng(0), 6, 9, np.uint16)
    expected = reference_intersection(X.toarray(), X.toarray())
    assert (histogram_intersection(X.asformat(to)) == expected).all()
    assert (histogram_intersection(sp.csr_matrix(X).asformat(to)) == expected).all()


def test_unsorted_and_repeated_entries_are_put_in_order_and_added_up():
    X = sp.csr_array(
        (np.array([200, 7, 100], np.uint8), np.array([2, 0, 2]), np.array([0, 3])),
        shape=(1, 3),
    )
    before = X.data.copy()
    Y = sp.csr_array(np.array([[5, 9, 255]], np.uint8))
    assert histogram_intersection(X).tolist() == [[307]]
    assert histogram_intersection(X, Y).tolist() == [[260]]
    coordinates = sp.coo_array(([200, 100], ([0, 0], [1, 1])), shape=(1, 2), dtype=np.uint8)
    assert histogram_intersection(coordinates).tolist() == [[300]]
    assert (X.data == before).all()
    assert X.indices.tolist() == [2, 0, 2]


def test_types_mix_as_for_dense_input():
    X = sparse_histograms(np.random.default_rng(1), 4, 9, np.uint8)
    for dtype, result in ((np.uint32, np.uint64), (np.float32, np.float64)):
        K = histogram_intersection(X, X.astype(dtype))
        dense = histogram_intersection(X.toarray(), X.toarray().astype(dtype))
        assert K.dtype == dense.dtype == result
        assert (dense == K).all()
    assert histogram_intersection(X.astype(np.int64)).dtype == np.float64
    assert histogram_intersection(X.astype(bool)).dtype == np.float64


def test_agrees_with_city_block_distance():
    rng = np.random.default_rng(2)
    X = sp.random_array((20, 300), density=0.1, rng=rng, format="csr")
    Y = sp.random_array((30, 300), density=0.1, rng=rng, format="csr")
    peer = (X.sum(1)[:, None] + Y.sum(1) - manhattan_distances(X, Y)) / 2
    np.testing.assert_allclose(histogram_intersection(X, Y), peer, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("n_threads", [2, 3, 8])
def test_same_bits_for_every_number_of_threads(n_threads):
    X = sparse_histograms(np.random.default_rng(3), 300, 400, np.float32)
    one = histogram_intersection(X, n_threads=1)
    assert histogram_intersection(X, n_threads=n_threads).tobytes() == one.tobytes()


def test_out_and_progress(tmp_path):
    X = sparse_histograms(np.random.default_rng(4), 80, 30, np.float32)
    out = np.memmap(tmp_path / "K.bin", np.float32, "w+", shape=(80, 80))
    seen = []
    K = histogram_intersection(
        X, out=out, n_threads=1, progress=lambda *steps: seen.append(steps)
    )
    assert K is out
    assert (histogram_intersection(X) == out).all()
    assert seen[-1][0] == seen[-1][1]
    with pytest.raises(TypeError, match="out must have dtype float32"):
        histogram_intersection(X, out=np.empty((80, 80)))


def test_empty_rows_and_no_bins():
    assert (histogram_intersection(sp.csr_array((3, 5))) == 0).all()
    assert histogram_intersection(sp.csr_array((0, 5))).shape == (0, 0)


def damaged(**parts):
    X = sp.csr_array(np.eye(3))
    for name, values in parts.items():
        setattr(X, name, np.array(values, getattr(X, name).dtype))
    return X


@pytest.mark.parametrize(
    ("X", "Y", "error", "message"),
    [
        (sp.eye_array(3), np.eye(3), TypeError, "X and Y must both be sparse or both be dense"),
        (np.eye(3), sp.eye_array(3), TypeError, "both be sparse"),
        (sp.eye_array(3), sp.eye_array(4), ValueError, r"as many bins as X \(3\), got 4"),
        (-sp.eye_array(3), None, ValueError, "X must be non-negative, got -1.0"),
        (damaged(data=[1, np.nan, 1]), None, ValueError, "X must be finite, got nan"),
        (sp.eye_array(3) * 1j, None, TypeError, "X must hold real numbers"),
        (
            sp.coo_array(np.ones(3)),
            None,
            ValueError,
            r"X must be a 2-D array, got shape \(3,\)",
        ),
        (sp.csr_array((2, 2**31)), None, ValueError, r"X must have less than 2\*\*31 bins"),
        (damaged(indices=[0, 1, 3]), None, ValueError, "X must be a valid sparse array"),
        (damaged(indices=[0, -1, 2]), None, ValueError, "X must be a valid sparse array"),
        (damaged(indptr=[0, 2, 1, 3]), None, ValueError, "X must be a valid sparse array"),
    ],
)
def test_bad_input_is_named(X, Y, error, message):
    with pytest.raises(error, match=message):
        histogram_intersection(X, Y)


def test_repeated_counts_must_fit_into_32_bits():
    most = np.array([2**32 - 1, 1], np.uint32)
    X = sp.csr_array((most, np.array([0, 0]), np.array([0, 2])), shape=(1, 1))
    with pytest.raises(ValueError, match=r"X must hold counts below 2\*\*32, got 4294967296"):
        histogram_intersection(X)


def test_the_core_checks_lengths_once_more():
    X = (np.array([0, 1]), np.array([0], np.int32), np.ones(1))
    for bad in (
        (X[0], X[1], np.ones(2)),
        (np.array([0, 2]), X[1], X[2]),
    ):
        with pytest.raises(ValueError, match=r"count|offsets"):
            _core.sparse_intersection(bad, X, 3, np.empty((1, 1)), 1, None)
    with pytest.raises(TypeError):
        _core.sparse_intersection(X, (X[0], X[1], np.ones(1, np.float32)), 3, X[2], 1, None)
