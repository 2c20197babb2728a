"""Write the tables of docs/robustness.md from the ledgers: ``python -m fuzz.report``."""

from __future__ import annotations

import subprocess
import sys

from fuzz import ledger, mutants
from fuzz.finding import ROOT

PAGE = ROOT / "docs" / "robustness.md"


def main() -> None:
    """Replace what stands between the marks of each table."""
    faults = subprocess.run(
        [sys.executable, ROOT / "tests" / "faults" / "run.py", "--show"],
        check=True,
        capture_output=True,
        text=True,
    )
    text = PAGE.read_text(encoding="utf-8")
    for name, table in (
        ("fuzz", ledger.table(ledger.read())),
        ("faults", faults.stdout.strip()),
        ("mutants", mutants.summary()),
    ):
        begin, end = f"<!-- {name}: written by fuzz/report.py -->", f"<!-- /{name} -->"
        before, rest = text.split(begin, 1)
        text = f"{before}{begin}\n\n{table}\n\n{end}{rest.split(end, 1)[1]}"
    PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
