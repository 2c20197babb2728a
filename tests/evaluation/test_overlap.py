"""Standard errors and tests over documents that share items."""

import numpy as np
import pytest
from scipy.stats import ttest_rel

from kernelcore.evaluation.overlap import effective_number, overlap_standard_error, overlap_test
from kernelcore.evaluation.significance import fisher_randomization

APART = [[f"photo {i}"] for i in range(40)]


def plain(values, items):
    """The definition, by a loop over all pairs of documents."""
    n, mean = len(values), np.mean(values)
    total = n_sharing = apart = 0.0
    for i in range(n):
        apart += (values[i] - mean) ** 2
        for j in range(n):
            if i == j or set(items[i]) & set(items[j]):
                n_sharing += 1 / n
                total += (values[i] - mean) * (values[j] - mean)
    return np.sqrt(max(total / (n * (n - n_sharing)), apart / (n * (n - 1))))


def dealt(n_photos, size, n_deals, rng):
    """Photos dealt to documents several times, as `build_documents` does."""
    decks = [rng.permutation(n_photos).reshape(-1, size) for _ in range(n_deals)]
    return np.concatenate(decks).tolist()


@pytest.mark.parametrize("seed", range(5))
def test_it_is_the_sum_over_documents_that_share(seed):
    rng = np.random.default_rng(seed)
    items = dealt(60, 3, 3, rng)
    values = rng.normal(size=20) + rng.normal(size=60)[items[:20]].sum(axis=1)
    values = np.concatenate([values, rng.normal(size=40)])
    assert overlap_standard_error(values, items) == pytest.approx(plain(values, items))


def test_nothing_shared_is_the_error_of_independent_documents():
    values = np.random.default_rng(0).random(40)
    independent = values.std(ddof=1) / np.sqrt(40)
    assert overlap_standard_error(values, APART) == pytest.approx(independent)
    assert overlap_standard_error(values, [[]] * 40) == pytest.approx(independent)
    twice = [[i, i] for i in range(40)]
    assert overlap_standard_error(values, twice) == pytest.approx(independent)
    assert effective_number(values, APART) == pytest.approx(40)


def test_nothing_is_known_if_each_document_shares_with_each_other():
    assert np.isnan(overlap_standard_error([0.1, 0.5, 0.3], [["a"], ["a", "b"], ["a"]]))
    assert np.isnan(overlap_standard_error([0.1], [["a"]]))
    assert np.isnan(effective_number([0.1], [["a"]]))
    assert np.isnan(effective_number([0.1, 0.1], [["a"], ["b"]]))
    assert np.isnan(overlap_test([1.0, 2.0], [0.0, 0.0], [["a"], ["a"]]).p_value)


def test_the_test_is_student_t_if_nothing_is_shared():
    rng = np.random.default_rng(3)
    systems, baseline = rng.random((3, 40)), rng.random(40)
    found = overlap_test(systems, baseline, APART)
    expected = ttest_rel(systems, baseline[None], axis=1)
    np.testing.assert_allclose(found.p_value, expected.pvalue)
    np.testing.assert_allclose(found.difference, systems.mean(axis=1) - baseline.mean())
    near = fisher_randomization(systems, baseline, n_reassignments=20_000, rng=0)
    np.testing.assert_allclose(found.p_value, near.p_value, atol=0.03)
    alone = overlap_test(systems[1], baseline, APART)
    assert alone.p_value.shape == ()
    assert alone.p_value == pytest.approx(found.p_value[1])


def test_few_independent_documents_prove_little():
    """Forty documents on two photos are two observations, whatever their number."""
    gains, few = np.repeat([1.0, 1.2], 20), [["a"]] * 20 + [["b"]] * 20
    noise = np.random.default_rng(5).normal(size=40) / 100
    found = overlap_test(gains + noise, np.zeros(40), few).p_value
    assert found > 0.02
    assert overlap_test(gains + noise, np.zeros(40), APART).p_value < 1e-10


def test_equal_systems_differ_by_nothing():
    test = overlap_test(np.ones((2, 40)), np.ones(40), APART)
    assert test.difference.tolist() == [0, 0]
    assert test.p_value.tolist() == [1, 1]
    assert 0 < overlap_test(np.ones(40), np.zeros(40), APART).p_value < 1e-6
