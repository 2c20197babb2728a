"""The line of chance: p-values of conformal prediction, and their rate on new queries."""

import math

import numpy as np
import pytest

from kernelcore.models import ChanceLine


def test_shares_count_foreign_candidates_with_a_score_as_high():
    line = ChanceLine([0.3, 0.1, 0.4, 0.2])
    found = line.by_chance([[0.5, 0.4], [0.15, -1.0]])
    np.testing.assert_array_equal(found, [[1 / 5, 2 / 5], [4 / 5, 1]])
    assert repr(line) == "ChanceLine(4 foreign candidates)"


@pytest.mark.parametrize("n_foreign", [1, 3, 19, 20, 100, 399])
@pytest.mark.parametrize("rate", [0.01, 0.05, 0.2, 0.5, 0.999])
def test_the_line_stands_where_the_share_exceeds_the_rate(n_foreign, rate):
    best = np.random.default_rng(n_foreign).standard_normal(n_foreign)
    line = ChanceLine(best)
    threshold = line.score_at(rate)
    candidates = np.concatenate(
        [best, best + 1e-9, best - 1e-9, [best.min() - 1, best.max() + 1]]
    )
    above = candidates > threshold
    np.testing.assert_array_equal(above, line.by_chance(candidates) <= rate + 1e-12)
    assert (threshold == math.inf) == (rate * (1 + n_foreign) < 1 - 1e-9)


def test_the_rate_holds_for_candidates_of_the_same_kind():
    rng = np.random.default_rng(0)
    for rate in (0.02, 0.05, 0.2):
        above = [
            (
                rng.standard_exponential(50)
                > ChanceLine(rng.standard_exponential(99)).score_at(rate)
            )
            for _ in range(400)
        ]
        assert abs(np.mean(above) - rate) < 4 * math.sqrt(rate / 400 / 20)


@pytest.mark.parametrize("score", [np.nan, np.inf, [0.0, np.nan]])
def test_scores_that_are_no_numbers_are_refused(score):
    with pytest.raises(ValueError, match="scores must"):
        ChanceLine([1.0]).by_chance(score)
    with pytest.raises(TypeError, match="scores must"):
        ChanceLine([1.0]).by_chance("a")


@pytest.mark.parametrize(
    ("best", "error", "message"),
    [
        ([], ValueError, "foreign must hold"),
        ([np.nan], ValueError, "foreign"),
        ("a", TypeError, "foreign"),
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
