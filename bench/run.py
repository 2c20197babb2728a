"""Measure and keep the results in bench/results/speed.json.

    python bench/run.py                # all benchmarks but the slow ones
    python bench/run.py -m readme      # the groups in the README's table
    python bench/run.py -m slow        # long runs, and the memory of large problems
    python bench/run.py -k kcca        # some of them; -k and -m as pytest has them
    python bench/run.py --resume       # only what was not measured at this commit
    python bench/roofline.py           # the limits of the machine
    python bench/report.py             # then write the tables

Each file runs in a process of its own and is stored when it has ended. A group that is measured
again is replaced as a whole. With KERNELCORE_BENCH_SMALL=1 problems are small, to see that all
of it runs. Such times are worth nothing and go into the folder KERNELCORE_BENCH_RESULTS.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import data
import results

BENCH = Path(__file__).parent
PYTEST = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--benchmark-quiet"]


def collect(selection: list[str]) -> list[str]:
    """Test functions that pytest selects."""
    done = subprocess.run(
        [*PYTEST, str(BENCH), "--collect-only", *selection],
        cwd=results.ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    names = [line.partition("[")[0] for line in done.stdout.splitlines() if "::" in line]
    if done.returncode:
        sys.exit(done.stdout + done.stderr)
    return list(dict.fromkeys(names))


def parts(functions: list[str]) -> list[str]:
    """Parts of a run: a file each, but the functions that measure memory one by one."""
    return list(
        dict.fromkeys(
            name if "bench_scale" in name else name.partition("::")[0] for name in functions
        )
    )


def measure(part: str, selection: list[str], passes: int) -> bool:
    """Run one part in a process of its own and store its groups; say whether all passed."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.json"
        command = [*PYTEST, part, *selection, f"--passes={passes}", f"--benchmark-json={path}"]
        start = time.perf_counter()
        has_failed = subprocess.run(command, cwd=results.ROOT, check=False).returncode
        print(f"== {part}: {time.perf_counter() - start:.0f} s", flush=True)
        document = results.load()
        if path.is_file() and path.stat().st_size:
            run = json.loads(path.read_text(encoding="utf-8"))
            document = results.merge(document, run, results.commit())
        if not has_failed:
            document.setdefault("runs", {})[" ".join([part, *selection])] = results.commit()
        results.store(document)
    return not has_failed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-m", dest="marks", default="not slow", metavar="MARKS")
    parser.add_argument("-k", dest="expression", default="", metavar="EXPRESSION")
    parser.add_argument("--passes", type=int, default=3, help="3 unless given")
    parser.add_argument("--resume", action="store_true", help="measure what is not kept yet")
    options = parser.parse_args()
    if data.SMALL and results.FOLDER.parent == BENCH:
        parser.error("small problems need KERNELCORE_BENCH_RESULTS: they are no results")
    selection = ["-m", options.marks, "-k", options.expression]
    failed = []
    for part in parts(collect(selection)):
        kept = results.load().get("runs", {}).get(" ".join([part, *selection]))
        if options.resume and kept == results.commit() and not results.is_changed(kept):
            continue
        if not measure(part, selection, options.passes):
            failed.append(part)
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
