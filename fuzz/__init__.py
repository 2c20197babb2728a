"""Machines that look for faults: random input for compiled functions and for readers."""

import sys
from pathlib import Path

# An installed kernelcore goes before the sources beside this folder, which may not be built.
_root = Path(__file__).resolve().parents[1]
sys.path = [path for path in sys.path if Path(path).resolve() != _root] + [str(_root)]
