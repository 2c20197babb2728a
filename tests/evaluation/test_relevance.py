import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refuses

from kernelcore.datasets import RelevanceJudgments, load_eccv_caption
from kernelcore.evaluation import evaluate_relevance, rank_lists, rank_relevant
from kernelcore.evaluation.ranks import TIE_RULES, gold_ranks
from kernelcore.reference.evaluation import relevance_metrics as reference

IMAGES = [f"i{n}" for n in range(6)]
CAPTIONS = [f"c{n}" for n in range(9)]


@pytest.fixture
def scores():
    return np.random.default_rng(0).integers(0, 7, (6, 9)).astype(np.float32)


@pytest.fixture
def judgments():
    rng = np.random.default_rng(1)
    pairs = [(i, c) for i in IMAGES[:5] for c in CAPTIONS if rng.random() < 0.5]
    judged = RelevanceJudgments.from_pairs("crowd", pairs, rng.integers(0, 4, len(pairs)) / 3)
    return judged.select(IMAGES, CAPTIONS)


@pytest.fixture
def result(scores, judgments):
    return evaluate_relevance(
        scores, judgments=judgments, threshold=0.5, ks=(5, 1), system="Tri5Sem", split="test",
        settings={"power": np.float32(2)},
    )  # fmt: skip


def test_evaluates_both_directions(scores, judgments, result):
    ranked = {"annotation": rank_relevant(scores, judgments.relevant_captions(0.5))}
    ranked["search"] = rank_relevant(scores.T, judgments.relevant_images(0.5))
    for task, of in ranked.items():
        for name, values in of.metrics(ks=(1, 5)).items():
            np.testing.assert_array_equal(result.values[task][name], values)
        assert result.n_relevant[task].tolist() == of.n_relevant.tolist()
        assert (result.n_candidates[task] == of.n_candidates).all()
    assert result.facts == {
        "relevance": "crowd >= 0.5", "n_images": 6, "n_captions": 9, "ties": "mean"
    }  # fmt: skip
    assert np.isnan(result.values["annotation"]["R-precision"][5])
    assert "means over 5 of 6 queries of annotation" in str(result)


def test_scores_of_their_own_for_search(scores, judgments):
    options = {"judgments": judgments, "threshold": 0.5, "ties": "max"}
    apart = evaluate_relevance(scores, scores[::-1], **options)
    first, second = (evaluate_relevance(own, **options) for own in (scores, scores[::-1]))
    for task, expected in (("annotation", first), ("search", second)):
        for name, values in apart.values[task].items():
            np.testing.assert_array_equal(values, expected.values[task][name])


KS = (1, 2, 3, 10)
REFERENCE = {"mean_average_precision": "MAP", "mean_reciprocal_rank": "MRR"}


@st.composite
def problems(draw):
    """Few distinct scores, so that there are many ties; none to all candidates relevant."""
    n_queries, n_candidates = draw(st.integers(1, 4)), draw(st.integers(1, 7))
    score = st.sampled_from([-np.inf, -1.5, 0.0, 0.25, np.inf])
    row = st.lists(score, min_size=n_candidates, max_size=n_candidates)
    items = st.sets(st.integers(0, n_candidates - 1))
    scores = draw(st.lists(row, min_size=n_queries, max_size=n_queries))
    relevant = [sorted(draw(items)) for _ in range(n_queries)]
    relevant[0] = relevant[0] or [0]
    return scores, relevant


@given(
    problem=problems(), ties=st.sampled_from(TIE_RULES), dtype=st.sampled_from(["f4", "f8"]),
    order=st.sampled_from("CF"),
)  # fmt: skip
@settings(max_examples=150, deadline=None)
def test_equals_the_reference(problem, ties, dtype, order):
    scores, relevant = problem
    array = np.array(scores, dtype=dtype, order=order)
    metrics = rank_relevant(array, relevant, ties=ties).metrics(KS)
    for query, expected in enumerate(reference(scores, relevant, ks=KS, ties=ties)):
        values = {REFERENCE.get(name, name): column[query] for name, column in metrics.items()}
        if expected is None:
            assert not relevant[query]
            assert all(np.isnan(value) for value in values.values())
        else:
            assert values == pytest.approx(expected, rel=1e-12, abs=1e-12)


