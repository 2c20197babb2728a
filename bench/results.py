"""The stored results: pytest-benchmark's JSON without raw data, and what it was measured on."""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
from pathlib import Path
from typing import Any

import peers

import kernelcore
from kernelcore._store import replacing

ROOT = Path(__file__).parents[1]
FOLDER = Path(os.environ.get("KERNELCORE_BENCH_RESULTS", ROOT / "bench" / "results"))
_CHANGED = ", changed"
WRITTEN = ("bench/results", "docs", "README.md")  # by benchmarks and their report
SHOWN = (
    *("min", "max", "mean", "stddev", "median", "iqr", "outliers", "ops", "rounds"),
    *("iterations", "q1", "q3", "ld15iqr", "hd15iqr"),
)
"""Statistics that the tables and pictures of pytest-benchmark show."""
TARGET = re.compile(r"([\w ]+?) (>=|<=) ([\d.e]+)(?: x (.+))?")


def target(text: str, of: str = "kernelcore", reason: str = "") -> dict[str, str]:
    """Declare a number that a way is to reach.

    Parameters
    ----------
    text : str
        "speed >= 3 x scipy" or "speed >= 3 x best peer", "time <= 1.1 x WAY", "seconds <= 5",
        "rate >= 1e6" in units of work a second, "share >= 0.7" of the limit, "exponent <= 2"
        of a curve, or the same of a number that the benchmark stores beside its time.
    of : str, default "kernelcore"
        The way.
    reason : str, optional
        Why the target is missed; shown only if it is.
    """
    if not TARGET.fullmatch(text):
        raise ValueError(f"no target: {text!r}")
    return {"of": of, "text": text, "reason": reason}


def threads_of(n_threads: int) -> str:
    """Number of threads in words."""
    return "1 thread" if n_threads == 1 else f"{n_threads} threads"


def fold(benchmarks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Leave the first pass of each way, with the fastest round of every pass."""
    first: dict[tuple[Any, Any], dict[str, Any]] = {}
    for one in benchmarks:
        info = one["extra_info"]
        kept = first.setdefault((one["group"], info.get("way", one["fullname"])), one)
        passes = kept["extra_info"].setdefault("passes", {})
        passes[str(info.pop("turn", 1))] = one["stats"]["min"]
    return list(first.values())


def commit() -> str:
    """Short name of the commit, with a mark where sources differ from it."""
    head = _git("rev-parse", "--short=10", "HEAD")
    changed = _git(
        *("status", "--porcelain", "--untracked-files=no", "--", "."),
        *(f":!{path}" for path in WRITTEN),
    )
    return f"{head}{_CHANGED}" if changed else head


def is_changed(commit: str) -> bool:
    """Whether the sources differed from the commit: two such runs may differ, too."""
    return commit.endswith(_CHANGED)


def _git(*arguments: str) -> str:
    done = subprocess.run(
        ["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return done.stdout.strip()


def instruction_set() -> str:
    """Instruction set in use."""
    return str(kernelcore.show_config()["instruction_set"])


def machine(processor: str = "") -> dict[str, Any]:
    """Machine, build and versions."""
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if not processor and line.startswith("model name"):
            processor = line.partition(":")[2].strip()
    return {
        "processor": processor or platform.machine(),
        "n_cores": len(os.sched_getaffinity(0)),
        "instruction_set": instruction_set(),
        "compiler": kernelcore.show_config()["compiler"],
        "python": platform.python_version(),
        "kernelcore": kernelcore.__version__,
        "peers": peers.versions(),
    }


def load(name: str = "speed") -> dict[str, Any]:
    """Read a file of results; empty where there is none."""
    path = FOLDER / f"{name}.json"
    return dict(json.loads(path.read_text(encoding="utf-8"))) if path.is_file() else {}


def store(document: dict[str, Any], name: str = "speed") -> None:
    """Write a file of results."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    with replacing(FOLDER / f"{name}.json") as temporary:
        temporary.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


def merge(document: dict[str, Any], run: dict[str, Any], at: str) -> dict[str, Any]:
    """Put the groups of a run in place of earlier ones.

    Raw times, options and empty entries are dropped; the commit `at` is noted with each one.
    """
    found = []
    for one in run["benchmarks"]:
        stats = {
            name: float(f"{value:.5g}") if isinstance(value, float) else value
            for name, value in one["stats"].items()
            if name in SHOWN
        }
        kept = {name: one[name] for name in ("group", "name", "fullname", "param")}
        told = {name: value for name, value in one["extra_info"].items() if value or value == 0}
        info = {**told, "commit": at}
        found.append({**kept, "extra_info": info, "stats": stats})
    replaced = {one["group"] for one in found}
    others = [one for one in document.get("benchmarks", []) if one["group"] not in replaced]
    about = {name: run[name] for name in ("version", "machine_info")}
    by_file = sorted([*others, *found], key=lambda one: one["fullname"].partition("::")[0])
    return {**document, **about, "benchmarks": by_file}
