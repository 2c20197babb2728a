"""The tests of deep models share drawn photos, which stand beside them."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
