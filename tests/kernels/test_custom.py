"""Kernels that a user writes and Numba compiles, against the reference and scikit-learn."""

import copy
import pickle
import sys
import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refuses

from kernelcore._extras import MissingExtraError
from kernelcore.captions import EncodedCaptions
from kernelcore.kernels import custom, histogram_intersection
from kernelcore.reference.kernels import custom as reference_custom

numba = pytest.importorskip("numba", reason="user kernels need Numba: extra jit")


@numba.njit
def intersection(x, y):
    total = 0.0
    for k in range(len(x)):
        total += min(x[k], y[k])
    return total


@numba.njit
def weighted_difference(x, y):
    """Neither symmetric nor of equal lengths, and different for every order of the words."""
    total = 0.5
    for k in range(len(x)):
        total += (k + 1) * x[k]
    for k in range(len(y)):
        total -= (k + 2) * y[k]
    return total


@numba.njit
def shared_words(x, y):
    return len(set(x) & set(y)) / max(len(x), len(y), 1)


INTERSECTION, DIFFERENCE = custom(intersection), custom(weighted_difference, symmetric=False)
SHARED = custom(shared_words)

ragged = st.lists(st.lists(st.integers(-9, 9), max_size=4), max_size=7)


@given(X=ragged, Y=ragged, n_threads=st.integers(1, 5))
@settings(max_examples=40, deadline=None)
def test_equals_the_reference(X, Y, n_threads):
    for second in (None, Y):
        K = DIFFERENCE(X, second, n_threads=n_threads)
        sides = ([[item] for item in side] for side in (X, X if second is None else Y))
        np.testing.assert_array_equal(K, reference_custom(weighted_difference.py_func, *sides))
        assert K.dtype == np.float64


images = st.lists(st.lists(st.lists(st.integers(-2, 3), max_size=4), max_size=3), max_size=6)


@given(X=images, Y=images)
@settings(max_examples=40, deadline=None)
def test_captions_are_averaged_by_image(X, Y):
    sides = [EncodedCaptions.from_lists(side, n_words=4) for side in (X, Y)]
    expected = reference_custom(weighted_difference.py_func, X, Y)
    np.testing.assert_array_equal(DIFFERENCE(*sides), expected)
    K = SHARED(sides[0])
    np.testing.assert_allclose(K, reference_custom(shared_words.py_func, X, X), rtol=1e-14)
    np.testing.assert_array_equal(K, K.T)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.uint8, np.int64, bool, ">f4"])
@pytest.mark.parametrize("n_columns", [1, 300])
def test_agrees_with_the_compiled_kernel(dtype, n_columns):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 50, (150, n_columns)).astype(dtype)
    Y = np.asfortranarray(rng.integers(0, 50, (17, n_columns)).astype(dtype))
    for second in (None, Y):
        K = INTERSECTION(X, second)
        assert K.dtype == (np.float32 if np.dtype(dtype).str[1:] == "f4" else np.float64)
        np.testing.assert_array_equal(K, histogram_intersection(X, second))
    np.testing.assert_array_equal(INTERSECTION(X[::3], Y), INTERSECTION(X, Y)[::3])


def test_agrees_with_scikit_learn():
    pairwise = pytest.importorskip("sklearn.metrics.pairwise")

    @numba.njit
    def chi2(x, y):
        total = 0.0
        for k in range(len(x)):
            if x[k] + y[k] > 0:
                total += (x[k] - y[k]) ** 2 / (x[k] + y[k])
        return np.exp(-total)

    X = np.random.default_rng(1).random((90, 12))
    np.testing.assert_allclose(custom(chi2)(X), pairwise.chi2_kernel(X), rtol=1e-12)


def test_dtypes_are_brought_together():
    @numba.njit
    def bytes_each(x, y):
        return x.itemsize + 10 * y.itemsize

    gram = custom(bytes_each)
    small, wide, single = (np.ones((2, 3), kind) for kind in (np.int8, np.int32, np.float32))
    assert gram(small).tolist() == [[11, 11]] * 2
    assert gram(small, wide)[0, 0] == 44
    assert gram(wide, single)[0, 0] == 88
    assert gram([[1.5], np.ones(2, np.float32), []])[0, 1] == 88
    huge = np.full((1, 3), 2**60)
    assert gram(huge)[0, 0] == 88
    refuses(ValueError, r"X .* 2\*\*53", gram, huge, single)


