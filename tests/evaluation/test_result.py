import json
from pathlib import Path

import numpy as np
import pytest

import kernelcore
from kernelcore.evaluation import (
    RankingMetrics,
    RetrievalResult,
    evaluate,
    evaluate_links,
    evaluate_relevance,
    evaluate_selection_predictions,
    evaluate_selections,
)
from kernelcore.evaluation.metrics import chance_recall_at_k
from kernelcore.evaluation.ranks import annotation_ranks, search_ranks


@pytest.fixture
def scores():
    return np.random.default_rng(0).integers(0, 6, (5, 12)).astype(np.float32)


OWNER = np.array([0, 0, 1, 2, 3, 4, 4, 4, 1, 2, 2, 2])
LABELS = {
    "system": "BoW5",
    "protocol": "hodosh2013",
    "dataset": "flickr8k",
    "split": "test",
    "pool": "caption 2",
}


@pytest.fixture
def result(scores):
    return evaluate(
        scores,
        caption_image=OWNER,
        ks=(10, 1, 5),
        settings={"power": np.float32(2), "grid": (1, 2), "path": Path("a/b")},
        **LABELS,
    )


def test_evaluate_ranks_both_directions(scores, result):
    assert (result.annotation.ranks == annotation_ranks(scores, OWNER)).all()
    assert (result.search.ranks == search_ranks(scores, OWNER)).all()
    assert (result.n_images, result.n_captions, result.ties) == (5, 12, "mean")
    assert (result.annotation.n_queries, result.annotation.n_candidates) == (5, 12)
    assert (result.search.n_queries, result.search.n_candidates) == (12, 5)
    assert result.annotation.n_relevant.tolist() == [2, 2, 4, 1, 3]
    assert result.search.n_relevant.tolist() == [1] * 12
    assert result.ks == (1, 5, 10)
    assert result.version == kernelcore.__version__
    assert {name: getattr(result, name) for name in LABELS} == LABELS


def test_scores_of_their_own_for_search(scores):
    other = scores[::-1].copy()
    result = evaluate(scores, other, caption_image=OWNER, ties="max")
    assert (result.annotation.ranks == annotation_ranks(scores, OWNER, ties="max")).all()
    assert (result.search.ranks == search_ranks(other, OWNER, ties="max")).all()
    assert result.ties == "max"


def test_perfect_and_hopeless_scores():
    perfect = evaluate(np.eye(4))
    assert perfect.annotation.recall == {1: 1.0, 5: 1.0, 10: 1.0}
    assert perfect.search.median_rank == perfect.search.mean_reciprocal_rank == 1
    hopeless = evaluate(-np.eye(4))
    assert hopeless.annotation.recall[1] == 0
    assert hopeless.annotation.mean_rank == hopeless.search.mean_rank == 4


def test_arguments_are_named_in_errors(scores):
    bad = scores.copy()
    bad[1, 7] = np.nan
    with pytest.raises(ValueError, match=r"annotation_scores must not hold NaN, .* \[1, 7\]"):
        evaluate(bad, caption_image=OWNER)
    with pytest.raises(ValueError, match=r"search_scores must not hold NaN, .* \[1, 7\]"):
        evaluate(scores, bad, caption_image=OWNER)
    with pytest.raises(ValueError, match=r"search_scores must have the shape .* got \(12, 5\)"):
        evaluate(scores, scores.T, caption_image=OWNER)
    with pytest.raises(TypeError, match="search_scores must hold real numbers"):
        evaluate(scores, scores.astype(str), caption_image=OWNER)
    with pytest.raises(ValueError, match="caption_image must be given"):
        evaluate(scores)
    with pytest.raises(ValueError, match="ks must be an integer >= 1, got 0"):
        evaluate(scores, caption_image=OWNER, ks=(0,))
    with pytest.raises(ValueError, match="ties must be one of"):
        evaluate(scores, caption_image=OWNER, ties="best")


