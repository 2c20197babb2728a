"""Linear assignment in batches against SciPy, lapjv and lapx in a loop, and one large one.

lapjv takes squares only: rectangles are filled up with rows of zeros beforehand, which leaves
the links of the others as they are.
"""

import numpy as np
import pytest
import record
from scipy.optimize import linear_sum_assignment

from kernelcore.matching import linear_assignment, linear_assignments
from kernelcore.reference.assignment import linear_assignments as reference_assignments

N_PROBLEMS = record.size(20_000, 500)
N_LARGE = record.size(2000, 200)
SHAPES = [(10, 10), (5, 50), (5, 86)]


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


@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["float32", "float64"])
@pytest.mark.parametrize("shape", SHAPES, ids=[f"{n}x{m}" for n, m in SHAPES])
def test_batches(compare, shape, dtype):
    n_rows, n_columns = shape
    costs = np.random.default_rng(0).random((N_PROBLEMS, *shape)).astype(dtype)
    squares = np.zeros((N_PROBLEMS, n_columns, n_columns), dtype)
    squares[:, :n_rows] = costs
    few = costs[:20]
    expected = totals(few, [[j for _, j in pairs] for pairs in reference_assignments(few)])
    half = (n_rows + 1) // 2

    compare(
        f"assignment in batches, {n_rows} x {n_columns}, {np.dtype(dtype)}",
        {
            "kernelcore": lambda: linear_assignments(costs, n_threads=1).totals,
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
        size=float(N_PROBLEMS),
        unit="problems",
        seconds=4.0,
    )
    bounded = reference_assignments(few, k=half)
    sums = {
        None: expected,
        half: [
            sum(cost[link] for link in pairs) for cost, pairs in zip(few, bounded, strict=True)
        ],
    }

    def up_to(k, n_threads=1):
        return lambda: (k, linear_assignments(costs, k=k, n_threads=n_threads).totals)

    compare(
        f"assignment with a bound, {n_rows} x {n_columns}, {np.dtype(dtype)}",
        {
            "kernelcore": up_to(None),
            "kernelcore, half as many links": up_to(half),
            "kernelcore, 2 threads": up_to(None, n_threads=2),
        },
        check=lambda answer: np.testing.assert_allclose(
            answer[1][:20], sums[answer[0]], rtol=1e-5
        ),
        shape=f"{N_PROBLEMS:,} problems, k = {half}",
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["float32", "float64"])
def test_one_large(compare, dtype):
    cost = np.random.default_rng(0).random((N_LARGE, N_LARGE)).astype(dtype)
    rows, columns = linear_sum_assignment(cost.astype(np.float64))
    least = float(cost[rows, columns].sum(dtype=np.float64))
    order = np.arange(N_LARGE)

    def check(columns):
        assert sorted(columns) == order.tolist()
        assert cost[order, columns].sum(dtype=np.float64) == pytest.approx(least, rel=1e-5)

    compare(
        f"one dense assignment, {np.dtype(dtype)}",
        {
            "kernelcore": lambda: linear_assignment(cost)[1],
            "scipy": lambda: linear_sum_assignment(cost)[1],
            "lapjv": lambda: by_lapjv([cost])[0],
            "lapx": lambda: by_lapx([cost])[0],
        },
        check=check,
        shape=f"{N_LARGE:,} x {N_LARGE:,}",
    )
