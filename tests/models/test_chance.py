"""The line of chance: p-values of conformal prediction, and their rate on new queries."""

import math

import numpy as np
import pytest

from kernelcore.models import ChanceLine


def test_shares_count_foreign_queries_with_a_score_as_high():
    line = ChanceLine([0.3, 0.1, 0.4, 0.2])
    np.testing.assert_array_equal(
        line.by_chance([[0.5, 0.4], [0.15, -1.0]]), [[1 / 5, 2 / 5], [4 / 5, 1]]
    )
    assert repr(line) == "ChanceLine(4 foreign queries)"


@pytest.mark.parametrize("n_queries", [1, 3, 19, 20, 100, 399])
@pytest.mark.parametrize("rate", [0.01, 0.05, 0.2, 0.5, 0.999])
def test_the_line_stands_where_the_share_exceeds_the_rate(n_queries, rate):
    best = np.random.default_rng(n_queries).standard_normal(n_queries)
    line = ChanceLine(best)
    threshold = line.score_at(rate)
    candidates = np.concatenate(
        [best, best + 1e-9, best - 1e-9, [best.min() - 1, best.max() + 1]]
    )
    above = candidates > threshold
    np.testing.assert_array_equal(above, line.by_chance(candidates) <= rate + 1e-12)
    assert (threshold == math.inf) == (rate * (1 + n_queries) < 1 - 1e-9)


def test_the_rate_holds_on_new_queries_of_the_same_kind():
    rng = np.random.default_rng(0)
    candidates = rng.standard_normal((200, 8)).astype(np.float32)
    queries = rng.standard_normal((4000, 8)).astype(np.float32)
    line = ChanceLine.of(queries[:2000], candidates)
    best = (queries[2000:] @ candidates.T).max(axis=1)
    for rate in (0.02, 0.05, 0.2):
        found = (best > line.score_at(rate)).mean()
        assert abs(found - rate) < 4 * math.sqrt(2 * rate / 2000)


def test_candidates_of_a_query_itself_are_left_out():
    queries = np.eye(3, dtype=np.float32)
    candidates = np.array([[1, 0.1, 0], [0, 1, 0.2], [0.3, 0, 1]], np.float32)
    own = np.arange(3)
    np.testing.assert_allclose(ChanceLine.of(queries, candidates).best, 1)
    line = ChanceLine.of(queries, candidates, owners=(own, own))
    np.testing.assert_allclose(line.best, [0.1, 0.2, 0.3], rtol=1e-6)
    line = ChanceLine.of(queries, candidates[:1], owners=(own, own[:1]))
    np.testing.assert_allclose(line.best, [0.0, 0.1], rtol=1e-6)  # the first has no candidate


def test_blocks_give_the_same(monkeypatch):
    from kernelcore.models import chance

    rng = np.random.default_rng(1)
    queries, candidates = rng.standard_normal((30, 5)), rng.standard_normal((77, 5))
    owners = (np.arange(30), rng.integers(-1, 30, 77))
    expected = ChanceLine.of(queries, candidates, owners=owners).best
    scores = np.where(owners[0][:, None] == owners[1], -np.inf, queries @ candidates.T)
    np.testing.assert_allclose(expected, np.sort(scores.max(axis=1)))
    monkeypatch.setattr(chance, "_BLOCK", 100)
    found = ChanceLine.of(queries, candidates, owners=owners).best
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("score", [np.nan, np.inf, [0.0, np.nan]])
def test_scores_that_are_no_numbers_are_refused(score):
    with pytest.raises(ValueError, match="scores must"):
        ChanceLine([1.0]).by_chance(score)
    with pytest.raises(TypeError, match="scores must"):
        ChanceLine([1.0]).by_chance("a")
    with pytest.raises(ValueError, match="best must"):
        ChanceLine.of(np.ones((1, 1)), np.full((1, 1), np.nan))


@pytest.mark.parametrize(
    ("best", "error", "message"),
    [
        ([], ValueError, "best must hold"),
        ([np.nan], ValueError, "best"),
        ("a", TypeError, "best"),
    ],
)
def test_bad_scores_are_refused(best, error, message):
    with pytest.raises(error, match=message):
        ChanceLine(best)


@pytest.mark.parametrize("rate", [0, 1, -0.1, 2, math.nan])
def test_bad_rates_are_refused(rate):
    with pytest.raises(ValueError, match="false_rate must"):
        ChanceLine([1.0]).score_at(rate)
    with pytest.raises(TypeError, match="false_rate must"):
        ChanceLine([1.0]).score_at("5 %")
