"""Linear assignment beside SciPy, lapjv and lapx, and similarities of sets.

lapjv solves squares alone: others are filled up with zeros beforehand. lapx takes a batch in
one call. Every peer is on one thread.
"""

from functools import partial

import numpy as np
import pytest
from common import size
from scipy.optimize import linear_sum_assignment

from kernelcore.matching import linear_assignment, linear_assignments, set_similarity
from kernelcore.reference.matching import set_similarity as reference_similarity

SWEEP = [
    (20_000, 10, 10), (10_000, 5, 50), (2000, 20, 20), (1500, 30, 40), (300, 100, 100),
    (100, 300, 100), (60, 200, 200), (30, 100, 300), (30, 300, 300), (30, 300, 600),
    (10, 500, 500), (5, 300, 1000), (2, 1000, 1000), (1, 2000, 2000),
]  # fmt: skip
DETECTORS = [(2, 100, 10), (16, 300, 60), (64, 300, 300), (8, 900, 300)]
DTYPES = ["float32", "float64"]


def drawn(kind, n, n_rows, n_columns, dtype):
    """Costs: uniform; whole numbers below 100; or distances between points of a square."""
    shape = size(n, 20), size(n_rows, 30), size(n_columns, 40)
    rng = np.random.default_rng(0)
    if kind == "integer":
        return rng.integers(0, 100, shape).astype(dtype)
    if kind == "geometric":
        apart = rng.random((*shape[:2], 1, 2)) - rng.random((shape[0], 1, shape[2], 2))
        return np.sqrt((apart**2).sum(axis=-1)).astype(dtype)
    return rng.random(shape).astype(dtype)


def by_lapjv(costs):
    from lapjv import lapjv

    squares = [np.zeros([max(cost.shape)] * 2, cost.dtype) for cost in costs]
    for square, cost in zip(squares, costs, strict=True):
        square[: cost.shape[0], : cost.shape[1]] = cost
    return lambda: [(np.arange(len(square)), lapjv(square)[0]) for square in squares]


def by_lapx(name):
    """A solver of batches, or one that is called for each problem."""

    def call_of(costs):
        import lap

        solve = getattr(lap, name)
        if name.endswith("_batch"):
            return lambda: solve(costs, extend_cost=True, n_threads=1)
        return lambda: [solve(cost, extend_cost=True, return_cost=False) for cost in costs]

    return call_of


LOOPS = {
    "scipy.optimize.linear_sum_assignment": lambda costs: (
        lambda: [linear_sum_assignment(cost) for cost in costs]
    ),
    "lapjv.lapjv": by_lapjv,
}
IN_BATCHES = {
    "kernelcore": lambda costs: lambda: linear_assignments(costs, n_threads=1),
    "lap.lapjvr_batch": by_lapx("lapjvr_batch"),
    "lap.lapjvh_batch": by_lapx("lapjvh_batch"),
    **LOOPS,
}
ONE_BY_ONE = {
    "kernelcore": lambda costs: lambda: [linear_assignment(cost) for cost in costs],
    "lap.lapjvr": by_lapx("lapjvr"),
    "lap.lapjvh": by_lapx("lapjvh"),
    **LOOPS,
}


def compare(benchmark, call, costs):
    """Sums of the links are the least ones, as SciPy finds them in float64."""
    answer = call()
    if isinstance(answer, tuple):  # totals, rows and columns of lapx
        answer = list(zip(*answer[1:], strict=True))
    for cost, links in zip(costs[:20], answer, strict=False):
        rows, columns = (np.asarray(one) for one in links)
        is_real = (rows < cost.shape[0]) & (columns < cost.shape[1])
        wide = cost.astype(np.float64)
        least = wide[linear_sum_assignment(wide)].sum()
        assert wide[rows[is_real], columns[is_real]].sum() == pytest.approx(least, rel=1e-5)
    benchmark(call)


@pytest.mark.parametrize("peer", IN_BATCHES)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", ["random", "integer", "geometric"])
@pytest.mark.parametrize("shape", SWEEP, ids=str)
def test_sweep(benchmark, peer, shape, kind, dtype):
    benchmark.extra_info["work"] = f"assignments, {kind} costs, {dtype}"
    benchmark.extra_info["size"] = "{:,} of {:,} x {:,}".format(*shape)
    benchmark.extra_info["sweep"] = f"{kind}, {dtype}"
    costs = drawn(kind, *shape, dtype)
    compare(benchmark, IN_BATCHES[peer](costs), costs)


@pytest.mark.parametrize("peer", ONE_BY_ONE)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("n", "side"), [(1, 3), (10_000, 10), (100, 200), (1, 2000)])
def test_one_by_one(benchmark, peer, n, side, dtype):
    benchmark.extra_info["work"] = f"one assignment a call, {dtype}"
    benchmark.extra_info["size"] = f"{n:,} of {side:,} x {side:,}"
    costs = drawn("random", n, side, side, dtype)
    compare(benchmark, ONE_BY_ONE[peer](costs), costs)


@pytest.mark.parametrize("peer", ["kernelcore", "lap.lapjvr", *LOOPS])
@pytest.mark.parametrize("shape", DETECTORS, ids=str)
def test_padded(benchmark, peer, shape):
    n, n_queries, n_most = shape
    benchmark.extra_info["work"] = "targets of a detector, padded, float32"
    benchmark.extra_info["size"] = f"{n} of {n_queries} queries, up to {n_most} targets"
    costs = drawn("random", *shape, "float32")
    n_targets = np.random.default_rng(1).integers(1, costs.shape[2] + 1, len(costs))
    parts = [cost[:, :most] for cost, most in zip(costs, n_targets, strict=True)]
    if peer == "kernelcore":
        call = partial(linear_assignments, costs, n_columns=n_targets, n_threads=1)
    else:
        call = ONE_BY_ONE[peer](parts)
    compare(benchmark, call, parts)


@pytest.mark.parametrize(
    ("method", "k"), [("DC", None), ("TK", "half"), ("AP", None), ("AP", "half")]
)
def test_set_similarity(benchmark, method, k):
    benchmark.extra_info["work"] = f"similarity of sets, {method}, k {k or 'all'}"
    benchmark.extra_info["size"] = "11 x 11 pairs of sets of 10"
    offsets = np.arange(12) * 10
    S = np.random.default_rng(0).uniform(-1, 1, (110, 110)).astype(np.float32)
    options = {"method": method, "k": k}
    expected = reference_similarity(S[:20, :20], offsets[:3], offsets[:3], **options)
    options |= {"return_selected": True, "n_threads": 1}
    found = set_similarity(S, offsets, offsets, **options).values
    np.testing.assert_allclose(found[:2, :2], expected, rtol=1e-4)
    benchmark(set_similarity, S, offsets, offsets, **options)
