"""Modules of the properties, and files that are not forced to the disk."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kernelcore import _store

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "kernels")]  # for `strategies` and `kernel_table`


@pytest.fixture(autouse=True, scope="module")
def no_power_cuts() -> Iterator[None]:
    """Do not wait for the disk: thousands of files are written, and all are removed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_store, "sync", lambda path: None)
        yield
