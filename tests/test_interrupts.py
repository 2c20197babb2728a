"""Ctrl-C ends every call that can last, and leaves a process that works on.

The calls stand in tables under ``tests/long_calls``; those of a table are made in one process.
A call may go on for `LIMIT` seconds after the signal. Other processes want the cores, too: the
longest that the kernel let one of its threads wait for a core comes on top. A call that was
late, or had ended before the signal came, has two more chances, with an earlier signal. One
that is deaf for two seconds is late in all of them.
"""

import contextlib
import importlib
import json
import os
import re
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from public_api import exported_callables

CALLS = Path(__file__).parent / "long_calls"
FAST = ("evaluation", "kernels", "matching", "images")
SLOW = ("models", "deep", "distributed")
LIMIT = 0.5

pytestmark = pytest.mark.skipif(os.name == "nt", reason="POSIX signals")


class Child:
    """A process that makes calls, and says when one has begun and how it ended."""

    def __init__(self, *arguments: str, timeout: float = 600.0) -> None:
        self._deadline = time.monotonic() + timeout
        self._process = subprocess.Popen(
            [sys.executable, str(CALLS / "child.py"), *arguments],
            stdout=subprocess.PIPE,
            bufsize=0,  # what select() does not see must not lie in a buffer
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )

    def __enter__(self) -> "Child":
        return self

    def __exit__(self, kind, *_) -> None:
        if kind is not None:
            self._process.kill()
        self._process.stdout.close()
        status = self._process.wait(60)
        assert status == 0 or kind is not None, f"the process must end well, not with {status}"

    def messages(self):
        while line := self.line():
            yield json.loads(line)

    def line(self, step=None, each_step=lambda: None) -> bytes:
        """Read a line, and do something from time to time until it comes."""
        while not select.select([self._process.stdout], [], [], step or 1.0)[0]:
            each_step()
            assert time.monotonic() < self._deadline, "the process must not hang"
        return self._process.stdout.readline()

    def interrupt(self, delay: float) -> tuple[float, str]:
        """Send Ctrl-C; return how long the call went on, less its longest wait for a core."""
        time.sleep(delay)
        before, after = self._waits(), {}
        sent = time.monotonic()
        self._process.send_signal(signal.SIGINT)
        line = self.line(0.02, lambda: after.update(self._waits()))
        ended = json.loads(line) if line else {"how": "died", "at": time.monotonic()}
        waited = max((after[task] - before.get(task, 0) for task in after), default=0.0)
        return ended.get("at", sent) - sent - waited, ended["how"]

    def _waits(self) -> dict[str, float]:
        """Seconds that each thread was ready to run and did not, where the system tells."""
        waits = {}
        with contextlib.suppress(OSError):
            for task in Path(f"/proc/{self._process.pid}/task").iterdir():
                with contextlib.suppress(OSError):
                    waits[task.name] = int((task / "schedstat").read_text().split()[1]) / 1e9
        return waits


def late_calls(part: str, which: str, share: float = 1.0) -> dict[str, str]:
    """Interrupt calls of a table; return those that did not end in time, and how."""
    found = {}
    with Child(part, which) as child:
        for begun in child.messages():
            latency, how = child.interrupt(share * begun["delay"])
            name = f"{begun['name']}, n_threads={begun.get('n_threads')}"
            print(f"{name}: {how} after {latency:.3f} s")
            if how != "interrupted" or latency > LIMIT:
                found[name] = f"{how} after {latency:.2f} s"
    return found


def check(part: str, which: str) -> None:
    late = late_calls(part, which)
    for name in sorted({name.partition(",")[0] for name in late}):
        for share in (0.4, 0.15):
            again = late_calls(part, name, share)
            if not again:
                break
        assert not again, again


@pytest.mark.parametrize("part", FAST)
def test_ctrl_c_ends_some_calls(part):
    check(part, "fast")


@pytest.mark.slow
@pytest.mark.parametrize("part", FAST + SLOW)
def test_ctrl_c_ends_every_call(part):
    check(part, "all")


def test_a_call_that_is_deaf_for_two_seconds_is_found():
    (how,) = late_calls("deaf", "all").values()
    assert "interrupted after" in how


# Over at once, or made of others: systems that want a corpus, networks, a collection.
NEED_NONE = re.compile(
    r"(models\.)?(Chance|NearestNeighbour)?Ranker\.fit|deep\..*|experiments\..*\d\..*|search\.Collection"
)


@pytest.fixture
def table(monkeypatch):
    monkeypatch.syspath_prepend(CALLS)
    return importlib.import_module("table")


def test_every_public_function_that_takes_threads_is_in_a_table(table):
    held = [name.partition("[")[0] for part in table.PARTS for name in table.calls_of(part)]
    found = {*map(table.find, held), *(table.find(name.rpartition(".")[0]) for name in held)}
    threaded = {n: own for n, own in exported_callables().items() if table.takes_threads(own)}
    assert len(threaded) > 40
    missing = (n.removeprefix("kernelcore.") for n, own in threaded.items() if own not in found)
    assert [name for name in missing if not NEED_NONE.fullmatch(name)] == []


@pytest.mark.parametrize(
    "part", [*FAST, *(pytest.param(p, marks=pytest.mark.slow) for p in SLOW)]
)
def test_results_do_not_depend_on_the_number_of_threads(part, table):
    calls = {
        name: call
        for name, call in table.calls_of(part).items()
        if call.same_bits and table.is_threaded(name)
    }
    assert calls
    for name, call in calls.items():
        work = call.make(call.short)
        assert len({table.digest(work(n_threads=n)) for n in (1, 2, 3)}) == 1, name
