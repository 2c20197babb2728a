"""Rank correlations over systems, against SciPy and loops."""

import numpy as np
import pytest
from scipy import stats

from kernelcore.evaluation import RankingMetrics, RetrievalResult
from kernelcore.experiments.hodosh2013.correlations import (
    Correlation,
    Orders,
    correlation_section,
    fisher_z,
    spearman,
)
from kernelcore.experiments.hodosh2013.kappas import N_RESAMPLES, resamples

N_QUERIES = 200


class Judged:
    """Relevance metrics of a system, as far as correlations look at them."""

    def __init__(self, **values):
        names = {"S@1": 0, "S@5": 0, "S@10": 0, "R-precision": 0, "MAP": 0}
        named = {name.replace("_", "@"): of for name, of in values.items()}
        named["R-precision"] = named.pop("precision", 0)
        per_query = {
            name: np.broadcast_to(np.asarray(of, float), N_QUERIES)
            for name, of in (names | named).items()
        }
        self.annotation = self.search = type("Task", (), {"per_query": per_query})


def result(name, ranks):
    ones = np.ones(N_QUERIES, int)
    metrics = RankingMetrics(ranks, ones, N_QUERIES, "mean", (1, 5, 10))
    return RetrievalResult(metrics, metrics, system=name)


@pytest.fixture(scope="module")
def measured():
    """Six systems of random ranks and judgments that lean on them."""
    rng = np.random.default_rng(0)
    results, relevance = {}, {}
    for i in range(6):
        name = f"system {i}"
        ranks = np.minimum(np.ceil(rng.pareto(0.3 + i / 20, N_QUERIES) * 3) + 1, N_QUERIES)
        results[name] = result(name, ranks)
        noise = [rng.random(N_QUERIES) < 0.05 for _ in range(4)]
        relevance[name] = Judged(
            S_1=(ranks <= 1) | noise[0],
            S_5=(ranks <= 5) | noise[1],
            S_10=(ranks <= 10) | noise[2],
            precision=((ranks <= 3) | noise[3]) * 0.5,
        )
    return results, relevance


def test_correlations_are_those_of_scipy(measured):
    results, relevance = measured
    orders = Orders.of(results, relevance, {})
    found = orders.correlation("search", "R@5", "S@5")
    hits = [np.mean(of.search.ranks <= 5) for of in results.values()]
    successes = [of.search.per_query["S@5"].mean() for of in relevance.values()]
    assert found.spearman == pytest.approx(stats.spearmanr(hits, successes).statistic)
    assert found.kendall == pytest.approx(stats.kendalltau(hits, successes).statistic)
    medians = [np.median(of.search.ranks) for of in results.values()]
    precision = [of.search.per_query["R-precision"].mean() for of in relevance.values()]
    found = orders.correlation("annotation", "median", "R-precision")
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
        ranks = of.annotation.ranks[drawn]
        assert orders.drawn["annotation", "R@10"][7, k] == pytest.approx(np.mean(ranks <= 10))
        assert orders.drawn["annotation", "median"][7, k] == -np.median(ranks)
        precision = relevance[name].annotation.per_query["R-precision"][drawn]
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
    assert names[:4] == ["R@1", "R@5", "R@10", "median"]
    assert names[-1] == "BLEU, all captions"
    assert precision.rows[-1][0] == "search"
    low, high = orders.correlation("annotation", "R@1", "S@1").interval
    assert successes.rows[0][3:5] == (f"{low:.3f}", f"{high:.3f}")
