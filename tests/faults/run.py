"""Try fault points, keep a ledger, go on where it was stopped.

    python tests/faults/run.py                     # everything that is not in the ledger yet
    python tests/faults/run.py --only "save*" Store --points 50 --ledger other.json
    python tests/faults/run.py --show              # the ledger as a table

A row of the ledger is a case and a kind of fault. It says how many calls the command makes,
how many of them have been made to fail, and how many fault points had which finding. A row
begins anew when the number of calls has changed. The exit status is 1 if anything was found.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import os
import random
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import cases_careless
import cases_commands
import cases_saving
import cases_stores
import power
from faults import FAULTS, KINDS, Bench, Case, Finding, build_shim, is_loaded

LEDGER = Path(__file__).with_name("ledger.json")
POWER_CUT = "power cut"


def all_cases() -> list[Case]:
    """Every command that is tried."""
    modules = (cases_saving, cases_stores, cases_commands)
    return [case for module in modules for case in module.cases()]


class Ledger:
    """Rows by case and fault, kept in a JSON file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rows: dict[str, dict[str, int]] = {}
        if path.is_file():
            self.rows = json.loads(path.read_text(encoding="utf-8"))

    def row(self, case: str, fault: str, n_calls: int, n_wanted: int) -> dict[str, int]:
        """Return the row to go on with, a new one if the command has changed."""
        row = self.rows.get(f"{case} | {fault}")
        if row is None or row["calls"] != n_calls:
            row = {"calls": n_calls, "tried": 0, **dict.fromkeys(KINDS, 0)}
            self.rows[f"{case} | {fault}"] = row
        row["wanted"] = n_wanted
        return row

    def save(self) -> None:
        """Write the file."""
        lines = (
            f" {json.dumps(key)}: {json.dumps(self.rows[key])}" for key in sorted(self.rows)
        )
        temporary = self.path.with_suffix(".tmp")
        temporary.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
        temporary.replace(self.path)


def points(case: Case, fault: str, n_calls: int, n_most: int | None) -> list[int]:
    """Calls to let fail, in an order that is the same in every run."""
    order = list(range(1, n_calls + 1))
    random.Random(f"{case.name} {fault}").shuffle(order)
    n_wanted = n_calls if case.wholly else max(1, -(-n_calls // 10))
    return order[: n_wanted if n_most is None else min(n_wanted, n_most)]


def try_faults(bench: Bench, ledger: Ledger, n_most: int | None) -> Iterator[Finding]:
    """Let calls of one case fail by every kind of fault."""
    for fault in FAULTS:
        wanted = points(bench.case, fault.name, bench.n_calls, n_most)
        row = ledger.row(bench.case.name, fault.name, bench.n_calls, len(wanted))
        for at in wanted[row["tried"] :]:
            yield from _counted(row, bench.attempt(at, fault))
            ledger.save()


def try_power_cuts(bench: Bench, ledger: Ledger, n_most: int | None) -> Iterator[Finding]:
    """Look at what a power cut after each call may leave."""
    if not bench.case.is_cut:
        return
    calls = power.read_log(bench.log)
    n_cut = len(calls) if n_most is None else min(n_most, len(calls))
    n_wanted = n_cut * len(power.PARTS)
    row = ledger.row(bench.case.name, POWER_CUT, len(calls), n_wanted)
    if row["tried"] >= n_wanted:
        return
    row |= {"tried": 0, **dict.fromkeys(KINDS, 0)}
    bench.reset()
    for number, parts in power.cuts(bench.work, calls[:n_cut]):
        where = f"power cut after call {number} ({calls[number - 1].name}), kept {parts}: "
        findings = [*bench.names_lost(), *bench.settled()]
        yield from _counted(row, [Finding(kind, where + text) for kind, text in findings])
    ledger.rows[f"{bench.case.name} | {POWER_CUT}"] = row
    ledger.save()


def _counted(row: dict[str, int], findings: list[Finding]) -> list[Finding]:
    row["tried"] += 1
    for kind in {finding.kind for finding in findings}:
        row[kind] += 1
    return findings


def table(ledger: Ledger) -> str:
    """Return what has been tried and found, a line for each case, in Markdown."""
    by_case: dict[str, list[dict[str, int]]] = {}
    for key, row in ledger.rows.items():
        by_case.setdefault(key.split(" | ")[0], []).append(row)
    heads = ("command", "calls", "fault points", *KINDS)
    lines = [f"| {' | '.join(heads)} |", "|---" + "|---:" * (len(heads) - 1) + "|"]
    rows = {
        case: [
            max(row["calls"] for row in rows),
            *(sum(row[kind] for row in rows) for kind in ("tried", *KINDS)),
        ]
        for case, rows in by_case.items()
    }
    rows["all"] = [sum(numbers) for numbers in zip(*rows.values(), strict=True)]
    for case, numbers in rows.items():
        lines.append(f"| {case} | {' | '.join(f'{n:,}' for n in numbers)} |")
    return "\n".join(lines)


def main() -> int:
    """Run the cases that are asked for."""
    parser = argparse.ArgumentParser(description="Try fault points and keep a ledger.")
    parser.add_argument("--only", nargs="+", default=["*"], help="patterns of names of cases")
    parser.add_argument("--points", type=int, help="most points for each case and fault")
    parser.add_argument("--ledger", type=Path, default=LEDGER)
    parser.add_argument("--show", action="store_true", help="print the table and leave")
    parser.add_argument("--list", action="store_true", help="print the cases and leave")
    parser.add_argument("--careless", action="store_true", help="try writers with known faults")
    options = parser.parse_args()
    ledger = Ledger(options.ledger)
    if options.show:
        print(table(ledger))
        return 0
    if options.list:
        print("\n".join(case.name for case in all_cases()))
        return 0
    if not is_loaded():
        return _start_again()
    n_found = 0
    for case in cases_careless.cases() if options.careless else all_cases():
        if not any(fnmatch.fnmatch(case.name, pattern) for pattern in options.only):
            continue
        started = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="faults-") as home:
            bench = Bench(case, Path(home).resolve())
            for tries in (try_faults, try_power_cuts):
                for finding in tries(bench, ledger, options.points):
                    n_found += 1
                    print(f"{case.name}: {finding.kind}: {finding.text}", flush=True)
        seconds = time.monotonic() - started
        print(f"{case.name}: {bench.n_calls} calls, {seconds:.0f} s", flush=True)
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
