"""Results of every evaluation: their numbers, files, tables and frames."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from refusals import refuses
from scipy import stats

from kernelcore._store import save_json
from kernelcore.datasets import BinarySelections, RelevanceJudgments, SelectionTriple
from kernelcore.evaluation import (
    Published,
    Result,
    ResultTable,
    evaluate,
    evaluate_links,
    evaluate_relevance,
    evaluate_selections,
)
from kernelcore.evaluation.metrics import chance_recall_at_k, wilson_interval
from kernelcore.evaluation.overlap import overlap_standard_error

NAN = float("nan")
RNG = np.random.default_rng(0)
SCORES = RNG.random((20, 20)) + 0.5 * np.eye(20)
LABELS = {"system": "toy", "protocol": "p", "dataset": "pets", "split": "test", "pool": "all"}
IDS = [str(i) for i in range(20)]
PAIRS = sorted({(str(i), str(j)) for i in range(19) for j in (i, i * i % 20)})
GOLD = RelevanceJudgments.from_pairs("gold", PAIRS, np.ones(len(PAIRS))).select(IDS, IDS)
TRIPLES = [SelectionTriple(str(i), "A dog.", f"c{i}", "a", "b") for i in range(6)]
LINKS = [RNG.random((3, 4)) for _ in range(5)]

RESULTS = {
    "retrieval": evaluate(SCORES, ks=(1, 5), settings={"k": np.int64(2)}, **LABELS),
    "folds": evaluate(SCORES, n_folds=4, **LABELS),
    "relevance": evaluate_relevance(SCORES, judgments=GOLD, threshold=1, **LABELS),
    "links": evaluate_links(LINKS, [{(0, 1)}] * 4 + [()], **LABELS),
    "links that share images": evaluate_links(
        LINKS, [{(0, 1)}] * 5, images=[("a", "b"), ("b",), ("c",), ("d",), ("d", "e")], **LABELS
    ),
    "selections": evaluate_selections(
        BinarySelections("garden", TRIPLES), RNG.integers(0, 2, (2, 6)), **LABELS
    ),
}
every_result = pytest.mark.parametrize("result", RESULTS.values(), ids=RESULTS)


@every_result
def test_files_hold_everything(result, tmp_path):
    result.save(tmp_path / "r.json")
    again = Result.load(tmp_path / "r.json")
    assert again == result
    assert again.mean == result.mean
    assert str(again.standard_error) == str(result.standard_error)  # with NaN
    assert str(again) == str(result)
    assert again != replace(result, system="other")
    assert result != "toy"


@every_result
def test_it_prints_in_every_format(result):
    table = result.to_table()
    assert str(result) == str(table) == str(ResultTable([result]))
    assert result.to_markdown() == table.to_markdown()
    assert result.to_latex() == table.to_latex()
    assert result._repr_html_() == table.to_html()
    assert repr(result).startswith("Result('toy', ")
    for text in ("pets", "split test", "pool all", "shares in percent"):
        assert text in table.caption
    frame = pytest.importorskip("pandas") and result.to_frame()
    assert frame["task"].tolist() == list(result.values)
    for task, row in zip(result.values, frame.to_dict("records"), strict=True):
        assert {name: row[name] for name in result.mean[task]} == result.mean[task]
        assert row["dataset"] == "pets"
    names = [row[0] for row in result.summary().rows]
    assert names == list(next(iter(result.values.values())))


@every_result
def test_means_errors_and_intervals_by_definition(result):
    interval = result.interval()
    for task, of in result.values.items():
        folds = result.fold.get(task, np.zeros(len(next(iter(of.values()))), int))
        for name, values in of.items():
            known = ~np.isnan(values)
            middle = np.median if name == "median_rank" else np.mean
            parts = [middle(values[(folds == f) & known]) for f in np.unique(folds)]
            assert result.mean[task][name] == pytest.approx(np.mean(parts), abs=1e-15)
            low, high = interval[task][name]
            assert low <= high
            error = result.standard_error[task][name]
            if name == "median_rank":
                assert np.isnan(error)
            elif result.items is not None:
                items = [own for own, there in zip(result.items, known, strict=True) if there]
                assert error == overlap_standard_error(values[known], items)
            else:
                assert error == pytest.approx(stats.sem(values[known]))
            if not result.fold and name.startswith(("R@", "S@", "accuracy", "tied")):
                expected = wilson_interval(result.mean[task][name], known.sum())
                assert (low, high) == expected


def test_the_bootstrap_draws_queries():
    result = RESULTS["retrieval"]
    ranks = result.values["annotation"]["mean_rank"]
    found = result.interval()["annotation"]
    generator = np.random.default_rng(0)
    drawn = [ranks[generator.integers(len(ranks), size=len(ranks))] for _ in range(1000)]
    for name, metric in (("mean_rank", np.mean), ("median_rank", np.median)):
        expected = np.quantile([metric(sample) for sample in drawn], [0.025, 0.975])
        assert found[name] == pytest.approx(tuple(expected))


@given(hnp.arrays(float, st.integers(1, 9), elements=st.sampled_from([0, 0.5, 1, NAN])))
def test_values_with_gaps(values):
    answered = values[~np.isnan(values)]
    if not answered.size:
        with pytest.raises(ValueError, match=r"values\['selection'\]\['accuracy'\] must be"):
            Result({"selection": {"accuracy": values}})
        return
    result = Result({"selection": {"accuracy": values}})
    assert result.mean["selection"]["accuracy"] == answered.mean()
    assert Result.from_dict(result.to_dict()) == result
    left_out = f"means over {len(answered)} of {len(values)} queries of selection"
    assert (left_out in str(result)) == (len(answered) < len(values))


def test_chance_is_the_expectation_of_a_random_order():
    result = RESULTS["relevance"]
    relevant = result.n_relevant["annotation"]
    judged = relevant[relevant > 0]
    for k in (1, 5):
        expected = chance_recall_at_k(20, k, n_relevant=judged).mean()
        assert result.chance["annotation"][f"S@{k}"] == pytest.approx(expected)
    folds = evaluate(SCORES, n_folds=4)
    expected = {"R@1": 0.2, "R@5": 1.0, "R@10": 1.0, "mean_rank": 3.0}
    assert folds.chance["search"] == pytest.approx(expected)
    assert RESULTS["links"].chance == {}
    row = evaluate(np.eye(4), system="x").summary().rows[0]
    assert row[:5] == ("R@1", "100.0", "51.0 to 100.0", "0.0", "25.0")


def result_of(accuracy, **labels):
    return Result({"selection": {"accuracy": accuracy}}, **labels)


def test_the_best_of_comparable_results_stand_out():
    good = result_of([1, 1, 1, 0.5], system="good")
    poor = result_of([0, 1, 0, 0], system="poor")
    theirs = Published("SCAN", "Hu et al. 2019", {"accuracy": 0.99})
    table = ResultTable([poor, good, theirs]).to_table()
    assert table.rows == (("poor", "25.0"), ("good", "87.5"), ("SCAN (Hu et al. 2019)", "99.0"))
    assert table.emphasized == {(1, 1)}
    assert not good.to_table().emphasized
    ranks = [evaluate(scores, system=name) for scores, name in ((SCORES, "a"), (-SCORES, "b"))]
    table = ResultTable(ranks, metrics=["mean_rank"]).to_table()
    assert table.columns == ("system", "mean_rank", "mean_rank")
    assert table.emphasized == {(0, 1), (0, 2)}  # the smallest


def test_facts_that_differ_get_a_column():
    first, second = result_of([1, 0], dataset="a"), result_of([1, 0], dataset="b", split="dev")
    table = ResultTable([first, second, Published("x", "y")]).to_table()
    assert table.columns[:3] == ("system", "dataset", "split")
    assert [row[:3] for row in table.rows] == [
        ("(unnamed)", "a", ""), ("(unnamed)", "b", "dev"), ("x (y)", "", "")
    ]  # fmt: skip
    assert (table.n_labels, table.emphasized) == (3, set())
    folded, whole = RESULTS["folds"], evaluate(SCORES, **LABELS)
    mixed = ResultTable([folded, whole]).to_table()
    assert mixed.columns[:2] == ("system", "n_folds")
    assert [row[1] for row in mixed.rows] == ["4", ""]
    assert "means over 4 folds" in folded.to_table().caption
    assert "ties ['mean']" in str(replace(whole, facts={**whole.facts, "ties": ["mean"]}))


def test_uncertainty_behind_the_means():
    ours = result_of([1, 1, 0, 0.5], system="ours")
    theirs = Published("x", "y", {"selection": {"accuracy": 0.8}})
    errors = ResultTable([ours, theirs], uncertainty="standard_error").to_table()
    assert errors.rows[0] == ("ours", "62.5 ± 23.9")
    assert errors.rows[1][1] == "80.0"
    assert errors.caption.endswith("; ± standard error")
    intervals = ResultTable([ours], uncertainty="interval").to_table()
    assert intervals.rows[0][1].startswith("62.5 (")
    shared = RESULTS["links that share images"]
    caption = ResultTable([shared], uncertainty="standard_error").to_table().caption
    assert caption.endswith("± standard error, shared items taken into account")


def test_published_rows():
    row = Published("them", "Doe 2013", {"search": {"R@1": np.float32(0.5), "median_rank": 34}})
    table = ResultTable([RESULTS["retrieval"], row])
    assert table.to_table().rows[1] == (
        "them (Doe 2013)", "n/a", "n/a", "n/a", "50.0", "n/a", "34.0"
    )  # fmt: skip
    frame = pytest.importorskip("pandas") and table.to_frame()
    assert frame["source"].tolist() == ["", "", "Doe 2013", "Doe 2013"]
    assert frame["R@1"].isna().tolist() == [False, False, True, False]


def test_values_are_read_only_copies():
    own = np.array([0.5, 1.0])
    result = Result({"links": {"AUC": own}})
    own[0] = 0
    assert result.mean["links"]["AUC"] == 0.75
    with pytest.raises(ValueError, match="read-only"):
        result.values["links"]["AUC"][0] = 1


def test_a_damaged_file_is_named(tmp_path):
    document = RESULTS["links"].to_dict()
    for changes in (
        {"kind": "table"}, {"values": [1]}, {"values": {"links": {"AUC": "x"}}},
        {"values": {"links": 3}}, {"system": 3}, {"settings": []}, {"fold": 3}, {"items": 3},
        {"n_relevant": {"links": [1]}}, {"tie_effect": {"links": {"y": 0.1}}},
    ):  # fmt: skip
        save_json(tmp_path / "links.json", document | changes)
        refuses(ValueError, r"links\.json", Result.load, tmp_path / "links.json")
    del document["values"]
    refuses(ValueError, "values", Result.from_dict, document)
    refuses(ValueError, "document", Result.from_dict, [])


def test_pool_and_chance_are_printed():
    result = evaluate(np.eye(4), system="perfect")
    assert result.rsum == 600
    both = str(ResultTable([result, evaluate(np.eye(2), system="small")]))
    assert "chance of perfect: annotation 25 100 100" in both
    assert "chance of small: annotation 50 100 100" in both
    assert "chance" not in str(evaluate(np.eye(3), ks=()))
