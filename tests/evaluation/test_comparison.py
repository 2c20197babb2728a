from dataclasses import replace

import numpy as np
import pytest

from kernelcore.evaluation import RankingMetrics, RetrievalResult, compare, evaluate
from kernelcore.evaluation.significance import fisher_randomization, holm, mcnemar

N = 60
NOISE = np.random.default_rng(0).normal(size=(N, N))
STRENGTHS = {"poor": 0.5, "fair": 2.0, "good": 2.2, "best": 4.0}
RESULTS = [
    evaluate(
        np.random.default_rng(i).normal(size=(N, N)) + NOISE + strength * np.eye(N),
        system=system,
        dataset="toy",
        split="test",
        ks=(1, 5),
    )
    for i, (system, strength) in enumerate(STRENGTHS.items())
]
COLUMNS = ["R@1", "R@5", "median"]


@pytest.fixture(scope="module")
def comparison():
    return compare(RESULTS, baseline="best", rng=0)


def test_values_are_those_of_the_results(comparison):
    assert comparison.systems == tuple(STRENGTHS)
    for result, row in zip(RESULTS, comparison.values, strict=True):
        expected = [
            number
            for metrics in (result.annotation, result.search)
            for number in (*metrics.recall.values(), metrics.median_rank)
        ]
        assert row.tolist() == expected
    assert [metric.name for metric in comparison.metrics] == 2 * COLUMNS
    assert [metric.task for metric in comparison.metrics] == 3 * ["annotation"] + 3 * ["search"]


def test_p_values_are_those_of_the_tests(comparison):
    p_values = comparison.p_values
    assert np.isnan(p_values[3]).all()
    generator = np.random.default_rng(0)
    for task, columns in (("annotation", p_values[:3, :3]), ("search", p_values[:3, 3:])):
        ranks = np.stack([getattr(result, task).ranks for result in RESULTS])
        for j, k in enumerate((1, 5)):
            assert columns[:, j].tolist() == mcnemar(ranks[:3], ranks[3], k=k).p_value.tolist()
        median = fisher_randomization(ranks[:3], ranks[3], statistic="median", rng=generator)
        assert columns[:, 2].tolist() == median.p_value.tolist()


def test_holm_within_columns(comparison):
    for raw, adjusted in zip(
        comparison.p_values.T, comparison.adjusted_p_values.T, strict=True
    ):
        assert adjusted[:3].tolist() == holm(raw[:3]).tolist()
        assert np.isnan(adjusted[3])
    corrected = compare(RESULTS, baseline=3, correction="holm", rng=0)
    assert np.array_equal(corrected.p_values, comparison.p_values, equal_nan=True)
    assert "after Holm's correction" in str(corrected)
    assert "Holm" not in str(comparison)


def stars(table):
    return dict(table.superscripts)


@pytest.mark.parametrize("correction", [None, "holm"])
def test_stars_follow_the_levels(correction):
    comparison = compare(RESULTS, baseline="good", correction=correction, rng=0)
    p_values = comparison.adjusted_p_values if correction else comparison.p_values
    marks = stars(comparison.to_table())
    seen = set()
    for i, row in enumerate(p_values):
        for j, p in enumerate(row):
            expected = "***" if p <= 0.01 else "**" if p <= 0.05 else "*" if p <= 0.1 else ""
            assert marks.get((i, j + 1), "") == expected
            seen.add(expected)
    assert {"", "***"} <= seen


def test_a_p_value_at_a_level_has_its_star():
    wins = np.array([[1, 1, 1, 1, 1, 1], [0, 0, 0, 0, 0, 0]])
    per_query = {"search": {"S@1": wins}}
    for levels, mark in (((0.03125,), "*"), ((0.031,), None), ((0.031, 0.5, 0.1), "**")):
        table = compare(["a", "b"], baseline="b", per_query=per_query, levels=levels).to_table()
        assert stars(table).get((0, 1)) == mark


def test_text_markdown_latex_and_html(comparison):
    lines = str(comparison).splitlines()
    assert [word for word in lines[0].split() if word.isalpha()] == ["annotation", "search"]
    assert lines[1].split() == ["system", *COLUMNS, *COLUMNS]
    assert lines[2].split()[0] == "poor"
    assert "***" in lines[2]
    assert "*" not in lines[5]
    assert "shares in percent" in lines[6]
    assert (
        "superscripts: difference to best, * p <= 0.1, ** p <= 0.05, *** p <= 0.01" in lines[6]
    )
    assert "exact McNemar test of R@1, R@5; Fisher randomisation of median" in lines[6]
    assert "toy, split test, 60 images, 60 captions, ties mean" in lines[6]
    poor = RESULTS[0].annotation
    recall, median = f"{100 * poor.recall[1]:.1f}", f"{poor.median_rank:.1f}"
    assert rf"| poor | {recall}<sup>\*\*\*</sup> |" in comparison.to_markdown()
    assert rf"poor & {recall}\textsuperscript{{***}} &" in comparison.to_latex()
    assert f"<td>{recall}<sup>***</sup></td>" in comparison.to_html()
    assert f"<td>{median}<sup>***</sup></td>" in comparison.to_html()


def test_frame(comparison):
    pytest.importorskip("pandas")
    frame = comparison.to_frame()
    assert len(frame) == 4 * 6
    row = frame.query("system == 'fair' and task == 'search' and metric == 'R@5'").iloc[0]
    assert row["value"] == comparison.values[1, 4]
    assert row["difference"] == comparison.values[1, 4] - comparison.values[3, 4]
    assert row["p_value"] == comparison.p_values[1, 4]
    assert row["adjusted_p_value"] == comparison.adjusted_p_values[1, 4]
    assert row["test"] == "exact McNemar test"


