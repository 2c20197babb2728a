"""The child that executes one target again and again until its time is over or it dies.

It notes the seed in memory that it shares with its supervisor *before* it runs, so that the
seed is known whatever the execution does to the process.
"""

from __future__ import annotations

import faulthandler
import importlib.util
import json
import mmap
import os
import random
import resource
import shutil
import signal
import sys
import time
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from fuzz.finding import Finding, of_exception
from fuzz.target import Target

MODULES = ("fuzz.compiled", "fuzz.readers", "fuzz.images")
STATE = np.dtype([("seed", "u8"), ("started", "f8"), ("executions", "u8"), ("cpu", "f8")])
_LONGEST_LOG = 1 << 20


class Settings(NamedTuple):
    """What a worker is told.

    Attributes
    ----------
    target : str
    modules : sequence of str
        Where its targets are looked for.
    folder : str
        Where its state, its findings and the files of its executions stand.
    first_seed : int
        Seeds are drawn from a generator that starts with it.
    seconds : float
        CPU time to spend on executions.
    memory : int
        Bytes of address space beyond those that the imports take.
    """

    target: str
    modules: tuple[str, ...]
    folder: str
    first_seed: int
    seconds: float
    memory: int


def targets(modules: Iterable[str]) -> dict[str, Target]:
    """Return the targets of those `modules` that exist, by name."""
    found: dict[str, Target] = {}
    for name in modules:
        if importlib.util.find_spec(name) is None:
            continue
        for target in importlib.import_module(name).TARGETS:
            if target.name in found:
                raise ValueError(f"two targets are named {target.name}")
            found[target.name] = target
    return found


def shared_state(path: Path) -> npt.NDArray[np.void]:
    """Return the state of a worker, shared by all processes that open `path`."""
    with path.open("a+b") as file:
        file.truncate(STATE.itemsize)
        return np.frombuffer(mmap.mmap(file.fileno(), STATE.itemsize), STATE)


def execute(target: Target, seed: int, folder: Path) -> None:
    """Run `target` once; `folder` is made before and removed after."""
    folder.mkdir()
    try:
        target.run(np.random.default_rng(seed), folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def limit(memory: int) -> None:
    """Allow `memory` more bytes of address space; leave no core dump; warn by exceptions."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    bytes_now = pages * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (bytes_now + memory, resource.RLIM_INFINITY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    warnings.simplefilter("error", RuntimeWarning)  # NumPy's, of numbers that overflow
    faulthandler.enable()


def cpu_seconds() -> float:
    """CPU time of this process, its threads and its ended children."""
    spent = os.times()
    return spent.user + spent.system + spent.children_user + spent.children_system


def main(settings: Settings) -> None:
    """Execute until the time is over."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the supervisor ends its children
    parent = os.getppid()
    folder = Path(settings.folder)
    state = shared_state(folder / "state")[0]
    target = targets(settings.modules)[settings.target]
    limit(settings.memory)
    seeds = random.Random(settings.first_seed)
    known: set[tuple[str, str]] = set()
    begin = cpu_seconds()
    with (folder / "findings").open("a", encoding="utf-8") as findings:
        while cpu_seconds() - begin < settings.seconds and os.getppid() == parent:
            seed = seeds.getrandbits(64)
            state["seed"] = seed
            state["started"] = time.monotonic()
            found: Finding | None = None
            try:
                execute(target, seed, folder / "files")
            except BaseException as error:  # an exit is a finding, too
                found = of_exception(seed, error)
            state["started"] = 0
            state["executions"] += 1
            state["cpu"] = cpu_seconds() - begin
            if found is not None and found.key not in known:
                known.add(found.key)
                findings.write(found.to_line() + "\n")
                findings.flush()
            if os.fstat(2).st_size > _LONGEST_LOG:
                os.ftruncate(2, 0)


if __name__ == "__main__":
    main(Settings(**json.loads(sys.argv[1])))
