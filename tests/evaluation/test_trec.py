"""Runs and judgments of TREC, beside pytrec_eval and ranx."""

import gzip
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelcore.evaluation import evaluate, rank_relevant
from kernelcore.evaluation.trec import (
    _strictly_falling,
    rank_run,
    read_qrels,
    read_run,
    trec_qrels,
    trec_run,
    write_qrels,
    write_run,
)

KS = (1, 3, 5)
N_RUNS = 100


def random_run(rng):
    """Judged queries with few distinct scores, so that there are many ties."""
    n_queries, n_items = rng.integers(1, 6), rng.integers(1, 12)
    scores = rng.integers(0, 4, (n_queries, n_items)) / 7
    queries = [f"q{q}" for q in range(n_queries)]
    items = [f"d{i}" for i in rng.permutation(n_items)]
    relevant = rng.random((n_queries, n_items)) < 0.4
    relevant[np.arange(n_queries), rng.integers(n_items, size=n_queries)] = True
    qrels = {
        query: {item: int(flag) for item, flag in zip(items, row, strict=True)}
        for query, row in zip(queries, relevant, strict=True)
    }
    return scores, queries, items, relevant, qrels


def ours(ranked):
    mean = {name: float(np.nanmean(values)) for name, values in ranked.metrics(KS).items()}
    mean |= {f"nDCG@{k}": float(np.mean(ranked.ndcg_at_k(k))) for k in KS}
    return mean


def by_pytrec_eval(run, qrels):
    pytrec_eval = pytest.importorskip("pytrec_eval")
    names = {
        "mean_average_precision": "map",
        "mean_reciprocal_rank": "recip_rank",
        "R-precision": "Rprec",
    }
    for k in KS:
        names |= {f"P@{k}": f"P_{k}", f"recall@{k}": f"recall_{k}"}
        names |= {f"nDCG@{k}": f"ndcg_cut_{k}", f"S@{k}": f"success_{k}"}
    cuts = ",".join(map(str, KS))
    measures = {"map", "recip_rank", "Rprec"}
    measures |= {f"{name}.{cuts}" for name in ("P", "recall", "ndcg_cut", "success")}
    found = pytrec_eval.RelevanceEvaluator(qrels, measures).evaluate(run)
    return {
        name: np.mean([values[theirs] for values in found.values()])
        for name, theirs in names.items()
    }


def by_ranx(run, qrels):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ranx = pytest.importorskip("ranx")
        names = {"MAP": "map", "MRR": "mrr", "R-precision": "r-precision"}
        for k in KS:
            names |= {f"P@{k}": f"precision@{k}", f"recall@{k}": f"recall@{k}"}
            names |= {f"nDCG@{k}": f"ndcg@{k}", f"S@{k}": f"hit_rate@{k}"}
        relevant = {q: {d: g for d, g in row.items() if g} for q, row in qrels.items()}
        found = ranx.evaluate(ranx.Qrels(relevant), ranx.Run(run), list(names.values()))
    return {name: found[theirs] for name, theirs in names.items()}


def test_random_runs_with_ties_come_back_and_are_equal_in_pytrec_eval(tmp_path):
    for seed in range(N_RUNS):
        scores, queries, items, relevant, qrels = random_run(np.random.default_rng(seed))
        run = trec_run(scores, queries, items)
        suffix = ".gz" if seed % 2 else ".txt"
        write_run(tmp_path / f"run{suffix}", run)
        write_qrels(tmp_path / f"qrels{suffix}", qrels)
        run_back = read_run(tmp_path / f"run{suffix}")
        assert run_back == run
        assert [list(row) for row in run_back.values()] == [list(row) for row in run.values()]
        assert read_qrels(tmp_path / f"qrels{suffix}") == qrels
        found = ours(rank_run(run_back, qrels))
        gold = [np.flatnonzero(row).tolist() for row in relevant]
        direct = ours(rank_relevant(scores, gold, ties="ordinal"))
        assert found == pytest.approx(direct)
        theirs = by_pytrec_eval(run_back, qrels)
        assert {name: found[name] for name in theirs} == pytest.approx(theirs)


@pytest.mark.slow  # ranx compiles every metric
def test_random_runs_with_ties_are_equal_in_ranx():
    rng = np.random.default_rng(0)
    run, qrels = {}, {}
    for number in range(N_RUNS):  # all in one call: each takes a while
        scores, queries, items, _, judged = random_run(rng)
        queries = [f"{number}{query}" for query in queries]
        run |= trec_run(scores, queries, items)
        qrels |= {f"{number}{query}": row for query, row in judged.items()}
    theirs = by_ranx(run, qrels)
    found = ours(rank_run(run, qrels))
    assert {name: found[name] for name in theirs} == pytest.approx(theirs)


