"""The parent of one target's workers: watches over time, starts anew what died."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from fuzz.finding import ROOT, Finding, of_death
from fuzz.worker import Settings, shared_state

_LOOK = 0.02  # seconds between two looks at a worker
_KEPT_OUTPUT = 8000  # characters of what a dead worker had written
_REPORT = 30.0  # seconds between two outcomes
_IMPORTS = 300.0  # seconds that a worker may take before its first execution


class Limits(NamedTuple):
    """What one target may use.

    Attributes
    ----------
    seconds : float
        CPU time of all its executions; time lost in workers that died counts.
    memory : int
        Bytes of address space beyond those that the imports take.
    timeout : float
        Seconds on the clock for one execution.
    """

    seconds: float
    memory: int
    timeout: float


class Outcome(NamedTuple):
    """What a target's workers did since the last outcome."""

    executions: int
    seconds: float
    findings: tuple[Finding, ...]


class Supervisor:
    """Runs one target in child processes.

    Parameters
    ----------
    name : str
    modules : tuple of str
        Where targets are looked for.
    limits : Limits
    seed : int
        Determines the seeds of all executions, up to those lost in workers that died.
    on_finding : callable
        Called with each finding that is not known yet.
    """

    def __init__(
        self,
        name: str,
        modules: tuple[str, ...],
        limits: Limits,
        seed: int,
        on_finding: Callable[[str, Finding], None],
    ) -> None:
        self._name = name
        self._modules = modules
        self._limits = limits
        self._seeds = random.Random(f"{name} {seed}")
        self._on_finding = on_finding
        self._known: set[tuple[str, str]] = set()
        self._news: list[Finding] = []
        self._executions = 0
        self._seconds = 0.0

    def run(self, stop: threading.Event, on_outcome: Callable[[Outcome], None]) -> None:
        """Run workers one after another until the time is over or `stop` is set.

        `on_outcome` gets what was done every 30 seconds and at the end.
        """
        spent = 0.0
        while spent < self._limits.seconds and not stop.is_set():
            spent += self._worker(self._limits.seconds - spent, stop, on_outcome)
        on_outcome(self._take())

    def _worker(
        self, seconds: float, stop: threading.Event, on_outcome: Callable[[Outcome], None]
    ) -> float:
        """Run one worker to its end; return the time that it cost."""
        folder = Path(tempfile.mkdtemp(prefix="fuzz-"))
        first_seed, memory = self._seeds.getrandbits(64), self._limits.memory
        settings = Settings(self._name, self._modules, str(folder), first_seed, seconds, memory)
        with (folder / "output").open("ab") as output:
            worker = subprocess.Popen(
                [sys.executable, "-m", "fuzz.worker", json.dumps(settings._asdict())],
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=output,
                start_new_session=True,
            )
        try:
            state = shared_state(folder / "state")[0]
            hung = self._watch(worker, folder, state, stop, on_outcome)
            if stop.is_set() and not hung:
                return seconds
            if not hung and worker.returncode == 0 and state["started"] == 0:
                return seconds
            text = (folder / "output").read_text("utf-8", "replace")[-_KEPT_OUTPUT:]
            if state["started"] == 0:
                raise RuntimeError(f"no worker of {self._name} comes to work: {text}")
            self._executions += 1
            kind = "timeout" if hung else _kind_of(worker.returncode)
            self._add(of_death(int(state["seed"]), kind, text))
            lost = self._limits.timeout if hung else 1.0
            return float(state["cpu"]) + lost
        finally:
            _end(worker, signal.SIGKILL)
            shutil.rmtree(folder, ignore_errors=True)

    def _watch(
        self,
        worker: subprocess.Popen[bytes],
        folder: Path,
        state: np.void,
        stop: threading.Event,
        on_outcome: Callable[[Outcome], None],
    ) -> bool:
        """Count what `worker` does until it ends, and end it if it hangs: then True."""
        begin = reported = time.monotonic()
        counted, used, rest = 0, 0.0, ""
        with (folder / "findings").open("a+", encoding="utf-8") as findings:
            findings.seek(0)
            while True:
                running = worker.poll() is None and not stop.is_set()
                done, cpu = int(state["executions"]), float(state["cpu"])
                self._executions += done - counted
                self._seconds += cpu - used
                counted, used = done, cpu
                *lines, rest = (rest + findings.read()).split("\n")
                for line in lines:
                    self._add(Finding.from_line(line))
                if not running:
                    return False
                now = time.monotonic()
                if now - reported > _REPORT:
                    reported = now
                    on_outcome(self._take())
                started = float(state["started"])
                idle = started == 0 and done == 0 and now - begin > _IMPORTS
                if idle or 0 < started < now - self._limits.timeout:
                    _end(worker, signal.SIGABRT)  # faulthandler then says where it hangs
                    return True
                time.sleep(_LOOK)

    def _add(self, finding: Finding) -> None:
        if finding.key not in self._known:
            self._known.add(finding.key)
            self._news.append(finding)
            self._on_finding(self._name, finding)

    def _take(self) -> Outcome:
        """Return what was done since this was called last."""
        outcome = Outcome(self._executions, self._seconds, tuple(self._news))
        self._executions, self._seconds, self._news = 0, 0.0, []
        return outcome


def _end(worker: subprocess.Popen[bytes], number: signal.Signals) -> None:
    """Send `number` to the worker and the children that it started, at last SIGKILL."""
    for attempt in (number, signal.SIGKILL):
        if worker.poll() is None:
            os.killpg(worker.pid, attempt)
            try:
                worker.wait(2)
            except subprocess.TimeoutExpired:
                continue


def _kind_of(returncode: int) -> str:
    if returncode < 0:
        return signal.Signals(-returncode).name
    return f"exit {returncode}"
