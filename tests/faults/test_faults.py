"""A sample of the fault points, and whether the machine that tries them finds what is there.

All of them: ``python tests/faults/run.py``.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

pytest.importorskip("cv2")

RUN = Path(__file__).with_name("run.py")
ROOT = Path(__file__).parents[2]
needs_linux = pytest.mark.skipif(
    not sys.platform.startswith("linux") or shutil.which("cc") is None,
    reason="the shim needs Linux and a C compiler",
)
pytestmark = needs_linux


def run(ledger, *options):
    """Run the machine; its exit status, what it printed, and its ledger."""
    words = [sys.executable, RUN, "--ledger", ledger, *options]
    ended = subprocess.run(words, capture_output=True, text=True, check=False, timeout=300)
    assert ended.returncode in {0, 1}, ended.stderr
    assert "Traceback" not in ended.stderr, ended.stderr
    return ended.returncode, ended.stdout, json.loads(Path(ledger).read_text())


def test_a_sample_of_fault_points_shows_nothing(tmp_path):
    cases = (
        "save PhotoIndex",
        "replace a model",
        "Store",
        "FeatureCache",
    )
    status, printed, ledger = run(tmp_path / "ledger", "--points", "1", "--only", *cases)
    assert status == 0, printed
    assert {key.split(" | ")[0] for key in ledger} == set(cases)
    assert all(row["tried"] >= 1 for row in ledger.values())


def test_the_machine_finds_careless_writers(tmp_path):
    status, printed, ledger = run(tmp_path / "ledger", "--careless")
    assert status == 1
    for kind in ("nameless", "leftovers", "silent", "differing", "unnamed errors"):
        rows = [row for key, row in ledger.items() if key.startswith(f"careless: {kind} |")]
        assert sum(row[kind] for row in rows) > 0, (kind, printed)
    assert ledger["careless: power cut | power cut"]["nameless"] > 0
    assert not any(row["nameless"] for key, row in ledger.items() if "cut | SIGKILL" in key)


def test_the_machine_goes_on_where_it_was_stopped(tmp_path):
    case = ("--only", "save PhotoIndex")
    _, _, first = run(tmp_path / "ledger", "--points", "1", *case)
    _, _, second = run(tmp_path / "ledger", "--points", "2", *case)
    for key, row in first.items():
        assert row["tried"] == (7 if "power" in key else 1)
        assert second[key]["tried"] == (14 if "power" in key else 2)


def test_the_ledger_is_complete_and_holds_no_finding():
    ledger = json.loads(RUN.with_name("ledger.json").read_text())
    command = [sys.executable, RUN, "--list"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    cases = set(printed.splitlines())
    assert {key.split(" | ")[0] for key in ledger} == cases
    of_fault = Counter(key.split(" | ")[1] for key in ledger)
    assert 0 < of_fault.pop("power cut") < len(cases)  # some write what the shim does not see
    assert len(of_fault) == 8
    assert set(of_fault.values()) == {len(cases)}
    for key, row in ledger.items():
        assert row["tried"] == row["wanted"] > 0, key
        found = {name: n for name, n in row.items() if name not in {"calls", "tried", "wanted"}}
        assert not any(found.values()), key


STRACE = shutil.which("strace")
TRACED = """
import sys
sys.path.insert(0, sys.argv[1])
import pathlib, numpy
from kernelcore.lexical import WordKernel
from kernelcore._store import write_folder
folder = pathlib.Path(sys.argv[2])
(folder / "model").mkdir()
words = WordKernel(["a"], numpy.eye(1))
import safetensors.numpy
shim = None
if sys.argv[3:]:
    import ctypes
    shim = ctypes.CDLL(None)
    shim.faults_arm(str(folder).encode(), 0, 0, 0, sys.argv[3].encode())
write_folder(folder / "model", "about.json", {}, lambda parts: words.save(parts / "words"))
words.save(folder / "words")
if shim:
    shim.faults_disarm()
"""


@pytest.mark.skipif(STRACE is None, reason="strace is not installed")
def test_the_shim_sees_the_calls_that_strace_sees(tmp_path):
    sys.path.insert(0, str(RUN.parent))
    try:
        import faults
        import power
    finally:
        sys.path.remove(str(RUN.parent))
    program = [sys.executable, "-c", TRACED, str(ROOT)]
    traced, shimmed = tmp_path / "traced", tmp_path / "shimmed"
    for folder in (traced, shimmed):
        folder.mkdir()
    calls = (
        "write,ftruncate,fsync,rename,renameat,renameat2,unlink,unlinkat,rmdir,mkdir,mkdirat"
    )
    strace = [STRACE, "-f", "-y", "-e", f"trace={calls}", "-o", tmp_path / "trace"]
    ended = subprocess.run([*strace, *program, traced], capture_output=True, check=False)
    if ended.returncode:
        pytest.skip("strace may not trace here")
    preloaded = os.environ | {"LD_PRELOAD": str(faults.build_shim(tmp_path))}
    subprocess.run([*program, shimmed, tmp_path / "log"], check=True, env=preloaded)

    by_strace = Counter()
    for line in (tmp_path / "trace").read_text().splitlines():
        call = re.match(r"\d+ +(\w+)\(", line)
        if (
            call
            and str(traced) in line
            and " = -1 " not in line
            and not line.endswith(f'"{traced}/model", 0777) = 0')
        ):
            name = re.sub("at2?$", "", call[1]) if call[1] != "truncate" else call[1]
            name = "rmdir" if "AT_REMOVEDIR" in line else name
            by_strace[{"fsync": "sync"}.get(name, name)] += 1
    by_shim = Counter(call.name for call in power.read_log(tmp_path / "log"))
    by_shim.pop("create", None)
    by_shim.pop("truncate", None)
    assert by_shim == by_strace
    assert by_shim["rename"] == 3
    assert by_shim["sync"] >= 8
