"""The ledger of all executions, by target and commit, and the table made of it.

``python -m fuzz.ledger`` prints the table; ``python -m fuzz.ledger --merge OTHER.json`` takes
in the ledger of another checkout; ``--add`` enters what another machine has executed.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypedDict

from fuzz.finding import ROOT

LEDGER = ROOT / "fuzz" / "ledger.json"
_TESTED = ("kernelcore", "csrc", "setup.py", "fuzz", ":!fuzz/*.json")


class Entry(TypedDict):
    """What was done with one target at one commit."""

    executions: int
    seconds: float
    findings: int


Entries = dict[str, dict[str, Entry]]  # by target, by commit


def commit() -> str:
    """Short hash of the commit under test; "+" follows where its files have changed since."""

    def git(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["git", *words], cwd=ROOT, capture_output=True, text=True, check=False
        )

    name = git("rev-parse", "--short=7", "HEAD")
    if name.returncode != 0:
        return "unknown"
    changed = git("diff", "--quiet", "HEAD", "--", *_TESTED).returncode != 0
    return name.stdout.strip() + "+" * changed


def read(path: Path = LEDGER) -> Entries:
    """All entries; none where there is no file yet."""
    if not path.exists():
        return {}
    entries: Entries = json.loads(path.read_text(encoding="utf-8"))
    return entries


def add(target: str, at: str, entry: Entry, path: Path = LEDGER) -> None:
    """Add the counts of `entry` to those of `target` at commit `at`."""
    with _changing(path) as entries:
        sums = entries.setdefault(target, {}).setdefault(
            at, Entry(executions=0, seconds=0.0, findings=0)
        )
        sums["executions"] += entry["executions"]
        sums["seconds"] = round(sums["seconds"] + entry["seconds"], 1)
        sums["findings"] += entry["findings"]


def merge(other: Path, path: Path = LEDGER) -> None:
    """Take in the entries of `other`; of one target and commit, those with more executions.

    Two checkouts that have a commit in common have its counts in common, too.
    """
    with _changing(path) as entries:
        for target, by_commit in read(other).items():
            ours = entries.setdefault(target, {})
            for at, entry in by_commit.items():
                if at not in ours or ours[at]["executions"] < entry["executions"]:
                    ours[at] = entry


@contextmanager
def _changing(path: Path) -> Iterator[Entries]:
    """Give the entries and write them back at the end; other processes wait meanwhile."""
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        entries = read(path)
        yield entries
        temporary = path.with_suffix(".tmp")
        text = json.dumps(entries, indent=1, sort_keys=True)
        temporary.write_text(text + "\n", encoding="utf-8")
        temporary.replace(path)
    finally:
        os.close(folder)


def table(entries: Entries) -> str:
    """Make a Markdown table: executions, CPU minutes and findings of each target."""
    lines = [
        "| target | executions | CPU minutes | findings | commits |",
        "|---|---:|---:|---:|---:|",
    ]
    total = Entry(executions=0, seconds=0.0, findings=0)
    least = min((_sum(by_commit)["seconds"] for by_commit in entries.values()), default=0.0)
    for target, by_commit in sorted(entries.items()):
        counts = _sum(by_commit)
        lines.append(_row(target, counts, str(len(by_commit))))
        total = _sum({"so far": total, "this": counts})
    lines.append(_row(f"all {len(entries)}", total, ""))
    lines.append("")
    lines.append(f"Each target had at least {least / 60:.1f} minutes of one core.")
    return "\n".join(lines)


def _sum(by_commit: dict[str, Entry]) -> Entry:
    return Entry(
        executions=sum(entry["executions"] for entry in by_commit.values()),
        seconds=sum(entry["seconds"] for entry in by_commit.values()),
        findings=sum(entry["findings"] for entry in by_commit.values()),
    )


def _row(name: str, counts: Entry, commits: str) -> str:
    minutes = f"{counts['seconds'] / 60:.1f}"
    return (
        f"| {name} | {counts['executions']:,} | {minutes} | {counts['findings']} | {commits} |"
    )


def main() -> None:
    """Print the table, or merge another ledger first."""
    parser = argparse.ArgumentParser(prog="python -m fuzz.ledger", description=__doc__)
    parser.add_argument("--merge", type=Path, metavar="OTHER.json")
    parser.add_argument(
        "--add", nargs=4, metavar=("TARGET", "EXECUTIONS", "SECONDS", "FINDINGS")
    )
    options = parser.parse_args()
    if options.merge is not None:
        merge(options.merge)
    if options.add is not None:
        target, executions, seconds, findings = options.add
        entry = Entry(
            executions=int(executions), seconds=float(seconds), findings=int(findings)
        )
        add(target, commit(), entry)
        return
    print(table(read()))


if __name__ == "__main__":
    main()