def test_json_gives_the_same_result_back(result, tmp_path):
    text = result.to_json()
    back = RetrievalResult.from_json(text)
    assert back == result
    assert back.annotation.ranks.tobytes() == result.annotation.ranks.tobytes()
    assert back.settings == {"power": 2.0, "grid": [1, 2], "path": "a/b"}
    document = json.loads(text)
    assert document["annotation"]["R@5"] == result.annotation.recall[5]
    assert document["search"]["n_queries"] == 12
    assert document["search"]["ties"] == "mean"
    assert document["version"] == kernelcore.__version__

    result.save(tmp_path / "result.json")
    assert RetrievalResult.load(tmp_path / "result.json") == result
    assert [path.name for path in tmp_path.iterdir()] == ["result.json"]


def test_damaged_json_is_refused(result):
    text = result.to_json()
    with pytest.raises(ValueError, match="text must be the JSON of a retrieval result"):
        RetrievalResult.from_json(text[:-20])
    for other in ("[]", "{}", '{"kind": "something"}'):
        with pytest.raises(ValueError, match="must say that it holds a retrieval result"):
            RetrievalResult.from_json(other)
    document = result.to_dict()
    del document["search"]["ranks"]
    with pytest.raises(ValueError, match="must hold 'ranks'"):
        RetrievalResult.from_dict(document)
    document = result.to_dict()
    document["annotation"]["ranks"][0] = 0.5
    with pytest.raises(ValueError, match="ranks must be >= 1"):
        RetrievalResult.from_dict(document)


def test_results_differ_in_every_part(result):
    document = result.to_dict()
    for name in (*LABELS, "version"):
        changed = {**document, name: "other"}
        assert RetrievalResult.from_dict(changed) != result
    ranks = result.annotation.ranks.copy()
    ranks[0] += 0.5
    changed = {**document, "annotation": {**document["annotation"], "ranks": ranks}}
    assert RetrievalResult.from_dict(changed) != result


def test_to_frame_has_a_row_per_direction(result):
    pytest.importorskip("pandas")
    frame = result.to_frame().set_index("task")
    assert list(frame.index) == ["annotation", "search"]
    for task in frame.index:
        metrics = getattr(result, task)
        row = frame.loc[task]
        assert row["R@10"] == metrics.recall[10]
        assert row["median_rank"] == metrics.median_rank
        assert row["mean_rank"] == metrics.mean_rank
        assert row["n_candidates"] == metrics.n_candidates
        assert row["dataset"] == "flickr8k"
        assert row["ties"] == "mean"


def test_results_are_frozen(result):
    with pytest.raises(AttributeError):
        result.system = "other"
    with pytest.raises(ValueError, match="read-only"):
        result.annotation.ranks[0] = 1
    ranks = np.array([1.0, 2.0])
    metrics = RankingMetrics(ranks, np.array([1, 1]), n_candidates=2)
    ranks[0] = 2
    assert metrics.ranks[0] == 1


@pytest.mark.parametrize("label", [*LABELS, "version"])
def test_labels_are_one_line_of_text(result, label):
    with pytest.raises(ValueError, match=f"{label} must be one line of printable text"):
        RetrievalResult(result.annotation, result.search, **{label: "a\nb"})
    with pytest.raises(TypeError, match=f"{label} must be a string, got 3"):
        RetrievalResult(result.annotation, result.search, **{label: 3})


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"f": print}, TypeError, r"settings\['f'\] must fit into JSON"),
        ({"f": float("nan")}, ValueError, r"settings\['f'\] must fit into JSON"),
        ({1: 2}, TypeError, "settings must be a mapping from strings"),
        ([1], TypeError, "settings must be a mapping from strings"),
    ],
)
def test_settings_must_fit_into_json(scores, settings, error, message):
    with pytest.raises(error, match=message):
        evaluate(scores, caption_image=OWNER, settings=settings)


def test_directions_must_belong_together(result):
    smaller = evaluate(np.eye(3))
    with pytest.raises(ValueError, match="must rank the same images and captions"):
        RetrievalResult(result.annotation, smaller.search)
    with pytest.raises(ValueError, match="must rank the same images and captions"):
        RetrievalResult(smaller.annotation, result.search)
    with pytest.raises(ValueError, match="must share ties, got 'mean' and 'min'"):
        RetrievalResult(smaller.annotation, evaluate(np.eye(3), ties="min").search)
    with pytest.raises(ValueError, match="must share ks"):
        RetrievalResult(smaller.annotation, evaluate(np.eye(3), ks=(2,)).search)


