"""Where measurements are kept, and what they were made on.

A file of results holds the conditions of its last run and one entry per measurement, which
names the commit that it belongs to: a run that was cut short goes on, and parts are measured
again, without losing the rest.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import peers

import kernelcore
from kernelcore._files import replacing

ROOT = Path(__file__).parents[1]
RESULTS = Path(os.environ.get("KERNELCORE_BENCH_RESULTS", ROOT / "bench" / "results"))
SMALL = bool(os.environ.get("KERNELCORE_BENCH_SMALL"))
WRITTEN = ("bench/results", "docs", "README.md")  # by benchmarks and their report


def size(full: int, small: int) -> int:
    """Size of a problem: the one to publish, or one that only shows that a benchmark runs."""
    return small if SMALL else full


def commit() -> str:
    """Short name of the commit, with a mark where sources differ from it."""
    head = _git("rev-parse", "--short=10", "HEAD")
    changed = _git(
        *("status", "--porcelain", "--untracked-files=no", "--", "."),
        *(f":!{path}" for path in WRITTEN),
    )
    return f"{head}, changed" if changed else head


def _git(*arguments: str) -> str:
    done = subprocess.run(
        ["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return done.stdout.strip()


def conditions() -> dict[str, Any]:
    """Machine, build and versions."""
    config = kernelcore.show_config()
    return {
        "processor": processor(),
        "n_cores": len(os.sched_getaffinity(0)),
        "instruction_set": config["instruction_set"],
        "compiler": config["compiler"],
        "python": platform.python_version(),
        "kernelcore": kernelcore.__version__,
        "commit": commit(),
        "peers": peers.versions(),
    }


def processor() -> str:
    """Name of the processor."""
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def load(name: str) -> dict[str, Any]:
    """Read a file of results; nothing is measured where there is none."""
    path = RESULTS / f"{name}.json"
    if not path.is_file():
        return {"conditions": {}, "measurements": {}}
    return dict(json.loads(path.read_text(encoding="utf-8")))


def store(name: str, key: str, measurement: Mapping[str, Any]) -> None:
    """Keep one measurement under its key, in place of an earlier one."""
    document = load(name)
    found = conditions()
    document["conditions"] = found
    document["measurements"][key] = {**measurement, "commit": found["commit"]}
    RESULTS.mkdir(parents=True, exist_ok=True)
    with replacing(RESULTS / f"{name}.json") as temporary:
        temporary.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


def is_stored(name: str, key: str) -> bool:
    """Whether the measurement was made at this commit."""
    return bool(load(name)["measurements"].get(key, {}).get("commit") == commit())
