"""Fixtures shared by all tests."""

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def data_root() -> Path:
    """Folder of the real corpora, or a skip that says how to name one."""
    default = Path(__file__).parents[2] / "shared" / "data"
    root = Path(os.environ.get("KERNELCORE_DATA", default))
    if not root.is_dir():
        pytest.skip("no real data: set KERNELCORE_DATA to the folder that holds flickr8k/")
    return root
