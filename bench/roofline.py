"""Measure how near the kernels come to what this machine can do.

    python bench/roofline.py

Peaks come from bench/roofline.cpp, compiled for every instruction set this processor has:
minimum + addition by type, multiply-add, the recurrence of word sequences, memory bandwidth.
Peaks and kernels take turns, the best round of each counts, and time is the CPU time of the
threads: on a machine that others use as well, what they take is not ours. Needs a C++ compiler
(``CXX``).
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import common
import numpy as np
from pytest_benchmark.utils import get_commit_info

from kernelcore import _core
from kernelcore.captions import EncodedCaptions
from kernelcore.kernels import histogram_intersection, word_sequence

BENCH = Path(__file__).parent
N_ROWS, N_BINS = common.size(512, 64), 13_440
N_IMAGES, N_TURNS = common.size(1500, 100), common.size(4, 1)
DTYPES = ("float32", "float64", "uint8", "uint16", "uint32")


def compile_peaks(folder: Path, isa: str) -> Path:
    """Build roofline.cpp for one instruction set."""
    program = folder / f"roofline-{isa}"
    march = [] if isa == "portable" else [f"-march=x86-64-{isa}"]
    flags = ["-std=c++17", "-O3", "-Wno-psabi", "-pthread", f"-I{BENCH.parent / 'csrc'}"]
    source = str(BENCH / "roofline.cpp")
    compiler = os.environ.get("CXX", "g++")
    subprocess.run([compiler, *flags, *march, source, "-o", str(program)], check=True)
    return program


def histograms(dtype: str) -> np.ndarray:
    """Rows as wide as the type, so that counts are not narrowed."""
    rng = np.random.default_rng(0)
    if not dtype.startswith("u"):
        return rng.random((N_ROWS, N_BINS), np.float32).astype(dtype)
    counts = rng.integers(0, 5, (N_ROWS, N_BINS)).astype(dtype)
    counts[:, 0] = np.iinfo(dtype).max // 2
    return counts


def least_steps(captions: EncodedCaptions) -> float:
    """Pairs of words that one symmetric Gram matrix cannot do without.

    Each word of a caption of the rows meets each word of the columns once, and what columns
    have in common from their first word on needs to be read only once. Symmetry halves it.
    """
    starts = zip(captions.caption_offsets[:-1], captions.caption_offsets[1:], strict=True)
    texts = [captions.word_ids[a:b].tolist() for a, b in starts]
    prefixes = {tuple(text[:end]) for text in texts for end in range(1, len(text) + 1)}
    return len(captions.word_ids) * len(prefixes) / 2


def larger(best: Any, found: Any) -> Any:
    """Return the larger of the numbers that stand at the same place."""
    if not isinstance(found, dict):
        return max(best or 0.0, found)
    return {key: larger((best or {}).get(key), value) for key, value in found.items()}


def measure(isa: str, n_threads: int, program: Path) -> dict[str, Any]:
    """Peaks, rates and shares of one instruction set."""
    _core.select_isa(isa)
    inputs = {dtype: histograms(dtype) for dtype in DTYPES}
    captions = common.training_captions().select(range(N_IMAGES))
    kernel = common.soft_word_kernel(captions.n_words)
    steps = least_steps(captions)

    def rate(work: float, call: Callable[..., object], *args: Any, **options: Any) -> float:
        start = time.process_time()
        call(*args, **options, n_threads=n_threads)
        return n_threads * work / (time.process_time() - start)

    def intersect(X: np.ndarray, *other: np.ndarray) -> float:
        return rate(float(N_ROWS**2 * N_BINS), histogram_intersection, X, *other)

    best: dict[str, Any] = {}
    for _ in range(N_TURNS):
        peaks = subprocess.run([program, str(n_threads)], capture_output=True, check=True)
        found = {
            "peaks": json.loads(peaks.stdout),
            "two_inputs": {t: intersect(X, X[::-1].copy()) for t, X in inputs.items()},
            "one_input": {t: intersect(X) for t, X in inputs.items()},
            "sequence_steps": rate(steps, word_sequence, captions, word_kernel=kernel),
        }
        best = larger(best, found)
    limits = {**best["peaks"]["min_add"], **best["peaks"]["best_min_add"]}
    shares = {dtype: best["two_inputs"][dtype] / limits[dtype] for dtype in DTYPES}
    shares["word sequences"] = best["sequence_steps"] / best["peaks"]["sequence_steps"]
    return {**best, "shares": shares}


def main() -> None:
    """Measure every instruction set on one thread and on two."""
    before = _core.active_isa()
    commit = get_commit_info()["id"]
    document: dict[str, Any] = {"machine": common.machine(), "commit": commit}
    with tempfile.TemporaryDirectory() as folder:
        programs = {isa: compile_peaks(Path(folder), isa) for isa in _core.supported_isas()}
        for n_threads in (1, 2):
            found = {isa: measure(isa, n_threads, path) for isa, path in programs.items()}
            document[f"threads {n_threads}"] = found
            print(n_threads, json.dumps({isa: one["shares"] for isa, one in found.items()}))
    _core.select_isa(before)
    path = BENCH / "results" / "roofline.json"
    path.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
