from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelcore.evaluation.metrics import chance_recall_at_k, wilson_interval


@given(total=st.integers(1, 300), data=st.data())
@settings(max_examples=100, deadline=None)
def test_chance_recall_equals_exact_counting(total, data):
    relevant = data.draw(st.integers(1, total))
    k = data.draw(st.integers(1, total + 5))
    exact = 1 - comb(total - relevant, min(k, total)) / comb(total, min(k, total))
    assert chance_recall_at_k(total, k, n_relevant=relevant) == pytest.approx(exact, abs=1e-11)


def test_chance_recall_broadcasts():
    recalls = chance_recall_at_k(50, [1, 10], n_relevant=[[1], [5]])
    assert recalls.shape == (2, 2)
    assert recalls[0] == pytest.approx([1 / 50, 10 / 50])
    assert recalls[1].tolist() == [chance_recall_at_k(50, k, n_relevant=5) for k in (1, 10)]


def test_wilson_interval_against_statsmodels():
    proportion = pytest.importorskip("statsmodels.stats.proportion")

    @given(st.integers(1, 10_000), st.floats(0, 1), st.floats(0.01, 0.99))
    def check(n, share, confidence):
        successes = round(share * n)
        options = {"alpha": 1 - confidence, "method": "wilson"}
        expected = proportion.proportion_confint(successes, n, **options)
        low, high = wilson_interval(successes / n, n, confidence=confidence)
        assert 0 <= low <= high <= 1
        np.testing.assert_allclose([low, high], expected, rtol=1e-9, atol=1e-12)

    check()
