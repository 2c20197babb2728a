"""A cluster of two workers, for all tests of a process."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # for `runs`, which workers import too

from runs import local_cluster


@pytest.fixture(scope="session")
def client():
    """Two workers."""
    distributed = pytest.importorskip("distributed")
    with local_cluster(2) as cluster, distributed.Client(cluster) as found:
        yield found
