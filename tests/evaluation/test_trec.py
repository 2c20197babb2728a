"""Runs and judgments of TREC, beside pytrec_eval and ranx."""

import gzip

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refuses

from kernelcore.evaluation import evaluate, rank_relevant, trec

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
    rows = [dict(zip(items, map(int, row), strict=True)) for row in relevant]
    qrels = dict(zip(queries, rows, strict=True))
    return scores, queries, items, relevant, qrels


def ours(ranked):
    mean = {name: float(np.nanmean(values)) for name, values in ranked.metrics(KS).items()}
    mean |= {f"nDCG@{k}": float(np.mean(ranked.ndcg_at_k(k))) for k in KS}
    return mean


def by_pytrec_eval(run, qrels):
    pytrec_eval = pytest.importorskip("pytrec_eval")
    names = {"mean_average_precision": "map", "mean_reciprocal_rank": "recip_rank"}
    names["R-precision"] = "Rprec"
    for k in KS:
        names |= {f"P@{k}": f"P_{k}", f"recall@{k}": f"recall_{k}"}
        names |= {f"nDCG@{k}": f"ndcg_cut_{k}", f"S@{k}": f"success_{k}"}
    cuts = ",".join(map(str, KS))
    measures = {"map", "recip_rank", "Rprec"}
    measures |= {f"{name}.{cuts}" for name in ("P", "recall", "ndcg_cut", "success")}
    found = pytrec_eval.RelevanceEvaluator(qrels, measures).evaluate(run)
    own = found.values()
    return {ours: np.mean([values[theirs] for values in own]) for ours, theirs in names.items()}


def test_random_runs_with_ties_come_back_and_are_equal_in_pytrec_eval(tmp_path):
    for seed in range(N_RUNS):
        scores, queries, items, relevant, qrels = random_run(np.random.default_rng(seed))
        run = trec.trec_run(scores, queries, items)
        suffix = ".gz" if seed % 2 else ".txt"
        trec.write_run(tmp_path / f"run{suffix}", run)
        trec.write_qrels(tmp_path / f"qrels{suffix}", qrels)
        run_back = trec.read_run(tmp_path / f"run{suffix}")
        assert run_back == run
        assert [list(row) for row in run_back.values()] == [list(row) for row in run.values()]
        assert trec.read_qrels(tmp_path / f"qrels{suffix}") == qrels
        found = ours(trec.rank_run(run_back, qrels))
        gold = [np.flatnonzero(row).tolist() for row in relevant]
        direct = ours(rank_relevant(scores, gold, ties="ordinal"))
        assert found == pytest.approx(direct)
        theirs = by_pytrec_eval(run_back, qrels)
        assert {name: found[name] for name in theirs} == pytest.approx(theirs)


def test_ties_in_a_run_of_others_stand_as_trec_eval_has_them():
    rng = np.random.default_rng(5)
    for _ in range(N_RUNS):
        scores, queries, items, _, qrels = random_run(rng)
        scores = scores + rng.choice([0, 1e-9], scores.shape)  # equal in float32
        rows = [dict(zip(items, row.tolist(), strict=True)) for row in scores]
        run = dict(zip(queries, rows, strict=True))
        theirs = by_pytrec_eval(run, qrels)
        found = ours(trec.rank_run(run, qrels))
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
        qrels = trec.trec_qrels(images, captions, caption_image=owner, task=task)
        ranked = trec.rank_run(trec.trec_run(table, rows, columns), qrels)
        assert ranked.first_rank().tolist() == result.values[task]["mean_rank"].tolist()
        mean = result.mean[task]["mean_average_precision"]
        assert np.mean(ranked.average_precision()) == mean


FLOATS = st.floats(width=64, allow_nan=False) | st.sampled_from(
    [np.inf, 1e300, -1e300, 0.0, -0.0, 3.4028235e38, -3.4028235e38, 1e-45, -1e-45]
)


@given(st.lists(FLOATS, min_size=1, max_size=8))
@settings(max_examples=150, deadline=None)
def test_scores_fall_strictly_and_stay_finite(values):
    values = np.sort(np.array(values))[::-1]
    values = values[values > -np.inf]
    found = trec._strictly_falling(values)
    assert found.dtype == np.float32
    assert np.isfinite(found).all()
    assert (found[1:] < found[:-1]).all()
    clipped = np.clip(values, -np.finfo("f4").max, np.finfo("f4").max).astype(np.float32)
    if (clipped[1:] < clipped[:-1]).all():
        assert (found == clipped).all()


