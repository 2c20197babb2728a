"""Exact search."""

import numpy as np
import pytest

from kernelcore.distributed import best_candidates

RNG = np.random.default_rng(0)
ROWS = RNG.normal(size=(500, 8)).astype(np.float32)
QUERIES = RNG.normal(size=(20, 8)).astype(np.float32)


def sorted_best(queries, rows, k, similarity):
    left, right = queries.astype(np.float64), rows.astype(np.float64)
    if similarity == "cosine":
        left /= np.linalg.norm(left, axis=1, keepdims=True)
        right /= np.linalg.norm(right, axis=1, keepdims=True)
    scores = left @ right.T
    order = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    return order, np.take_along_axis(scores, order, axis=1)


@pytest.mark.parametrize("similarity", ["cosine", "dot"])
@pytest.mark.parametrize("k", [1, 7, 500, 900])
def test_the_best_are_those_of_a_sort(tmp_path, similarity, k):
    best = best_candidates(
        QUERIES, ROWS, tmp_path, k=k, similarity=similarity, block_rows=64, n_threads=2
    )
    order, scores = sorted_best(QUERIES, ROWS, k, similarity)
    np.testing.assert_allclose(best.scores, scores, rtol=1e-5, atol=1e-5)
    assert (best.positions == order).mean() > 0.99  # but for scores that round alike


def test_counts_are_vectors_too(tmp_path):
    counts = np.random.default_rng(3).integers(0, 256, size=(60, 8)).astype(np.uint8)
    best = best_candidates(counts, counts, tmp_path, k=1)
    np.testing.assert_array_equal(best.positions[:, 0], np.arange(60))
    np.testing.assert_allclose(best.scores, 1.0)


def test_of_equal_candidates_the_first_comes_first(tmp_path):
    rows = np.tile(ROWS[:50], (6, 1))
    best = best_candidates(QUERIES, rows, tmp_path, k=6, block_rows=70)
    assert (np.diff(best.positions, axis=1) == 50).all()
    assert (best.positions[:, 0] < 50).all()


@pytest.mark.parametrize("order", ["ascending", "descending", "level"])
def test_the_best_of_many_tiles_are_exact_in_any_order(tmp_path, order):
    """Small integers have exact scores: every tie of a sort is a tie here."""
    rng = np.random.default_rng(1)
    rows = rng.integers(-3, 4, size=(5000, 4)).astype(np.float32)
    if order == "level":
        rows[:, 0] = 0.0
    else:
        rows[:, 0] = np.arange(5000) // 7 * (1 if order == "ascending" else -1)
    queries = np.hstack([np.ones((9, 1)), rng.integers(-2, 3, size=(9, 3))]).astype(np.float32)
    best = best_candidates(
        queries, rows, tmp_path, k=12, similarity="dot", block_rows=4096, n_threads=1
    )
    positions, scores = sorted_best(queries, rows, 12, "dot")
    np.testing.assert_array_equal(best.positions, positions)
    np.testing.assert_array_equal(best.scores, scores)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"k": 0}, "k must be"),
        ({"similarity": "l2"}, "similarity must be"),
        ({"block_rows": 0}, "block_rows must be"),
        ({"candidates": ROWS[:, :3]}, "candidates must have as many dimensions"),
        ({"queries": [[np.nan] * 8]}, "queries must be finite"),
    ],
)
def test_bad_input_is_named(tmp_path, changes, message):
    given = {"queries": QUERIES, "candidates": ROWS} | changes
    queries, candidates = given.pop("queries"), given.pop("candidates")
    with pytest.raises(ValueError, match=message):
        best_candidates(queries, candidates, tmp_path, **given)
