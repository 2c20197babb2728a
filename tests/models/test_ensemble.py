import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from kernelcore.models import borda_scores

matrices = hnp.array_shapes(min_dims=2, max_dims=2, max_side=6).flatmap(
    lambda shape: st.lists(
        hnp.arrays(np.float64, shape, elements=st.integers(-4, 4).map(float)),
        min_size=1,
        max_size=5,
    )
)


def slow_order(rows):
    """Candidates of one query, best first: points by position, then the median position."""
    n = len(rows[0])
    positions = [
        [sum(b > a for b in row) + (sum(b == a for b in row) - 1) / 2 for a in row]
        for row in rows
    ]
    points = [sum(n - p[c] for p in positions) for c in range(n)]
    medians = [float(np.median([p[c] for p in positions])) for c in range(n)]
    return [(points[c], -medians[c]) for c in range(n)]


@given(scores=matrices)
@settings(max_examples=150, deadline=None)
def test_orders_candidates_as_the_definition_does(scores):
    combined = borda_scores(scores, task="annotation")
    for i in range(len(scores[0])):
        keys = slow_order([matrix[i] for matrix in scores])
        for a in range(len(keys)):
            for b in range(len(keys)):
                assert (combined[i, a] > combined[i, b]) == (keys[a] > keys[b])
    transposed = borda_scores([matrix.T for matrix in scores], task="search")
    np.testing.assert_array_equal(transposed, combined.T)


def test_points_fall_from_n_to_one():
    combined = borda_scores([[[0.9, -2.0, 0.3, 7.0]]], task="annotation")
    np.testing.assert_array_equal(np.floor(combined), [[3, 1, 2, 4]])


def test_a_model_may_count_twice():
    one, other = [[1.0, 2.0]], [[2.0, 1.0]]
    assert np.ptp(borda_scores([one, other], task="annotation")) == 0.0
    assert borda_scores([one, other, one], task="annotation").argmax() == 1


def test_only_the_order_counts():
    scores = np.random.default_rng(0).normal(size=(5, 4))
    for task in ("annotation", "search"):
        np.testing.assert_array_equal(
            borda_scores([scores], task=task), borda_scores([np.exp(scores) - 9], task=task)
        )


def test_tasks_differ():
    scores = [[[3.0, 2.0], [4.0, 1.0]]]
    assert (
        borda_scores(scores, task="search") != borda_scores(scores, task="annotation")
    ).any()


@pytest.mark.parametrize(
    ("scores", "task", "error", "message"),
    [
        ([], "search", ValueError, "must hold at least one matrix"),
        ([np.eye(2), np.eye(3)], "search", ValueError, r"one shape, got \(2, 2\) and \(3, 3\)"),
        ([[[np.nan]]], "search", ValueError, r"score_matrices\[0\] must be finite"),
        ([[["a"]]], "search", TypeError, r"score_matrices\[0\] must hold real numbers"),
        ([np.eye(2)], "both", ValueError, "task must be one of"),
    ],
)
def test_bad_input(scores, task, error, message):
    with pytest.raises(error, match=message):
        borda_scores(scores, task=task)
