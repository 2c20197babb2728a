import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelcore.evaluation import _median_differences, significance
from kernelcore.evaluation.significance import (
    _sorted_pairs,
    fisher_randomization,
    paired_bootstrap,
)
from kernelcore.reference import evaluation as reference

STATISTICS = ["mean", "median"]
ranks = st.integers(1, 9) | st.sampled_from([1.5, 2.5])
decimals = st.integers(0, 30).map(lambda tenths: tenths / 10)


def ranks_of(n_queries, seed=0):
    rng = np.random.default_rng(seed)
    baseline = np.ceil(1000 * rng.random(n_queries) ** 3)
    near = np.clip(np.rint(baseline * rng.uniform(0.5, 1.6, (3, n_queries))), 1, None)
    near[1] = baseline
    return near, baseline


@pytest.mark.parametrize("statistic", STATISTICS)
@given(pairs=st.lists(st.tuples(ranks, ranks), min_size=1, max_size=9))
@settings(max_examples=60, deadline=None)
def test_few_queries_are_enumerated(statistic, pairs):
    first, second = map(list, zip(*pairs, strict=True))
    ours = fisher_randomization(first, second, statistic=statistic)
    assert ours.p_value == reference.fisher_randomization(first, second, statistic=statistic)
    measure = getattr(np, statistic)
    assert ours.difference == measure(first) - measure(second)


@pytest.mark.parametrize("statistic", STATISTICS)
@given(pairs=st.lists(st.tuples(decimals, decimals), min_size=1, max_size=8))
@settings(max_examples=60, deadline=None)
def test_equal_differences_count_although_decimals_are_rounded(statistic, pairs):
    first, second = map(np.array, zip(*pairs, strict=True))
    ours = fisher_randomization(first, second, statistic=statistic)
    tenths = [np.rint(10 * values).astype(int).tolist() for values in (first, second)]
    assert ours.p_value == reference.fisher_randomization(*tenths, statistic=statistic)


@pytest.mark.parametrize("statistic", STATISTICS)
@given(st.lists(st.tuples(ranks, ranks, st.sampled_from([-3, 0, 5, 8])), min_size=1))
@settings(max_examples=60, deadline=None)
def test_groups_are_swapped_together(statistic, triples):
    first, second, groups = map(list, zip(*triples, strict=True))
    options = {"statistic": statistic, "groups": groups}
    ours = fisher_randomization(first, second, **options)
    assert ours.p_value == reference.fisher_randomization(first, second, **options)


@pytest.mark.parametrize("statistic", STATISTICS)
def test_groups_of_one_query_change_nothing_and_copies_of_queries_say_no_more(statistic):
    systems, baseline = ranks_of(130)
    options = {"statistic": statistic, "n_reassignments": 2000, "rng": 1}
    alone = fisher_randomization(systems, baseline, **options)
    each = fisher_randomization(systems, baseline, groups=np.arange(130), **options)
    assert each.p_value.tolist() == alone.p_value.tolist()
    copies = [np.repeat(values, 5, axis=-1) for values in (systems, baseline)]
    owner = np.repeat(np.arange(130), 5)
    tested = fisher_randomization(*copies, groups=owner, **options)
    assert tested.p_value.tolist() == alone.p_value.tolist()
    fooled = fisher_randomization(*copies, **options)
    assert (fooled.p_value <= alone.p_value).all()
    assert fooled.p_value[0] < alone.p_value[0]