def test_more_metrics_per_query():
    rng = np.random.default_rng(1)
    success = rng.random((4, N)) < 0.5
    precision = rng.random((4, N))
    experts = rng.integers(1, 5, (4, N))
    comparison = compare(
        RESULTS,
        baseline="poor",
        per_query={
            "search": {"S@1": success},
            "annotation": {"R-precision": precision, "experts": experts},
        },
        mid_p=True,
        rng=0,
    )
    names = [(metric.task[0], metric.name) for metric in comparison.metrics]
    assert names == [
        *(("a", name) for name in (*COLUMNS, "R-precision", "experts")),
        *(("s", name) for name in (*COLUMNS, "S@1")),
    ]
    metrics = dict(zip(names, comparison.metrics, strict=True))
    expected = mcnemar(success[1:], success[0], mid_p=True).p_value
    assert metrics["s", "S@1"].p_values[1:].tolist() == expected.tolist()
    assert metrics["s", "S@1"].test == metrics["a", "R@1"].test == "mid-p McNemar test"
    assert metrics["a", "R-precision"].test == "Fisher randomisation"
    np.testing.assert_allclose(metrics["a", "R-precision"].values, precision.mean(axis=1))
    cells = comparison.to_table().rows[2]
    assert cells[4] == f"{100 * precision[2].mean():.1f}"
    assert cells[5] == f"{experts[2].mean():.2f}"


def test_queries_that_do_not_count_are_left_out():
    values = np.random.default_rng(0).random((3, 30))
    missing = values.copy()
    missing[:, 20:] = np.nan

    def of(per_query):
        return compare(
            ["a", "b", "c"], baseline="b", per_query={"search": {"MAP": per_query}}, rng=0
        )

    assert of(missing).values.tolist() == of(values[:, :20]).values.tolist()
    np.testing.assert_array_equal(of(missing).p_values, of(values[:, :20]).p_values)
    missing[1, 3] = np.nan
    with pytest.raises(ValueError, match=r"\['MAP'\] must be NaN for the same queries"):
        of(missing)
    with pytest.raises(ValueError, match="at least one query that counts"):
        of(np.full((3, 5), np.nan))


def test_equal_systems_are_never_marked():
    twins = [replace(RESULTS[0], system=name) for name in ("a", "b")]
    comparison = compare(twins, baseline="a", levels=(0.99,), rng=0)
    assert comparison.p_values[1].tolist() == [1] * 6
    assert not comparison.to_table().superscripts


def test_threads_and_seed():
    one, two, other = (
        compare(RESULTS, baseline="good", rng=seed, n_threads=n_threads).p_values
        for seed, n_threads in ((0, 1), (0, 2), (1, 2))
    )
    np.testing.assert_array_equal(one, two)
    assert not np.array_equal(one, other, equal_nan=True)


def with_two_captions(result):
    annotation = RankingMetrics(
        result.annotation.ranks, np.full(N, 2), n_candidates=N, ks=(1, 5)
    )
    return RetrievalResult(annotation, result.search, system="odd", dataset="toy", split="test")


@pytest.mark.parametrize(
    ("systems", "options", "error", "message"),
    [
        (RESULTS[:1], {}, ValueError, "systems must be at least two, got 1"),
        ([RESULTS[0], "x"], {}, TypeError, "got both"),
        ([RESULTS[0], 3], {}, TypeError, "RetrievalResult objects or names, got int"),
        ([RESULTS[0]] * 2, {}, ValueError, "different names, got 'poor' twice"),
        (
            [RESULTS[0], replace(RESULTS[1], pool="five")],
            {},
            ValueError,
            "measured alike, got different pool",
        ),
        (
            [RESULTS[0], with_two_captions(RESULTS[1])],
            {},
            ValueError,
            "numbers of gold items in annotation of 'poor' and 'odd' differ",
        ),
        (
            [RESULTS[0], evaluate(NOISE, system="k", dataset="toy", split="test")],
            {},
            ValueError,
            r"recall at the same k, got \(1, 5\) and \(1, 5, 10\)",
        ),
        (RESULTS, {"baseline": "none"}, ValueError, "baseline must be one of 'poor', 'fair'"),
        (RESULTS, {"baseline": 4}, ValueError, "baseline must be an integer <= 3, got 4"),
        (RESULTS, {"baseline": 1.0}, TypeError, "baseline must be an integer"),
        (RESULTS, {"correction": "bonferroni"}, ValueError, "correction must be one of 'holm'"),
        (RESULTS, {"levels": (5,)}, ValueError, r"levels must be a number <= 1\.0, got 5"),
        (RESULTS, {"per_query": {"both": {}}}, ValueError, "per_query must be one of 'annot"),
        (
            RESULTS,
            {"per_query": {"search": {"x": np.ones((3, N))}}},
            ValueError,
            r"per_query\['search'\]\['x'\] must have one row per system .* got \(3, 60\)",
        ),
        (
            RESULTS,
            {"per_query": {"search": {"x": np.ones((4, N - 1))}}},
            ValueError,
            r"shape \(4, 60\), got \(4, 59\)",
        ),
        (
            RESULTS,
            {"per_query": {"search": {"x": np.full((4, N), np.inf)}}},
            ValueError,
            "must be finite",
        ),
        (["poor", "b"], {}, ValueError, "per_query must hold a metric where systems are names"),
    ],
)
def test_refuses(systems, options, error, message):
    with pytest.raises(error, match=message):
        compare(systems, **{"baseline": "poor"} | options)
