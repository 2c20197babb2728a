"""Count the instructions of three small workloads under callgrind: a check without noise.

    python bench/studies/instructions.py          # compare with bench/results/instructions.json
    python bench/studies/instructions.py --write  # count anew and store

Fails if a workload takes 5 % more instructions than stored. The counts depend on the compiler
and on the instruction set; valgrind knows no AVX-512, so AVX2 is what is counted. Where
valgrind, AVX2 or that compiler is missing, one sentence says so and nothing is compared.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from kernelcore import _core, show_config
from kernelcore.captions import EncodedCaptions
from kernelcore.evaluation.ranks import retrieval_ranks
from kernelcore.kernels import histogram_intersection, word_sequence

STORED = Path(__file__).resolve().parents[1] / "results" / "instructions.json"
ISA, TOLERANCE = "v3", 0.05
MARKER = "getppid"  # callgrind starts a new count whenever this function of libc is called


def workloads() -> dict[str, Callable[[], object]]:
    """Calls on one thread: 200 x 8,000 bins, 600 captions of 8 words, 2,000 x 10,000 scores."""
    X, scores = (
        np.random.default_rng(0).random(shape, np.float32)
        for shape in ((200, 8000), (2000, 10000))
    )
    owner, rng = np.repeat(np.arange(2000), 5), np.random.default_rng(0)
    factors = rng.random((300, 4))
    words = rng.integers(0, 300, (600, 1, 8)).tolist()
    captions = EncodedCaptions.from_lists(words, n_words=300)
    soft = {"word_kernel": factors @ factors.T / 4}
    return {
        "histogram_intersection": partial(histogram_intersection, X, n_threads=1),
        "word_sequence": partial(word_sequence, captions, **soft, n_threads=1),
        "rank_counting": partial(retrieval_ranks, scores, owner, n_threads=1),
    }


def count() -> dict[str, int]:
    """Run all workloads in one process under callgrind; return their instructions by name."""
    with tempfile.TemporaryDirectory() as folder:
        options = [f"--dump-before={MARKER}", f"--callgrind-out-file={folder}/out"]
        subprocess.run(
            ["valgrind", "--tool=callgrind", *options, sys.executable, __file__, "--run"],
            env={**os.environ, "KERNELCORE_ISA": ISA, "PYTHONHASHSEED": "0"},
            stderr=subprocess.DEVNULL,
            check=True,
        )
        parts = sorted(Path(folder).glob("out.*"), key=lambda path: int(path.suffix[1:]))
        totals = [int(re.search(r"^totals: (\d+)", one.read_text(), re.M)[1]) for one in parts]
    # What ends at every second mark is a call; a start and a warm-up come before each.
    return dict(zip(workloads(), totals[1::2], strict=True))


def main() -> None:
    """Compare or store."""
    if "--run" in sys.argv:
        for call in workloads().values():
            call()
            os.getppid()
            call()
            os.getppid()
        return
    stored, compiler = json.loads(STORED.read_text()), show_config()["compiler"]
    is_comparable = "--write" in sys.argv or stored["compiler"] == compiler
    if not (shutil.which("valgrind") and ISA in _core.supported_isas() and is_comparable):
        print(f"not counted: needs valgrind, {ISA}, and a build by {stored['compiler']}")
        return
    counts = count()
    if "--write" in sys.argv:
        document = {"instruction_set": ISA, "compiler": compiler, "instructions": counts}
        STORED.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
        return
    for name, now in counts.items():
        print(
            f"{name}: {now:,} instructions, {now / stored['instructions'][name]:.3f} of stored"
        )
    if any(
        now > (1 + TOLERANCE) * stored["instructions"][name] for name, now in counts.items()
    ):
        sys.exit(f"more than {TOLERANCE:.0%} above what is stored")


if __name__ == "__main__":
    main()
