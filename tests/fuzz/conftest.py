"""The fuzz machinery stands beside the package, not in it."""

import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]

if (ROOT / "fuzz" / "run.py").is_file():
    sys.path += [str(ROOT), str(Path(__file__).parent)]
else:
    collect_ignore_glob = ["test_*.py"]