def test_ties_are_lowered_by_one_step():
    found = trec._strictly_falling(np.array([1.0, 1.0, 0.5, 0.5, -1.0, -1.0]))
    lower = np.nextafter(np.float32([1, 0.5, -1]), np.float32(-np.inf))
    assert found.reshape(3, 2).T.tolist() == [[1, 0.5, -1], lower.tolist()]


def test_a_run_can_be_cut_and_leaves_out_what_is_ruled_out():
    run = trec.trec_run([[0.1, -np.inf, 0.3, 0.2]], ["q"], list("abcd"), k=2)
    assert list(run["q"]) == ["c", "d"]
    run = trec.trec_run([[0.1, -np.inf, 0.3, 0.2]], ["q"], list("abcd"))
    assert list(run["q"]) == ["c", "d", "a"]
    run = trec.trec_run(np.ones((1, 3), np.float16), ["q"], list("abc"))
    assert list(run["q"]) == ["a", "b", "c"]


def test_a_query_without_a_list_found_nothing_and_one_without_judgments_is_left_out():
    qrels = {"p": {"a": 1}, "q": {"a": 2, "b": 1}}
    ranked = trec.rank_run({"q": {"a": 1.0}, "x": {"a": 1.0}}, qrels)
    assert ranked.average_precision().tolist() == [0, 0.5]
    stricter = trec.rank_run({"q": {"a": 1.0}}, {"q": qrels["q"]}, relevance=2)
    assert stricter.r_precision() == [1]


def test_queries_without_relevant_items_count_as_trec_eval_has_them():
    run = {"q": {"a": 1.0, "b": 0.5}, "none": {"a": 1.0}}
    qrels = {"q": {"a": 1}, "none": {"a": 0}}
    found = ours(trec.rank_run(run, qrels))
    assert found["mean_average_precision"] == found["S@1"] == 0.5
    skipped = ours(trec.rank_run(run, qrels, skip_without=True))
    assert skipped["mean_average_precision"] == skipped["S@1"] == 1
    theirs = by_pytrec_eval(run, qrels)
    assert {name: found[name] for name in theirs} == pytest.approx(theirs)


def test_the_file_is_that_of_trec(tmp_path):
    path = tmp_path / "run.txt"
    trec.write_run(path, {"q1": {"b": 0.5, "a": 0.75}}, tag="mine")
    assert path.read_text() == "q1 Q0 a 1 0.75 mine\nq1 Q0 b 2 0.5 mine\n"
    scores = [0.1, 5e-324, -1e22, 1e5, *np.random.default_rng(0).normal(size=1000).tolist()]
    run = {"q": {f"d{number}": score for number, score in enumerate(scores)}}
    trec.write_run(path, run)
    assert trec.read_run(path) == run
    trec.write_qrels(path, {"q1": {"b": 0}})
    assert path.read_text() == "q1 0 b 0\n"
    trec.write_qrels(tmp_path / "q.gz", {"q1": {"b": 0}})
    first = (tmp_path / "q.gz").read_bytes()
    trec.write_qrels(tmp_path / "q.gz", {"q1": {"b": 0}})
    assert (tmp_path / "q.gz").read_bytes() == first
    assert gzip.decompress(first) == b"q1 0 b 0\n"


def test_lines_of_comments_are_left_out(tmp_path):
    path = tmp_path / "file.txt"
    path.write_text("# made by hand\nq Q0 d 1 0.5 x\n  # over\n#q Q0 e 1 0.5 x\n")
    assert trec.read_run(path) == {"q": {"d": 0.5}}
    path.write_text("#qrels\nq 0 #d 1\n")
    assert trec.read_qrels(path) == {"q": {"#d": 1}}


def test_damaged_files_are_refused_by_their_line(tmp_path):
    path = tmp_path / "run.txt"
    for number, text in (
        (1, "q Q0 d 1 0.5\n"),
        (2, "\nq Q0 d 1 high x\n"),
        (1, "q Q0 d 1 nan x\n"),
        (2, "q Q0 d 1 1 x\nq Q0 d 2 0 x\n"),
    ):
        path.write_text(text)
        refuses(ValueError, rf"run\.txt, line {number}", trec.read_run, path)
    path.write_text("q 0 d 1.5\n")
    refuses(ValueError, r"'1\.5'", trec.read_qrels, path)
    packed = tmp_path / "qrels.gz"
    trec.write_qrels(packed, {"q": {str(k): k for k in range(100)}})
    for content in (packed.read_bytes()[:-20], b"q 0 \xff 1\n"):
        packed.write_bytes(content)
        refuses(ValueError, r"qrels\.gz", trec.read_qrels, packed)
    refuses(FileNotFoundError, "none", trec.read_run, tmp_path / "none")
