import re
import subprocess
import sys

import numpy as np
import pytest

from kernelcore._extras import MissingExtraError
from kernelcore.kernels.cuda import histogram_intersection

ONES = np.ones((2, 2))


def test_without_numba(monkeypatch):
    for module in ("numba", "numba.cuda"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtraError, match=r"kernelcore\[jit\].*does the same .* the CPU"):
        histogram_intersection(ONES)


@pytest.mark.parametrize(
    ("trouble", "told"),
    [
        ("Error at driver init:\n  no device", "Error at driver init: no device"),
        (None, "libNVVM was not found"),
    ],
)
def test_without_a_gpu(monkeypatch, trouble, told):
    cuda = pytest.importorskip("numba.cuda", reason="CUDA kernels need Numba: extra jit")
    monkeypatch.setattr(cuda, "is_available", lambda: False)
    monkeypatch.setattr(cuda, "cuda_error", lambda: trouble)
    elsewhere = "kernelcore.kernels.histogram_intersection does the same work on the CPU"
    with pytest.raises(RuntimeError, match=f"an NVIDIA GPU.*: {told}; {elsewhere}"):
        histogram_intersection(ONES)


def test_numba_is_imported_by_those_who_use_it():
    code = "import sys, kernelcore.kernels.cuda; print('numba' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "False"


@pytest.mark.parametrize(
    ("dtype", "real", "wide", "out"),
    [
        (np.float32, np.float32, np.float64, np.float32),
        (np.float64, np.float64, np.float64, np.float64),
        (np.uint8, np.float32, np.uint64, np.uint64),
    ],
)
def test_what_a_gpu_runs(compile_for_gpu, dtype, real, wide, out):
    """Types are as meant, sums stay in registers, and two blocks fit a multiprocessor."""
    from numba import boolean, from_dtype

    from kernelcore.kernels.cuda._intersection_kernel import BLOCKS, intersection_kernels

    X, sums, K = (
        from_dtype(np.dtype(kind))[layout]
        for kind, layout in (
            (dtype, (slice(None), slice(None, None, 1))),
            (wide, slice(None, None, 1)),
            (out, (slice(None), slice(None, None, 1))),
        )
    )
    fill, unpack = intersection_kernels(real, wide, BLOCKS[real])
    code = compile_for_gpu(fill, (X, X, boolean, sums), most_registers=128)
    minima = re.findall(r"\bmin\.f(\d+)", code)
    assert set(minima) == {str(8 * np.dtype(real).itemsize)}
    assert len(minima) % BLOCKS[real].outputs ** 2 == 0
    compile_for_gpu(unpack, (sums, boolean, K), most_registers=128)
