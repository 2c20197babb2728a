"""Linear assignment in batches against SciPy, lapjv and lap in a loop, and one large one."""

import importlib.util

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

from kernelcore.matching import linear_assignment, linear_assignments
from kernelcore.reference.assignment import linear_assignments as reference_assignments

N_PROBLEMS = 20_000
SHAPES = [(10, 10), (5, 50), (5, 86)]
ids = [f"{n}x{m}" for n, m in SHAPES]


def problems(shape, dtype=np.float64):
    return np.random.default_rng(0).random((N_PROBLEMS, *shape)).astype(dtype)


def check(costs, totals):
    links = reference_assignments(costs[:20])
    expected = [
        sum(cost[link] for link in pairs) for cost, pairs in zip(costs[:20], links, strict=True)
    ]
    np.testing.assert_allclose(totals[:20], expected, rtol=1e-5)


def measure(benchmark, function, group, rounds=5):
    benchmark.group = group
    result = benchmark.pedantic(function, rounds=rounds, warmup_rounds=1)
    benchmark.extra_info["us_per_problem"] = benchmark.stats["min"] / N_PROBLEMS * 1e6
    return result


def group_of(shape, dtype, n_threads=1):
    threads = "1 thread" if n_threads == 1 else f"{n_threads} threads"
    kind = np.dtype(dtype)
    return f"{N_PROBLEMS} assignments {shape[0]} x {shape[1]}, {kind}, {threads}"


@pytest.mark.parametrize("n_threads", [1, 2])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", SHAPES, ids=ids)
def test_linear_assignments(benchmark, shape, dtype, n_threads):
    costs = problems(shape, dtype)
    check(costs, linear_assignments(costs).totals)
    measure(
        benchmark,
        lambda: linear_assignments(costs, n_threads=n_threads),
        group_of(shape, dtype, n_threads),
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", SHAPES, ids=ids)
def test_half_as_many_links(benchmark, shape, dtype):
    costs, k = problems(shape, dtype), (shape[0] + 1) // 2
    measure(
        benchmark,
        lambda: linear_assignments(costs, k=k, n_threads=1),
        f"{group_of(shape, dtype)}, k = {k}",
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", SHAPES, ids=ids)
def test_scipy_loop(benchmark, shape, dtype):
    costs = problems(shape, dtype)
    links = measure(
        benchmark,
        lambda: [linear_sum_assignment(cost) for cost in costs],
        group_of(shape, dtype),
    )
    check(costs, [cost[pairs].sum() for cost, pairs in zip(costs, links, strict=True)])


@pytest.mark.skipif(importlib.util.find_spec("lapjv") is None, reason="lapjv is not installed")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_lapjv_loop(benchmark, dtype):
    from lapjv import lapjv

    costs = problems((10, 10), dtype)
    found = measure(
        benchmark, lambda: [lapjv(cost) for cost in costs], group_of((10, 10), dtype)
    )
    rows = np.arange(10)
    check(
        costs, [cost[rows, cols].sum() for cost, (cols, *_) in zip(costs, found, strict=True)]
    )


@pytest.mark.skipif(importlib.util.find_spec("lap") is None, reason="lap is not installed")
@pytest.mark.parametrize("shape", SHAPES, ids=ids)
def test_lap_loop(benchmark, shape):
    import lap

    costs = problems(shape)
    found = measure(
        benchmark,
        lambda: [lap.lapjv(cost, extend_cost=True) for cost in costs],
        group_of(shape, np.float64),
        rounds=2,
    )
    check(costs, [total for total, *_ in found])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("solver", ["ours", "scipy", "lapjv"])
def test_one_large(benchmark, solver, dtype):
    cost = np.random.default_rng(0).random((2000, 2000)).astype(dtype)
    solve = {"ours": linear_assignment, "scipy": linear_sum_assignment}.get(solver)
    if solve is None:
        solve = pytest.importorskip("lapjv").lapjv
    benchmark.group = f"one assignment 2000 x 2000, {np.dtype(dtype)}"
    benchmark.pedantic(lambda: solve(cost), rounds=3, warmup_rounds=1)
