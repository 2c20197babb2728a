"""Links of the least and greatest sum against SciPy, brute force, and the duals' proof."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from refusals import refuses, refuses_each
from scipy.optimize import linear_sum_assignment, linprog

from kernelcore.matching import k_cardinality_assignments, linear_assignment, linear_assignments
from kernelcore.reference import matching as reference

SHAPES = [
    (1, 1), (1, 5), (5, 1), (4, 4), (7, 17), (17, 7), (16, 16), (5, 50), (33, 40), (70, 66),
]  # fmt: skip
# Widths around the vectors of every instruction set, for either dtype.
WIDTHS = [7, 8, 9, 15, 16, 17, 31, 33, 64, 65]


def tolerance(cost):
    """Rounding of the duals, which add up along the links made before."""
    finite = np.abs(cost[np.isfinite(cost)])
    n = min(cost.shape)
    return 4 * n**2 * float(np.finfo(cost.dtype).eps) * float(finite.max(initial=0.0))


def total(cost, links):
    return float(sum(float(cost[i, j]) for i, j in zip(*links, strict=True)))


def check_links(cost, links, k):
    rows, cols = links
    assert rows.dtype == cols.dtype == np.int64
    assert len(rows) == len(cols) == k
    assert (np.diff(rows) > 0).all()
    assert len(set(cols.tolist())) == k
    assert np.isfinite(cost[rows, cols]).all()


def check_duals(cost, links, duals, maximize, atol):
    """Weak duality: no assignment of as many links is better than these."""
    sign = -1 if maximize else 1
    c, d = sign * cost.astype(float), sign * duals.link
    u, v = sign * duals.rows.astype(float), sign * duals.cols.astype(float)
    assert (u <= atol).all()
    assert (v <= atol).all()
    slack = c - d - u[:, np.newaxis] - v
    assert (slack >= -atol).all()
    rows, cols = links
    assert (np.abs(slack[rows, cols]) <= atol).all()
    assert (np.delete(u, rows) == 0).all()
    assert (np.delete(v, cols) == 0).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("maximize", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
def test_full_assignment_equals_scipy_with_its_proof(isa, shape, maximize, dtype):
    rng = np.random.default_rng(shape[0])
    for scale in (1.0, 1e-30, 1e30):
        cost = (rng.normal(size=shape) * scale).astype(dtype)
        *links, duals = linear_assignment(cost, maximize=maximize, return_duals=True)
        check_links(cost, links, min(shape))
        expected = total(cost, linear_sum_assignment(cost, maximize))
        assert total(cost, links) == pytest.approx(expected, rel=0, abs=tolerance(cost))
        check_duals(cost, links, duals, maximize, tolerance(cost))
        assert duals.rows.dtype == duals.cols.dtype == dtype


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("width", WIDTHS)
def test_every_width_and_every_k(isa, width, dtype):
    rng = np.random.default_rng(width)
    cost = rng.integers(-9, 9, (6, width)).astype(dtype)  # exact, with many ties
    for matrix in (cost, np.ascontiguousarray(cost.T)):
        for maximize in (False, True):
            found = k_cardinality_assignments(matrix, maximize=maximize)
            expected = reference.k_cardinality_assignments(matrix, maximize=maximize)
            assert len(found) == len(expected) == 6
            for k, links in enumerate(expected, start=1):
                check_links(matrix, found[k - 1], k)
                assert found.totals[k - 1] == sum(matrix[link] for link in links)
                options = {"maximize": maximize, "k": k, "return_duals": True}
                *one, duals = linear_assignment(matrix, **options)
                assert total(matrix, one) == found.totals[k - 1]
                check_duals(matrix, one, duals, maximize, 0)
            assert (np.diff(found.totals, n=2) * (-1 if maximize else 1) >= 0).all()


NUMBERS = st.integers(-3, 3) | st.integers(-1000, 1000)
matrices = st.tuples(st.integers(1, 4), st.integers(1, 5)).flatmap(
    lambda shape: hnp.arrays(np.float64, shape, elements=NUMBERS)
)


@given(cost=matrices, data=st.data())
@settings(max_examples=60, deadline=None)
def test_fractions_of_links_are_no_better(cost, data):
    """The constraints are totally unimodular: the linear programme has the same optimum."""
    k = data.draw(st.integers(1, min(cost.shape)))
    places = np.arange(cost.size).reshape(cost.shape)
    lines = np.array([np.isin(places, line).ravel() for line in [*places, *places.T]])
    at_most_one, all_links = (lines, np.ones(len(lines))), (np.ones((1, cost.size)), [k])
    relaxed = linprog(cost.ravel(), *at_most_one, *all_links, bounds=(0, 1))
    *links, duals = linear_assignment(cost, k=k, return_duals=True)
    assert total(cost, links) == pytest.approx(relaxed.fun, abs=1e-6)
    proven = k * duals.link + duals.rows.sum() + duals.cols.sum()
    assert total(cost, links) == pytest.approx(proven, abs=1e-9)


@given(
    cost=matrices, threshold=st.one_of(st.integers(-4, 4), st.sampled_from([-np.inf, np.inf])),
    forbidden=st.integers(0, 2**20 - 1), k=st.one_of(st.none(), st.integers(1, 5)),
    maximize=st.booleans(),
)  # fmt: skip
@settings(max_examples=250, deadline=None)
def test_thresholds_and_forbidden_pairs(cost, threshold, forbidden, k, maximize):
    cost = cost.copy()
    places = [e for e in range(cost.size) if forbidden >> e & 1]
    cost.flat[places] = -np.inf if maximize else np.inf
    options = {"maximize": maximize, "k": k, "threshold": threshold}
    rows, cols = linear_assignment(cost, **options)
    (expected,) = reference.linear_assignments([cost], **options)
    check_links(cost, (rows, cols), len(expected))
    assert total(cost, (rows, cols)) == sum(cost[link] for link in expected)
    chosen = cost[rows, cols]
    assert ((chosen >= threshold) if maximize else (chosen <= threshold)).all()


def test_a_threshold_is_a_price():
    """Two links of 0.5 are worth no more than one of 0.9 where each must beat 0.4."""
    similarity = [[0.9, 0.5], [0.5, -1.0]]
    assert linear_assignment(similarity, maximize=True)[0].tolist() == [0, 1]
    rows, cols = linear_assignment(similarity, maximize=True, threshold=0.4)
    assert (rows.tolist(), cols.tolist()) == ([0], [0])
    assert not linear_assignment(similarity, maximize=True, threshold=0.91)[0].size
    # At the threshold a link is made; float32 costs meet it as float32 numbers.
    cost = np.array([[0.1]], np.float32)
    assert linear_assignment(cost, threshold=0.1)[0].size == 1
    assert linear_assignment(cost, maximize=True, threshold=0.1)[0].size == 1


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("value", [0.0, -1.0, 1e-310, -3e38, 3e38])
def test_equal_costs(value, dtype):
    cost = np.full((20, 30), value, dtype)
    rows, cols = linear_assignment(cost)
    assert rows.tolist() == cols.tolist() == list(range(20))
    assert len(k_cardinality_assignments(cost)) == 20


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("maximize", [False, True])
def test_costs_at_the_end_of_the_range(dtype, maximize):
    signs = np.random.default_rng(3).uniform(-1, 1, (12, 12))
    cost = (signs * float(np.finfo(dtype).max)).astype(dtype)
    for _ in range(2):  # the second time half are forbidden
        links = linear_assignment(cost, maximize=maximize)
        expected = linear_sum_assignment(signs, maximize)
        assert signs[links].sum() == pytest.approx(signs[expected].sum(), rel=1e-5)
        signs[::2, ::2] = cost[::2, ::2] = -np.inf if maximize else np.inf
    signs = np.random.default_rng(3).uniform(-1, 1, (12, 12))
    tiny = (signs * 1000 * float(np.finfo(dtype).smallest_subnormal)).astype(dtype)
    links = linear_assignment(tiny, maximize=maximize)
    assert total(tiny, links) == total(tiny, linear_sum_assignment(tiny, maximize))


def test_totals_that_overflow_are_refused():
    huge = np.full((2, 2), -1.5e308)
    refuses(ValueError, "costs", linear_assignments, [np.eye(2), huge])
    refuses(ValueError, "cost", k_cardinality_assignments, huge)


@pytest.mark.parametrize("shape", [(0, 0), (0, 4), (4, 0)])
def test_nothing_to_link(shape):
    empty = np.empty(shape)
    rows, cols, duals = linear_assignment(empty, return_duals=True)
    assert rows.size == cols.size == 0
    assert (len(duals.rows), len(duals.cols)) == shape
    assert linear_assignment(empty, threshold=0.0)[0].size == 0
    assert len(k_cardinality_assignments(empty)) == 0
    assert len(linear_assignments(np.empty((0, *shape)))) == 0
    assert len(linear_assignments([])) == 0
    assert linear_assignments([empty, [[1.0]]]).totals.tolist() == [0.0, 1.0]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("k", [None, 2])
def test_batches_equal_single_problems(isa, dtype, k):
    rng = np.random.default_rng(5)
    batch = rng.normal(size=(300, 6, 11)).astype(dtype)
    ragged = [rng.normal(size=rng.integers(0, 20, 2)).astype(dtype) for _ in range(300)]
    for costs in (batch, ragged):
        one = linear_assignments(costs, k=k, n_threads=1, return_duals=True)
        many = linear_assignments(costs, k=k, n_threads=4, return_duals=True)
        assert one.row_ind.tobytes() == many.row_ind.tobytes()
        assert one.col_ind.tobytes() == many.col_ind.tobytes()
        for b, cost in enumerate(costs):
            *links, duals = linear_assignment(cost, k=k, return_duals=True)
            np.testing.assert_array_equal(one[b], links)
            np.testing.assert_array_equal(many.duals[b].cols, duals.cols)
            assert one.totals[b] == total(cost, links)
    assert linear_assignments(batch, k=2).col_ind.reshape(-1, 2).shape == (300, 2)
    np.testing.assert_array_equal(one[-1], one[len(one) - 1])
    with pytest.raises(IndexError):
        one[300]


@pytest.mark.parametrize("padding", [np.nan, -np.inf, 1e300, 0.0])
@pytest.mark.parametrize("maximize", [False, True])
@pytest.mark.parametrize(("n_rows", "width"), [(6, 11), (30, 9), (10, 300), (300, 280)])
def test_padded_columns_count_for_nothing(isa, n_rows, width, maximize, padding):
    rng = np.random.default_rng(3)
    counts = np.array([0, width, 1, width // 2, *rng.integers(0, width + 1, 6)])
    for dtype in (np.float32, np.float64):
        costs = rng.normal(size=(len(counts), n_rows, width)).astype(dtype)
        parts = [cost[:, :n].copy() for cost, n in zip(costs, counts, strict=True)]
        with np.errstate(over="ignore"):
            for cost, n in zip(costs, counts, strict=True):
                cost[:, n:] = padding
        options = {"maximize": maximize, "return_duals": True}
        alone = linear_assignments(parts, **options)
        for n_threads in (1, 3):
            found = linear_assignments(costs, n_columns=counts, n_threads=n_threads, **options)
            for name in ("row_ind", "col_ind", "offsets", "totals"):
                np.testing.assert_array_equal(getattr(found, name), getattr(alone, name))
            for one, other in zip(found.duals, alone.duals, strict=True):
                np.testing.assert_array_equal(one.cols, other.cols)
        rows, cols = found.padded()
        assert rows.dtype == cols.dtype == np.int64
        assert rows.shape == cols.shape == (len(counts), min(n_rows, counts.max()))
        for b, (own_rows, own_cols) in enumerate(alone[b] for b in range(len(alone))):
            n = len(own_rows)
            assert rows[b].tolist() == own_rows.tolist() + [-1] * (rows.shape[1] - n)
            assert cols[b].tolist() == own_cols.tolist() + [-1] * (rows.shape[1] - n)


def test_numbers_of_columns_are_checked():
    costs = np.ones((2, 3, 4))
    for counts in ([1], [1, 5], [-1, 2], [[1, 2]], [1.5, 2], ["1", "2"], 2):
        odd = TypeError, ValueError
        refuses(odd, "n_columns", linear_assignments, costs, n_columns=counts)
    refuses(TypeError, "n_columns", linear_assignments, list(costs), n_columns=[1, 2])
    costs[1, 0, 1] = np.nan
    said = refuses(ValueError, "costs", linear_assignments, costs, n_columns=[4, 2])
    assert "[0, 1]" in said
    assert len(linear_assignments(costs, n_columns=[4, 1])) == 2
    rows, cols = linear_assignments(np.ones((0, 3, 4)), n_columns=[]).padded()
    assert rows.shape == cols.shape == (0, 0)


def test_tensors_of_a_detector_are_matched():
    torch = pytest.importorskip("torch")
    costs = torch.rand((4, 20, 7), generator=torch.Generator().manual_seed(0))
    counts = torch.tensor([7, 0, 3, 5])
    found = linear_assignments(costs, n_columns=counts)
    for b, n in enumerate(counts.tolist()):
        expected = linear_sum_assignment(costs[b, :, :n].numpy())
        np.testing.assert_array_equal(found[b], expected)


def test_forbidden_pairs_end_the_cardinalities():
    cost = np.full((3, 3), np.inf)
    cost[0] = cost[:, 0] = 1.0
    assert len(k_cardinality_assignments(cost)) == 2
    refuses(ValueError, "cost .* 3 links, but forbids all but 2", linear_assignment, cost)
    refuses(ValueError, r"costs\[1\] .* 3", linear_assignments, [np.ones((3, 3)), cost], k=3)
    assert len(linear_assignment(cost, threshold=np.inf)[0]) == 2
    assert len(linear_assignment(cost, k=2)[0]) == 2
    nothing = np.full((2, 3), -np.inf)
    assert len(k_cardinality_assignments(nothing, maximize=True)) == 0
    refuses(ValueError, "all but 0", linear_assignment, nothing, maximize=True)


def test_any_layout_and_read_only_input():
    cost = np.random.default_rng(8).integers(-99, 99, (5, 9)).astype(float)
    expected = linear_assignment(cost)
    layouts = np.asfortranarray(cost), np.repeat(cost, 2, axis=1)[:, ::2], cost.astype(">f8")
    for other in (*layouts, cost.astype(int)):
        other.flags.writeable = False
        np.testing.assert_array_equal(linear_assignment(other), expected)


BATCH = np.ones((3, 2, 5))
BATCH[1, 1, 4] = np.nan
REFUSED = [
    (ValueError, r"cost .* nan at \[0, 0\]", linear_assignment, [[np.nan]]),
    (ValueError, r"cost .* -inf at \[0, 1\]", linear_assignment, [[1, -np.inf]]),
    (ValueError, "cost .* inf", partial(linear_assignment, maximize=True), [[np.inf]]),
    (ValueError, "cost", linear_assignment, [1.0]),
    (TypeError, "cost", linear_assignment, [["a"]]),
    (ValueError, "cost", linear_assignment, [[1.0], [1.0, 2.0]]),
    (ValueError, r"costs\[1\] .* \[1, 4\]", linear_assignments, BATCH),
    (ValueError, r"costs\[1\]", partial(linear_assignments, threshold=3.0), BATCH),
    (ValueError, r"costs\[1\]", linear_assignments, [np.ones((2, 2)), np.ones(2)]),
    (ValueError, "costs", linear_assignments, np.ones((2, 2))),
    (ValueError, "cost", k_cardinality_assignments, BATCH[1]),
]


@pytest.mark.parametrize("row", REFUSED)
def test_bad_costs_are_named(row):
    refuses(*row)


def test_bad_options_are_named():
    odd = {"k": [0, 1.5], "threshold": ["1", np.nan], "maximize": [1], "return_duals": [None]}
    refuses_each(partial(linear_assignment, [[1.0]]), odd)
    refuses_each(partial(k_cardinality_assignments, BATCH[0]), {"max_k": [0]})
    assert len(k_cardinality_assignments(BATCH[0], max_k=1)) == 1


def test_lap_agrees():
    lap = pytest.importorskip("lap")
    lapjv = pytest.importorskip("lapjv")
    rng = np.random.default_rng(9)
    for n in (5, 40, 120):
        cost = rng.random((n, n))
        ours = total(cost, linear_assignment(cost))
        assert ours == pytest.approx(lap.lapjv(cost)[0], rel=1e-12)
        assert ours == pytest.approx(cost[np.arange(n), lapjv.lapjv(cost)[0]].sum(), rel=1e-12)
        bounded = lap.lapjv(cost, cost_limit=0.05, extend_cost=True)[0]
        assert total(cost, linear_assignment(cost, threshold=0.05)) == pytest.approx(bounded)
