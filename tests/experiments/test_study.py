"""The base class of a study: checks, stages, files, and what it writes to a log."""

import json
from dataclasses import dataclass, replace

import numpy as np
import pytest
from refusals import refuses

from kernelcore.evaluation import Published, Table, evaluate
from kernelcore.experiments import page
from kernelcore.experiments import study as study_module
from kernelcore.experiments.result_files import SystemFile, path_of
from kernelcore.experiments.scores import Scores
from kernelcore.experiments.steps import Kind, Step
from kernelcore.experiments.study import Found, Measured, Stages, Study


@dataclass(kw_only=True)
class Toy(Study):
    NAME = "toy"
    TITLE = "A toy"
    SYSTEMS = ("one", "two", "three")
    BEFORE = ("read",)

    def prepare(self):
        with self.stages.stage("read"):
            self.progress is False or self.progress(1, 2)

    def inputs(self):
        return "all the same"

    def settings_of(self, name):
        return {"letters": len(name)}

    def measure(self, name):
        value = Step(self.store, Kind.json("length", 1), len, name).value()
        letters = Found(numbers={"letters": {"n": value}})
        found = dict.fromkeys((name, f"{name}, hubs corrected"), letters)
        return Measured(found, self.settings_of(name))

    @classmethod
    def tables(cls, files):
        yield from ()


class Clock:
    def __init__(self):
        self.now = 0.0

    def monotonic(self):
        return self.now


def test_a_file_in_place_of_the_folder_is_named_before_anything_runs(tmp_path):
    (tmp_path / "results").touch()
    refuses(NotADirectoryError, "results", Toy.reproduce, "nowhere", tmp_path / "results")


def test_a_damaged_file_is_written_anew(tmp_path):
    path = Toy.reproduce("nowhere", tmp_path, systems=["one"])[0]
    path.write_text("{", "utf-8")
    Toy.reproduce("nowhere", tmp_path, systems=["one"])
    assert SystemFile.load(path).numbers == {"letters": {"n": 3}}


def test_a_kill_loses_one_system(tmp_path, monkeypatch):
    measure, asked = Toy.measure, []

    def die(self, name):
        asked.append(name)
        if len(asked) == 2:
            raise KeyboardInterrupt
        return measure(self, name)

    monkeypatch.setattr(Toy, "measure", die)
    with pytest.raises(KeyboardInterrupt):
        Toy.reproduce("nowhere", tmp_path)
    Toy.reproduce("nowhere", tmp_path)
    assert asked == ["one", "two", "two", "three"]


def test_without_a_cache_nothing_else_is_left(tmp_path, monkeypatch):
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    Toy.reproduce("nowhere", tmp_path / "results", systems=["one"])
    assert list((tmp_path / "temporary").iterdir()) == []


def test_a_log_has_one_line_per_stage(tmp_path):
    lines = []
    Toy.reproduce("nowhere", tmp_path, systems=["one", "three"], log=lines.append)
    told = [line.split(":")[0] for line in lines]
    assert told == ["stage 1 of 3, read", "stage 2 of 3, one", "stage 3 of 3, three"]


def test_the_time_left_is_that_of_systems_like_those_that_were_trained(monkeypatch):
    clock, lines = Clock(), []
    monkeypatch.setattr(study_module.time, "monotonic", clock.monotonic)
    monkeypatch.setattr("time.perf_counter", clock.monotonic)
    systems = ["a", "b", "c", "d"]
    stages = Stages(["read", *systems, "measure"], systems, lines.append)
    for name, seconds in {"read": 5, "a": 0, "b": 60, "c": 100, "d": 8000}.items():
        with stages.stage(name):
            clock.now += seconds
    assert lines == [
        "stage 1 of 6, read: 5.0 s",
        "stage 2 of 6, a: 0.0 s",
        "stage 3 of 6, b: 1 min; about 2 min left",
        "stage 4 of 6, c: 2 min; about 1 min left",
        "stage 5 of 6, d: 2 h 13 min",
    ]


def test_a_loop_within_a_stage_is_logged_twice_a_minute_at_most(monkeypatch):
    clock, lines = Clock(), []
    monkeypatch.setattr(study_module.time, "monotonic", clock.monotonic)
    stages = Stages(["work"], [], lines.append)
    with stages.stage("work"):
        for done in range(1, 6):
            clock.now += 20
            stages.report(done, 5)
    told = [line.split(",")[0] for line in lines]
    assert told == ["work: 2 of 5", "work: 4 of 5", "stage 1 of 1"]


# -- systems as printed


@dataclass(kw_only=True)
class Paper(Toy):
    PRINTED = ("one, as printed", "three, as printed")
    MAIN = "one"


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, [*Toy.SYSTEMS, *Paper.PRINTED]),
        ({"as_printed": True}, Paper.PRINTED),
        ({"as_printed": True, "systems": ["three"]}, Paper.PRINTED[1:]),
        ({"as_printed": True, "systems": ["three, as printed", "three"]}, Paper.PRINTED[1:]),
        ({"systems": ["one, as printed", "three"]}, ["one, as printed", "three"]),
    ],
)
def test_systems_as_printed_run_beside_ours_or_alone(tmp_path, options, expected):
    paths = Paper.reproduce("nowhere", tmp_path, **options)
    assert paths == [path_of(tmp_path, "toy", name) for name in expected]


