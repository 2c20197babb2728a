"""How the fixture of the benchmarks measures, on tests written here."""

import json
import os
import re
import subprocess
import sys

import numpy as np
import pytest
import results
import tables

pytest.importorskip("pytest_benchmark")

HEADER = """
import time
import warnings
import pytest

def sleep(seconds):
    return lambda: time.sleep(seconds) or 4
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Run a file of benchmarks with the conftest of bench/; return its output and its JSON."""

    def run(source, *options):
        folder = tmp_path_factory.mktemp("bench")
        path = folder / "bench_made_up.py"
        path.write_text(HEADER + source, encoding="utf-8")
        return run_pytest(folder, "-p", "conftest", str(path), *options)

    return run


def run_pytest(folder, *options):
    """Run pytest in a process of its own; return its output and the benchmarks' JSON."""
    stored = folder / "run.json"
    about = {name: v for name, v in os.environ.items() if not name.startswith("PYTEST_")}
    about["PYTHONPATH"] = os.pathsep.join([str(results.ROOT / "bench"), *sys.path])
    about["KERNELCORE_BENCH_SMALL"] = "1"
    ini = ["-c", str(results.ROOT / "pyproject.toml"), "-p", "no:cacheprovider"]
    output = ["-rA", "--benchmark-quiet", f"--benchmark-json={stored}"]
    command = [sys.executable, "-m", "pytest", "-n", "0", *ini, *output, *options]
    command.append("--benchmark-max-time=0.01")
    done = subprocess.run(
        command, cwd=folder, env=about, capture_output=True, text=True, check=False
    )
    text = stored.read_text(encoding="utf-8") if stored.is_file() else ""
    return done.stdout + done.stderr, json.loads(text) if text else {"benchmarks": []}


WORK = """
calls = []

def way(name):
    return lambda: calls.append(name) or name

@pytest.mark.ways("kernelcore", "kernelcore, again")
@pytest.mark.parametrize("n_threads", [1, 2])
def test_work(measure, n_threads):
    measure(
        "work",
        {"kernelcore": way("a"), "kernelcore, again": way("b")},
        check=lambda answer: calls.append(f"checked {answer}"),
        read={"kernelcore, again": str.upper},
        n_threads=n_threads,
        shape="10 rows",
    )

def test_last(benchmark):
    benchmark.pedantic(lambda: None)
    groups = "".join(c for c in calls if not c.startswith("checked"))
    shorter = groups
    while "aa" in shorter or "bb" in shorter:
        shorter = shorter.replace("aa", "a").replace("bb", "b")
    assert shorter == "abab" * 2
    assert calls[:2] == ["a", "checked a"]
    assert calls.count("checked B") == 4
"""


@pytest.fixture(scope="module")
def work(run):
    return run(WORK, "--passes=2")


def test_ways_alternate_by_pass_and_are_checked_first(work):
    text, stored = work
    assert "9 passed" in text
    found = {(one["group"], one["extra_info"].get("way")): one for one in stored["benchmarks"]}
    ways = ["kernelcore", "kernelcore, again"]
    names = [(f"work, {n}", way) for n in ("1 thread", "2 threads") for way in ways]
    assert [key for key in found if key[1]] == names
    for key in names:
        info = found[key]["extra_info"]
        assert list(info["passes"]) == ["1", "2"]
        assert info["passes"]["1"] == found[key]["stats"]["min"]
        assert (info["shape"], info["is_peer"]) == ("10 rows", False)
    assert found[names[0]]["extra_info"]["ways"] == ways
    # The first pass has the name of a run of one pass: --benchmark-compare finds it.
    assert found[names[0]]["name"] == "test_work[1-kernelcore]"


def test_the_machine_is_not_named(work):
    about = work[1]["machine_info"]
    assert set(about) == {
        *("processor", "n_cores", "instruction_set", "compiler"),
        *("python", "kernelcore", "peers"),
    }
    assert about["peers"]["numpy"] == np.__version__
    assert not {"project", "branch"} & set(work[1]["commit_info"])


def test_disabled_benchmarks_are_checked_too(run):
    text, _ = run(
        WORK.replace('calls.append(f"checked {answer}")', "1 / 0"), "--benchmark-disable"
    )
    assert len(re.findall(r"^E +ZeroDivisionError", text, re.M)) == 4
    assert "5 failed" in text


