"""Fixtures of the tests of kernels."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))  # for `kernel_table`
