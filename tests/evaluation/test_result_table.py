import json
from fractions import Fraction

import numpy as np
import pytest

from kernelcore.evaluation import LinkResult, Published, ResultTable, evaluate


def measured(strength=0.0, **labels):
    rng = np.random.default_rng(1)
    scores = rng.random((30, 30)) + strength * np.eye(30)
    return evaluate(scores, **{"dataset": "toy", "split": "test", **labels})


PUBLISHED = Published(
    "Tri5", "Doe & Roe 2013", {"annotation": {"R@1": 0.083, "R@10": 0.303, "median_rank": 34}}
)


def test_rows_print_percent_and_what_is_not_published():
    good, poor = measured(0.9, system="good"), measured(system="poor")
    table = ResultTable([good, poor, PUBLISHED]).to_table()
    assert table.columns == ("system", *["R@1", "R@5", "R@10", "median"] * 2)
    assert table.groups == (("", 1), ("annotation", 4), ("search", 4))
    assert table.rows[0] == (
        "good",
        *(f"{100 * good.annotation.recall[k]:.1f}" for k in (1, 5, 10)),
        f"{good.annotation.median_rank:.1f}",
        *(f"{100 * good.search.recall[k]:.1f}" for k in (1, 5, 10)),
        f"{good.search.median_rank:.1f}",
    )
    assert table.rows[2] == (
        "Tri5 (Doe & Roe 2013)", "8.3", "n/a", "30.3", "34.0", "n/a", "n/a", "n/a", "n/a",
    )  # fmt: skip
    assert table.caption.startswith("R@k in percent; toy, split test, 30 images, 30 captions,")
    assert "ties mean" in table.caption


def test_best_measured_values_stand_out():
    good, poor = measured(0.9, system="good"), measured(system="poor")
    assert good.annotation.median_rank < poor.annotation.median_rank
    table = ResultTable([poor, PUBLISHED, good]).to_table()
    assert table.emphasized == {(2, column) for column in range(1, 9)}
    both = ResultTable([good, good]).to_table()
    assert both.emphasized == {(row, column) for row in (0, 1) for column in range(1, 9)}
    assert not ResultTable([good, PUBLISHED]).to_table().emphasized


def test_what_differs_gets_a_column_and_nothing_is_compared():
    table = ResultTable([measured(pool="1"), measured(0.9, pool="2"), PUBLISHED]).to_table()
    assert table.columns[:2] == ("system", "pool")
    assert [row[1] for row in table.rows] == ["1", "2", ""]
    assert table.n_labels == 2
    assert not table.emphasized
    assert "pool" not in table.caption
    smaller = evaluate(np.eye(3), dataset="toy", split="test")
    assert ResultTable([measured(), smaller]).to_table().columns[1:3] == (
        "n_images",
        "n_captions",
    )


def test_formats_are_those_of_the_table():
    results = ResultTable([measured(0.9, system="a_b"), PUBLISHED])
    assert str(results) == str(results.to_table())
    assert results.to_markdown() == results.to_table().to_markdown()
    assert r"a\_b" in results.to_latex()
    assert r"Doe \& Roe" in results.to_latex()
    alone = measured(0.9, system="a_b")
    assert str(alone) == str(ResultTable([alone]))
    assert alone.to_markdown() == ResultTable([alone]).to_markdown()
    assert alone.to_latex() == ResultTable([alone]).to_latex()


def test_a_result_without_a_name_says_so():
    assert ResultTable([measured()]).to_table().rows[0][0] == "(unnamed)"


def test_json_and_frame_hold_every_row():
    pytest.importorskip("pandas")
    results = ResultTable([measured(0.9, system="good"), PUBLISHED])
    rows = json.loads(results.to_json())["results"]
    assert [row["system"] for row in rows] == ["good", "Tri5"]
    assert rows[1]["annotation"] == {"R@1": 0.083, "R@10": 0.303, "median_rank": 34}
    assert "search" not in rows[1]
    frame = results.to_frame()
    assert list(frame["task"]) == ["annotation", "search"] * 2
    assert list(frame["source"]) == ["", "", "Doe & Roe 2013", "Doe & Roe 2013"]
    assert frame["R@1"].isna().tolist() == [False, False, False, True]
    assert frame["R@10"][2] == 0.303


def test_refuses_what_cannot_be_tabulated():
    with pytest.raises(ValueError, match="at least one measured result"):
        ResultTable([])
    with pytest.raises(ValueError, match="at least one measured result"):
        ResultTable([PUBLISHED])
    with pytest.raises(TypeError, match=r"results must hold .* got dict"):
        ResultTable([measured(), {}])
    with pytest.raises(
        ValueError,
        match=r"results must have the same columns, got .* R@10, .* and annotation R@1, ",
    ):
        ResultTable([measured(), evaluate(np.eye(2), ks=[1])])


def test_any_of_the_main_numbers_can_be_printed():
    good, poor = measured(0.9, system="good"), measured(system="poor")
    table = ResultTable(
        [poor, good, PUBLISHED], metrics=["R@10", "median_rank", "mean_reciprocal_rank"]
    ).to_table()
    assert table.columns == ("system", *["R@10", "median", "MRR"] * 2)
    assert table.rows[2][1:4] == ("30.3", "34.0", "n/a")
    assert table.rows[1][3] == f"{100 * good.annotation.mean_reciprocal_rank:.1f}"
    assert {(1, 2), (1, 5)} <= table.emphasized
    for metrics, error in ((["R@2"], ValueError), ([1], TypeError), ("R@1", TypeError)):
        with pytest.raises(error, match=r"^metrics must"):
            ResultTable([good], metrics=metrics)


