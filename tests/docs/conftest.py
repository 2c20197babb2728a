"""The pages and the gallery stand beside the package, not in it."""

import sys
from pathlib import Path

HERE = Path(__file__).parent

if (HERE.parents[1] / "docs").is_dir():
    sys.path.insert(0, str(HERE))  # for `pages`
else:
    collect_ignore_glob = ["test_*.py"]
