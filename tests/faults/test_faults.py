"""A sample of the fault points, and whether the machine that tries them finds what is there.

All of them: ``python tests/faults/run.py``.
"""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("cv2")

RUN = Path(__file__).with_name("run.py")
pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux") or shutil.which("cc") is None,
    reason="the shim needs Linux and a C compiler",
)


def run(*options):
    """Run the machine; its exit status, and what it printed."""
    words = [sys.executable, RUN, *options]
    ended = subprocess.run(words, capture_output=True, text=True, check=False, timeout=300)
    assert ended.returncode in {0, 1}, ended.stderr
    assert "Traceback" not in ended.stderr, ended.stderr
    return ended.returncode, ended.stdout


def test_a_sample_of_fault_points_shows_nothing():
    cases = ("replace a model", "Store")
    status, printed = run("--points", "1", "--only", *cases)
    assert status == 0, printed
    found = dict(re.findall(r"^([\w ]+): \d+ calls, (\d+) points", printed, re.MULTILINE))
    assert found == dict.fromkeys(cases, "15")  # eight kinds of faults, seven states of a cut


def test_the_machine_finds_careless_writers():
    status, printed = run("--careless")
    assert status == 1
    for kind in ("nameless", "leftovers", "silent", "differing", "unnamed errors"):
        assert f"careless: {kind}: {kind}: " in printed
    cuts = re.findall(r"careless: power cut: nameless: (\w+)", printed)
    assert "power" in cuts
    assert "SIGKILL" not in cuts
