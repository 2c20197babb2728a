"""Count the instructions of three small workloads under callgrind: a check without noise.

    python bench/instructions.py          # compare with bench/results/instructions.json
    python bench/instructions.py --write  # count anew and store

Fails if a workload takes more instructions than stored, beyond the tolerance. The counts
depend on the compiler and on the instruction set; valgrind knows no AVX-512, so AVX2 is what is
counted. Where valgrind, AVX2 or that compiler is missing, one sentence says so and nothing is
compared.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

STORED = Path(__file__).parent / "results" / "instructions.json"
ISA = "v3"
TOLERANCE = 0.05
MARKER = "getppid"  # callgrind starts a new count whenever this function of libc is called


def histogram_intersection() -> None:
    """200 histograms of 8,000 bins, float32, one input."""
    from kernelcore.kernels import histogram_intersection
    from kernelcore.reference.kernels import histogram_intersection as reference

    X = np.random.default_rng(0).random((200, 8000), np.float32)
    K = counted(lambda: histogram_intersection(X, n_threads=1))
    np.testing.assert_allclose(K[:5, :5], reference(X[:5], X[:5]), rtol=1e-5)


def word_sequence() -> None:
    """600 captions of 8 words out of 300 under a dense word kernel, one input."""
    from kernelcore.captions import EncodedCaptions
    from kernelcore.kernels import word_sequence
    from kernelcore.reference.kernels import word_sequence as reference

    rng = np.random.default_rng(0)
    factors = rng.random((300, 4))
    word_kernel = factors @ factors.T / 4
    words = rng.integers(0, 300, (600, 1, 8)).tolist()
    captions = EncodedCaptions.from_lists(words, n_words=300)
    K = counted(lambda: word_sequence(captions, word_kernel=word_kernel, n_threads=1))
    expected = reference(words[:2], words[:2], lambda v, w: word_kernel[v, w], normalize=True)
    np.testing.assert_allclose(K[:2, :2], expected, rtol=1e-4)


def rank_counting() -> None:
    """Both tasks of 2,000 images and 10,000 captions, float32."""
    from kernelcore.evaluation.ranks import retrieval_ranks
    from kernelcore.reference.evaluation import gold_ranks as reference

    scores = np.random.default_rng(0).random((2000, 10000), np.float32)
    owner = np.repeat(np.arange(2000), 5)
    ranks = counted(lambda: retrieval_ranks(scores, owner, n_threads=1))
    np.testing.assert_array_equal(ranks.search[:3], reference(scores.T[:3], owner[:3, None]))


WORKLOADS = (histogram_intersection, word_sequence, rank_counting)


def counted(call: Any) -> Any:
    """Call once to warm up, then between two marks."""
    call()
    os.getppid()
    result = call()
    os.getppid()
    return result


def count() -> dict[str, int]:
    """Run all workloads in one process under callgrind; return their instructions by name."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [
                "valgrind",
                "--tool=callgrind",
                f"--dump-before={MARKER}",
                f"--callgrind-out-file={folder}/out",
                sys.executable,
                __file__,
                "--run",
            ],
            env={**os.environ, "KERNELCORE_ISA": ISA, "PYTHONHASHSEED": "0"},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            sys.exit(f"the workloads failed under callgrind:\n{done.stderr}")
        parts = sorted(Path(folder).glob("out.*"), key=lambda path: int(path.suffix[1:]))
        totals = [
            int(re.search(r"^totals: (\d+)", part.read_text(), re.M)[1]) for part in parts
        ]
    # What ends at every second mark is a call; a start and a warm-up come before each.
    return {work.__name__: total for work, total in zip(WORKLOADS, totals[1::2], strict=True)}


def why_not(stored: dict[str, Any] | None) -> str | None:
    """Return the reason for which nothing can be counted or compared here."""
    from kernelcore import _core, show_config

    compiler = show_config()["compiler"]
    if shutil.which("valgrind") is None:
        return "valgrind is not installed"
    if ISA not in _core.supported_isas():
        return f"this processor or build has no instruction set {ISA}"
    if stored is not None and stored["compiler"] != compiler:
        return f"the counts are stored for {stored['compiler']}, this is a build of {compiler}"
    return None


def main() -> None:
    """Compare or store."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="store the counts")
    parser.add_argument("--run", action="store_true", help="run the workloads, and no more")
    options = parser.parse_args()
    if options.run:
        for workload in WORKLOADS:
            workload()
        return
    stored = None if options.write else json.loads(STORED.read_text(encoding="utf-8"))
    if reason := why_not(stored):
        print(f"instructions not counted: {reason}")
        return
    counts = count()
    if stored is None:
        store(counts)
        return
    ratios = {name: counts[name] / stored["instructions"][name] for name in counts}
    for name, ratio in ratios.items():
        print(f"{name}: {counts[name]:,} instructions, {ratio:.3f} of what is stored")
    if max(ratios.values()) > 1 + TOLERANCE:
        sys.exit(f"more than {TOLERANCE:.0%} above what is stored")
    if min(ratios.values()) < 1 - TOLERANCE:
        print("fewer than stored: python bench/instructions.py --write")


def store(counts: dict[str, int]) -> None:
    """Write the counts with what they depend on."""
    from kernelcore import show_config

    config = show_config()
    commit = subprocess.run(
        ["git", "rev-parse", "HEAD"],
        cwd=STORED.parent,
        capture_output=True,
        text=True,
        check=True,
    )
    valgrind = subprocess.run(
        ["valgrind", "--version"], capture_output=True, text=True, check=True
    )
    document = {
        "instruction_set": ISA,
        "n_threads": 1,
        "compiler": config["compiler"],
        "python": platform.python_version(),
        "numpy": config["numpy"],
        "valgrind": valgrind.stdout.strip(),
        "commit": commit.stdout.strip(),
        "instructions": counts,
    }
    STORED.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