def test_ties_in_a_run_of_others_stand_as_trec_eval_has_them():
    rng = np.random.default_rng(5)
    for _ in range(N_RUNS):
        scores, queries, items, _, qrels = random_run(rng)
        scores = scores + rng.choice([0, 1e-9], scores.shape)  # equal in float32
        run = {
            query: dict(zip(items, row.tolist(), strict=True))
            for query, row in zip(queries, scores, strict=True)
        }
        theirs = by_pytrec_eval(run, qrels)
        found = ours(rank_run(run, qrels))
        assert {name: found[name] for name in theirs} == pytest.approx(theirs)


def test_both_tasks_of_a_result_are_those_of_their_runs():
    rng = np.random.default_rng(1)
    scores, owner = rng.normal(size=(5, 10)), np.repeat(np.arange(5), 2)
    images, captions = [f"i{k}" for k in range(5)], [f"c{k}" for k in range(10)]
    result = evaluate(scores, caption_image=owner)
    for task, table, rows, columns in (
        ("annotation", scores, images, captions),
        ("search", scores.T, captions, images),
    ):
        qrels = trec_qrels(images, captions, caption_image=owner, task=task)
        ranked = rank_run(trec_run(table, rows, columns), qrels)
        assert ranked.first_rank().tolist() == result.values[task]["mean_rank"].tolist()
        mean = result.mean[task]["mean_average_precision"]
        assert np.mean(ranked.average_precision()) == mean


FLOATS = st.floats(width=64, allow_nan=False) | st.sampled_from(
    [np.inf, 1e300, -1e300, 0.0, -0.0, 3.4028235e38, -3.4028235e38, 1e-45, -1e-45]
)


@given(st.lists(FLOATS, min_size=1, max_size=8))
@settings(max_examples=300, deadline=None)
def test_scores_fall_strictly_and_stay_finite(values):
    values = np.sort(np.array(values))[::-1]
    values = values[values > -np.inf]
    found = _strictly_falling(values)
    assert found.dtype == np.float32
    assert np.isfinite(found).all()
    assert (found[1:] < found[:-1]).all()
    clipped = np.clip(values, -np.finfo("f4").max, np.finfo("f4").max).astype(np.float32)
    if (clipped[1:] < clipped[:-1]).all():
        assert (found == clipped).all()


def test_ties_are_lowered_by_one_step():
    found = _strictly_falling(np.array([1.0, 1.0, 0.5, 0.5, -1.0, -1.0]))
    down = np.float32(-np.inf)
    assert found.tolist() == [
        1.0, float(np.nextafter(np.float32(1), down)),
        0.5, float(np.nextafter(np.float32(0.5), down)),
        -1.0, float(np.nextafter(np.float32(-1), down)),
    ]  # fmt: skip


def test_a_run_can_be_cut_and_leaves_out_what_is_ruled_out():
    run = trec_run([[0.1, -np.inf, 0.3, 0.2]], ["q"], list("abcd"), k=2)
    assert list(run["q"]) == ["c", "d"]
    run = trec_run([[0.1, -np.inf, 0.3, 0.2]], ["q"], list("abcd"))
    assert list(run["q"]) == ["c", "d", "a"]
    run = trec_run(np.ones((1, 3), np.float16), ["q"], list("abc"))
    assert list(run["q"]) == ["a", "b", "c"]


def test_a_query_without_a_list_found_nothing_and_one_without_judgments_is_left_out():
    ranked = rank_run(
        {"q": {"a": 1.0}, "x": {"a": 1.0}}, {"p": {"a": 1}, "q": {"a": 2, "b": 1}}
    )
    assert ranked.average_precision().tolist() == [0, 0.5]
    assert rank_run({"q": {"a": 1.0}}, {"q": {"a": 2, "b": 1}}, relevance=2).r_precision() == [
        1
    ]


def test_queries_without_relevant_items_count_as_trec_eval_has_them():
    run = {"q": {"a": 1.0, "b": 0.5}, "none": {"a": 1.0}}
    qrels = {"q": {"a": 1}, "none": {"a": 0}}
    found = ours(rank_run(run, qrels))
    assert found["mean_average_precision"] == found["S@1"] == 0.5
    skipped = ours(rank_run(run, qrels, skip_without=True))
    assert skipped["mean_average_precision"] == skipped["S@1"] == 1
    theirs = by_pytrec_eval(run, qrels)
    assert {name: found[name] for name in theirs} == pytest.approx(theirs)