ODD = """
import sys
import peers

sys.modules["conftest"].LONG = 0.02
peers.PEERS["nobody"] = peers.Peer("nobody-at-all", "nobody_at_all")

def four(answer):
    assert answer == 4

def warn():
    warnings.warn("old", DeprecationWarning, stacklevel=1)
    return 4

@pytest.mark.ways("kernelcore", "scipy")
def test_wrong(measure):
    measure("wrong", {"kernelcore": lambda: 4, "scipy": lambda: 5}, check=four)

@pytest.mark.ways("kernelcore", "nobody, in a loop", "scipy")
def test_absent(measure):
    ways = {"kernelcore": lambda: 4, "nobody, in a loop": lambda: 4, "scipy": None}
    measure("absent", ways, check=four)

@pytest.mark.ways("kernelcore", "scipy")
def test_long(measure):
    measure("long", {"kernelcore": lambda: 4, "scipy": sleep(0.03)}, check=four)

@pytest.mark.ways("kernelcore", "scipy")
def test_warns(measure):
    measure("warns", {"kernelcore": warn, "scipy": warn}, check=four)
"""


@pytest.fixture(scope="module")
def odd(run):
    text, stored = run(ODD, "--passes=3")
    entries = [(one["group"].partition(",")[0], one) for one in stored["benchmarks"]]
    return text, {(work, one["extra_info"]["way"]): one for work, one in entries}


def test_a_wrong_answer_fails_and_leaves_no_time(odd):
    assert re.search(r"FAILED \S*::test_wrong\[scipy\]", odd[0])
    assert "6 failed, 13 passed, 8 skipped in" in odd[0]
    assert ("wrong", "kernelcore") in odd[1]
    assert ("wrong", "scipy") not in odd[1]


def test_absent_peers_and_ways_that_compare_nothing_are_skipped(odd):
    assert "nobody-at-all is not installed" in odd[0]
    assert "scipy is not comparable here" in odd[0]
    assert [way for work, way in odd[1] if work == "absent"] == ["kernelcore"]
    assert odd[1]["absent", "kernelcore"]["extra_info"]["ways"] == [
        *("kernelcore", "nobody, in a loop")
    ]


def test_a_long_way_is_measured_in_one_pass(odd):
    ours, long = odd[1]["long", "kernelcore"], odd[1]["long", "scipy"]
    assert list(ours["extra_info"]["passes"]) == ["1", "2", "3"]
    assert list(long["extra_info"]["passes"]) == ["1"]
    assert long["stats"]["rounds"] == 1
    assert "takes more than 0.02 s: measured in the first pass" in odd[0]


def test_what_peers_warn_of_is_theirs(odd):
    assert re.search(r"FAILED \S*::test_warns\[kernelcore\]", odd[0])
    assert ("warns", "scipy") in odd[1]


def test_a_real_benchmark_from_run_to_table(tmp_path):
    path = str(results.ROOT / "bench" / "bench_set_similarity.py")
    text, stored = run_pytest(tmp_path, path, "--passes=2")
    assert "8 passed" in text
    document = results.merge({}, stored, "c0ffee")
    rows = list(tables.peer_rows(tables.groups_of(document)))
    assert [row[0] for row in rows] == [
        f"similarity of sets, {name}" for name in ("DC", "TK, k half", "AP", "AP, k half")
    ]


def test_merge_replaces_groups_and_drops_raw_times():
    def one(group, way, seconds):
        stats = {"min": seconds, "rounds": 2, "data": [seconds, 9.0]}
        about = {"group": group, "name": way, "fullname": way, "param": None, "options": {}}
        return {**about, "extra_info": {"way": way}, "stats": stats}

    def file(*entries):
        return {"version": "5", "machine_info": {}, "benchmarks": list(entries)}

    before = results.merge(
        {}, file(one("a", "x", 1.0), one("a", "y", 2.0), one("b", "x", 3.0)), "1"
    )
    after = results.merge({**before, "runs": {"z": "1"}}, file(one("a", "x", 1 / 3)), "2")
    found = {
        (b["group"], b["extra_info"]["way"], b["extra_info"]["commit"]): b["stats"]
        for b in after["benchmarks"]
    }
    assert found == {
        ("b", "x", "1"): {"min": 3.0, "rounds": 2},
        ("a", "x", "2"): {"min": 0.33333, "rounds": 2},
    }
    assert after["runs"] == {"z": "1"}
