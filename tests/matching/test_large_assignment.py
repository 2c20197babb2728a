"""Hundreds of rows and columns, of which more than 1 MB is read in part: sums and proofs."""

import numpy as np
import pytest
from refusals import refuses
from scipy.optimize import linear_sum_assignment

from kernelcore.matching import k_cardinality_assignments, linear_assignment

KINDS = ["normal", "ties", "distances", "product", "columns", "forbidden"]
SHAPES = [(300, 300), (257, 401), (364, 364), (150, 900), (470, 300)]


def costs_of(kind, shape, rng):
    n, m = shape
    if kind == "ties":
        return rng.integers(0, 4, shape).astype(float)
    if kind == "distances":
        return np.linalg.norm(rng.random((n, 1, 2)) - rng.random((m, 2)), axis=-1)
    if kind == "product":
        return np.multiply.outer(rng.random(n), rng.random(m))
    if kind == "columns":  # rows agree on what is cheap
        return np.add.outer(rng.random(n), rng.random(m)) * 10 + rng.random(shape)
    if kind == "forbidden":
        return np.where(rng.random(shape) < 0.9, np.inf, rng.normal(size=shape))
    return rng.normal(size=shape)


def least_sum(cost, k):
    """SciPy's, with columns and rows that take what is not linked."""
    n, m = cost.shape
    larger = np.zeros((n + m - k, n + m - k))
    larger[:n, :m] = cost
    larger[n:, m:] = np.inf
    rows, cols = linear_sum_assignment(larger)
    inside = (rows < n) & (cols < m)
    return cost[rows[inside], cols[inside]].sum()


def check(cost, k, *, maximize=False, dtype=np.float64):
    sign = -1 if maximize else 1
    given = (sign * cost).astype(dtype)
    rows, cols, duals = linear_assignment(given, maximize=maximize, k=k, return_duals=True)
    assert len(rows) == len(set(cols.tolist())) == k
    assert (np.diff(rows) > 0).all()
    atol = 200 * k * float(np.finfo(dtype).eps) * float(np.abs(cost[np.isfinite(cost)]).max())
    signed = sign * given.astype(float)
    total = signed[rows, cols].sum()
    assert total == pytest.approx(least_sum(signed, k), rel=0, abs=atol)
    u, v, d = (sign * np.asarray(part, float) for part in duals)
    assert max(u.max(), v.max()) <= atol
    assert not np.delete(u, rows).any()
    assert not np.delete(v, cols).any()
    assert (signed - d - u[:, np.newaxis] - v >= -atol).all()
    assert k * d + u.sum() + v.sum() == pytest.approx(total, rel=0, abs=atol)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("kind", KINDS)
def test_any_number_of_links_with_its_proof(kind, shape):
    cost = costs_of(kind, shape, np.random.default_rng(1))
    for k in (1, min(shape) // 2, min(shape) - 1, min(shape)):
        check(cost, k)
    check(cost, min(shape) - 3, maximize=True, dtype=np.float32)


def test_any_number_of_links_in_single_precision():
    for kind in KINDS:
        cost = costs_of(kind, (500, 530), np.random.default_rng(2))
        check(cost, 497, maximize=True, dtype=np.float32)


def test_costs_that_must_be_changed_are_copied():
    rng = np.random.default_rng(4)
    cost = rng.uniform(-1, 1, (150, 900))
    cost.flags.writeable = False
    huge = cost * np.finfo(float).max
    np.testing.assert_array_equal(linear_assignment(huge), linear_assignment(cost))
    rows, cols = linear_assignment(cost, threshold=-0.99)
    assert (cost[rows, cols] <= -0.99).all()
    assert len(rows) == len(linear_assignment(-cost, maximize=True, threshold=0.99)[0]) > 10


def test_as_many_links_as_can_be_had():
    cost = np.full((400, 400), np.inf)
    cost[:7] = cost[:, :5] = 1.0
    refuses(ValueError, "cost .* 400 links, but forbids all but 12", linear_assignment, cost)
    rows, _ = linear_assignment(cost, threshold=np.inf)
    assert len(rows) == len(k_cardinality_assignments(cost)) == 12


def test_nan_is_found_in_any_column():
    cost = np.random.default_rng(0).random((401, 403))
    for col in (402, 0):  # behind the last whole vector, and in the first
        cost[400, col] = np.nan
        refuses(ValueError, rf"nan at \[400, {col}\]", linear_assignment, cost)
