"""Rank correlations over systems, against SciPy and loops."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from kernelcore.evaluation import Result
from kernelcore.experiments.hodosh2013.correlations import (
    Correlation,
    Orders,
    correlation_section,
    fisher_z,
    spearman,
)
from kernelcore.experiments.hodosh2013.kappas import N_RESAMPLES, resamples

N_QUERIES = 200


def both_tasks(name, **values):
    return Result({"annotation": values, "search": values}, system=name)


@pytest.fixture(scope="module")
def measured():
    """Six systems of random ranks and judgments that lean on them."""
    rng = np.random.default_rng(0)
    results, relevance = {}, {}
    for i in range(6):
        name = f"system {i}"
        ranks = np.minimum(np.ceil(rng.pareto(0.3 + i / 20, N_QUERIES) * 3) + 1, N_QUERIES)
        results[name] = replace(
            both_tasks(name, mean_rank=ranks), facts={"n_images": N_QUERIES}
        )
        noise = [rng.random(N_QUERIES) < 0.05 for _ in range(4)]
        judged = {f"S@{k}": (ranks <= k) | of for k, of in zip((1, 5, 10), noise, strict=False)}
        judged["R-precision"] = ((ranks <= 3) | noise[3]) * 0.5
        judged["mean_average_precision"] = np.zeros(N_QUERIES)
        relevance[name] = both_tasks(name, **judged)
    return results, relevance


def test_correlations_are_those_of_scipy(measured):
    results, relevance = measured
    orders = Orders.of(results, relevance, {})
    found = orders.correlation("search", "R@5", "S@5")
    hits = [np.mean(of.values["search"]["mean_rank"] <= 5) for of in results.values()]
    successes = [of.values["search"]["S@5"].mean() for of in relevance.values()]
    assert found.spearman == pytest.approx(stats.spearmanr(hits, successes).statistic)
    assert found.kendall == pytest.approx(stats.kendalltau(hits, successes).statistic)
    medians = [np.median(of.values["search"]["mean_rank"]) for of in results.values()]
    precision = [of.values["search"]["R-precision"].mean() for of in relevance.values()]
    found = orders.correlation("annotation", "median_rank", "R-precision")
    expected = -stats.spearmanr(medians, precision).statistic
    assert found.spearman == pytest.approx(expected)


def test_a_resample_is_measured_like_the_sample(measured):
    results, relevance = measured
    orders = Orders.of(results, relevance, {})
    counts = resamples(N_QUERIES)
    assert counts.shape == (N_RESAMPLES, N_QUERIES)
    assert (counts.sum(axis=1) == N_QUERIES).all()
    drawn = np.repeat(np.arange(N_QUERIES), counts[7])
    for k, (name, of) in enumerate(results.items()):
        ranks = of.values["annotation"]["mean_rank"][drawn]
        assert orders.drawn["annotation", "R@10"][7, k] == pytest.approx(np.mean(ranks <= 10))
        assert orders.drawn["annotation", "median_rank"][7, k] == -np.median(ranks)
        precision = relevance[name].values["annotation"]["R-precision"][drawn]
        assert orders.drawn["annotation", "R-precision"][7, k] == pytest.approx(
            precision.mean()
        )
    pair = [orders.drawn["annotation", name] for name in ("R@10", "R-precision")]
    rho = spearman(*pair)
    for row in (0, 7, 149):
        expected = stats.spearmanr(pair[0][row], pair[1][row]).statistic
        assert rho[row] == pytest.approx(expected)


def test_intervals_hold_the_correlation_and_stay_below_one():
    drawn = np.random.default_rng(0).uniform(0.5, 0.9, 400)
    found = Correlation(0.95, 0.8, drawn)
    low, high = found.interval
    half = 1.96 * np.arctanh(drawn).std()
    assert (low, high) == pytest.approx(
        (np.tanh(np.arctanh(0.95) - half), np.tanh(np.arctanh(0.95) + half))
    )
    assert low < 0.95 < high < 1
    assert np.isfinite(fisher_z([1.0, -1.0])).all()
    assert np.isnan(Correlation(np.nan, np.nan, np.full(5, np.nan)).interval).all()


def test_the_section_has_both_tables(measured):
    texts = {("all captions", "BLEU"): {name: np.arange(N_QUERIES) for name in measured[0]}}
    orders = Orders.of(*measured, texts)
    successes, precision = correlation_section(orders).tables
    assert [row[:2] for row in successes.rows][:2] == [
        ("annotation", "R@1 and S@1"),
        ("annotation", "R@5 and S@5"),
    ]
    names = [row[1] for row in precision.rows if row[0] == "annotation"]
    assert names[:4] == ["R@1", "R@5", "R@10", "median_rank"]
    assert names[-1] == "BLEU, all captions"
    assert precision.rows[-1][0] == "search"
    low, high = orders.correlation("annotation", "R@1", "S@1").interval
    assert successes.rows[0][3:5] == (f"{low:.3f}", f"{high:.3f}")
