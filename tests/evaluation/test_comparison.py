"""Tests between systems: which test, stars, letters, equivalence."""

import itertools
import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refuses
from scipy import stats

from kernelcore.evaluation import Result, ResultTable, compare, evaluate
from kernelcore.evaluation.comparison import compact_letters
from kernelcore.evaluation.overlap import equivalence_test, overlap_test
from kernelcore.evaluation.significance import fisher_randomization, holm, mcnemar

N = 60
NOISE = np.random.default_rng(0).normal(size=(N, N))
STRENGTHS = {"poor": 0.5, "fair": 2.0, "good": 2.2, "best": 4.0}
RESULTS = [
    evaluate(
        np.random.default_rng(i).normal(size=(N, N)) + NOISE + strength * np.eye(N),
        system=system, dataset="toy", split="test", ks=(1, 5),
    )
    for i, (system, strength) in enumerate(STRENGTHS.items())
]  # fmt: skip
COLUMNS = ["R@1", "R@5", "median_rank"]


@pytest.fixture(scope="module")
def comparison():
    return compare(RESULTS, baseline="best", rng=0)


def test_values_are_those_of_the_results(comparison):
    assert comparison.systems == tuple(STRENGTHS)
    names = [(metric.task, metric.name) for metric in comparison.metrics]
    assert names == [(task, name) for task in ("annotation", "search") for name in COLUMNS]
    for metric in comparison.metrics:
        expected = [result.mean[metric.task][metric.name] for result in RESULTS]
        assert metric.values.tolist() == expected


def test_p_values_are_those_of_the_tests(comparison):
    generator = np.random.default_rng(0)
    parts = comparison.metrics[:3], comparison.metrics[3:]
    for task, metrics in zip(("annotation", "search"), parts, strict=True):
        ranks = np.stack([result.values[task]["mean_rank"] for result in RESULTS])
        for metric, k in zip(metrics, (1, 5), strict=False):
            expected = mcnemar(ranks[:3] <= k, ranks[3] <= k).p_value.tolist()
            assert metric.p_values[3, :3].tolist() == expected
            assert metric.p_values[:3, 3].tolist() == expected
            assert np.isnan(metric.p_values[:3, :3]).all()
            assert metric.test == "exact McNemar test"
        median = fisher_randomization(ranks[:3], ranks[3], statistic="median", rng=generator)
        assert metrics[2].p_values[3, :3].tolist() == median.p_value.tolist()
        assert metrics[2].test == "Fisher randomisation"


MORE = {"a": 1.0, "b": 1.2, "c": 1.5}


def test_captions_of_an_image_are_swapped_together():
    rng, owner = np.random.default_rng(0), np.repeat(np.arange(N), 3)
    gold = 2 * np.eye(N)[:, owner]
    noisy = {name: rng.normal(size=gold.shape) + more * gold for name, more in MORE.items()}
    systems = [evaluate(s, caption_image=owner, system=name) for name, s in noisy.items()]
    assert systems[0].group["search"].tolist() == owner.tolist()
    options = {"n_reassignments": 500, "rng": 3}
    recall = compare(systems, baseline="a", metrics=["R@1"], margin=0.1, **options)
    median = compare(systems, baseline="a", metrics=["median_rank"], **options)
    for annotation, search in (recall.metrics, median.metrics):
        assert "of whole images" not in annotation.test
        assert search.test == "Fisher randomisation of whole images"
    values = np.stack([result.values["search"]["R@1"] for result in systems])
    tested = fisher_randomization(values[1:], values[0], groups=owner, **options)
    assert recall.metrics[1].p_values[0, 1:].tolist() == tested.p_value.tolist()
    same = equivalence_test(values[1:], values[0], 0.1, items=owner[:, np.newaxis].tolist())
    assert recall.metrics[1].equivalence_p_values[0, 1:].tolist() == same.p_value.tolist()
    others = replace(systems[1], group={"search": owner[::-1]})
    refuses(ValueError, "systems", compare, [systems[0], others])
    errors = systems[0].standard_error["search"]["R@5"]
    recalls = systems[0].values["search"]["R@5"].reshape(N, 3).mean(axis=1)
    assert errors >= recalls.std(ddof=1) / np.sqrt(N) - 1e-3
    table = ResultTable(systems[:1], uncertainty="standard_error").to_table()
    assert "shared items" in table.caption
    assert Result.from_dict(systems[0].to_dict()) == systems[0]