def test_the_file_is_that_of_trec(tmp_path):
    path = tmp_path / "run.txt"
    write_run(path, {"q1": {"b": 0.5, "a": 0.75}}, tag="mine")
    assert path.read_text() == "q1 Q0 a 1 0.75 mine\nq1 Q0 b 2 0.5 mine\n"
    write_qrels(path, {"q1": {"b": 0}})
    assert path.read_text() == "q1 0 b 0\n"
    write_qrels(tmp_path / "q.gz", {"q1": {"b": 0}})
    first = (tmp_path / "q.gz").read_bytes()
    write_qrels(tmp_path / "q.gz", {"q1": {"b": 0}})
    assert (tmp_path / "q.gz").read_bytes() == first
    assert gzip.decompress(first) == b"q1 0 b 0\n"


def test_lines_of_comments_are_left_out(tmp_path):
    path = tmp_path / "file.txt"
    path.write_text("# made by hand\nq Q0 d 1 0.5 x\n  # over\n#q Q0 e 1 0.5 x\n")
    assert read_run(path) == {"q": {"d": 0.5}}
    path.write_text("#qrels\nq 0 #d 1\n")
    assert read_qrels(path) == {"q": {"#d": 1}}
    for write in (write_run, write_qrels):
        with pytest.raises(ValueError, match="must have queries that do not begin with #"):
            write(path, {"#q": {"d": 1}})


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("q Q0 d 1 0.5\n", r"line 1, must have 6 columns, got 5"),
        ("\nq Q0 d 1 high x\n", r"line 2, must have a finite number as score, got 'high'"),
        ("q Q0 d 1 nan x\n", r"line 1, must have a finite number as score, got 'nan'"),
        ("q Q0 d 1 1 x\nq Q0 d 2 0 x\n", r"line 2, must not name 'd' again for 'q'"),
    ],
)
def test_a_damaged_run_is_refused_by_its_line(tmp_path, text, match):
    path = tmp_path / "run.txt"
    path.write_text(text)
    with pytest.raises(ValueError, match=rf"run\.txt, {match}"):
        read_run(path)


def test_damaged_files_are_refused(tmp_path):
    path = tmp_path / "qrels.gz"
    write_qrels(path, {"q": {str(k): k for k in range(100)}})
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(ValueError, match=r"qrels\.gz is damaged or truncated"):
        read_qrels(path)
    path.write_text("q 0 d 1.5\n")
    with pytest.raises(ValueError, match=r"must have a finite number as relevance, got '1\.5'"):
        read_qrels(path)
    path.write_bytes(b"q 0 \xff 1\n")
    with pytest.raises(ValueError, match=r"qrels\.gz is damaged or truncated"):
        read_qrels(path)
    with pytest.raises(FileNotFoundError, match="no such file"):
        read_run(tmp_path / "none")


def test_bad_input_is_named(tmp_path):
    square = np.eye(2)
    for error, match, call in (
        (ValueError, "query_ids must have one id each", lambda: trec_run(square, ["q"], "ab")),
        (TypeError, "candidate_ids must be a seq", lambda: trec_run(square, ["p", "q"], "ab")),
        (ValueError, "query_ids must be unique",
         lambda: trec_run(square, ["q", "q"], ["a", "b"])),
        (ValueError, "candidate_ids must hold words without white space, got 'a b'",
         lambda: trec_run(square, ["p", "q"], ["a b", "c"])),
        (TypeError, "query_ids must be a", lambda: trec_run(square, [1, 2], ["a", "b"])),
        (ValueError, "scores must not hold NaN, got NaN for query 'q'",
         lambda: trec_run([[1.0], [np.nan]], ["p", "q"], ["a"])),
        (ValueError, "tag must hold words", lambda: write_run(tmp_path / "x", {}, tag="a b")),
        (ValueError, "run must hold words", lambda: write_run(tmp_path / "x", {"": {"a": 1}})),
        (TypeError, r"run\['q'\] must be a real number",
         lambda: write_run(tmp_path / "x", {"q": {"a": "1"}})),
        (TypeError, "qrels must be an integer",
         lambda: write_qrels(tmp_path / "x", {"q": {"a": 0.5}})),
        (TypeError, "run must be a mapping from strings", lambda: rank_run([], {})),
        (TypeError, "qrels must be a mapping from strings",
         lambda: write_qrels(tmp_path / "x", {"q": 1})),
        (ValueError, "run must hold candidates for a query of qrels",
         lambda: rank_run({"x": {"a": 1.0}}, {"q": {"a": 1}})),
        (ValueError, "qrels must hold an item of relevance 1 at least",
         lambda: rank_run({"q": {"a": 1.0}}, {"q": {"a": 0}})),
        (ValueError, "task must be one of", lambda: trec_qrels(["a"], ["b"], task="both")),
    ):  # fmt: skip
        with pytest.raises(error, match=match):
            call()
    assert not list(tmp_path.iterdir())