def test_half_of_a_symmetric_matrix_is_computed():
    @numba.njit
    def order(x, y):
        return x[0] - y[0]

    X = [[3], [1], [2]]
    assert custom(order)(X).tolist() == [[0, 2, 1], [2, 0, -1], [1, -1, 0]]
    assert custom(order, symmetric=False)(X).tolist() == [[0, 2, 1], [-2, 0, -1], [-1, 1, 0]]
    assert custom(order)(X, X).tolist() == [[0, 2, 1], [-2, 0, -1], [-1, 1, 0]]


def test_copies_work():
    for again in (copy.deepcopy(SHARED), pickle.loads(pickle.dumps(SHARED))):
        assert again([[1, 2], [2]]).tolist() == SHARED([[1, 2], [2]]).tolist()


@pytest.mark.parametrize(("n_columns", "n_tiles"), [(None, 5 * 3), (500, 5**2), (70, 5)])
def test_progress_is_told_from_the_calling_thread(n_columns, n_tiles):
    """Two threads cut the longer side five times."""
    told, X = [], np.ones((500, 3))
    Y = None if n_columns is None else X[:n_columns]
    INTERSECTION(
        X, Y, n_threads=2, progress=lambda *step: told.append((threading.get_ident(), *step))
    )
    assert {thread for thread, _, _ in told} == {threading.get_ident()}
    assert told[-1][1:] == (n_tiles, n_tiles)


@pytest.fixture(scope="module", params=[False, True], ids="fastmath={}".format)
def product(request):
    @numba.njit(fastmath=request.param)
    def product(x, y):
        return x[0] * y[0]

    return custom(product)


@pytest.mark.parametrize("n_threads", [1, 3])
def test_results_that_are_not_finite_are_refused(product, n_threads):
    X = np.ones((200, 1))
    X[150] = np.nan
    threads, one = {"n_threads": n_threads}, np.ones((1, 1))
    refuses(ValueError, r"nan for X\[\d+\] and X\[150\]", product, X, **threads)
    refuses(ValueError, r"nan for X\[150\] and Y\[0\]", product, X, one, **threads)
    refuses(ValueError, r"inf for X\[0\] and X\[0\]", product, [[1e30]], dtype=np.float32)


def test_exceptions_of_the_function_come_out():
    @numba.njit
    def picky(x, y):
        if x[0] == 120 and y[0] == 130:
            raise KeyError("no such pair")
        return 1.0

    gram = custom(picky)
    for n_threads in (1, 3):
        with pytest.raises(KeyError, match="no such pair"):
            gram(np.arange(200)[:, None], n_threads=n_threads)
        assert (gram(np.arange(100)[:, None], n_threads=n_threads) == 1).all()


def test_items_cannot_be_changed():
    @numba.njit
    def overwrite(x, y):
        x[0] = y[0]
        return 0.0

    X = np.ones((2, 2))
    refuses(TypeError, "fn .* read-only", custom(overwrite), X)
    assert (X == 1).all()
    assert X.flags.writeable


def test_wrong_functions():
    for wrong in (lambda x, y: 1j, lambda x, y: x.foo, lambda x: 1.0, lambda x, y: None):
        refuses(TypeError, "fn .* float64", custom(numba.njit(wrong)), np.ones((2, 2)))
    refuses(TypeError, "fn", custom, intersection.py_func)
    parallel = numba.njit(parallel=True)(intersection.py_func)
    refuses(ValueError, "fn .* parallel=True", custom, parallel)
    refuses(TypeError, "symmetric", custom, intersection, symmetric=1)
    captions = EncodedCaptions.from_lists([])
    refuses(TypeError, "Y must be EncodedCaptions", INTERSECTION, captions, [[1]])


def test_without_numba(monkeypatch):
    for module in ("numba", "numba.core.dispatcher"):
        monkeypatch.setitem(sys.modules, module, None)
    refuses(MissingExtraError, r"kernelcore\[jit\]", custom, intersection)