def test_all_pairs_are_tested_without_a_baseline():
    found = compare(RESULTS, metrics=["R@1", "mean_rank"], n_reassignments=200, rng=3)
    ranks = np.stack([result.values["annotation"]["mean_rank"] for result in RESULTS])
    pairs = np.triu_indices(4, 1)
    first, second = found.metrics[:2]
    upper = zip(*pairs, strict=True)
    expected = [mcnemar(ranks[j] <= 1, ranks[i] <= 1).p_value for i, j in upper]
    assert first.p_values[pairs].tolist() == expected
    assert first.adjusted_p_values[pairs].tolist() == holm(expected).tolist()
    assert np.array_equal(first.p_values, first.p_values.T, equal_nan=True)
    again = fisher_randomization(ranks[1:], ranks[0], n_reassignments=200, rng=3)
    assert second.p_values[0, 1:].tolist() == again.p_value.tolist()


def test_holm_within_columns(comparison):
    corrected = compare(*RESULTS, baseline=3, correction="holm", rng=0)
    for metric, same in zip(comparison.metrics, corrected.metrics, strict=True):
        assert metric.adjusted_p_values[3, :3].tolist() == holm(metric.p_values[3, :3]).tolist()
        assert np.array_equal(metric.p_values, same.p_values, equal_nan=True)
    assert "after Holm's correction" in str(corrected)
    assert "Holm" not in str(comparison)


@pytest.mark.parametrize("correction", [None, "holm"])
def test_stars_follow_the_levels(correction):
    comparison = compare(RESULTS, baseline="good", correction=correction, rng=0)
    marks = dict(comparison.to_table().superscripts)
    seen = set()
    for j, metric in enumerate(comparison.metrics, start=1):
        p_values = metric.adjusted_p_values if correction else metric.p_values
        for i, p in enumerate(p_values[2]):
            expected = "*" * sum(p <= level for level in (0.05, 0.01, 0.001))
            assert marks.get((i, j), "") == expected
            seen.add(expected)
    assert {"", "***"} <= seen


def of(values, **labels):
    return Result({"search": {"S@1": values}}, **labels)


def test_a_p_value_at_a_level_has_its_star(monkeypatch):
    wins, losses = of([1] * 6, system="a"), of([0] * 6, system="b")
    for levels, mark in (((0.03125,), "*"), ((0.031,), None), ((0.5, 0.1, 0.031), "**")):
        monkeypatch.setattr("kernelcore.evaluation.comparison._LEVELS", levels)
        table = compare(wins, losses, baseline="b").to_table()
        assert dict(table.superscripts).get((0, 1)) == mark


def test_queries_that_one_system_lacks_are_left_out():
    values = np.random.default_rng(0).random((3, 30))
    gaps = values.copy()
    gaps[0, 20:25], gaps[1, 25:] = np.nan, np.nan

    def p_values(rows):
        named = [of(row, system=name) for row, name in zip(rows, "abc", strict=True)]
        return compare(named, baseline="b", rng=0).metrics[0].p_values

    np.testing.assert_array_equal(p_values(gaps), p_values(values[:, :20]))


def test_halves_are_no_successes():
    first, second = of([1, 0.5, 1, 0, 1], system="a"), of([0, 0.5, 0, 0, 0.5], system="b")
    metric = compare(first, second, rng=0).metrics[0]
    assert metric.test == "Fisher randomisation"


def test_shared_items_are_taken_into_account():
    values = np.random.default_rng(1).random((2, 30))
    items = [(f"photo {i // 3}",) for i in range(30)]
    named = zip(values, "ab", strict=True)
    first, second = (of(row, system=name, items=items) for row, name in named)
    metric = compare(first, second, margin=0.3).metrics[0]
    assert metric.test == "t test with shared items"
    assert metric.p_values[0, 1] == overlap_test(values[1], values[0], items).p_value
    expected = equivalence_test(values[1], values[0], 0.3, items=items).p_value
    assert metric.equivalence_p_values[0, 1] == expected


@given(st.integers(0, 2**32 - 1), st.floats(0.001, 2), st.integers(2, 40))
def test_equivalence_is_two_one_sided_t_tests(seed, margin, n):
    first, second = np.random.default_rng(seed).normal(size=(2, n))
    found = equivalence_test(first, second, margin).p_value
    sides = (-margin, "greater"), (margin, "less")
    one_sided = [stats.ttest_1samp(first - second, m, alternative=a).pvalue for m, a in sides]
    assert found == pytest.approx(max(one_sided), rel=1e-7, abs=1e-12)


def test_equivalence_of_equal_values():
    assert equivalence_test(np.ones(5), np.ones(5), 0.1).p_value < 1e-300
    assert equivalence_test(np.ones(5) + 1, np.ones(5), 0.1).p_value == 1


