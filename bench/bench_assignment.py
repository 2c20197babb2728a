"""Linear assignment in batches against SciPy, lapjv and lapx in a loop, and one large one.

lapjv takes squares only: rectangles are filled up with rows of zeros beforehand, which leaves
the links of the others as they are.
"""

from itertools import product

import data
import numpy as np
import pytest
from results import target
from scipy.optimize import linear_sum_assignment

from kernelcore.matching import linear_assignment, linear_assignments
from kernelcore.reference.matching import linear_assignments as reference_assignments

N_PROBLEMS = data.size(20_000, 500)
N_CALLS = data.size(10_000, 100)
N_LARGE = data.size(2000, 200)
CASES = list(product([(10, 10), (5, 50), (5, 86)], ["float32", "float64"]))
IN_README = ((10, 10), "float64")


def totals(costs, columns):
    """Sum of the costs of each problem, given the column of each row."""
    rows = np.arange(costs.shape[1])
    return [cost[rows, column].sum() for cost, column in zip(costs, columns, strict=True)]


def by_lapjv(squares):
    from lapjv import lapjv

    return [lapjv(square)[0] for square in squares]


def by_lapx(costs):
    import lap

    return [lap.lapjv(cost, extend_cost=True)[1] for cost in costs]


@pytest.mark.ways("kernelcore", "kernelcore, 2 threads", "scipy", "lapjv", "lapx")
@pytest.mark.parametrize(
    ("shape", "dtype"),
    [
        pytest.param(*case, marks=[pytest.mark.readme] if case == IN_README else [])
        for case in CASES
    ],
    ids=str,
)
def test_batches(measure, shape, dtype):
    n_rows, n_columns = shape
    costs = np.random.default_rng(0).random((N_PROBLEMS, *shape)).astype(dtype)
    squares = np.zeros((N_PROBLEMS, n_columns, n_columns), dtype)
    squares[:, :n_rows] = costs
    few = costs[:20]
    expected = totals(few, [[j for _, j in pairs] for pairs in reference_assignments(few)])
    reason = "so small a problem is mostly its fixed cost" if n_columns == 10 else ""
    measure(
        f"assignment in batches, {n_rows} x {n_columns}, {dtype}",
        {
            "kernelcore": lambda: linear_assignments(costs, n_threads=1).totals,
            "kernelcore, 2 threads": lambda: linear_assignments(costs, n_threads=2).totals,
            "scipy": lambda: [linear_sum_assignment(cost)[1] for cost in costs],
            "lapjv": lambda: by_lapjv(squares),
            "lapx": lambda: by_lapx(costs),
        },
        read={
            "scipy": lambda columns: totals(costs, columns),
            "lapjv": lambda columns: totals(costs, [c[:n_rows] for c in columns]),
            "lapx": lambda columns: totals(costs, columns),
        },
        check=lambda found: np.testing.assert_allclose(found[:20], expected, rtol=1e-5),
        shape=f"{N_PROBLEMS:,} problems",
        targets=[
            target("speed >= 3 x best peer", reason=reason),
            target("speed >= 6 x best peer", of="kernelcore, 2 threads", reason=reason),
        ]
        if dtype == "float64"
        else [],
    )


@pytest.mark.ways("kernelcore", "kernelcore, half as many links", "kernelcore, 2 threads")
@pytest.mark.parametrize(("shape", "dtype"), CASES, ids=str)
def test_bound(measure, shape, dtype):
    costs = np.random.default_rng(0).random((N_PROBLEMS, *shape)).astype(dtype)
    half = (shape[0] + 1) // 2

    def up_to(k, n_threads=1):
        return lambda: (k, linear_assignments(costs, k=k, n_threads=n_threads).totals)

    def check(answer):
        k, found = answer
        few = zip(costs[:20], reference_assignments(costs[:20], k=k), strict=True)
        expected = [sum(cost[link] for link in pairs) for cost, pairs in few]
        np.testing.assert_allclose(found[:20], expected, rtol=1e-5)

    measure(
        f"assignment with a bound, {shape[0]} x {shape[1]}, {dtype}",
        {
            "kernelcore": up_to(None),
            "kernelcore, half as many links": up_to(half),
            "kernelcore, 2 threads": up_to(None, n_threads=2),
        },
        check=check,
        shape=f"{N_PROBLEMS:,} problems, k = {half}",
        targets=[target("time <= 1.5 x kernelcore", of="kernelcore, half as many links")]
        if dtype == "float64"
        else [],
    )


@pytest.mark.ways("kernelcore", "scipy", "lapjv", "lapx")
def test_single_calls(measure):
    costs = np.random.default_rng(0).random((N_CALLS, 10, 10))
    few = costs[:20]
    expected = totals(few, [[j for _, j in pairs] for pairs in reference_assignments(few)])
    measure(
        "one 10 x 10 assignment a call",
        {
            "kernelcore": lambda: [linear_assignment(cost)[1] for cost in costs],
            "scipy": lambda: [linear_sum_assignment(cost)[1] for cost in costs],
            "lapjv": lambda: by_lapjv(costs),
            "lapx": lambda: by_lapx(costs),
        },
        check=lambda found: np.testing.assert_allclose(totals(few, found[:20]), expected),
        shape=f"{N_CALLS:,} calls",
        targets=[target(f"seconds <= {1e-5 * N_CALLS:g}")],
    )


@pytest.mark.ways("kernelcore", "scipy", "lapjv", "lapx")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_one_large(measure, dtype):
    cost = np.random.default_rng(0).random((N_LARGE, N_LARGE)).astype(dtype)
    rows, columns = linear_sum_assignment(cost.astype(np.float64))
    least = float(cost[rows, columns].sum(dtype=np.float64))
    order = np.arange(N_LARGE)

    def check(columns):
        assert sorted(columns) == order.tolist()
        assert cost[order, columns].sum(dtype=np.float64) == pytest.approx(least, rel=1e-5)

    measure(
        f"one dense assignment, {dtype}",
        {
            "kernelcore": lambda: linear_assignment(cost)[1],
            "scipy": lambda: linear_sum_assignment(cost)[1],
            "lapjv": lambda: by_lapjv([cost])[0],
            "lapx": lambda: by_lapx([cost])[0],
        },
        check=check,
        shape=f"{N_LARGE:,} x {N_LARGE:,}",
        targets=[target("speed >= 1 x lapjv")],
    )
