"""The fixture that measures, and the captions that several benchmarks measure on."""

import sys
from pathlib import Path

import pytest

# Benchmarks are run from the sources, and share these modules.
sys.path.insert(0, str(Path(__file__).parent))

import data
import record
import timing

ROUNDS = 5


def pytest_addoption(parser):
    group = parser.getgroup("benchmarks")
    group.addoption("--store", action="store_true", help="keep what is measured")
    group.addoption("--rounds", type=int, help="turns of each way at most")
    group.addoption("--resume", action="store_true", help="measure what is not kept yet")


@pytest.fixture
def compare(pytestconfig, capsys):
    """Measure ways to do the same work, see `timing.compare`; print and keep the times."""

    most = pytestconfig.getoption("rounds") or sys.maxsize

    def run(work, ways, *, n_threads=1, rounds=ROUNDS, **options):
        key = timing.key_of(work, n_threads)
        if pytestconfig.getoption("resume") and record.is_stored("speed", key):
            return
        entry = timing.compare(
            work, ways, n_threads=n_threads, rounds=min(rounds, most), **options
        )
        if pytestconfig.getoption("store"):
            record.store("speed", key, entry)
        with capsys.disabled():
            print("\n" + timing.describe(entry))

    return run


@pytest.fixture(scope="session")
def captions():
    """Training captions of Flickr8k where its folder is, elsewhere drawn ones like them."""
    return data.training_captions().select(range(record.size(data.N_IMAGES, 300)))