@pytest.fixture
def untied():
    rng = np.random.default_rng(0)
    scores = rng.permuted(np.tile(np.arange(60.0), (40, 1)), axis=1)
    relevant = rng.random((40, 60)) < 0.1
    relevant[:, 7] = True
    relevant[3] = False
    return scores, relevant


def test_lists_equal_scores(untied):
    scores, relevant = untied
    lists = np.argsort(-scores, axis=1)
    sets = [np.flatnonzero(row).tolist() for row in relevant]
    here = rank_lists(lists.tolist(), sets).metrics()
    there = rank_relevant(scores, sets, ties="ordinal").metrics()
    np.testing.assert_equal(here, there)


def test_cut_off_lists_have_not_found_the_rest():
    ranked = rank_lists([["a", "b"], [], ["c"]], [["b", "x", "y"], ["a"], []])
    assert ranked.n_candidates == 2
    np.testing.assert_array_equal(ranked.first_rank(), [2, np.inf, np.nan])
    assert ranked.reciprocal_rank().tolist()[:2] == [0.5, 0]
    assert ranked.precision_at_k(4).tolist()[:2] == [0.25, 0]
    assert ranked.recall_at_k(4).tolist()[:2] == pytest.approx([1 / 3, 0])
    assert ranked.average_precision().tolist()[:2] == pytest.approx([1 / 6, 0])
    assert np.isnan(ranked.average_precision()[2])


def test_more_queries_than_are_copied_at_once():
    rng = np.random.default_rng(4)
    scores = rng.random((70, 700), dtype=np.float32)
    relevant = [[int(i)] for i in rng.integers(0, 70, 700)]
    by_column = rank_relevant(scores.T, relevant)
    by_row = rank_relevant(np.ascontiguousarray(scores.T), relevant)
    assert (by_column.before == by_row.before).all()
    assert (by_column.first_rank() == gold_ranks(scores.T, relevant)).all()


@pytest.mark.parametrize("ties", TIE_RULES)
def test_first_rank_is_the_gold_rank(ties):
    rng = np.random.default_rng(2)
    scores = rng.integers(0, 9, (300, 50)).astype(np.float32)
    relevant = rng.random((300, 50)) < 0.1
    relevant[:, 0] |= ~relevant.any(axis=1)
    ranked = rank_relevant(scores, relevant, ties=ties)
    ranks = gold_ranks(scores, relevant, ties=ties)
    assert (ranked.first_rank() == ranks).all()
    assert (ranked.success_at_k(5) == (ranks <= 5)).all()
    for method in ("success_at_k", "precision_at_k", "recall_at_k", "f1_at_k", "ndcg_at_k"):
        refuses(ValueError, "k", getattr(ranked, method), 0)


def published(ranking, relevant):
    """R-precision and mAP@R as the program of ECCV Caption defines them."""
    n = len(relevant)
    precisions = [
        len(set(ranking[:r]) & relevant) / r if ranking[r - 1] in relevant else 0
        for r in range(1, n + 1)
    ]
    return len(set(ranking[:n]) & relevant) / n, sum(precisions) / n


@pytest.mark.realdata
def test_eccv_caption_as_published(data_root):
    eccv = load_eccv_caption(data_root / "coco" / "eccv_caption")
    images, captions = eccv.search.image_ids, eccv.search.caption_ids
    judged = [i for i, c in enumerate(eccv.annotation.relevant_captions(1)) if len(c)][:150]
    images = [images[i] for i in judged]
    pool = eccv.annotation.select(images, captions)
    relevant = pool.relevant_captions(1)
    scores = np.random.default_rng(3).random((150, 25000), dtype=np.float32)
    for row, items in zip(scores, relevant, strict=True):  # a system that knows something
        row[items[::2]] += 0.9995
    metrics = rank_relevant(scores, relevant).metrics()
    for row, (values, items) in enumerate(zip(scores, relevant, strict=True)):
        expected = published(np.argsort(-values).tolist(), set(items.tolist()))
        got = metrics["R-precision"][row], metrics["mAP@R"][row]
        assert got == pytest.approx(expected, abs=1e-12)
    assert 0.2 < metrics["mAP@R"].mean() < metrics["R-precision"].mean() < 0.6