def test_wrong_choices_of_systems_as_printed_are_named(tmp_path):
    refuses(ValueError, "as_printed", Toy.reproduce, "x", tmp_path, as_printed=True)
    refuses(TypeError, "as_printed", Paper.reproduce, "x", tmp_path, as_printed="yes")
    for systems in (["two"], [], "one"):
        options = {"as_printed": True, "systems": systems}
        refuses(ValueError, "systems", Paper.reproduce, "x", tmp_path, **options)


# -- tables of a page


def file_of(name, losses=(), split="test", **options):
    result = evaluate([[0.9, 0.1], [0.2, 0.5]], system=name, split=split)
    history = [{"dev_loss": loss} for loss in losses]
    return SystemFile("toy", name, "", "", {"all": result}, history=history, **options)


def test_systems_stand_beside_published_rows_and_missing_ones_are_said():
    files = {name: file_of(name) for name in ("A", "A, as printed", "C, as printed")}
    row = Published("A of the paper", "Paper 2013", {"search": {"R@1": 0.25}})
    rows = list(page.beside_published(files, ["A", "B"], {"A": row, "B": row}))
    assert rows == ["A", "A, as printed", row, "B", row]
    table = page.result_table(files, rows[:-1], "all")
    names = [line[0] for line in table.rows]
    assert names == ["A", "A, as printed", "A of the paper (Paper 2013)"]
    assert table.caption.endswith("; not run: B")
    assert page.result_table({}, ["A", row], "all").rows == ()
    on_dev = {"A": file_of("A", split="dev")}
    assert [line[0] for line in page.result_table(on_dev, ["A", row], "all").rows] == ["A"]


def test_tables_are_joined_by_the_names_in_their_first_columns():
    bold = frozenset({(1, 1)})
    one = Table(("system", "x"), (("A", "1"), ("B", "2")), emphasized=bold, caption="one")
    two = Table(("system", "y", "z"), (("C", "3", "4"), ("A", "5", "6")), emphasized=bold)
    joined = page.side_by_side(("", one), ("two", two), ("none", Table(("system", "w"), ())))
    assert joined.columns == ("system", "x", "y", "z")
    assert joined.rows == (("A", "1", "5", "6"), ("B", "2", "", ""), ("C", "", "3", "4"))
    assert joined.groups == (("", 1), ("", 1), ("two", 2))
    assert (joined.emphasized, joined.caption) == ({(1, 1), (0, 2)}, "one")
    of_pools = Table(("system", "pool", "x"), (("A", "7", "1"),), 2, (("", 2), ("search", 1)))
    joined = page.side_by_side(("", of_pools), ("two", two))
    assert joined.groups == (("", 1), ("", 1), ("search", 1), ("two", 2))


def test_runs_say_what_was_kept_and_by_which_commit():
    files = {"A": file_of("A", [0.5, 0.25, 0.75], seconds=90.0, commit="abc", machine="x86")}
    files["B"] = file_of("B", seconds=60.0, settings={"best_sum_on_dev": 4.8})
    files["D"] = file_of("D", seconds=120.0)
    epochs = [{"dev_loss": 0.5, "seconds": seconds} for seconds in (40.0, 80.0)]
    files["resumed"] = replace(files["A"], history=epochs)
    (table,) = page.run_section(files, ["A", "B", "D", "resumed", "C"]).tables
    assert table.rows[0][1:5] == ("2 of 3", "0.2500", "1.5", "x86")
    assert table.rows[0][-1] == "abc"
    assert table.rows[1][3] == "2.0"  # of all epochs
    assert table.rows[2][:4] == ("B; D", "", "", "3.0")
    assert table.caption == "not run: C"
    assert page.best_on_dev(files, ["A", "B", "C"]) == "B"
    assert page.best_on_dev({}, ["A"]) is None


def test_numbers_of_some_rows_may_lack():
    table = page.number_table({"A": {"x": 1.0, "y": 12345.678}, "B": {"y": np.pi}}, caption="c")
    assert table.rows == (("A", "1", "12,346"), ("B", "", "3.142"))
    assert json.dumps(table.to_dict())


# -- files of scores


def test_files_hold_corrected_scores_where_there_are_some(tmp_path):
    rng = np.random.default_rng(0)
    matrices = [rng.normal(size=(3, 6)).astype(np.float32) for _ in range(4)]
    both = Scores(*matrices[:2], {"k": 3}, corrected=(matrices[2], matrices[3]))
    both.save(tmp_path / "both")
    read = Scores.load(tmp_path / "both")
    assert read.settings == {"k": 3}
    for found, expected in zip(read.variants("A"), both.variants("A"), strict=True):
        assert found[0] == expected[0]
        for one, other in zip(found[1:], expected[1:], strict=True):
            np.testing.assert_array_equal(one, other)
    assert [name for name, *_ in read.variants("A")] == ["A", "A, hubs corrected"]
    Scores(*matrices[:2], {}).save(tmp_path / "plain")
    plain = Scores.load(tmp_path / "plain")
    assert plain.corrected is None
    assert [name for name, *_ in plain.variants("A")] == ["A"]
