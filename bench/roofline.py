"""Measure how near the kernels come to what this machine can do.

    python bench/roofline.py

Peaks come from bench/roofline.cpp, compiled for every instruction set this processor has:
minimum + addition by type, multiply-add, the recurrence of word sequences, memory bandwidth.
Peaks and kernels take turns, the best round of each counts, and time is the CPU time of the
threads: on a machine that others use as well, what they take is not ours. Needs a C++ compiler
(``CXX``).
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import bench_histogram_intersection as intersection
import bench_word_sequence as sequence
import data
import numpy as np
import results

from kernelcore import _core
from kernelcore.captions import EncodedCaptions
from kernelcore.evaluation import Table
from kernelcore.kernels import histogram_intersection, word_sequence

N_ROWS, N_BINS = data.size(512, 64), intersection.N_BINS
N_IMAGES = data.size(1500, 100)
N_TURNS = data.size(4, 1)
DTYPES = ("float32", "float64", "uint8", "uint16", "uint32")


def compile_peaks(folder: Path, isa: str) -> Path:
    """Build roofline.cpp for one instruction set."""
    program = folder / f"roofline-{isa}"
    march = [] if isa == "portable" else [f"-march=x86-64-{isa}"]
    subprocess.run(
        [
            os.environ.get("CXX", "g++"),
            *("-std=c++17", "-O3", "-Wno-psabi", "-pthread", *march),
            f"-I{results.ROOT / 'csrc'}",
            str(results.ROOT / "bench" / "roofline.cpp"),
            *("-o", str(program)),
        ],
        check=True,
    )
    return program


def histograms(dtype: str) -> np.ndarray:
    """Rows as wide as the type, so that counts are not narrowed."""
    if dtype.startswith("u"):
        return intersection.counts(dtype, N_ROWS)
    return intersection.histograms(N_ROWS).astype(dtype)


def least_steps(captions: EncodedCaptions) -> float:
    """Pairs of words that one symmetric Gram matrix cannot do without.

    Each word of a caption of the rows meets each word of the columns once, and what columns
    have in common from their first word on needs to be read only once. Symmetry halves it.
    """
    starts = zip(captions.caption_offsets[:-1], captions.caption_offsets[1:], strict=True)
    texts = [captions.word_ids[a:b].tolist() for a, b in starts]
    prefixes = {tuple(text[:end]) for text in texts for end in range(1, len(text) + 1)}
    return len(captions.word_ids) * len(prefixes) / 2


def rate(work: float, call: Callable[[], object], n_threads: int) -> float:
    """Units of work a second on all threads, from the CPU time that they take."""
    start = time.process_time()
    call()
    return n_threads * work / (time.process_time() - start)


def merge(best: dict[str, Any], found: dict[str, Any]) -> dict[str, Any]:
    """Keep the larger of the numbers that stand at the same place."""
    return {
        key: merge(best.get(key, {}), value)
        if isinstance(value, dict)
        else max(best.get(key, 0.0), value)
        for key, value in found.items()
    }


def measure(isa: str, n_threads: int, program: Path) -> dict[str, Any]:
    """Peaks and rates of one instruction set."""
    _core.select_isa(isa)
    inputs = {dtype: histograms(dtype) for dtype in DTYPES}
    captions = data.training_captions().select(range(N_IMAGES))
    kernel = data.soft_word_kernel(captions.n_words)
    for X in inputs.values():
        intersection.checker(X, X)(histogram_intersection(X))
    few = captions.select(range(4))
    sequence.checker(few, kernel)(word_sequence(few, word_kernel=kernel))
    minima, steps = float(N_ROWS**2 * N_BINS), least_steps(captions)
    run = {"n_threads": n_threads}

    def intersect(X: np.ndarray, Y: np.ndarray | None) -> float:
        return rate(minima, lambda: histogram_intersection(X, Y, **run), n_threads)

    best: dict[str, Any] = {}
    for _ in range(N_TURNS):
        peaks = subprocess.run([program, str(n_threads)], capture_output=True, check=True)
        found: dict[str, Any] = {"peaks": json.loads(peaks.stdout)}
        found["two_inputs"] = {t: intersect(X, X[::-1].copy()) for t, X in inputs.items()}
        found["one_input"] = {t: intersect(X, None) for t, X in inputs.items()}
        found["sequence_steps"] = rate(
            steps, lambda: word_sequence(captions, word_kernel=kernel, **run), n_threads
        )
        best = merge(best, found)
    return {**best, "shares": shares(best)}


def shares(result: dict[str, Any]) -> dict[str, float]:
    """Parts of the peaks that the kernels reach."""
    peaks = result["peaks"]
    best = {**peaks["min_add"], **peaks["best_min_add"]}
    found = {dtype: result["two_inputs"][dtype] / best[dtype] for dtype in DTYPES}
    found["word sequences"] = result["sequence_steps"] / peaks["sequence_steps"]
    return found


def to_table(document: dict[str, Any]) -> Table:
    """Rates and shares of all instruction sets."""
    return Table(
        columns=(
            *("threads", "set", "work", "min + add of the type", "limit", "kernel"),
            *("share of the limit", "one input"),
        ),
        rows=tuple(
            (threads.partition(" ")[0], isa, *cells)
            for threads, results in document["measurements"].items()
            for isa, result in results.items()
            if isa != "commit"
            for cells in rows(result)
        ),
        n_labels=3,
        caption="G units a second: minima, and pairs of words",
    )


def rows(result: dict[str, Any]) -> Iterator[tuple[str, ...]]:
    """One line for each type, and one for word sequences."""
    peaks = result["peaks"]
    for dtype in DTYPES:
        peak = peaks["min_add"][dtype]
        limit = peaks["best_min_add"].get(dtype, peak)
        numbers = peak, limit, result["two_inputs"][dtype]
        yield (
            f"histogram intersection, {dtype}",
            *(f"{number / 1e9:.1f}" for number in numbers),
            f"{result['shares'][dtype]:.0%}",
            f"{result['one_input'][dtype] / 1e9:.1f}",
        )
    yield (
        "word sequences",
        "",
        f"{peaks['sequence_steps'] / 1e9:.1f}",
        f"{result['sequence_steps'] / 1e9:.1f}",
        f"{result['shares']['word sequences']:.0%}",
        "",
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    options = parser.parse_args()
    before = _core.active_isa()
    document = {**results.load("roofline"), "conditions": results.machine()}
    with tempfile.TemporaryDirectory() as folder:
        programs = {isa: compile_peaks(Path(folder), isa) for isa in _core.supported_isas()}
        for n_threads in options.threads:
            found = {isa: measure(isa, n_threads, path) for isa, path in programs.items()}
            found["commit"] = results.commit()
            document.setdefault("measurements", {})[results.threads_of(n_threads)] = found
            results.store(document, "roofline")
    _core.select_isa(before)
    print(to_table(document).to_markdown())


if __name__ == "__main__":
    main()
