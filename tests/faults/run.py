"""Try fault points: let one call after the other fail, and tell what comes of it.

    python tests/faults/run.py                     # all
    python tests/faults/run.py --only "save*" Store --points 50

For each command it prints how many calls it makes, how many fault points were tried, and what
was found. The exit status is 1 if anything was.
"""

from __future__ import annotations

import argparse
import fnmatch
import os
import random
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # for `corpora`

import careless
import cases
import power
from faults import FAULTS, Bench, Case, Finding, build_shim, is_loaded


def points(case: Case, fault: str, n_calls: int, n_most: int | None) -> list[int]:
    """Calls to let fail, in an order that is the same in every run."""
    order = list(range(1, n_calls + 1))
    random.Random(f"{case.name} {fault}").shuffle(order)
    n_wanted = n_calls if case.wholly else max(1, -(-n_calls // 10))
    return order[: n_wanted if n_most is None else min(n_wanted, n_most)]


def try_points(bench: Bench, n_most: int | None) -> Iterator[list[Finding]]:
    """Yield what was found at each point: by every kind of fault, and after power cuts."""
    for fault in FAULTS:
        for at in points(bench.case, fault.name, bench.n_calls, n_most):
            yield bench.attempt(at, fault)
    if not bench.case.is_cut:
        return
    calls = power.read_log(bench.log)[:n_most]
    bench.reset()
    for number, parts in power.cuts(bench.work, calls):
        where = f"power cut after call {number} ({calls[number - 1].name}), kept {parts}: "
        findings = [*bench.names_lost(), *bench.settled()]
        yield [Finding(kind, where + text) for kind, text in findings]


def main() -> int:
    """Run the cases that are asked for."""
    parser = argparse.ArgumentParser(description="Try fault points.")
    parser.add_argument("--only", nargs="+", default=["*"], help="patterns of names of cases")
    parser.add_argument("--points", type=int, help="most points for each case and fault")
    parser.add_argument("--careless", action="store_true", help="try writers with known faults")
    options = parser.parse_args()
    if not is_loaded():
        return _start_again()
    n_found = 0
    for case in careless.cases() if options.careless else cases.cases():
        if not any(fnmatch.fnmatch(case.name, pattern) for pattern in options.only):
            continue
        started, n_tried = time.monotonic(), 0
        with tempfile.TemporaryDirectory(prefix="faults-") as home:
            bench = Bench(case, Path(home).resolve())
            for findings in try_points(bench, options.points):
                n_tried += 1
                n_found += len(findings)
                for finding in findings:
                    print(f"{case.name}: {finding.kind}: {finding.text}", flush=True)
        seconds = time.monotonic() - started
        told = f"{bench.n_calls} calls, {n_tried} points, {seconds:.0f} s"
        print(f"{case.name}: {told}", flush=True)
    return int(n_found > 0)


def _start_again() -> int:
    """Start this script once more with the shim, and one thread for each library."""
    with tempfile.TemporaryDirectory(prefix="faults-shim-") as folder:
        threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
        environment = os.environ | threads | {"LD_PRELOAD": str(build_shim(Path(folder)))}
        command = [sys.executable, *sys.argv]
        return os.spawnve(os.P_WAIT, command[0], command, environment)


if __name__ == "__main__":
    raise SystemExit(main())
