"""Measure everything, and keep it in bench/results.

    python bench/run.py                # about 20 minutes on two idle cores
    python bench/run.py long           # what takes minutes a round: about 8 more
    python bench/run.py speed -k kcca  # one part, some benchmarks of it
    python bench/run.py --resume       # only what is not kept for this commit
    python bench/report.py             # then write the pages

With KERNELCORE_BENCH_SMALL=1 all of it runs on small problems, to see that it does; what that
measures is worth nothing and goes where KERNELCORE_BENCH_RESULTS says.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

BENCH = Path(__file__).parent
PARTS = ("speed", "roofline", "growth", "scale")


def commands(part: str, expression: str, *, resume: bool) -> list[list[str]]:
    """What a part runs."""
    pytest = ["-m", "pytest", "-q", "-p", "no:cacheprovider", str(BENCH), "--store"]
    pytest += [*(["-k", expression] if expression else []), *(["--resume"] if resume else [])]
    scale = [str(BENCH / "scale.py"), *(["--resume"] if resume else [])]
    return {
        "speed": [pytest],
        "roofline": [[str(BENCH / "roofline.py")]],
        "growth": [[str(BENCH / "growth.py")]],
        "scale": [scale],
        "long": [[*pytest, "-m", "slow"], [*scale, "--long"]],
    }[part]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"{', '.join(PARTS)}, long")
    parser.add_argument("-k", default="", metavar="EXPRESSION", help="as pytest takes it")
    parser.add_argument("--resume", action="store_true", help="measure what is not kept yet")
    options = parser.parse_args()
    if os.environ.get("KERNELCORE_BENCH_SMALL") and not os.environ.get(
        "KERNELCORE_BENCH_RESULTS"
    ):
        parser.error("small problems need KERNELCORE_BENCH_RESULTS: they are no results")
    if unknown := set(options.parts) - {*PARTS, "long"}:
        parser.error(f"no such part: {', '.join(unknown)}")
    failed = []
    for part in options.parts or PARTS:
        start = time.perf_counter()
        for command in commands(part, options.k, resume=options.resume):
            if subprocess.run([sys.executable, *command], check=False).returncode:
                failed.append(part)
        print(f"== {part}: {time.perf_counter() - start:.0f} s", flush=True)
    subprocess.run([sys.executable, str(BENCH / "targets.py")], check=False)
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