def test_results_of_two_kinds_have_no_table():
    links = LinkResult([0.5], {1: [1.0]})
    with pytest.raises(ValueError, match=r"^results must have the same columns, got AUC, p@1"):
        ResultTable([links, measured()])
    with pytest.raises(ValueError, match=r"^rank must be left out for a link result"):
        ResultTable([links], rank="mean")
    with pytest.raises(ValueError, match=r"^standard_errors must be left out for a retrieval"):
        ResultTable([measured()], standard_errors=True)


def test_published_rows_hold_numbers():
    values = {"annotation": {"R@1": 0.5}, "search": {}}
    row = Published("theirs", "Doe", values)
    values["annotation"]["R@1"] = 0.7
    assert row.values == {"annotation": {"R@1": 0.5}, "search": {}}
    assert row.to_dict() == {
        "kind": "published result", "system": "theirs", "source": "Doe", **row.values,
    }  # fmt: skip
    for odd in (
        0.5,
        [0.5],
        None,
        {"AUC": "x"},
        {"AUC": None},
        {"search": {"R@1": "a"}},
        {"search": 0.5},
        {"a": {}},
    ):
        with pytest.raises(TypeError, match=r"^values"):
            Published("theirs", "Doe", odd)
    with pytest.raises(ValueError, match=r"values\['AUC'\]"):
        Published("theirs", "Doe", {"AUC": float("nan")})


def test_published_rows_have_labels_of_one_line():
    for system, source in ((3, "Doe"), ("theirs", None), (b"theirs", "Doe")):
        with pytest.raises(TypeError, match=r"^(system|source) must be a string"):
            Published(system, source)
    for system, source in (("two\nlines", "Doe"), ("theirs", "a\tb")):
        with pytest.raises(ValueError, match=r"^(system|source) must be one line"):
            Published(system, source)


@pytest.mark.parametrize("name", ["system", "source", "kind"])
def test_published_numbers_are_not_called_as_a_label(name):
    for values in ({name: 0.5}, {"search": {name: 0.5}}):
        with pytest.raises(ValueError, match=rf"^values.* '{name}'"):
            Published("theirs", "Doe", values)


@pytest.mark.parametrize("values", [{1: 0.5}, {None: 0.5}, {"search": {("R", 1): 0.5}}])
def test_names_of_published_numbers_are_strings(values):
    with pytest.raises(TypeError, match=r"^values.* must have names as keys"):
        Published("theirs", "Doe", values)


def test_published_tasks_hold_no_tasks():
    with pytest.raises(TypeError, match=r"^values\['search'\]\['search'\]"):
        Published("theirs", "Doe", {"search": {"search": {"R@1": 0.5}}})


@pytest.mark.parametrize(
    ("value", "stored"),
    [
        (np.float32(0.5), 0.5),
        (np.float64(0.5), 0.5),
        (np.int64(34), 34),
        (Fraction(1, 4), 0.25),
        (34, 34),
    ],
)
def test_published_numbers_are_plain(value, stored):
    row = Published("theirs", "Doe", {"search": {"R@1": value}})
    found = row.values["search"]["R@1"]
    assert found == stored
    assert type(found) is type(stored)
    table = ResultTable([measured(), row])
    assert json.loads(table.to_json())["results"][1]["search"] == {"R@1": stored}


@pytest.mark.parametrize(
    ("values", "name"),
    [
        ({"search": {"r@1": 0.5}}, r"values\['search'\]\['r@1'\]"),
        ({"search": {"R@7": 0.5}}, r"values\['search'\]\['R@7'\]"),
        ({"R@1": 0.5}, r"values\['R@1'\]"),
    ],
)
def test_a_published_number_that_no_result_has_is_refused(values, name):
    row = Published("theirs", "Doe", values)
    with pytest.raises(ValueError, match=rf"^results .*{name} of theirs \(Doe\)"):
        ResultTable([measured(), row])


def test_published_numbers_of_tasks_do_not_stand_beside_links():
    links = LinkResult([0.5, 0.7], {1: [1.0, 0.0]})
    for values in ({"search": {"AUC": 0.5}}, {"search": {}}, {"auc": 0.5}):
        with pytest.raises(ValueError, match=r"^results must .*\['"):
            ResultTable([links, Published("theirs", "Doe", values)])


def test_published_numbers_may_be_more_than_is_printed():
    row = Published("theirs", "Doe", {"search": {"mean_rank": 9.5, "R@1": 0.5}})
    table = ResultTable([measured(), row], metrics=["R@5"])
    assert table.to_table().rows[1][1:] == ("n/a", "n/a")
    assert ResultTable([measured(), row], rank="mean").to_table().rows[1][-1] == "9.5"


def test_a_frame_of_results_without_tasks():
    pytest.importorskip("pandas")
    links = LinkResult([0.5, 0.7], {1: [1.0, 0.0]}, system="ours", dataset="toy")
    table = ResultTable([links, Published("theirs", "Doe", {"AUC": 0.8})])
    frame = table.to_frame()
    assert frame["system"].tolist() == ["ours", "theirs"]
    assert frame["source"].tolist() == ["", "Doe"]
    assert frame["AUC"].tolist() == [pytest.approx(0.6), 0.8]
    assert not {"task", "kind", "settings"} & set(frame.columns)
    assert links.to_frame().columns.tolist() == frame.columns.tolist()
