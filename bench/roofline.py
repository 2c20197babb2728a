"""Measure how near histogram intersection comes to what this machine can do.

    python bench/roofline.py --threads 2

Peaks (minimum + addition from registers by type, multiply-add, memory bandwidth) come from
bench/roofline.cpp, compiled for every instruction set this processor has. Peaks and kernel
take turns, the best round of each counts, and time is the CPU time of the threads: on a
machine that others use as well, what they take is not ours. Needs a C++ compiler (``CXX``).
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cpuinfo
import numpy as np

import kernelcore
from kernelcore import _core
from kernelcore.evaluation import Table
from kernelcore.kernels import histogram_intersection
from kernelcore.reference.histogram_intersection import (
    histogram_intersection as reference_intersection,
)

ROOT = Path(__file__).parents[1]
N_ROWS, N_BINS = 512, 13_440
N_TURNS = 4
DTYPES = ("float32", "float64", "uint8", "uint16", "uint32")


def compile_peaks(folder: Path, isa: str) -> Path:
    """Build roofline.cpp for one instruction set."""
    program = folder / f"roofline-{isa}"
    march = [] if isa == "portable" else [f"-march=x86-64-{isa}"]
    subprocess.run(
        [
            os.environ.get("CXX", "g++"),
            *("-std=c++17", "-O3", "-Wno-psabi", "-pthread", *march),
            f"-I{ROOT / 'csrc'}",
            str(ROOT / "bench" / "roofline.cpp"),
            *("-o", str(program)),
        ],
        check=True,
    )
    return program


def histograms(dtype: str) -> np.ndarray:
    rng = np.random.default_rng(0)
    if dtype.startswith("u"):  # as wide as the type, so that it is not narrowed
        top = {"uint8": 5, "uint16": 9, "uint32": 17}[dtype]
        X = rng.integers(0, top, (N_ROWS, N_BINS)).astype(dtype)
        X[:, 0] = np.iinfo(dtype).max // 2
        return X
    return rng.random((N_ROWS, N_BINS)).astype(dtype)


def kernel_rate(X: np.ndarray, Y: np.ndarray | None, n_threads: int) -> float:
    """Elements a second: every pair of rows and every bin counts, also where mirrored."""
    start = time.process_time()
    histogram_intersection(X, Y, n_threads=n_threads)
    return n_threads * N_ROWS**2 * N_BINS / (time.process_time() - start)


def merge(best: dict[str, Any], found: dict[str, Any]) -> dict[str, Any]:
    """Keep the larger of the numbers that stand at the same place."""
    return {
        key: merge(best.get(key, {}), value)
        if isinstance(value, dict)
        else max(best.get(key, 0.0), value)
        for key, value in found.items()
    }


def measure(isa: str, n_threads: int, folder: Path) -> dict[str, Any]:
    """Peaks and rates of one instruction set."""
    program = compile_peaks(folder, isa)
    _core.select_isa(isa)
    inputs = {dtype: histograms(dtype) for dtype in DTYPES}
    for X in inputs.values():
        few = X[:4].astype(np.float64)
        expected = reference_intersection(few, few)
        np.testing.assert_allclose(histogram_intersection(X)[:4, :4], expected, rtol=1e-4)
    best: dict[str, Any] = {}
    for _ in range(N_TURNS):
        run = subprocess.run([program, str(n_threads)], capture_output=True, check=True)
        found: dict[str, Any] = {"peaks": json.loads(run.stdout)}
        found["two_inputs"] = {
            dtype: kernel_rate(X, X[::-1].copy(), n_threads) for dtype, X in inputs.items()
        }
        found["one_input"] = {
            dtype: kernel_rate(X, None, n_threads) for dtype, X in inputs.items()
        }
        best = merge(best, found)
    return best


def rows(results: dict[str, dict[str, Any]]) -> Iterator[tuple[str, ...]]:
    """One line for each instruction set and type."""
    for isa, result in results.items():
        for dtype in DTYPES:
            peak = result["peaks"]["min_add"][dtype]
            best = result["peaks"]["best_min_add"].get(dtype, peak)
            ours = result["two_inputs"][dtype]
            yield (
                isa,
                dtype,
                *(f"{rate / 1e9:.1f}" for rate in (peak, best, ours)),
                f"{ours / peak:.0%}",
                f"{ours / best:.0%}",
                f"{result['one_input'][dtype] / 1e9:.1f}",
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--output", type=Path, help="JSON file to write")
    options = parser.parse_args()
    before = _core.active_isa()
    with tempfile.TemporaryDirectory() as folder:
        results = {
            isa: measure(isa, options.threads, Path(folder)) for isa in _core.supported_isas()
        }
    _core.select_isa(before)
    commit = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    document = {
        "processor": cpuinfo.get_cpu_info()["brand_raw"],
        "n_threads": options.threads,
        "shape": [N_ROWS, N_ROWS, N_BINS],
        "versions": {
            "kernelcore": kernelcore.__version__,
            "numpy": np.__version__,
            "python": platform.python_version(),
            "compiler": _core.compiler(),
        },
        "commit": commit.stdout.strip(),
        "results": results,
    }
    if options.output:
        options.output.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    table = Table(
        columns=(
            *("set", "type", "min + add", "best way", "kernel"),
            *("share", "share of best", "one input"),
        ),
        rows=tuple(rows(results)),
        n_labels=2,
        caption=(
            f"G elements/s, {options.threads} thread(s), {N_ROWS} x {N_ROWS} rows of {N_BINS} "
            f"bins, {document['processor']}"
        ),
    )
    print(table.to_markdown())
    for isa, result in results.items():
        peaks = result["peaks"]
        print(
            f"{isa}: {peaks['fma']['float32'] / 1e9:.0f} G multiply-adds/s in float32, "
            f"{peaks['fma']['float64'] / 1e9:.0f} in float64, "
            f"{peaks['read_bytes'] / 1e9:.0f} GB/s read"
        )


if __name__ == "__main__":
    main()
