"""Linear assignment beside SciPy, lapjv and lapx, and similarities of sets.

lapjv solves squares alone: others are filled up with zeros beforehand. lapx takes a batch in
one call. Every peer is on one thread.
"""

import numpy as np
import pytest
from common import size
from scipy.optimize import linear_sum_assignment

from kernelcore.matching import linear_assignment, linear_assignments, set_similarity
from kernelcore.reference.matching import linear_assignments as reference_assignments
from kernelcore.reference.matching import set_similarity as reference_similarity

SHAPES = [(10, 10), (5, 50), (5, 86)]
BATCHES = [(20_000, *shape) for shape in SHAPES]
BATCHES += [(300, 100, 100), (100, 300, 100), (60, 300, 300), (60, 300, 600)]
SQUARES = [(10_000, 10), (300, 100), (100, 200), (10, 500), (1, 2000)]
DTYPES = ["float32", "float64"]


def drawn(n, n_rows, n_columns, dtype):
    shape = size(n, 20), size(n_rows, 30), size(n_columns, 40)
    return np.random.default_rng(0).random(shape).astype(dtype)


def by_lapjv(costs):
    from lapjv import lapjv

    side = max(costs.shape[1:])
    squares = np.zeros((len(costs), side, side), costs.dtype)
    squares[:, : costs.shape[1], : costs.shape[2]] = costs
    return lambda: [(np.arange(side), lapjv(square)[0]) for square in squares]


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
    "kernelcore, 2 threads": lambda costs: lambda: linear_assignments(costs, n_threads=2),
    "kernelcore, padded": lambda costs: (
        lambda: linear_assignments(
            costs, n_columns=np.full(len(costs), costs.shape[2]), n_threads=1
        )
    ),
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


def check(costs, answer):
    """Sums of the links are the least ones, as SciPy finds them in float64."""
    if isinstance(answer, tuple):  # totals, rows and columns of lapx
        answer = list(zip(*answer[1:], strict=True))
    for cost, links in zip(costs[:20], answer, strict=False):
        rows, columns = (np.asarray(one) for one in links)
        is_real = (rows < cost.shape[0]) & (columns < cost.shape[1])
        wide = cost.astype(np.float64)
        least = wide[linear_sum_assignment(wide)].sum()
        assert wide[rows[is_real], columns[is_real]].sum() == pytest.approx(least, rel=1e-5)


@pytest.mark.parametrize("peer", IN_BATCHES)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", BATCHES, ids=str)
def test_batches(benchmark, peer, shape, dtype):
    n, n_rows, n_columns = shape
    benchmark.extra_info["work"] = f"assignments in batches, {dtype}"
    benchmark.extra_info["size"] = f"{n:,} of {n_rows} x {n_columns}"
    costs = drawn(*shape, dtype)
    call = IN_BATCHES[peer](costs)
    check(costs, call())
    benchmark(call)


@pytest.mark.parametrize("peer", ONE_BY_ONE)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("n", "side"), SQUARES)
def test_one_by_one(benchmark, peer, n, side, dtype):
    benchmark.extra_info["work"] = f"one assignment a call, {dtype}"
    benchmark.extra_info["size"] = f"{n:,} of {side:,} x {side:,}"
    costs = drawn(n, side, side, dtype)
    call = ONE_BY_ONE[peer](costs)
    check(costs, call())
    benchmark(call)


@pytest.mark.parametrize("peer", ["kernelcore", "kernelcore, half as many links"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_bound(benchmark, peer, shape, dtype):
    benchmark.extra_info["work"] = f"assignments with a bound, {dtype}"
    benchmark.extra_info["size"] = f"20,000 of {shape[0]} x {shape[1]}"
    costs = drawn(20_000, *shape, dtype)
    k = (shape[0] + 1) // 2 if "half" in peer else shape[0]
    few = reference_assignments(costs[:20], k=k)
    expected = [
        sum(cost[link] for link in links) for cost, links in zip(costs[:20], few, strict=True)
    ]
    totals = linear_assignments(costs, k=k, n_threads=1).totals
    np.testing.assert_allclose(totals[:20], expected, rtol=1e-5)
    benchmark(linear_assignments, costs, k=k, n_threads=1)


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
