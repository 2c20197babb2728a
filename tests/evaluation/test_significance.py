import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from kernelcore.evaluation.significance import holm, mcnemar
from kernelcore.reference import evaluation as reference

outcomes = st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=60)


@given(outcomes, st.booleans())
@settings(max_examples=100, deadline=None)
def test_mcnemar_equals_the_sum_of_binomials(pairs, mid_p):
    first, second = map(list, zip(*pairs, strict=True))
    test = mcnemar(first, second, mid_p=mid_p)
    expected = reference.mcnemar(first, second, mid_p=mid_p)
    assert test.p_value == pytest.approx(expected, rel=1e-12)
    assert test.difference == pytest.approx(np.mean(first) - np.mean(second))
    assert 0 < test.p_value <= 1
    assert mcnemar(second, first, mid_p=mid_p).p_value == test.p_value


@pytest.mark.parametrize("n_queries", [40, 20_000])
def test_mcnemar_equals_scipy_and_statsmodels(n_queries):
    tables = pytest.importorskip("statsmodels.stats.contingency_tables")
    rng = np.random.default_rng(0)
    first, second = rng.random((3, n_queries)) < 0.4, rng.random(n_queries) < 0.41
    ours = mcnemar(first, second)
    assert ours.p_value.shape == ours.difference.shape == (3,)
    for row, p_value in zip(first, ours.p_value, strict=True):
        table = [[np.sum(a & b) for b in (second, ~second)] for a in (row, ~row)]
        wins, losses = table[0][1], table[1][0]
        assert p_value == pytest.approx(tables.mcnemar(table, exact=True).pvalue, rel=1e-9)
        assert p_value == pytest.approx(stats.binomtest(wins, wins + losses).pvalue, rel=1e-9)


@given(st.lists(st.floats(0, 1) | st.sampled_from([0.01, 0.02, 0.5]), max_size=12))
@settings(max_examples=100, deadline=None)
def test_holm_equals_the_reference(p_values):
    adjusted = holm(p_values)
    assert adjusted.tolist() == pytest.approx(reference.holm(p_values), rel=1e-15)
    assert (adjusted >= p_values).all()


def test_holm_equals_statsmodels():
    multitest = pytest.importorskip("statsmodels.stats.multitest")
    p_values = np.random.default_rng(0).random(29) ** 4
    expected = multitest.multipletests(p_values, method="holm")[1]
    np.testing.assert_allclose(holm(p_values), expected, rtol=1e-12)
