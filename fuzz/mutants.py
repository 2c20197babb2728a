"""Small mutants of the core and its facades: the suite must notice each of them.

``python -m fuzz.mutants --count 200 --scratch DIR`` draws mutants by their seed, applies each
in a copy of the tree, builds what it changes (one instruction set, -O1) and runs the tests of
that part until one fails; where none does, the C++ test under the sanitizers decides. What is
known already is not done again: the ledger ``fuzz/mutants.json`` keeps it. ``--list`` prints
those that survived.
``--equivalent ID REASON`` notes that a mutant cannot be told from the original.
"""

from __future__ import annotations

import argparse
import fcntl
import filecmp
import json
import os
import random
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from fuzz.finding import ROOT
from fuzz.mutant_build import build, passes_stress, rebuild, restore
from fuzz.mutant_rules import Mutant, mutants_of

LEDGER = ROOT / "fuzz" / "mutants.json"
SOURCES = (
    *("csrc/*/*.cpp", "csrc/*/*.hpp", "kernelcore/kernels/*.py", "kernelcore/matching/*.py"),
    *("kernelcore/kcca/*.py", "kernelcore/evaluation/ranks.py"),
)
_TIMEOUT = 900.0  # seconds of the tests of one mutant: one that hangs is noticed
_LAST = ("_custom", "_blocks", "_threads")  # files that take long and see little

# Tests of a part, by the beginning of the path; the first that fits.
_TESTS = (
    (
        "csrc/histograms/histogram_intersection",
        "kernels/test_histogram_intersection.py kernels/test_sparse_intersection.py "
        "kernels/test_spatial_pyramid.py",
    ),
    ("csrc/captions/tag_rank", "kernels/test_tag_rank.py"),
    (
        "csrc/captions/word_sequence",
        "kernels/test_word_sequence.py kernels/test_word_sequence_arguments.py",
    ),
    ("csrc/captions/caption_trie", "kernels/test_word_sequence.py"),
    ("csrc/captions/word_assignment", "kernels/test_word_assignment.py"),
    ("csrc/assignment", "matching kernels/test_word_assignment.py"),
    ("csrc/ranks", "evaluation/test_ranks.py evaluation/test_streaming.py"),
    ("csrc/common/parallel", "test_boundary.py test_threads.py test_interrupts.py matching"),
    (
        "csrc/common/worker",
        "test_boundary.py test_threads.py test_interrupts.py matching kernels",
    ),
    ("csrc", "test_boundary.py kernels matching evaluation/test_ranks.py"),
    ("kernelcore/kernels", "kernels"),
    ("kernelcore/matching", "matching"),
    ("kernelcore/kcca", "kcca"),
    ("kernelcore/evaluation", "evaluation/test_ranks.py evaluation/test_streaming.py"),
)


class Verdict(NamedTuple):
    """What became of a mutant: killed, survived, stillborn or equivalent, and by what."""

    status: str
    by: str


def all_mutants(root: Path = ROOT) -> list[Mutant]:
    """Every mutant of every source, in the order of the tree."""
    paths = [path for pattern in SOURCES for path in sorted(root.glob(pattern))]
    return [
        mutant
        for path in paths
        for mutant in mutants_of(path.read_text("utf-8"), path.relative_to(root).as_posix())
    ]


def draw(count: int, seed: int, root: Path = ROOT) -> list[Mutant]:
    """Draw `count` mutants, first one of each file, then a second one, ..."""
    rng = random.Random(seed)
    by_file: dict[str, list[Mutant]] = {}
    for mutant in all_mutants(root):
        by_file.setdefault(mutant.path, []).append(mutant)
    for mutants in by_file.values():
        rng.shuffle(mutants)
    drawn: list[Mutant] = []
    while len(drawn) < count and any(by_file.values()):
        drawn += [mutants.pop() for mutants in by_file.values() if mutants]
    return drawn[:count]


def suite_of(path: str) -> list[str]:
    """Test files that look at what stands in `path`."""
    stem = Path(path).stem
    parts = next((t for start, t in _TESTS if path.startswith(start)), "kernels").split()
    names = [name for part in parts for name in _files_of(f"tests/{part}")]
    names = ["tests/fuzz/test_compiled.py", *names]
    names += ["tests/test_progress.py"] * path.startswith("kernelcore")
    return sorted(names, key=lambda name: (_topic(name) not in stem, _is_last(name)))


def _files_of(test: str) -> list[str]:
    paths = sorted((ROOT / test).glob("test_*.py")) or [ROOT / test]
    return [path.relative_to(ROOT).as_posix() for path in paths]


def _topic(name: str) -> str:
    return Path(name).stem.removeprefix("test_")


def _is_last(name: str) -> bool:
    return any(part in name for part in _LAST)