def test_recall_curve_agrees_with_recall(result):
    curve = result.annotation.recall_curve(12)
    assert curve.shape == (12,)
    assert {k: curve[k - 1] for k in (1, 5, 10)} == result.annotation.recall
    assert curve[-1] == 1
    assert (np.diff(curve) >= 0).all()


def test_chance_curve_averages_over_the_queries(result):
    curve = result.annotation.chance_recall_curve(12)
    expected = [
        np.mean([chance_recall_at_k(12, k, n_relevant=m) for m in (2, 2, 4, 1, 3)])
        for k in range(1, 13)
    ]
    assert curve == pytest.approx(expected)
    assert result.search.chance_recall_curve(5) == pytest.approx(np.arange(1, 6) / 5)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"ranks": [1, 6]}, r"ranks must be at most n_candidates \(5\), got 6"),
        ({"ranks": [0, 1]}, "ranks must be >= 1"),
        ({"n_relevant": [1]}, r"n_relevant must have one entry per query \(2\), got 1"),
        ({"n_relevant": [0, 1]}, r"n_relevant must lie from 1 to n_candidates \(5\)"),
        ({"n_relevant": [1, 6]}, r"n_relevant must lie from 1 to n_candidates \(5\)"),
        ({"n_candidates": 0}, "n_candidates must be an integer >= 1"),
        ({"ties": "none"}, "ties must be one of"),
    ],
)
def test_metrics_refuse_what_does_not_fit(arguments, message):
    fitting = {"ranks": [1, 2], "n_relevant": [1, 1], "n_candidates": 5}
    with pytest.raises(ValueError, match=message):
        RankingMetrics(**{**fitting, **arguments})


def test_metrics_show_their_numbers():
    metrics = RankingMetrics([1, 3], [1, 1], n_candidates=5, ks=(1,))
    assert repr(metrics) == (
        "RankingMetrics(R@1=0.5000, median_rank=2.0, n_queries=2, n_candidates=5)"
    )


@pytest.mark.parametrize(
    "content",
    [
        b'{"kind": "\xff"}',
        b"[" * 200_000,
        b"[]",
        b'{"kind": "retrieval result", "annotation": [], "search": [], "settings": {}}',
        b'{"kind": "retrieval result", "n": ' + b"7" * 4301 + b"}",
    ],
)
def test_a_damaged_file_is_named(content, tmp_path):
    (tmp_path / "r.json").write_bytes(content)
    with pytest.raises(ValueError, match=r"r\.json"):
        RetrievalResult.load(tmp_path / "r.json")
    with pytest.raises(FileNotFoundError, match=r"none\.json"):
        RetrievalResult.load(tmp_path / "none.json")


@pytest.mark.parametrize(
    "call",
    [
        lambda **more: evaluate(np.eye(2), **more),
        lambda **more: evaluate(np.eye(2), n_folds=2, **more),
        lambda **more: evaluate_links([np.eye(2)], [{(0, 0)}], **more),
        lambda **more: evaluate_relevance(np.eye(2), judgments=None, threshold=1, **more),
        lambda **more: evaluate_selections(None, np.eye(2), **more),
        lambda **more: evaluate_selection_predictions(None, {}, **more),
    ],
)
def test_what_is_no_label_is_refused_before_any_work(call):
    for name in ("sistem", "version", "relevance"):
        with pytest.raises(TypeError, match=rf"^{name} is not an argument"):
            call(**{name: "x"})


def test_links_and_selections_have_no_pool():
    with pytest.raises(TypeError, match=r"^pool is not an argument; labels are system"):
        evaluate_links([np.eye(2)], [{(0, 0)}], pool="all")
    with pytest.raises(TypeError, match=r"^pool is not an argument; labels are system"):
        evaluate_selections(None, np.eye(2), pool="all")
