"""Runs fuzz targets in child processes under limits and keeps the ledger.

Every execution is determined by its target and a seed of 64 bits. What fails is printed with
the command that repeats it, once for each cause, and the run goes on.
"""

from __future__ import annotations

import argparse
import faulthandler
import os
import signal
import tempfile
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from fuzz import ledger
from fuzz.finding import Finding
from fuzz.supervisor import Limits, Outcome, Supervisor
from fuzz.worker import MODULES, execute, limit, targets


def parse(words: Sequence[str] | None) -> argparse.Namespace:
    """Read the options of the command line."""
    parser = argparse.ArgumentParser(prog="python -m fuzz.run", description=__doc__)
    parser.add_argument("--target", nargs="+", metavar="NAME", help="default: all")
    parser.add_argument("--kind", choices=("compiled", "reader", "images"))
    parser.add_argument("--seconds", type=float, default=60, help="CPU time of each target")
    parser.add_argument("--jobs", type=int, default=1, help="targets at a time")
    parser.add_argument("--memory", type=float, default=2, help="GiB beyond the imports")
    parser.add_argument("--timeout", type=float, default=30, help="seconds of one execution")
    parser.add_argument("--seed", type=int, help="of the whole run; default: another each time")
    parser.add_argument("--list", action="store_true", help="print the targets and end")
    parser.add_argument("--replay", nargs=2, metavar=("TARGET", "SEED"), help="run one again")
    parser.add_argument("--module", nargs="+", default=MODULES, help="that have the targets")
    parser.add_argument("--ledger", type=Path, default=ledger.LEDGER)
    return parser.parse_args(words)


def replay(options: argparse.Namespace) -> None:
    """Run one execution in this process, under the limits of a worker."""
    name, seed = options.replay
    target = targets(options.module)[name]
    limit(_bytes(options.memory))
    faulthandler.dump_traceback_later(options.timeout, exit=True)
    with tempfile.TemporaryDirectory() as folder:
        execute(target, int(seed), Path(folder) / "files")
    faulthandler.cancel_dump_traceback_later()
    print(f"{name} {seed}: no finding")


def chosen(options: argparse.Namespace) -> list[str]:
    """Names of the targets that `options` ask for."""
    found = targets(options.module)
    for name in options.target or ():
        if name not in found:
            raise SystemExit(f"--target {name}: there is no such target; see --list")
    return [
        name
        for name, target in found.items()
        if (not options.target or name in options.target)
        and options.kind in {None, target.kind}
    ]


def run(options: argparse.Namespace) -> int:
    """Run all chosen targets; return the number of findings."""
    names = chosen(options)
    limits = Limits(options.seconds, _bytes(options.memory), options.timeout)
    seed = options.seed if options.seed is not None else int.from_bytes(os.urandom(8), "big")
    at = ledger.commit()
    stop = threading.Event()
    findings: list[Finding] = []

    def found(name: str, finding: Finding) -> None:
        findings.append(finding)
        print(
            f"\n== {name}: {finding.kind} at {finding.where}\n{finding.text.rstrip()}\n"
            f"replay: python -m fuzz.run --replay {name} {finding.seed}\n",
            flush=True,
        )

    def enter(name: str, outcome: Outcome) -> None:
        if outcome.executions:
            entry = ledger.Entry(
                executions=outcome.executions,
                seconds=outcome.seconds,
                findings=len(outcome.findings),
            )
            ledger.add(name, at, entry, options.ledger)

    def supervise(name: str) -> None:
        if stop.is_set():
            return
        counts = [0, 0.0, 0]

        def outcome(part: Outcome) -> None:
            enter(name, part)
            counts[:] = [
                counts[0] + part.executions,
                counts[1] + part.seconds,
                counts[2] + len(part.findings),
            ]

        Supervisor(name, tuple(options.module), limits, seed, found).run(stop, outcome)
        print(
            f"{name}: {counts[0]} executions in {counts[1]:.1f} s, {counts[2]} findings",
            flush=True,
        )

    with ThreadPoolExecutor(options.jobs) as pool:
        jobs = [pool.submit(partial(supervise, name)) for name in names]
        try:
            while not all(job.done() for job in jobs):
                time.sleep(0.05)
        except KeyboardInterrupt:
            print("stopping")
        finally:
            stop.set()
    for job in jobs:
        job.result()
    return len(findings)


def _bytes(gibibytes: float) -> int:
    return int(gibibytes * 2**30)


def main(words: Sequence[str] | None = None) -> int:
    """Exit status 1 where something was found."""
    for number in (signal.SIGINT, signal.SIGTERM):  # also where a shell has them ignored
        signal.signal(number, signal.default_int_handler)
    options = parse(words)
    if options.list:
        for name, target in targets(options.module).items():
            print(f"{target.kind:9} {name}")
        return 0
    if options.replay:
        replay(options)
        return 0
    return int(run(options) > 0)


if __name__ == "__main__":
    raise SystemExit(main())