def test_threads_and_seed():
    runs = (0, 1), (0, 2), (1, 2)
    found = [compare(RESULTS, baseline="good", rng=rng, n_threads=n) for rng, n in runs]
    one, two, other = ([m.p_values for m in own.metrics] for own in found)
    np.testing.assert_array_equal(one, two)
    assert not np.array_equal(one, other, equal_nan=True)


def marks_of(text):
    return set(re.findall(r"[a-z]\d*", text))


@given(st.data())
@settings(max_examples=150, deadline=None)
def test_two_share_a_letter_exactly_where_they_do_not_differ(data):
    n = data.draw(st.integers(1, 9))
    pairs = list(itertools.combinations(range(n), 2))
    flags = data.draw(st.lists(st.booleans(), min_size=len(pairs), max_size=len(pairs)))
    different = np.zeros((n, n), bool)
    for (i, j), flag in zip(pairs, flags, strict=True):
        different[i, j] = different[j, i] = flag
    marks = [marks_of(text) for text in compact_letters(different)]
    for i, j in pairs:
        assert bool(marks[i] & marks[j]) == (not different[i, j])
    assert all(marks)
    letters = sorted(set().union(*marks))
    groups = {a: frozenset(i for i in range(n) if a in marks[i]) for a in letters}
    for group, other in itertools.permutations(groups.values(), 2):
        assert not group <= other  # no letter says what another one says
    firsts = [min(groups[letter]) for letter in sorted(groups)]
    assert firsts == sorted(firsts)


def test_letters_go_on_after_z():
    letters = compact_letters(~np.eye(30, dtype=bool))
    assert letters[:3] == ["a", "b", "c"]
    assert letters[25:28] == ["z", "a2", "b2"]


def test_the_number_of_letters_stays_small_where_groups_explode():
    """Every system differs from one other: 2**20 groups, which are not all needed."""
    different = np.zeros((40, 40), bool)
    for i in range(0, 40, 2):
        different[i, i + 1] = different[i + 1, i] = True
    assert len(set().union(*map(marks_of, compact_letters(different)))) <= 780


def test_letters_follow_the_order_of_the_metric():
    found = compare(RESULTS, metrics=["R@1", "mean_rank"], n_reassignments=99, rng=0)
    marks = dict(found.to_table().superscripts)
    for j, metric in enumerate(found.metrics, start=1):
        letters = [marks[i, j] for i in range(4)]
        best = (np.argmin if metric.name == "mean_rank" else np.argmax)(metric.values)
        assert "a" in letters[best]
        for i, other in itertools.combinations(range(4), 2):
            shares = bool(marks_of(letters[i]) & marks_of(letters[other]))
            assert shares == (metric.adjusted_p_values[i, other] > 0.05)


def test_the_table_marks_what_differs_and_what_is_equivalent(comparison):
    table = comparison.to_table()
    assert table.columns == ("system", *COLUMNS, *COLUMNS)
    assert table.groups == (("", 1), ("annotation", 3), ("search", 3))
    assert [row[0] for row in table.rows] == list(STRENGTHS)
    assert table.rows[0][1] == f"{100 * RESULTS[0].mean['annotation']['R@1']:.1f}"
    for text in (
        "difference to best, * p <= 0.05",
        "exact McNemar test of R@1, R@5; Fisher randomisation",
    ):
        assert text in table.caption
    twins = [replace(RESULTS[0], system=name) for name in ("a", "b")]
    same = compare(twins, baseline="a", rng=0)
    assert all(metric.p_values[0, 1] == 1 for metric in same.metrics)
    assert not same.to_table().superscripts
    table = compare([*twins, RESULTS[3]], baseline="a", margin=0.05, rng=0).to_table()
    marks = dict(table.superscripts)
    assert marks[1, 1] == marks[1, 2] == "="
    assert (1, 3) not in marks  # a median has no margin
    assert marks[2, 1] == "***"


def test_frame(comparison):
    pytest.importorskip("pandas")
    frame = comparison.to_frame()
    assert len(frame) == 3 * 6
    row = frame.query("system == 'fair' and task == 'search' and metric == 'R@5'").iloc[0]
    metric = comparison.metrics[4]
    found = [row[name] for name in ("other", "value", "difference", "p_value")]
    values, p_value = metric.values, metric.p_values[1, 3]
    assert found == ["best", values[1], values[1] - values[3], p_value]
    assert row["adjusted_p_value"] == metric.adjusted_p_values[1, 3]
