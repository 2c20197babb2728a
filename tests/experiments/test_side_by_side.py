"""Trainings in processes of their own; the processes themselves are threads here."""

import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

pytest.importorskip("cv2")

from kernelcore.experiments import side_by_side
from kernelcore.experiments.side_by_side import Training, train_side_by_side

TRAININGS = [Training("one", seed, {}) for seed in range(5)]


class Trainer:
    """Notes what it trains; one training fails."""

    done: list
    prepared: list

    def prepare_to_train(self, names):
        self.prepared.append(list(names))

    def run_training(self, training):
        if training.change.get("fails", False):
            raise RuntimeError(f"{training.system} fails")
        self.done.append(training)


@pytest.fixture
def trainer(monkeypatch):
    sizes = []

    def pool(n_processes, mp_context, **options):
        sizes.append((n_processes, mp_context.get_start_method()))
        return ThreadPoolExecutor(n_processes, **options)

    monkeypatch.setattr(side_by_side, "ProcessPoolExecutor", pool)
    monkeypatch.setattr(Trainer, "done", [], raising=False)
    monkeypatch.setattr(Trainer, "prepared", [], raising=False)
    return sizes


def test_each_training_runs_once_and_is_told(trainer):
    told = []
    train_side_by_side(Trainer, ["one"], TRAININGS, 1, lambda *of: told.append(of))
    assert Trainer.done == TRAININGS
    assert Trainer.prepared == [["one"]]
    assert told[-1] == (5, 5)
    assert told == sorted(set(told))
    train_side_by_side(Trainer, ["one"], TRAININGS[:2], 8, lambda *_: None)
    assert trainer == [(1, "spawn"), (2, "spawn")]  # no more than there is to do


@pytest.mark.usefixtures("trainer")
def test_a_training_that_fails_ends_the_run(monkeypatch):
    is_cancelled = threading.Event()

    class Patient(Trainer):
        """Ends no training before the run has cancelled those that have not begun."""

        def run_training(self, training):
            super().run_training(training)
            assert is_cancelled.wait(60)

    class Pool(ThreadPoolExecutor):
        def shutdown(self, wait=True, *, cancel_futures=False):
            super().shutdown(wait=False, cancel_futures=cancel_futures)
            is_cancelled.set()
            super().shutdown(wait)

    monkeypatch.setattr(
        side_by_side, "ProcessPoolExecutor", lambda n, mp_context, **own: Pool(n, **own)
    )
    fails = Training("two", 0, {"fails": True})
    with pytest.raises(RuntimeError, match="two fails"):
        train_side_by_side(Patient, [], [fails, *TRAININGS], 1, lambda *_: None)
    assert len(Trainer.done) <= 1  # the one that had begun


SLEEPER = """
import os, sys, time
from pathlib import Path
from kernelcore.experiments.side_by_side import Training, train_side_by_side

class Sleeper:
    def prepare_to_train(self, names):
        Path(f"{os.getpid()}.pid").touch()

    def run_training(self, training):
        if training.system == "dies":
            os._exit(3)
        time.sleep(60)

if __name__ == "__main__":
    trainings = [Training(name, i, {}) for i, name in enumerate(sys.argv[1:])]
    train_side_by_side(Sleeper, [], trainings, 2, print)
"""


def pids(folder):
    return [int(path.stem) for path in folder.glob("*.pid")]


def is_alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.parametrize("systems", [["sleeps", "sleeps"], ["sleeps", "dies"]])
def test_nothing_runs_on_after_ctrl_c_or_a_death(tmp_path, systems):
    (tmp_path / "sleeper.py").write_text(SLEEPER, encoding="utf-8")
    process = subprocess.Popen(
        [sys.executable, "sleeper.py", *systems],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    deadline = time.monotonic() + 60
    while len(pids(tmp_path)) < 2 and time.monotonic() < deadline:
        time.sleep(0.05)
    assert len(pids(tmp_path)) == 2
    if "dies" not in systems:
        process.send_signal(signal.SIGINT)  # to the parent alone
    try:
        _, errors = process.communicate(timeout=20)
    finally:
        process.kill()
    assert ("KeyboardInterrupt" if "dies" not in systems else "BrokenProcessPool") in errors
    assert process.returncode != 0
    assert not any(map(is_alive, pids(tmp_path)))