def judge(mutant: Mutant, scratch: Path) -> Verdict:
    """Apply `mutant` in `scratch`, run the tests of its part, and take it back."""
    path = scratch / mutant.path
    original, stamp = path.read_text("utf-8"), path.stat()
    path.write_text(mutant.apply(original), "utf-8")
    try:
        if not rebuild(scratch, mutant.path):
            return Verdict("stillborn", "the compiler")
        verdict = _run_tests(scratch, suite_of(mutant.path))
        is_open = verdict.status == "survived" and mutant.path.startswith("csrc/")
        if is_open and not passes_stress(scratch, mutant.path):
            return Verdict("killed", "tests/cpp/stress.cpp under the sanitizers")
        return verdict
    finally:
        path.write_text(original, "utf-8")
        os.utime(path, (stamp.st_atime, stamp.st_mtime))
        restore(scratch)


def _run_tests(scratch: Path, tests: list[str]) -> Verdict:
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests]
    environment = {**os.environ, "PYTHONPATH": str(scratch), "OMP_NUM_THREADS": "1"}
    try:
        run = subprocess.run(
            command,
            cwd=scratch,
            env=environment,
            capture_output=True,
            text=True,
            timeout=_TIMEOUT,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return Verdict("killed", "a timeout")
    if run.returncode == 0:
        return Verdict("survived", " ".join(tests))
    failed = [line for line in run.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    by = failed[0].split(" - ")[0] if failed else f"exit {run.returncode}"
    return Verdict("killed", re.sub(r"\S*/(?=tests/)", "", by))  # wherever the copy lies


def prepare(scratch: Path, *, needs_core: bool) -> None:
    """Copy the tree to `scratch` and build it; its tests must pass.

    Mutants of Python alone need no core but the one that stands in the tree.
    """
    for part in ("csrc", "kernelcore", "tests", "fuzz"):
        shutil.copytree(
            ROOT / part, scratch / part, dirs_exist_ok=True, copy_function=_copy_what_differs
        )
    for name in ("pyproject.toml", "setup.py", "README.md"):
        _copy_what_differs(ROOT / name, scratch / name)
    if needs_core:
        build(scratch)
        if not passes_stress(scratch, ""):
            raise SystemExit("the original fails tests/cpp/stress.cpp")
    verdict = _run_tests(scratch, ["tests/fuzz/test_compiled.py"])
    if verdict.status != "survived":
        raise SystemExit(f"the original fails its tests: {verdict.by}")


def _copy_what_differs(source: str | Path, target: str | Path) -> None:
    """Leave a file alone that has the same content, and objects that are newer than it."""
    if not (Path(target).is_file() and filecmp.cmp(source, target, shallow=False)):
        shutil.copyfile(source, target)


def _read() -> dict[str, dict[str, str]]:
    verdicts: dict[str, dict[str, str]] = {}
    if LEDGER.exists():
        verdicts = json.loads(LEDGER.read_text("utf-8"))
    return verdicts


def _note(mutant: str, verdict: Verdict) -> None:
    """Add a line to the ledger, of which several processes may be writers."""
    lock = os.open(LEDGER.parent, os.O_RDONLY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        verdicts = {**_read(), mutant: verdict._asdict()}
        temporary = LEDGER.with_suffix(".tmp")
        temporary.write_text(json.dumps(verdicts, indent=1, sort_keys=True) + "\n", "utf-8")
        temporary.replace(LEDGER)
    finally:
        os.close(lock)


def summary() -> str:
    """One line: how many were killed, survived, ..."""
    statuses = [verdict["status"] for verdict in _read().values()]
    counts = {status: statuses.count(status) for status in sorted(set(statuses))}
    return ", ".join(f"{count} {status}" for status, count in counts.items())


def main() -> int:
    """Exit status 1 where a mutant survived."""
    parser = argparse.ArgumentParser(prog="python -m fuzz.mutants", description=__doc__)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=2013)
    parser.add_argument("--scratch", type=Path, help="an empty folder for the copy")
    parser.add_argument("--only", default="", metavar="PATH", help="where paths begin")
    parser.add_argument("--list", action="store_true", help="print the survivors and end")
    parser.add_argument("--equivalent", nargs=2, metavar=("ID", "REASON"))
    options = parser.parse_args()
    if options.equivalent:
        name, reason = options.equivalent
        _note(name, Verdict("equivalent", reason))
    elif not options.list:
        if options.scratch is None:
            parser.error("--scratch: name a folder for the copy of the tree")
        scratch = options.scratch.resolve()
        scratch.mkdir(parents=True, exist_ok=True)
        chosen = [
            m for m in draw(options.count, options.seed) if m.path.startswith(options.only)
        ]
        prepare(scratch, needs_core=any(m.path.startswith("csrc") for m in chosen))
        for mutant in chosen:
            if mutant.name in _read():
                continue
            verdict = judge(mutant, scratch)
            _note(mutant.name, verdict)
            print(f"{verdict.status}: {mutant.name} ({verdict.by})", flush=True)
    print(summary())
    survivors = [name for name, verdict in _read().items() if verdict["status"] == "survived"]
    if options.list:
        print("\n".join(survivors))
    return int(bool(survivors))


if __name__ == "__main__":
    raise SystemExit(main())