@pytest.mark.parametrize("n_pairs", [1, 2, 3, 63, 64, 65, 200, 2100])
def test_medians_after_swaps_equal_the_reference(n_pairs):
    rng = np.random.default_rng(n_pairs)
    first, second = rng.integers(1, 40, (2, n_pairs)).astype(float)
    swaps = rng.random((20, n_pairs)) < rng.random((20, 1))
    swaps[0], swaps[1] = False, True
    padded = np.ones((20, (n_pairs + 63) // 64 * 64), bool)  # what is beyond has no say
    padded[:, :n_pairs] = swaps
    words = np.packbits(padded, axis=1, bitorder="little").view("<u8").astype(np.uint64)
    out = np.empty(20)
    _median_differences.median_differences(words, *_sorted_pairs(first, second), out)
    expected = reference.median_differences(first.tolist(), second.tolist(), swaps.tolist())
    assert out.tolist() == expected


@pytest.mark.parametrize("test", [fisher_randomization, paired_bootstrap])
@pytest.mark.parametrize("statistic", STATISTICS)
def test_equal_systems_have_one_and_none_has_zero(test, statistic):
    baseline = np.arange(1.0, 101) / 7
    systems = np.stack([baseline, baseline + 1000])
    ours = test(systems, baseline, statistic=statistic, rng=0)
    assert ours.difference.tolist() == pytest.approx([0, 1000])
    assert ours.p_value[0] == 1
    draws = {fisher_randomization: 100_000, paired_bootstrap: 10_000}[test]
    assert ours.p_value[1] == 1 / (draws + 1)


@pytest.mark.parametrize("test", [fisher_randomization, paired_bootstrap])
@pytest.mark.parametrize("statistic", STATISTICS)
def test_systems_share_the_draws(test, statistic):
    systems, baseline = ranks_of(300)
    together = test(systems, baseline, statistic=statistic, rng=2)
    for i, row in enumerate(systems):
        alone = test(row, baseline, statistic=statistic, rng=2)
        assert alone.p_value.shape == ()
        for name in vars(alone):
            assert getattr(alone, name) == getattr(together, name)[i]


@pytest.mark.parametrize("statistic", STATISTICS)
def test_every_task_draws_its_own(statistic, monkeypatch):
    monkeypatch.setattr(significance, "_TASK", 1)  # one draw per task
    first, second = np.random.default_rng(0).integers(1, 100, (2, 31))
    options = {"statistic": statistic, "rng": 0}
    p_value = fisher_randomization(first, second, n_reassignments=200, **options).p_value
    assert 5 / 201 < p_value < 195 / 201
    drawn = paired_bootstrap(first, second, n_resamples=50, **options)
    assert drawn.low < drawn.high


@pytest.mark.parametrize("statistic", STATISTICS)
def test_as_many_reassignments_as_there_are_make_it_exact_and_fewer_come_near(statistic):
    first, second = [3, 1, 4, 1, 5, 2, 6, 1, 4, 2, 7, 3], [9, 2, 6, 5, 3, 5, 4, 3, 8, 1, 9, 4]
    exact = reference.fisher_randomization(first, second, statistic=statistic)
    for n, spread in ((4096, 0), (4095, 4 * np.sqrt(exact * (1 - exact) / 4095))):
        options = {"statistic": statistic, "n_reassignments": n, "rng": 0}
        p_value = fisher_randomization(first, second, **options).p_value
        assert (p_value * 4096).is_integer()
        assert p_value == pytest.approx(exact, abs=spread, rel=0)
    assert p_value != exact


def test_seeds_and_generators():
    systems, baseline = ranks_of(200)

    def p_values(rng):
        return fisher_randomization(systems, baseline, n_reassignments=999, rng=rng).p_value

    assert p_values(1).tolist() == p_values(np.random.default_rng(1)).tolist()
    assert p_values(1).tolist() != p_values(2).tolist()
    generator = np.random.default_rng(1)
    assert p_values(generator).tolist() != p_values(generator).tolist()


@pytest.mark.parametrize("statistic", STATISTICS)
def test_bootstrap_differences_equal_the_reference(statistic):
    systems, baseline = ranks_of(40)
    ours = paired_bootstrap(systems[0], baseline, statistic=statistic, n_resamples=4000, rng=0)
    draws = np.random.default_rng(9).integers(40, size=(4000, 40)).tolist()
    lists = systems[0].tolist(), baseline.tolist(), draws
    drawn = np.array(reference.paired_bootstrap(*lists, statistic=statistic))
    spread = np.std(drawn)
    assert ours.low == pytest.approx(np.quantile(drawn, 0.025), abs=0.4 * spread)
    assert ours.high == pytest.approx(np.quantile(drawn, 0.975), abs=0.4 * spread)
    assert ours.low < ours.difference < ours.high
    far = np.mean(abs(drawn - ours.difference) >= abs(ours.difference))
    assert ours.p_value == pytest.approx(far, abs=0.05)


@pytest.mark.parametrize("statistic", STATISTICS)
@pytest.mark.parametrize("magnitude", [1e-300, 1.0, 1e300])
def test_the_unit_does_not_matter(statistic, magnitude):
    systems, baseline = ranks_of(70)
    expected = fisher_randomization(systems, baseline, statistic=statistic, rng=0).p_value
    scaled = [values * magnitude for values in (systems, baseline)]
    found = fisher_randomization(*scaled, statistic=statistic, rng=0).p_value
    np.testing.assert_array_equal(found, expected)
