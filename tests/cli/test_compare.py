"""``kernelcore compare``: files of values for each item, of any program."""

import json
import re
from functools import partial

import numpy as np
import pytest

from kernelcore.evaluation import evaluate
from kernelcore.evaluation.significance import fisher_randomization, mcnemar

N = 200
RNG = np.random.default_rng(0)
ITEMS = [f"q{i}" for i in range(N)]
HITS = {name: (RNG.random(N) < p).astype(int) for name, p in (("a", 0.5), ("b", 0.62))}
SCORES = {name: RNG.random(N) + shift for name, shift in (("a", 0.0), ("b", 0.02))}


def samples(name):
    """Lines as lm-evaluation-harness logs them, in an order of their own."""
    rows = []
    for i in RNG.permutation(N).tolist():
        row = {"doc_id": i, "doc": {"question": "?"}, "target": 3, "resps": [["x"]]}
        row |= {"metrics": ["exact_match"], "exact_match": float(HITS[name][i])}
        rows += [row | {"filter": part} for part in ("strict", "none")]
    return "\n".join(map(json.dumps, rows)) + "\n"


def plain_lines(name):
    rows = zip(ITEMS, (HITS[name] == 1).tolist(), strict=True)
    return "".join(json.dumps({"id": q, "note": "n", "acc": hit}) + "\n" for q, hit in rows)


def table(name, comma=","):
    rows = [("question_id", "text", "rouge")]
    scores = map(repr, SCORES[name].tolist())
    rows += zip(ITEMS, [f'"some{comma} text"'] * N, scores, strict=True)
    return "".join(f"{comma.join(row)}\n" for row in rows)


def cells(out, metric, system):
    [row] = re.findall(rf"^{re.escape(metric)} +{system} +(.*)$", out, re.M)
    return [float(cell) for cell in row.split()]


P_HITS = float(mcnemar(HITS["b"] == 1, HITS["a"] == 1).p_value)
P_SCORES = float(fisher_randomization(SCORES["b"], SCORES["a"], rng=0).p_value)


FORMS = [
    (".jsonl", samples, ("exact_match", "exact_match,strict")),
    (".csv", table, ("rouge",)),
]
FORMS += [(".jsonl", plain_lines, ("acc",)), (".tsv", partial(table, comma="\t"), ("rouge",))]


@pytest.mark.parametrize(("suffix", "text", "metrics"), FORMS)
def test_files_are_paired_by_item(tmp_path, run, suffix, text, metrics):
    values, p = (SCORES, P_SCORES) if metrics == ("rouge",) else (HITS, P_HITS)
    files = [tmp_path / f"{name}{suffix}" for name in "ab"]
    for file in files:
        file.write_text(text(file.stem))
    status, out, err = run("compare", *files)
    assert (status, err) == (0, "")
    first, second = values["a"].mean(), values["b"].mean()
    for metric in metrics:
        assert cells(out, metric, "a") == pytest.approx([N, first], rel=1e-3)
        expected = [N, second, second - first, p]
        assert cells(out, metric, "b") == pytest.approx(expected, rel=1e-2)
    assert ("McNemar" if values is HITS else "Fisher randomisation") in out
    assert "target" not in out


def test_results_and_runs_are_compared_too(tmp_path, run):
    scores = RNG.normal(size=(40, 40))
    for name, signal in (("a", 1), ("b", 3)):
        own = scores + signal * np.eye(40)
        evaluate(own).save(tmp_path / f"{name}.json")
        lines = (f"{q} Q0 {d} 0 {score} x\n" for (q, d), score in np.ndenumerate(own))
        (tmp_path / f"{name}.run").write_text("".join(lines))
    (tmp_path / "qrels").write_text("".join(f"{q} 0 {q} 1\n" for q in range(40)))
    out = run("compare", tmp_path / "a.json", tmp_path / "b.json", "--metric", "R@1")[1]
    words = ["compare", tmp_path / "a.run", tmp_path / "b.run", "--qrels", tmp_path / "qrels"]
    status, runs, err = run(*words, "--metric", "S@1", "--margin", 0.1)
    assert (status, err) == (0, "")
    assert cells(runs, "S@1", "b")[:4] == cells(out, "annotation R@1", "b")
    assert "p (equal)" in runs


def test_several_systems_are_corrected_and_files_of_one_name_told_apart(tmp_path, run):
    for folder in "abc":
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "samples.csv").write_text(table("a" if folder == "a" else "b"))
    files = [tmp_path / folder / "samples.csv" for folder in "abc"]
    out = run("compare", *files)[1]
    p, corrected = cells(out, "rouge", files[1])[3:]
    assert corrected == pytest.approx(min(1, 2 * p), rel=1e-2)


@pytest.mark.parametrize(
    ("first", "second", "complaint"),
    [
        ("id,acc\n1,0\n2,1\n", "id,acc\n1,0\n3,1\n", "the first is 2"),
        ("id,acc\n1,0\n1,1\n", "id,acc\n1,0\n", "line 3 must be a new item, got 1"),
        ("name,acc\n1,0\n", "name,acc\n1,0\n", "line 2 must have the field doc_id or"),
        ("id,acc\n1,0\n", "id,f1\n1,0\n", "share a metric"),
        ("id,acc\n1,0\n", None, "no such file"),
        ('{"id": 1, "acc": 1}\n{"id": 2, \n', "", "a.jsonl must hold JSON in line 2"),
        ("[1]\n", "", "line 1 must be a JSON object"),
    ],
)
def test_what_cannot_be_paired_is_named(tmp_path, fails, first, second, complaint):
    kind = "jsonl" if first[0] in "{[" else "csv"
    a, b = tmp_path / f"a.{kind}", tmp_path / f"b.{kind}"
    a.write_text(first)
    if second is not None:
        b.write_text(second)
    assert complaint in fails("compare", a, b)


def test_wrong_options_are_named(tmp_path, fails):
    (tmp_path / "c.csv").write_text("id,acc\n1,0\n")
    words = ["compare", *[tmp_path / "c.csv"] * 2]
    assert "the metric f1, got acc" in fails(*words, "--metric", "f1")
    assert "--qrels: " in fails(*words, "--qrels", tmp_path / "none")
    assert "FILES must be at least two" in fails(*words[:2], status=2)
