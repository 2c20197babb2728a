"""The benchmarks stand beside the package, not in it."""

import sys
from pathlib import Path

BENCH = Path(__file__).parents[2] / "bench"

if BENCH.is_dir():
    sys.path.insert(0, str(BENCH))
else:
    collect_ignore_glob = ["test_*.py"]
