"""The pool and what people said of it, against direct calls."""

import numpy as np
import pytest
from judged_pools import make_judgments, make_pool

from kernelcore.datasets import CaptionedImages
from kernelcore.evaluation import evaluate_relevance
from kernelcore.experiments.hodosh2013.judged import (
    CaptionPool,
    Judgments,
    chance_relevance,
    counts_section,
    crowd_section,
    relevance_results,
)
from kernelcore.experiments.scores import Scores

TEXTS = (
    ("a dog runs", "the dog is running", "brown dog"),
    ("a cat sleeps", "sleeping cat", "a cat on a mat"),
    ("two boys", "boys play", "a boy and a boy"),
)
DATA = CaptionedImages(
    name="three",
    image_ids=("a.jpg", "b.jpg", "c.jpg"),
    paths=(None,) * 3,
    captions=TEXTS,
    caption_ids=tuple(tuple(f"{i}.jpg#{k}" for k in range(3)) for i in "abc"),
    caption_numbers=((0, 1, 2),) * 3,
    splits={"test": [2, 0, 1]},
)
CROWD = """a.jpg\ta.jpg#1\t1\t3\t0
a.jpg\tb.jpg#1\t0.6666666666666666\t2\t1
b.jpg\tb.jpg#1\t0.3333333333333333\t1\t2
c.jpg\ta.jpg#1\t0\t0\t3
"""
EXPERT = """a.jpg\ta.jpg#1\t3\t4\t4
a.jpg\tb.jpg#1\t2\t3\t3
b.jpg\tc.jpg#1\t1\t1\t2
c.jpg\ta.jpg#1\t1\t1\t1
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "CrowdFlowerAnnotations.txt").write_text(CROWD, encoding="utf-8")
    (tmp_path / "ExpertAnnotations.txt").write_text(EXPERT, encoding="utf-8")
    return tmp_path


@pytest.fixture
def pool():
    return CaptionPool.of(DATA, "test", 1)


@pytest.fixture
def judgments(folder, pool):
    return Judgments.of(folder, pool)


@pytest.fixture
def scores():
    right = np.eye(3)
    wrong = np.roll(np.eye(3), 1, axis=1)
    return {"right": Scores(right, right, {}), "wrong": Scores(wrong, wrong, {})}


def test_the_pool_has_one_caption_of_each_image_and_keeps_the_others(pool):
    assert pool.image_ids == ("c.jpg", "a.jpg", "b.jpg")
    assert pool.caption_ids == ("c.jpg#1", "a.jpg#1", "b.jpg#1")
    assert pool.captions == ("boys play", "the dog is running", "sleeping cat")
    assert pool.others[1] == ("a dog runs", "brown dog")
    assert pool.all_captions[1] == ("the dog is running", "a dog runs", "brown dog")


def test_relevant_is_what_half_of_the_crowd_says_and_every_own_caption(judgments, pool):
    relevant = judgments.relevance(pool).relevant_captions(0.5)
    # c: its own; a: its own and b's; b: its own though the crowd said no.
    assert [sorted(row.tolist()) for row in relevant] == [[0], [1, 2], [2]]


def test_an_own_caption_is_perfect_unless_an_expert_found_an_error(judgments, pool):
    expert = judgments.expert_and_gold(pool)
    own = expert.scores_of([0, 1, 2], [0, 1, 2])
    assert own.tolist() == [4, pytest.approx(11 / 3), 4]
    assert expert.scores_of([1], [2]).tolist() == [pytest.approx(8 / 3)]
    assert len(expert) == 4 + 2


def test_judgments_that_are_not_there_or_of_another_pool_are_none(folder, tmp_path, pool):
    assert Judgments.of(folder, CaptionPool.of(DATA, "test", 0)) is None
    assert Judgments.of(tmp_path / "nowhere", pool) is None
    (folder / "ExpertAnnotations.txt").unlink()
    assert Judgments.of(folder, pool) is None


def test_systems_are_measured_against_the_crowd(scores, judgments, pool):
    labels = {"dataset": "three", "split": "test", "pool": "caption #1"}
    right, wrong = relevance_results(scores, judgments, pool, labels)
    assert right.mean["annotation"]["S@1"] == 1
    assert right.mean["annotation"]["R-precision"] == pytest.approx(
        (1 + 0.75 + 1) / 3
    )  # c ties with b for second
    # a is answered with b's caption, which the crowd accepts
    assert wrong.mean["annotation"]["S@1"] == pytest.approx(1 / 3)
    chance = chance_relevance(judgments.relevance(pool))
    [table] = crowd_section([right, wrong], chance).tables
    assert [row[0] for row in table.rows] == ["right", "wrong", "Random (expected)"]
    names = dict(zip(table.columns[1:7], table.rows[-1][1:7], strict=True))
    assert names["S@1"] == f"{100 * 4 / 9:.1f}"  # four relevant pairs of nine
    assert names["S@5"] == "100.0"
    assert table.groups[-1] == ("both", 1)
    both = right.mean["annotation"]["R-precision"] + right.mean["search"]["R-precision"]
    assert table.rows[0][-1] == f"{50 * both:.1f}"


def test_a_random_order_is_expected_to_reach_the_mean_over_many_orders():
    pool = make_pool(12)
    relevance = make_judgments(pool, 100).relevance(pool)
    expected = chance_relevance(relevance)
    rng = np.random.default_rng(0)
    drawn = [
        evaluate_relevance(rng.random((12, 12)), judgments=relevance, threshold=0.5)
        for _ in range(300)
    ]
    for task in ("annotation", "search"):
        for name in ("S@1", "S@5", "R-precision", "mean_average_precision", "mAP@R"):
            values = [one.mean[task][name] for one in drawn]
            error = np.std(values) / np.sqrt(len(values))
            assert abs(np.mean(values) - expected[task][name]) < 4 * error, (task, name)


def test_relevant_pairs_are_counted_both_ways():
    pool = make_pool(30)
    judgments = make_judgments(pool, 500)
    relevant = np.eye(30, dtype=bool)
    crowd = judgments.crowd
    yes = crowd.scores >= 0.5
    relevant[crowd.images[yes], crowd.captions[yes]] = True
    [table] = counts_section(judgments, pool).tables
    assert [row[0] for row in table.rows] == ["1", "2", "3", "4 or more", "largest number"]
    for column, sizes in ((1, relevant.sum(axis=0)), (2, relevant.sum(axis=1))):
        cells = [int(row[column]) for row in table.rows]
        naive = [sum(size == k for size in sizes) for k in (1, 2, 3)]
        assert cells == [*naive, sum(size >= 4 for size in sizes), max(sizes)]
        assert sum(cells[:4]) == 30
    assert f"30 gold pairs and {relevant.sum() - 30} others" in table.caption
    assert f"{100 * relevant.mean():.2f} % of all pairs" in table.caption
