"""A task takes no more memory than was estimated, and the estimate is not far above it."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from kernelcore.distributed import (
    best_candidates,
    embed,
    fit_landmark_kcca,
    gram_to_store,
    landmark_features,
    streamed_ranks,
    write_rows,
)
from kernelcore.distributed.functions import describe_kernel
from kernelcore.distributed.pivots import choose_pivots
from kernelcore.distributed.store import Store
from kernelcore.distributed.tasks import complete, needed_bytes

_MEASURE = """
import json, re, sys
from pathlib import Path
import numpy as np
from kernelcore.distributed import gram, landmarks, pivots, ranks, search, landmark_kcca
from kernelcore.distributed.store import Store
from kernelcore.distributed.tasks import made
from kernelcore._threads import one_blas_thread

def status(name):
    found = re.search(name + r":\\s+(\\d+) kB", Path("/proc/self/status").read_text())
    return 1024 * int(found[1])

small, large = map(Store.open, sys.argv[1:])
made(small, 0)  # what libraries take once
Path("/proc/self/clear_refs").write_text("5")
before = status("VmRSS")
piece = made(large, 0)
print(json.dumps(status("VmHWM") - before))
"""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="needs Linux"),
]


def measured(small, large):
    found = subprocess.run(
        [sys.executable, "-c", _MEASURE, str(small), str(large)],
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(found.stdout)


def vectors(n, n_columns):
    return np.random.default_rng(0).random((n, n_columns), np.float32)


def check(small, large):
    estimate, taken = needed_bytes(Store.open(large)), measured(small, large)
    assert taken <= estimate, (taken, estimate)
    assert estimate <= 3 * taken, (taken, estimate)


def test_gram(tmp_path):
    for name, n in (("small", 10), ("large", 3000)):
        gram_to_store(
            "histogram_intersection", vectors(n, 1500), None, tmp_path / name, tile=3000
        )
    check(tmp_path / "small", tmp_path / "large")


def test_ranks(tmp_path):
    for name, n in (("small", 10), ("large", 30_000)):
        streamed_ranks(vectors(n, 256), vectors(n, 256), store=tmp_path / name)
    for kind in ("gold", "counts"):
        check(tmp_path / "small" / kind, tmp_path / "large" / kind)


def test_ranks_of_an_image_with_many_captions(tmp_path):
    for name, n, n_more in (("small", 10, 1), ("large", 30_000, 400)):
        owner = np.concatenate([np.arange(n), np.zeros(n_more, int)])
        streamed_ranks(vectors(n, 16), vectors(n + n_more, 16), owner, store=tmp_path / name)
    check(tmp_path / "small" / "counts", tmp_path / "large" / "counts")


def test_search(tmp_path):
    for name, n in (("small", 10), ("large", 30_000)):
        best_candidates(vectors(n, 256), vectors(n, 256), tmp_path / name)
    check(tmp_path / "small", tmp_path / "large")


def test_choice_of_landmarks(tmp_path):
    for name, n in (("small", 30), ("large", 60_000)):
        choose_pivots(
            write_rows(tmp_path / name / "X", vectors(n, 100)),
            describe_kernel("kernel", "histogram_intersection"),
            tmp_path / name,
            n_pivots=300,
            tolerance=0.0,
            part_rows=65_536,
            run=complete,
        )
    rounds = {
        name: sorted(path for path in (tmp_path / name).iterdir() if path.name.isdigit())
        for name in ("small", "large")
    }
    for number in (0, -1):  # the diagonal, and all features but the last ones
        check(rounds["small"][number], rounds["large"][number])


def test_landmark_kcca(tmp_path):
    for name, n in (("small", 30), ("large", 60_000)):
        folder = tmp_path / name
        landmark_features(
            "histogram_intersection", vectors(n, 100), folder / "one view", n_landmarks=128
        )
        fit_landmark_kcca(vectors(n, 100), vectors(n, 60), folder / "model", n_landmarks=128)
        embed(folder / "model", "images", vectors(n, 100), folder / "rows")
    for place in ("one view/features", "model/triangles", "rows"):
        check(tmp_path / "small" / place, tmp_path / "large" / place)
