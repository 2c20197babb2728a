import json

import numpy as np
import pytest

from kernelcore.datasets import RelevanceJudgments, load_eccv_caption
from kernelcore.evaluation import (
    RelevanceMetrics,
    RelevanceResult,
    ResultTable,
    evaluate,
    evaluate_relevance,
    rank_relevant,
    relevance_metrics,
)
from kernelcore.evaluation.ranks import TIE_RULES

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
        scores,
        judgments=judgments,
        threshold=0.5,
        ks=(5, 1),
        system="Tri5Sem",
        split="test",
        settings={"power": np.float32(2)},
    )


def test_evaluates_both_directions(scores, judgments, result):
    annotation = rank_relevant(scores, judgments.relevant_captions(0.5))
    search = rank_relevant(scores.T, judgments.relevant_images(0.5))
    assert result.annotation == relevance_metrics(annotation, ks=(1, 5))
    assert result.search == relevance_metrics(search, ks=(1, 5))
    assert (result.n_images, result.n_captions) == (6, 9)
    assert (result.ties, result.ks) == ("mean", (1, 5))
    assert result.relevance == "crowd >= 0.5"
    assert (result.annotation.n_queries, result.annotation.n_candidates) == (6, 9)
    assert result.annotation.n_judged == 5


def test_scores_and_judgments_of_their_own_for_search(scores, judgments):
    other = RelevanceJudgments.from_pairs("experts", [("i5", "c2")], [1])
    result = evaluate_relevance(
        scores,
        scores[::-1],
        judgments=judgments,
        search_judgments=other.select(IMAGES, CAPTIONS),
        threshold=0.5,
        ties="max",
    )
    assert result.relevance == "crowd and experts >= 0.5"
    assert result.search.n_relevant.tolist() == [0, 0, 1, 0, 0, 0, 0, 0, 0]
    place = 1 + (scores[:, 2] >= scores[0, 2]).sum() - 1
    assert result.search.mean["MRR"] == 1 / place
    assert result.search.mean["MAP"] == 1 / place


@pytest.mark.parametrize("ties", TIE_RULES)
def test_with_one_relevant_item_it_is_the_recall_of_evaluate(ties):
    rng = np.random.default_rng(2)
    scores = rng.integers(0, 20, (40, 40)).astype(float)
    ids = [str(n) for n in range(40)]
    gold = RelevanceJudgments.from_pairs("gold", zip(ids, ids, strict=True), np.ones(40))
    ours = evaluate_relevance(scores, judgments=gold, threshold=1, ties=ties)
    theirs = evaluate(scores, ties=ties)
    for task in ("annotation", "search"):
        metrics, ranking = getattr(ours, task), getattr(theirs, task)
        assert {k: metrics.mean[f"S@{k}"] for k in (1, 5, 10)} == ranking.recall
        assert metrics.mean["MRR"] == pytest.approx(ranking.mean_reciprocal_rank)


def test_means_leave_out_queries_without_relevant_items(result):
    metrics = result.annotation
    assert np.flatnonzero(metrics.n_relevant == 0).tolist() == [5]
    for name, values in metrics.per_query.items():
        assert np.isnan(values[5])
        assert metrics.mean[name] == np.mean(values[:5])
        assert not values.flags.writeable


def test_round_trips(result, tmp_path):
    assert RelevanceResult.from_dict(result.to_dict()) == result
    assert RelevanceResult.from_json(result.to_json()) == result
    result.save(tmp_path / "result.json")
    assert RelevanceResult.load(tmp_path / "result.json") == result
    document = json.loads(result.to_json())
    assert document["annotation"]["per_query"]["MAP"][5] is None
    assert document["annotation"]["S@1"] == result.annotation.mean["S@1"]
    assert document["settings"] == {"power": 2}
    other = {**document, "relevance": "experts >= 3"}
    assert RelevanceResult.from_dict(other) != result


def test_from_dict_refuses_what_is_no_relevance_result(scores, result):
    with pytest.raises(ValueError, match="must say that it holds a relevance result"):
        RelevanceResult.from_dict(evaluate(scores[:, :6]).to_dict())
    document = result.to_dict()
    del document["relevance"]
    with pytest.raises(ValueError, match="document must hold 'relevance'"):
        RelevanceResult.from_dict(document)
    with pytest.raises(ValueError, match="text must be the JSON of a relevance result"):
        RelevanceResult.from_json(result.to_json()[:-9])


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"n_relevant": [0, 0]}, ValueError, "above 0 for one query"),
        ({"n_relevant": [1, -1]}, ValueError, "n_relevant must be >= 0"),
        ({"n_relevant": [1.5, 1]}, TypeError, "n_relevant must hold integers"),
        ({"n_relevant": [1]}, ValueError, r"one value per query \(1\), got 2"),
        ({"n_relevant": [1, 1]}, ValueError, "must be NaN for queries without relevant items"),
        ({"ties": "random"}, ValueError, "ties must be one of"),
        ({"n_candidates": 0}, ValueError, "n_candidates must be an integer >= 1"),
        ({"ks": (1, 5)}, ValueError, "per_query must map S@1, S@5, P@1"),
        ({"per_query": [1, 2]}, ValueError, "per_query must map S@1, P@1"),
    ],
)
def test_metrics_that_do_not_fit(change, error, message):
    made = relevance_metrics(rank_relevant([[2, 1], [1, 2]], [[0], []]), ks=(1,))
    parts = {name: getattr(made, name) for name in made.__dataclass_fields__}
    assert RelevanceMetrics(**parts) == made
    with pytest.raises(error, match=message):
        RelevanceMetrics(**parts | change)


