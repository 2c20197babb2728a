"""What the report says of human judgments, against direct calls."""

import numpy as np
import pytest

from kernelcore.datasets import CaptionedImages
from kernelcore.evaluation.agreement import cohen_kappa
from kernelcore.evaluation.caption_metrics import unigram_bleu, unigram_rouge
from kernelcore.experiments.hodosh2013.judged import (
    CaptionPool,
    Judgments,
    agreement_section,
    crowd_section,
    expert_section,
    relevance_results,
    text_scores,
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
EXPERT = """a.jpg\ta.jpg#1\t4\t4\t4
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


def test_relevant_is_what_half_of_the_crowd_says_and_every_own_caption(judgments, pool):
    relevant = judgments.relevance(pool).relevant_captions(0.5)
    # c: its own; a: its own and b's; b: its own though the crowd said no.
    assert [sorted(row.tolist()) for row in relevant] == [[0], [1, 2], [2]]


def test_judgments_that_are_not_there_or_of_another_pool_are_none(folder, tmp_path, pool):
    assert Judgments.of(folder, CaptionPool.of(DATA, "test", 0)) is None
    assert Judgments.of(tmp_path / "nowhere", pool) is None
    (folder / "ExpertAnnotations.txt").unlink()
    assert Judgments.of(folder, pool) is None


def test_systems_are_measured_against_the_crowd(scores, judgments, pool):
    labels = {"dataset": "three", "split": "test", "pool": "caption #1"}
    right, wrong = relevance_results(scores, judgments, pool, labels)
    assert right.annotation.mean["S@1"] == 1
    assert right.annotation.mean["R-precision"] == pytest.approx(
        (1 + 0.75 + 1) / 3
    )  # c ties with b for second
    # a is answered with b's caption, which the crowd accepts
    assert wrong.annotation.mean["S@1"] == pytest.approx(1 / 3)
    [table] = crowd_section([right, wrong]).tables
    assert [row[0] for row in table.rows] == ["right", "wrong"]


def test_first_captions_are_looked_up_among_the_experts_scores(scores, judgments):
    [table] = expert_section(scores, judgments).tables
    cells = {row[0]: row[1:] for row in table.rows}
    assert cells["right"][:3] == ("33.3", "4.00", "33.3")  # a alone was judged
    assert cells["wrong"][:2] == ("100.0", "1.67")


def test_first_captions_are_scored_against_captions_outside_the_pool(scores, pool):
    found = text_scores(scores, pool)
    for name, measure in (("BLEU", unigram_bleu), ("ROUGE", unigram_rouge)):
        right = [measure(pool.captions[i], pool.others[i]) for i in range(3)]
        wrong = [measure(pool.captions[(i + 1) % 3], pool.others[i]) for i in range(3)]
        np.testing.assert_allclose(found[name], [right, wrong])
        assert found[name][0].sum() > found[name][1].sum()


def test_agreement_takes_the_threshold_that_agrees_best(judgments, pool):
    alphas, kappas = agreement_section(judgments, pool).tables
    assert [row[0] for row in alphas.rows] == ["nominal", "ordinal", "interval"]
    assert all(float(row[2]) <= float(row[1]) <= float(row[3]) for row in alphas.rows)
    expert = judgments.expert
    crowd = judgments.crowd.scores_of(expert.images, expert.captions)
    known = np.isfinite(crowd)
    best = max(
        cohen_kappa(expert.scores[known] >= 4, crowd[known] >= threshold)
        for threshold in np.arange(0.05, 1.0, 0.05).round(2)
    )
    perfect = next(row for row in kappas.rows if row[0] == ">= 4")
    assert perfect[1].startswith(f"{best:.2f} (")
    assert "4 pairs, of which the crowd judged 3" in kappas.caption


def test_experts_and_crowd_that_judged_different_pairs_have_no_agreement(folder, pool):
    (folder / "CrowdFlowerAnnotations.txt").write_text(CROWD.splitlines()[2] + "\n")
    of_c = [row for row in EXPERT.splitlines(keepends=True) if "c.jpg" in row]
    (folder / "ExpertAnnotations.txt").write_text("".join(of_c))
    _, kappas = agreement_section(Judgments.of(folder, pool), pool).tables
    assert {row[1] for row in kappas.rows} == {"-"}


def test_without_other_captions_no_text_metric_is_reported(folder):
    alone = CaptionPool(("a.jpg", "b.jpg"), ("a.jpg#1", "b.jpg#1"), ("x", "y"), (("z",), ()))
    assert not alone.has_references
    _, kappas = agreement_section(Judgments.of(folder, alone), alone).tables
    assert kappas.columns == ("expert mean", "crowd")
