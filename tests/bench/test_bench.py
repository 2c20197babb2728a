"""The benchmarks run, and their tables follow from what pytest-benchmark stores."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).parents[2] / "bench"
FIRST_OF_EACH_FILE = """
import sys, pytest

class First:
    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items):
        items[:] = {item.path: item for item in reversed(items)}.values()

sys.exit(pytest.main(sys.argv[1:], plugins=[First()]))
"""

pytestmark = pytest.mark.skipif(not BENCH.is_dir(), reason="the benchmarks are not here")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "said"),
    [(["-c", FIRST_OF_EACH_FILE, "-m", "slow or not slow", "--benchmark-disable"], " passed"),
     (["-m", "pytest", "-k", "padded and kernelcore"], " passed"),
     (["-m", "pytest", "-rs", "-k", "ibm and 1-2500"], ": more than 10 times as slow")],
)  # fmt: skip
def test_benchmarks_run(options, said):
    done = subprocess.run(
        [sys.executable, *options, "-q", "-p", "no:cacheprovider", str(BENCH)],
        env={**os.environ, "KERNELCORE_BENCH_SMALL": "1", "PYTEST_XDIST_WORKER": ""},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert said in done.stdout


@pytest.fixture(scope="module")
def report():
    spec = importlib.util.spec_from_file_location("bench_report", BENCH / "report.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def entry(peer, seconds, work="ranks of both directions", size="10 x 50", **info):
    about = {"work": work, "size": size, "peer": peer, "n_threads": 1, **info}
    return {"extra_info": about, "stats": {"min": seconds}}


def groups_of(report, *entries):
    """Groups of two files: the first one holds the first entry alone."""
    documents = [{"benchmarks": entries[:1]}, {"benchmarks": entries[1:]}]
    return report.groups_of(documents)


def test_ratios_follow_from_the_fastest_rounds(report):
    groups = groups_of(
        report, entry("kernelcore", 0.5), entry("kernelcore", 0.25),
        entry("kernelcore, 2 threads", 0.125), entry("numpy, by counting", 1.0),
        entry("ranx.evaluate", 0.2, version="1.2"),
    )  # fmt: skip
    table = report.peer_table(groups)
    (row,) = table.rows
    peers = "ranx.evaluate 0.8; numpy, by counting 4"
    assert row == ("ranks of both directions", "10 x 50", "1", "250 ms", peers, "2 threads 0.5")
    assert table.emphasized == {(0, 4)}
    assert "ranx.evaluate 0.8" in report.slower_than(groups)
    assert "numpy" not in report.slower_than(groups)
    assert report.versions(groups) == "ranx 1.2"


def test_growth_is_the_slope_of_the_logarithm(report):
    points = [entry("kernelcore", 1e-6 * n**1.5, n=n, exponent=2) for n in (10, 100, 1000)]
    (row,) = report.growth_table(groups_of(report, *points)).rows
    assert row[2] == "10 to 1,000"
    assert row[4:] == ("1.50", "2")
