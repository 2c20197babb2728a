"""The skeleton of a study: checks, stages, sections, and what it writes to a log."""

from dataclasses import dataclass

import numpy as np
import pytest
from refusals import refuses, refuses_each

from kernelcore._store import save_tensors
from kernelcore.evaluation import Published, evaluate
from kernelcore.experiments import stages as stages_module
from kernelcore.experiments.corpus import Pool
from kernelcore.experiments.scores import Scores, evaluate_pool
from kernelcore.experiments.sections import (
    photo_recalls,
    printed_section,
)
from kernelcore.experiments.stages import Stages
from kernelcore.experiments.steps import Kind, Step, Store
from kernelcore.experiments.study import Study, StudyResults


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
    monkeypatch.setattr(stages_module.time, "monotonic", clock.monotonic)
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
    monkeypatch.setattr(stages_module.time, "monotonic", clock.monotonic)
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
    monkeypatch.setattr(stages_module.time, "monotonic", clock.monotonic)
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


# -- systems as printed


@dataclass(kw_only=True)
class Paper(Toy):
    SYSTEMS = ("one", "two", "three")
    PRINTED = ("one, as printed", "three, as printed")
    MAIN = "one"


def test_systems_as_printed_run_beside_ours_or_alone():
    assert list(Paper.reproduce("nowhere").settings) == ["one", "three", *Paper.PRINTED]
    alone = Paper.reproduce("nowhere", as_printed=True)
    assert list(alone.settings) == list(Paper.PRINTED)
    for name in ("three", "three, as printed"):
        chosen = Paper.reproduce("nowhere", as_printed=True, systems=[name, "three"])
        assert list(chosen.settings) == ["three, as printed"]
    mixed = Paper.reproduce("nowhere", systems=["one, as printed", "three"])
    assert list(mixed.settings) == ["one, as printed", "three"]


def test_wrong_choices_of_systems_as_printed_are_named():
    refuses(ValueError, "as_printed", Toy.reproduce, "nowhere", as_printed=True)
    said = refuses(
        ValueError, "systems", Paper.reproduce, "nowhere", as_printed=True, systems=["two"]
    )
    assert "'one, as printed'" in said
    for systems in ([], "one"):
        refuses(ValueError, "systems", Paper.reproduce, "x", as_printed=True, systems=systems)
    refuses(TypeError, "as_printed", Paper.reproduce, "nowhere", as_printed="yes")


# -- what is published, as printed and ours


def result(system, value=0.5):
    return evaluate([[0.9, 0.1], [0.2, value]], system=system)


def test_published_printed_and_ours_stand_together():
    names = ["A", "A, hubs corrected", "B", "A, as printed", "C, as printed"]
    row = Published("A of the paper", "Paper 2013", {"search": {"R@1": 0.25}})
    section = printed_section([result(name) for name in names], {"A": row, "B": row})
    assert [line[0] for line in section.tables[0].rows] == [
        "A, published (Paper 2013)",
        "A, as printed",
        "A, ours",
        "A, ours, hubs corrected",
    ]
    assert printed_section([result("A"), result("B")], {"A": row}) is None


# -- recalls of photos


@pytest.mark.parametrize("number", [None, 1])
def test_photo_recalls_have_the_mean_recall_as_their_mean(number):
    rng = np.random.default_rng(3)
    n_photos, places = 30, rng.permutation(150) % 30
    numbers = np.zeros(150, int)
    for place in range(n_photos):
        numbers[places == place] = rng.permutation(5)
    pool = Pool(("a caption",) * 150, numbers, 7 * places + 2)
    scores = rng.normal(size=(30, 150)) + 1.5 * (np.arange(30)[:, None] == places)
    found = evaluate_pool(scores, pool, search=scores + rng.normal(size=150), number=number)
    recalls = photo_recalls(found, pool, number)
    assert recalls.shape == (n_photos,)
    assert recalls.mean() == pytest.approx(100 * found.rsum / 6, rel=1e-12)
    owners = places if number is None else places[numbers == number]
    for place in (0, 11, 29):
        ranks = found.values["search"]["mean_rank"][owners == place]
        own = found.values["annotation"]["mean_rank"][place]
        parts = [np.mean(ranks <= k) / 6 + (own <= k) / 6 for k in (1, 5, 10)]
        assert recalls[place] == pytest.approx(100 * sum(parts))


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


@pytest.mark.parametrize(
    "tensors",
    [
        {"annotation": (3, 6)},
        {"annotation": (3, 6), "search": (6, 3)},
        {"annotation": (3, 6), "search": (3, 6), "corrected_annotation": (3, 6)},
        {
            "annotation": (3, 6),
            "search": (3, 6),
            "corrected_annotation": (3, 6),
            "corrected_search": (3, 5),
        },
        {"annotation": (3, 6), "search": (3, 6), "corrected_search": (3, 6)},
    ],
)
def test_files_of_scores_that_do_not_fit_are_refused(tmp_path, tensors):
    arrays = {name: np.zeros(shape) for name, shape in tensors.items()}
    save_tensors(tmp_path / "odd", "scores of a system", arrays, {"settings": {}})
    refuses(ValueError, "odd", Scores.load, tmp_path / "odd")
