"""Scores after ranking: Borda's count and the correction for hubs, by their definitions."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from kernelcore.models import borda_scores, hub_corrected, kcca_ranker
from kernelcore.reference.matching import hub_corrected as by_definition

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
@settings(max_examples=150)
def test_orders_candidates_as_the_definition_does(scores):
    combined = borda_scores(scores, task="annotation")
    for i in range(len(scores[0])):
        keys = slow_order([matrix[i] for matrix in scores])
        for a in range(len(keys)):
            for b in range(len(keys)):
                assert (combined[i, a] > combined[i, b]) == (keys[a] > keys[b])
    transposed = borda_scores([matrix.T for matrix in scores], task="search")
    np.testing.assert_array_equal(transposed, combined.T)
    same_order = borda_scores([np.exp(matrix) - 9 for matrix in scores], task="annotation")
    np.testing.assert_array_equal(same_order, combined)


def test_points_fall_from_n_to_one():
    combined = borda_scores([[[0.9, -2.0, 0.3, 7.0]]], task="annotation")
    np.testing.assert_array_equal(np.floor(combined), [[3, 1, 2, 4]])


@given(
    shape=st.tuples(*[st.integers(1, 6)] * 3), k=st.integers(1, 8),
    task=st.sampled_from(["annotation", "search"]),
    dtype=st.sampled_from([np.float32, np.float64]), seed=st.integers(0, 2**16),
)  # fmt: skip
def test_the_correction_for_hubs_is_its_definition(shape, k, task, dtype, seed):
    n_images, n_captions, n_bank = shape
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=(n_images, n_captions)).astype(dtype)
    of_bank = (n_bank, n_captions) if task == "annotation" else (n_images, n_bank)
    bank = rng.integers(-3, 4, of_bank).astype(dtype)
    corrected = hub_corrected(scores, bank, task=task, n_neighbors=k)
    assert corrected.dtype == dtype
    expected = by_definition(scores.tolist(), bank.tolist(), task=task, n_neighbors=k)
    np.testing.assert_allclose(corrected, expected, rtol=1e-5, atol=1e-5)


def test_blocks_change_nothing(monkeypatch):
    rng = np.random.default_rng(0)
    scores, bank = rng.normal(size=(7, 50)), rng.normal(size=(20, 50))
    whole = hub_corrected(scores, bank, task="annotation")
    monkeypatch.setattr(kcca_ranker, "_BLOCK", 45)
    np.testing.assert_array_equal(hub_corrected(scores, bank, task="annotation"), whole)
