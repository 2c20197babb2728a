"""The runner finds every way in which a target can fail, and names the seed that repeats it."""

import json
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from fuzz.supervisor import Limits, Supervisor

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def toys(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent))


def command(*words):
    return [sys.executable, "-m", "fuzz.run", "--module", "toys", *map(str, words)]


def fuzz(*words):
    return subprocess.run(
        command(*words), cwd=ROOT, capture_output=True, text=True, timeout=100, check=False
    )


@pytest.mark.parametrize(
    ("name", "kind", "replayed"),
    [
        ("raises", "KeyError at tests/fuzz/toys.py:", "KeyError: 'params'"),
        ("crashes", "SIGSEGV at tests/fuzz/toys.py:", "Segmentation fault"),
        ("hangs", "timeout at tests/fuzz/toys.py:", "Timeout"),
        ("eats_memory", "MemoryError at tests/fuzz/toys.py:", "Unable to allocate"),
        ("leaves", "exit 0 at ?", ""),
        ("warns", "RuntimeWarning at tests/fuzz/toys.py:", "overflow"),
    ],
)
def test_a_fault_is_found_with_its_seed_and_repeated(tmp_path, name, kind, replayed):
    limits = ["--timeout", 2, "--memory", 0.5]
    ledger = tmp_path / "ledger.json"
    run = fuzz("--target", name, "--seconds", 0.2, "--ledger", ledger, *limits)
    assert run.returncode == 1, run.stderr
    assert f"== {name}: {kind}" in run.stdout
    (entry,) = json.loads(ledger.read_text())[name].values()
    assert entry["findings"] == 1
    assert entry["executions"] >= 1
    found = re.search(r"replay: python -m fuzz.run --replay (\w+) (\d+)", run.stdout)
    assert found is not None
    assert found[1] == name
    again = fuzz("--replay", name, found[2], *limits)
    assert f"{name} {found[2]}: no finding" not in again.stdout
    assert replayed in again.stderr


def test_a_target_without_fault_uses_its_time(tmp_path):
    ledger = tmp_path / "ledger.json"
    run = fuzz("--target", "well", "--seconds", 0.5, "--ledger", ledger)
    assert run.returncode == 0, run.stdout + run.stderr
    (entry,) = json.loads(ledger.read_text())["well"].values()
    assert entry["executions"] > 20
    assert entry["findings"] == 0
    assert 0.4 <= entry["seconds"] <= 1


def test_two_causes_are_told_once_each(tmp_path):
    run = fuzz("--target", "raises_twice", "--seconds", 0.2, "--ledger", tmp_path / "l.json")
    assert run.stdout.count("replay:") == 2


def test_the_same_seed_makes_the_same_run(tmp_path):
    words = ["--target", "raises", "--seconds", 0.1, "--seed", 7, "--ledger", tmp_path / "l"]
    seeds = [re.findall(r"replay: .* (\d+)", fuzz(*words).stdout) for _ in range(2)]
    assert seeds[0]
    assert seeds[0] == seeds[1]


def test_ctrl_c_ends_the_run_and_its_children_and_keeps_the_ledger(tmp_path):
    ledger = tmp_path / "ledger.json"
    targets = {"raises", "raises_twice"}
    words = ["--target", *targets, "--seconds", 100, "--jobs", 2, "--ledger", ledger]
    run = subprocess.Popen(command(*words), cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert run.stdout is not None
    begun = set()
    while begun != targets:
        found = re.match(r"replay: .* --replay (\w+) ", run.stdout.readline())
        begun |= {found[1]} if found else set()
    run.send_signal(signal.SIGINT)
    begin = time.monotonic()
    rest, _ = run.communicate(timeout=20)
    assert time.monotonic() - begin < 10
    assert run.returncode == 1
    assert "stopping" in rest
    assert set(json.loads(ledger.read_text())) == targets


def test_the_list_and_a_name_that_is_none():
    assert "reader    crashes\n" in fuzz("--list").stdout
    wrong = fuzz("--target", "nothing")
    assert wrong.returncode == 1
    assert "--target nothing" in wrong.stderr


def test_workers_that_cannot_start_are_no_findings():
    limits = Limits(seconds=1, memory=2**30, timeout=1)
    supervisor = Supervisor("nothing", ("toys",), limits, 0, lambda *_: None)
    with pytest.raises(RuntimeError, match="no worker of nothing"):
        supervisor.run(threading.Event(), lambda _: None)
