"""Lines of csrc that ran, by file, from what gcov says of a build folder.

``python -m fuzz.coverage BUILD [LEAST]`` exits with status 1 below LEAST per cent.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

from fuzz.finding import ROOT

Counts = dict[str, dict[int, int]]  # of runs, by file and line


def counts_of(build: Path) -> Counts:
    """Count how often each line of csrc ran, in all objects of `build` together."""
    counts: Counts = defaultdict(lambda: defaultdict(int))
    for notes in sorted(build.glob("*.gcno")):
        command = ["gcov", "-t", "--json-format", str(notes)]
        run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        for report in run.stdout.splitlines():
            for file in json.loads(report)["files"]:
                name = file["file"]
                if name.startswith("csrc/"):
                    for line in file["lines"]:
                        counts[name][line["line_number"]] += line["count"]
    return counts


def report(counts: Counts) -> tuple[str, float]:
    """Make a table by file with the lines that never ran; return it and the share in all."""
    rows, n_ran, n_lines = [], 0, 0
    for name, lines in sorted(counts.items()):
        idle = [line for line, count in sorted(lines.items()) if count == 0]
        ran = len(lines) - len(idle)
        n_ran, n_lines = n_ran + ran, n_lines + len(lines)
        rows.append(f"{name:48} {ran:5} of {len(lines):5}  {' '.join(map(str, idle))}")
    share = 100 * n_ran / max(n_lines, 1)
    rows.append(f"{'all':48} {n_ran:5} of {n_lines:5}  {share:.1f} %")
    return "\n".join(rows), share


def main() -> int:
    """Print the table."""
    build, *least = sys.argv[1:]
    text, share = report(counts_of(Path(build)))
    print(text)
    return int(share < float(least[0] if least else 0))


if __name__ == "__main__":
    raise SystemExit(main())
