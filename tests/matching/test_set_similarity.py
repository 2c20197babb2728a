"""DC, TK and AP of whole batches against their definitions, and their gradients."""

import numpy as np
import pytest
from refusals import refuses, refuses_each

from kernelcore.matching import linear_assignment, set_similarity
from kernelcore.reference.matching import set_similarity as reference_similarity

CASES = [("DC", None), *((method, k) for method in ("TK", "AP") for k in (None, "half", 2))]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("method", "k"), CASES)
def test_equals_the_definition(isa, method, k, dtype):
    rng = np.random.default_rng(1)
    S = rng.uniform(-1, 1, (30, 44)).astype(dtype)
    rows, cols = [0, 3, 4, 14, 30], [0, 1, 10, 22, 40, 44]
    expected = reference_similarity(S, rows, cols, method=method, k=k)
    found = set_similarity(S, rows, cols, method=method, k=k, return_selected=True)
    assert found.values.dtype == found.weights.dtype == dtype
    np.testing.assert_allclose(found.values, expected, atol=200 * np.finfo(dtype).eps)
    alone = set_similarity(S, rows, cols, method=method, k=k, n_threads=3)
    np.testing.assert_array_equal(alone, found.values)
    weighed = S[found.rows, found.cols] * found.weights.astype(float)
    sums = np.add.reduceat(weighed, found.offsets[:-1])
    np.testing.assert_allclose(sums.reshape(expected.shape), expected, rtol=1e-5, atol=1e-5)


def test_the_first_of_equal_entries_is_selected():
    sets = [[1.0, 2.0, 2.0], [3.0, 2.0, 2.0]], [0, 2], [0, 3]
    found = set_similarity(*sets, method="DC", return_selected=True)
    assert found.rows.tolist() == [0, 1, 1, 0, 0]
    assert found.cols.tolist() == [1, 0, 0, 1, 2]
    np.testing.assert_allclose(found.weights, [1 / 2] * 2 + [1 / 3] * 3)
    greatest = set_similarity(*sets, method="TK", k=1, return_selected=True)
    assert (greatest.rows.tolist(), greatest.cols.tolist()) == ([1, 1], [0, 0])
    assert greatest.values.tolist() == [[6.0]]
    large = np.random.default_rng(0).integers(0, 9, (400, 400)).astype(np.float64)
    found = set_similarity(large, [0, 400], [0, 400], method="DC", return_selected=True)
    assert found.cols[:400].tolist() == large.argmax(axis=1).tolist()
    assert found.rows[400:].tolist() == large.argmax(axis=0).tolist()


def test_ap_selects_the_links_of_each_block():
    S = np.random.default_rng(2).normal(size=(9, 12))
    found = set_similarity(S, [0, 4, 9], [0, 7, 12], k=3, return_selected=True)
    for pair, (row, col) in enumerate([(0, 0), (0, 7), (4, 0), (4, 7)]):
        block = S[row : 9 if row else 4, col : 12 if col else 7]
        rows, cols = linear_assignment(block, maximize=True, k=3)
        entries = slice(found.offsets[pair], found.offsets[pair + 1])
        assert found.rows[entries].tolist() == (rows + row).tolist()
        assert found.cols[entries].tolist() == (cols + col).tolist()


@pytest.mark.parametrize(("method", "k"), CASES)
def test_gradients_are_finite_differences(method, k):
    rng = np.random.default_rng(3)
    S, rows, cols = rng.normal(size=(7, 9)), [0, 3, 7], [0, 5, 9]
    upstream = rng.normal(size=(2, 2))
    found = set_similarity(S, rows, cols, method=method, k=k, return_selected=True)
    gradient = found.gradient(upstream)
    step, numeric = 1e-6, np.empty_like(S)
    for place in np.ndindex(*S.shape):
        sides = []
        for sign in (1, -1):
            moved = S.copy()
            moved[place] += sign * step
            values = set_similarity(moved, rows, cols, method=method, k=k)
            sides.append((values * upstream).sum())
        numeric[place] = (sides[0] - sides[1]) / (2 * step)
    np.testing.assert_allclose(gradient, numeric, atol=1e-8)


ODD = {
    "S": [[1.0], [[np.nan]], [[-np.inf]], [["a"]]],
    "row_offsets": [[0], [0, 2], [0, 0, 1], [0.0, 1.0]], "col_offsets": [[1], []],
    "method": ["XY"], "k": [0, "most"],
}  # fmt: skip


def test_bad_input_is_named():
    usual = {"S": [[1.0]], "row_offsets": [0, 1], "col_offsets": [0, 1]}
    refuses_each(set_similarity, ODD, **usual)
    refuses(ValueError, "k", set_similarity, **usual, k=1, method="DC")
    found = set_similarity(**usual, return_selected=True)
    refuses(ValueError, r"upstream .* \(1, 1\), got \(2, 1\)", found.gradient, [[1.0], [2.0]])


def test_no_sets_at_all():
    found = set_similarity(np.empty((0, 2)), [0], [0, 2], return_selected=True)
    assert found.values.shape == (0, 1)
    assert found.gradient(np.empty((0, 1))).shape == (0, 2)


@pytest.mark.parametrize("method", ["AP", "DC", "TK"])
def test_one_set_of_rows_is_shared_among_threads(method):
    """Many sets of columns are several tasks, which progress counts."""
    S, cols = np.ones((40, 20_000), np.float32), range(0, 20_001, 10)
    totals = []
    report = lambda _, total: totals.append(total)  # noqa: E731
    set_similarity(S, [0, 40], cols, method=method, n_threads=2, progress=report)
    assert totals[-1] > 1


def test_the_reference_finds_the_best_links_of_small_numbers():
    S = np.array([[-8.0, 3.4], [3.1088, 1.2], [3.0127, 4.8]]) * 1e-6
    found = set_similarity(S, [0, 3], [0, 1, 2])
    np.testing.assert_allclose(found, reference_similarity(S, [0, 3], [0, 1, 2]))
    assert found[0, 0] == S[1, 0]