def test_values_outside_of_0_and_1():
    made = relevance_metrics(rank_relevant([[2, 1]], [[0]]), ks=(1,))
    for value in (-0.1, 1.1):
        with pytest.raises(ValueError, match=r"per_query\['MAP'\] must lie in \[0, 1\]"):
            RelevanceMetrics({**made.per_query, "MAP": [value]}, [1], 2, ks=(1,))


def test_arguments_that_do_not_fit(scores, judgments):
    fine = {"judgments": judgments, "threshold": 0.5}
    with pytest.raises(
        ValueError, match="judgments must be of the pool of the scores, 6 images"
    ):
        evaluate_relevance(scores[:, :8], **fine)
    pool = judgments.select(IMAGES[:2], CAPTIONS)
    with pytest.raises(ValueError, match="search_judgments must be of the pool"):
        evaluate_relevance(scores, search_judgments=pool, **fine)
    with pytest.raises(TypeError, match="judgments must be RelevanceJudgments, got list"):
        evaluate_relevance(scores, judgments=[], threshold=1)
    with pytest.raises(ValueError, match="relevant must name at least one candidate"):
        evaluate_relevance(scores, judgments=judgments, threshold=2)
    with pytest.raises(ValueError, match="search_scores must have the shape"):
        evaluate_relevance(scores, scores.T, **fine)
    with pytest.raises(ValueError, match="search_scores must not hold NaN"):
        evaluate_relevance(scores, np.full((6, 9), np.nan), **fine)
    with pytest.raises(ValueError, match="ks must be an integer >= 1"):
        evaluate_relevance(scores, ks=(0,), **fine)
    with pytest.raises(TypeError, match="ranked must be RankedRelevance"):
        relevance_metrics(scores)
    direction = relevance_metrics(rank_relevant([[1, 2]], [[0]]))
    with pytest.raises(ValueError, match="must rank the same images and captions"):
        RelevanceResult(direction, direction)


def test_table_marks_the_best_of_comparable_results(scores, judgments, result):
    worse = evaluate_relevance(
        -scores, judgments=judgments, threshold=0.5, ks=(1, 5), system="worse", split="test"
    )
    table = ResultTable([result, worse], metrics=["S@1", "MAP"]).to_table()
    assert table.columns == ("system", "S@1", "MAP", "S@1", "MAP")
    assert table.groups == (("", 1), ("annotation", 2), ("search", 2))
    for column, task, name in ((1, "annotation", "S@1"), (4, "search", "MAP")):
        values = [getattr(r, task).mean[name] for r in (result, worse)]
        assert [row[column] for row in table.rows] == [f"{100 * v:.1f}" for v in values]
        best = {i for i in (0, 1) if values[i] == max(values)}
        assert {i for i, j in table.emphasized if j == column} == best
    assert "relevant by crowd >= 0.5" in table.caption
    assert "means over 5 images and" in table.caption


def test_table_gives_what_differs_a_column(scores, judgments, result):
    other = evaluate_relevance(
        scores, judgments=judgments, threshold=1, system="same", ks=(1, 5)
    )
    table = ResultTable([result, other]).to_table()
    assert table.columns[:3] == ("system", "split", "relevance")
    assert not table.emphasized
    assert table.rows[1][:3] == ("same", "", "crowd >= 1")
    assert str(result).splitlines()[2].startswith("Tri5Sem")
    assert "| Tri5Sem |" in result.to_markdown()
    assert r"\begin{tabular}" in result.to_latex()


def test_table_of_wrong_things(scores, result):
    with pytest.raises(ValueError, match="at least one measured result, got none"):
        ResultTable([])
    with pytest.raises(
        ValueError, match="results must have the same columns, got annotation S@1"
    ):
        ResultTable([result, evaluate(scores[:, :6])])
    with pytest.raises(ValueError, match="rank must be left out for a relevance result"):
        ResultTable([result], rank="mean")
    with pytest.raises(ValueError, match="standard_errors must be left out for a relevance"):
        ResultTable([result], standard_errors=True)
    with pytest.raises(ValueError, match=r"metrics must be among S@1, .*, got 'R@1'"):
        ResultTable([result], metrics=["R@1"])


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
    metrics = relevance_metrics(rank_relevant(scores, relevant)).per_query
    for row, (values, items) in enumerate(zip(scores, relevant, strict=True)):
        expected = published(np.argsort(-values).tolist(), set(items.tolist()))
        got = metrics["R-precision"][row], metrics["mAP@R"][row]
        assert got == pytest.approx(expected, abs=1e-12)
    assert 0.2 < metrics["mAP@R"].mean() < metrics["R-precision"].mean() < 0.6
