import numpy as np
import pytest

from kernelcore.datasets import RelevanceJudgments, load_flickr_expert
from kernelcore.experiments.hodosh2013.first_results import (
    EXPERT_THRESHOLDS,
    FirstResultScores,
    first_result_scores,
    first_result_table,
)

NAN = float("nan")


@pytest.fixture
def pool():
    pairs = [("a", "x"), ("a", "y"), ("b", "x"), ("c", "y")]
    judged = RelevanceJudgments.from_pairs("experts", pairs, [4, 2, 11 / 3, 3])
    return judged.select(["a", "b", "c"], ["x", "y"])


def same(first, expected):
    return np.array_equal(first.scores, expected, equal_nan=True)


def test_first_results_of_both_tasks(pool):
    scores = np.array([[0.9, 0.1], [0.2, 0.8], [0.3, 0.7]], dtype=np.float32)
    assert same(first_result_scores(scores, pool), [4, NAN, 3])
    assert same(first_result_scores(scores, pool, task="search"), [4, NAN])
    assert same(first_result_scores(-scores, pool), [2, 11 / 3, NAN])


def test_ties_never_help_a_system(pool):
    tied = np.zeros((3, 2))
    assert same(first_result_scores(tied, pool), [2, NAN, NAN])
    assert same(first_result_scores(tied, pool, ties="min"), [4, 11 / 3, 3])
    assert same(first_result_scores(tied, pool, ties="ordinal"), [4, 11 / 3, NAN])
    assert same(first_result_scores(tied, pool, task="search", ties="min"), [4, 3])
    scores = [[1, 1], [1, 0], [0, 1]]
    assert same(first_result_scores(scores, pool), [2, 11 / 3, 3])


def test_shares_and_their_bounds():
    first = FirstResultScores([4, 11 / 3, 11 / 3, 1, NAN])
    assert (first.n_queries, first.n_judged, first.coverage) == (5, 4, 0.8)
    assert first.mean == pytest.approx(37 / 12)
    assert first.at_least(11 / 3).tolist() == [True, True, True, False, False]
    assert first.share_at_least(11 / 3) == 0.6
    assert first.share_at_least(11 / 3, unjudged="above") == 0.8
    assert first.share_at_least(11 / 3, unjudged="skip") == 0.75
    assert first.share_at_least(4) == 0.2
    assert FirstResultScores.from_dict(first.to_dict()) == first
    assert first != FirstResultScores([4, 11 / 3, 11 / 3, 1, 1])


def test_nothing_judged():
    first = FirstResultScores([NAN, NAN])
    assert np.isnan(first.mean)
    assert np.isnan(first.share_at_least(1, unjudged="skip"))
    assert (first.share_at_least(1), first.share_at_least(1, unjudged="above")) == (0, 1)
    assert repr(first) == "FirstResultScores(0 of 2 first results judged)"
    assert FirstResultScores.from_dict(first.to_dict()) == first


def test_table_of_the_distribution():
    systems = {"A": FirstResultScores([4, 3, NAN, 1]), "B": FirstResultScores([8 / 3] * 4)}
    table = first_result_table(systems)
    assert table.columns[:6] == ("system", "judged", "mean", ">= 4", ">= 3.67", ">= 3.33")
    assert table.columns[-1] == ">= 1"
    a, b = table.rows
    assert a == ("A", "75.0", "2.67", *["25.0"] * 3, *["50.0"] * 6, "75.0")
    assert b == ("B", "100.0", "2.67", *["0.0"] * 4, *["100.0"] * 6)
    above = first_result_table(systems, unjudged="above", thresholds=(4,))
    assert above.rows[0][3] == "50.0"
    assert above.caption.endswith("unjudged counts as above")


def test_thresholds_are_the_means_of_three_scores():
    means = {sum(s) / 3 for s in np.ndindex(4, 4, 4) for s in [tuple(x + 1 for x in s)]}
    assert sorted(means, reverse=True) == list(EXPERT_THRESHOLDS)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda p: first_result_scores([[1, 2]], p), ValueError, "of the pool of the scores"),
        (
            lambda p: first_result_scores([[1, 2], [3, np.nan], [1, 2]], p),
            ValueError,
            "scores must not hold NaN, got NaN for query 1",
        ),
        (
            lambda p: first_result_scores(np.ones((3, 2)), p, task="both"),
            ValueError,
            "task must",
        ),
        (
            lambda p: first_result_scores(np.ones((3, 2)), p, ties="mean"),
            ValueError,
            "ties must",
        ),
        (lambda p: first_result_scores(np.ones((3, 2)), []), TypeError, "RelevanceJudgments"),
        (lambda _: FirstResultScores([]), ValueError, "at least one query"),
        (lambda _: FirstResultScores([np.inf]), ValueError, "no infinity"),
        (
            lambda _: FirstResultScores([1.0]).share_at_least(1, unjudged="no"),
            ValueError,
            "unjudged must be one of",
        ),
        (
            lambda _: FirstResultScores([1.0]).at_least("4"),
            TypeError,
            "threshold must be a real",
        ),
        (lambda _: first_result_table({}), ValueError, "at least one system"),
        (lambda _: first_result_table({"a": [1]}), TypeError, "FirstResultScores, got list"),
    ],
)
def test_bad_arguments(pool, call, error, message):
    with pytest.raises(error, match=message):
        call(pool)


@pytest.mark.realdata
def test_experts_of_flickr8k(data_root):
    expert = load_flickr_expert(data_root / "flickr8k" / "ExpertAnnotations.txt")
    best = np.zeros((len(expert.image_ids), len(expert.caption_ids)), dtype=np.float32)
    best[expert.images, expert.captions] = expert.scores
    first = first_result_scores(best, expert, ties="max")
    assert first.n_judged == 1000  # whoever ranks by the experts is judged everywhere
    assert first.share_at_least(1) == 1
    shares = [first.share_at_least(value) for value in EXPERT_THRESHOLDS]
    assert shares == sorted(shares)
    chance = first_result_scores(np.random.default_rng(0).random(best.shape), expert)
    assert chance.coverage < 0.05
