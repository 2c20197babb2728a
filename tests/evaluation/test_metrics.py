import math
from functools import partial
from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelcore.evaluation.metrics import (
    bootstrap_interval,
    chance_recall_at_k,
    mean_rank,
    mean_reciprocal_rank,
    median_rank,
    recall_at_k,
    wilson_interval,
)

METRICS = [partial(recall_at_k, k=1), median_rank, mean_rank, mean_reciprocal_rank]


def test_by_hand():
    ranks = [1, 1.5, 2, 10, 100, 11]
    assert recall_at_k(ranks, 1) == 1 / 6
    assert recall_at_k(ranks, 2) == 3 / 6
    assert recall_at_k(ranks, 10) == 4 / 6
    assert median_rank(ranks) == 6
    assert median_rank([3, 1, 50]) == 3
    assert mean_rank(ranks) == pytest.approx(125.5 / 6)
    assert mean_reciprocal_rank([1, 2, 4]) == pytest.approx(1.75 / 3)


def test_uniform_ranks_over_a_thousand():
    assert median_rank(np.arange(1, 1001)) == 500.5
    assert mean_rank(np.arange(1, 1001)) == 500.5


@pytest.mark.parametrize("metric", METRICS)
def test_read_only_strided_and_integer_ranks(metric):
    ranks = np.arange(1, 9)
    ranks.flags.writeable = False
    assert metric(ranks[::2]) == metric([1.0, 3.0, 5.0, 7.0])
    assert isinstance(metric(ranks), float)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize(
    ("ranks", "error", "message"),
    [
        ([], ValueError, "ranks must hold at least one rank"),
        ([0.5], ValueError, "ranks must be >= 1, got 0.5"),
        ([0], ValueError, "ranks must be >= 1"),
        ([np.nan], ValueError, "ranks must be finite"),
        ([np.inf], ValueError, "ranks must be finite"),
        ([[1]], ValueError, "ranks must be a 1-D array"),
        (["1"], TypeError, "ranks must hold real numbers"),
    ],
)
def test_ranks_must_be_ranks(metric, ranks, error, message):
    with pytest.raises(error, match=message):
        metric(ranks)


@pytest.mark.parametrize("k", [0, -1])
def test_k_starts_at_one(k):
    with pytest.raises(ValueError, match="k must be an integer >= 1"):
        recall_at_k([1], k)


@pytest.mark.parametrize("k", [1.0, "1", True])
def test_k_is_an_integer(k):
    with pytest.raises(TypeError, match="k must be an integer"):
        recall_at_k([1], k)


@given(total=st.integers(1, 300), data=st.data())
@settings(max_examples=100, deadline=None)
def test_chance_recall_equals_exact_counting(total, data):
    relevant = data.draw(st.integers(1, total))
    k = data.draw(st.integers(1, total + 5))
    exact = 1 - comb(total - relevant, min(k, total)) / comb(total, min(k, total))
    assert chance_recall_at_k(total, k, n_relevant=relevant) == pytest.approx(exact, abs=1e-11)


def test_chance_recall_broadcasts_and_matches_shuffling():
    recalls = chance_recall_at_k(50, [1, 10], n_relevant=[[1], [5]])
    assert recalls.shape == (2, 2)
    assert recalls[0] == pytest.approx([1 / 50, 10 / 50])
    rng = np.random.default_rng(0)
    first = [rng.permutation(50)[:5].min() + 1 for _ in range(20_000)]
    assert recall_at_k(first, 10) == pytest.approx(recalls[1, 1], abs=0.015)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_candidates": 0, "k": 1}, "n_candidates must be an integer >= 1"),
        ({"n_candidates": 5, "k": [1, 0]}, "k must be an integer >= 1, got 0"),
        ({"n_candidates": 5, "k": 1, "n_relevant": 0}, "n_relevant must lie from 1"),
        ({"n_candidates": 5, "k": 1, "n_relevant": 6}, "n_relevant must lie from 1"),
    ],
)
def test_chance_recall_refuses(arguments, message):
    with pytest.raises(ValueError, match=message):
        chance_recall_at_k(**arguments)


def test_bootstrap_covers_the_binomial_interval():
    ranks = np.where(np.arange(1000) < 300, 1, 50)
    low, high = bootstrap_interval(partial(recall_at_k, k=1), ranks, n_resamples=2000, rng=0)
    half = 1.96 * np.sqrt(0.3 * 0.7 / 1000)
    assert low == pytest.approx(0.3 - half, abs=0.004)
    assert high == pytest.approx(0.3 + half, abs=0.004)


def test_bootstrap_is_reproducible_and_widens_with_confidence():
    ranks = np.random.default_rng(1).integers(1, 100, 60)
    draw = partial(bootstrap_interval, mean_rank, ranks, n_resamples=300)
    assert draw(rng=5) == draw(rng=np.random.default_rng(5)) != draw(rng=6)
    narrow, wide = draw(rng=5, confidence=0.5), draw(rng=5, confidence=0.99)
    assert wide[0] < narrow[0] < narrow[1] < wide[1]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_resamples": 0}, "n_resamples must be an integer >= 1"),
        ({"confidence": 1.5}, "confidence must be a number <= 1.0"),
        ({"confidence": -0.1}, "confidence must be a number >= 0.0"),
    ],
)
def test_bootstrap_refuses(options, message):
    with pytest.raises(ValueError, match=message):
        bootstrap_interval(mean_rank, [1, 2], **options)


def test_wilson_interval_against_statsmodels():
    proportion = pytest.importorskip("statsmodels.stats.proportion")

    @given(st.integers(1, 10_000), st.floats(0, 1), st.floats(0.01, 0.99))
    def check(n, share, confidence):
        successes = round(share * n)
        expected = proportion.proportion_confint(
            successes, n, alpha=1 - confidence, method="wilson"
        )
        low, high = wilson_interval(successes / n, n, confidence=confidence)
        assert 0 <= low <= high <= 1
        np.testing.assert_allclose([low, high], expected, rtol=1e-9, atol=1e-12)

    check()


def test_wilson_interval_solves_its_equation():
    """The ends are the shares p0 with |share - p0| = z sqrt(p0 (1 - p0) / n)."""
    z = 1.959963984540054
    for end in wilson_interval(0.3, 40):
        assert abs(0.3 - end) == pytest.approx(z * math.sqrt(end * (1 - end) / 40))
    for bad in ({"confidence": 0.0}, {"confidence": 1.0}):
        with pytest.raises(ValueError, match="confidence must be between 0 and 1"):
            wilson_interval(0.5, 10, **bad)
    with pytest.raises(ValueError, match="n must be an integer >= 1"):
        wilson_interval(0.5, 0)
    with pytest.raises(ValueError, match="share must be a number <= 1"):
        wilson_interval(1.5, 10)
