"""The skeleton of a study: checks, stages, and what it writes to a log."""

from dataclasses import dataclass

import pytest
from refusals import refuses_each

from kernelcore.experiments import study as skeleton
from kernelcore.experiments.steps import Kind, Step, Store
from kernelcore.experiments.study import Stages, Study, StudyResults


@dataclass(kw_only=True)
class Toy(Study[int]):
    NAME = "toy"
    TITLE = "A toy"
    SYSTEMS = ("one", "two", "three")
    BEFORE = ("read",)
    AFTER = ("measure",)

    def prepare(self):
        with self.stages.stage("read"):
            self.progress is False or self.progress(1, 2)
        self.names = [name for name in self.names if name != "two"]

    def score(self, name):
        return Step(self.store, Kind.json("length", 1), len, name).value()

    def findings(self, scored):
        with self.stages.stage("measure"):
            return StudyResults(self.TITLE, [], self.stages, settings=scored)


class Clock:
    def __init__(self):
        self.now = 0.0

    def monotonic(self):
        return self.now


def test_systems_are_scored_between_the_stages_before_and_after(tmp_path):
    found = Toy.reproduce("nowhere", cache_dir=tmp_path)
    assert found.settings == {"one": 3, "three": 5}
    names = [stage.name for stage in found.stages.stages]
    assert names == ["read", "one", "three", "measure"]
    assert len(list((tmp_path / "toy").iterdir())) == 2


def test_another_loop_of_a_stage_begins_its_own_estimate(monkeypatch):
    clock, lines = Clock(), []
    monkeypatch.setattr(skeleton.time, "monotonic", clock.monotonic)
    stages = Stages([], [], lines.append)
    for now, done, total in [(10, 50, 100), (35, 60, 100), (70, 1, 4), (80, 2, 4), (90, 4, 4)]:
        clock.now = now
        stages.report(done, total)
    clock.now = 130
    stages.report(1, 9)
    assert lines == [": 60 of 100; about 2 min left", ": 2 of 4; about 20 s left"]


def test_without_a_cache_nothing_is_left(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert Toy.reproduce("nowhere", systems=["one"]).settings == {"one": 3}
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("systems", [None, ["one", "three"]])
def test_a_log_has_one_line_per_stage(systems):
    """A system that cannot run is not counted."""
    lines = []
    Toy.reproduce("nowhere", systems=systems, log=lines.append)
    assert [line.split(":")[0] for line in lines] == [
        f"stage 1 of {4 if systems else 5}, read",
        "stage 2 of 4, one",
        "stage 3 of 4, three",
        "stage 4 of 4, measure",
    ]


def test_the_time_left_is_that_of_systems_like_those_that_were_trained(monkeypatch):
    clock, lines = Clock(), []
    monkeypatch.setattr(skeleton.time, "monotonic", clock.monotonic)
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


def test_steps_within_a_stage_are_logged_twice_a_minute_at_most(monkeypatch, tmp_path):
    clock, lines = Clock(), []
    monkeypatch.setattr(skeleton.time, "monotonic", clock.monotonic)
    monkeypatch.setattr("time.perf_counter", clock.monotonic)

    def work(i):
        clock.now += 20
        return i

    kind = Kind.json("value", 1)
    steps = [Step(Store(tmp_path), kind, work, i, stage="work") for i in range(5)]
    Stages(["work"], [], lines.append).compute("work", steps)
    assert lines == [
        "work: 2 of 5; about 1 min left",
        "work: 4 of 5; about 20 s left",
        "stage 1 of 1, work: 2 min",
    ]


def test_wrong_options_are_named():
    refuses_each(
        lambda **options: Toy.reproduce("nowhere", **options),
        {"systems": [[], "one", ["four"]], "split": ["train"]},
    )
