import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from kernelcore.evaluation.significance import holm, mcnemar
from kernelcore.reference import evaluation as reference

outcomes = st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=60)


@given(outcomes, st.booleans())
@settings(max_examples=200, deadline=None)
def test_mcnemar_equals_the_sum_of_binomials(pairs, mid_p):
    first, second = map(list, zip(*pairs, strict=True))
    test = mcnemar(first, second, mid_p=mid_p)
    assert test.p_value == pytest.approx(
        reference.mcnemar(first, second, mid_p=mid_p), rel=1e-12
    )
    assert test.difference == pytest.approx(np.mean(first) - np.mean(second))
    assert 0 < test.p_value <= 1
    assert mcnemar(second, first, mid_p=mid_p).p_value == test.p_value


def test_mcnemar_by_hand():
    # Three wins, one loss: 2 (1 + 4) / 16, less the probability 4 / 16 of the split itself.
    first, second = [1, 1, 1, 0, 1, 0], [0, 0, 0, 1, 1, 0]
    first, second = np.array(first, bool), np.array(second, bool)
    assert mcnemar(first, second).p_value == 0.625
    assert mcnemar(first, second, mid_p=True).p_value == 0.375
    assert mcnemar(first, second).difference == pytest.approx(2 / 6)


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


@pytest.mark.parametrize("mid_p", [False, True])
def test_mcnemar_of_equal_systems_is_one(mid_p):
    assert mcnemar([True, False], [True, False], mid_p=mid_p).p_value == 1


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (([1, 0], [True, False]), TypeError, "systems must hold booleans, such as ranks <= k"),
        (([True, False], [1.0, 0.0]), TypeError, "baseline must hold booleans"),
        (([True], [True, False]), ValueError, r"systems must have one value .* \(2\)"),
        (([[[True]]], [True]), ValueError, r"per system, at least one, got shape \(1, 1, 1\)"),
        ((np.zeros((0, 1), bool), [True]), ValueError, r"at least one, got shape \(0, 1\)"),
        (([], np.zeros(0, bool)), TypeError, "systems must hold booleans"),
        ((np.zeros(0, bool), np.zeros(0, bool)), ValueError, "at least one query"),
        ((True, True), ValueError, "baseline must be a 1-D array"),
    ],
)
def test_mcnemar_refuses(arguments, error, message):
    with pytest.raises(error, match=message):
        mcnemar(*arguments)


@given(st.lists(st.floats(0, 1) | st.sampled_from([0.01, 0.02, 0.5]), max_size=12))
@settings(max_examples=200, deadline=None)
def test_holm_equals_the_reference(p_values):
    adjusted = holm(p_values)
    assert adjusted.tolist() == pytest.approx(reference.holm(p_values), rel=1e-15)
    assert (adjusted >= p_values).all()


def test_holm_equals_statsmodels():
    multitest = pytest.importorskip("statsmodels.stats.multitest")
    p_values = np.random.default_rng(0).random(29) ** 4
    expected = multitest.multipletests(p_values, method="holm")[1]
    np.testing.assert_allclose(holm(p_values), expected, rtol=1e-12)


@pytest.mark.parametrize("p_values", [[-0.1], [0.2, 1.1]])
def test_holm_refuses_what_is_no_probability(p_values):
    with pytest.raises(ValueError, match=r"p_values must lie in \[0, 1\]"):
        holm(p_values)
    with pytest.raises(ValueError, match="p_values must be finite"):
        holm([0.1, np.nan])
