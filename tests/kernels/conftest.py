"""Where there is no GPU, Numba simulates one, if it is told so before it is imported."""

import doctest
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

SIMULATED = "NUMBA_ENABLE_CUDASIM"

if os.environ.get(SIMULATED):
    # A thread of Python's for each of CUDA's: barriers wait until all have had their turn.
    sys.setswitchinterval(1e-4)
    from numba.cuda.simulator.kernelapi import FakeCUDAShared

    def allocate_once(self, shape, dtype):
        # Numba's function looks for the array of a line and then makes it, without a lock:
        # two threads of a block could get arrays of their own.
        frame = sys._getframe(1)
        line = frame.f_code.co_filename, frame.f_lineno
        return self._allocations.setdefault(line, np.empty(shape, dtype))

    FakeCUDAShared.array = allocate_once


@pytest.fixture
def run_simulated():
    """Run files of tests in a Python of their own; its report is that of a failure."""
    pytest.importorskip("numba", reason="CUDA kernels need Numba: extra jit")

    def run(*names):
        files = [str(Path(__file__).parent / "simulated" / name) for name in names]
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-n",
            "0",
            "-p",
            "no:cacheprovider",
            *files,
        ]
        done = subprocess.run(
            command,
            env=os.environ | {SIMULATED: "1"},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        if done.returncode != 0:
            pytest.fail(done.stdout + done.stderr, pytrace=False)

    return run


@pytest.fixture
def compile_for_gpu(monkeypatch, tmp_path):
    """Compile a kernel as for an H100, which takes the CUDA toolkit but no GPU.

    Nothing may lie in memory of a thread's own: such an array was not kept in registers.
    """
    cuda = pytest.importorskip("numba.cuda", reason="CUDA kernels need Numba: extra jit")
    nvvm = pytest.importorskip("numba.cuda.cudadrv.nvvm")
    if not nvvm.is_available():
        pytest.skip("libNVVM, of the CUDA toolkit, is not here")
    device = SimpleNamespace(compute_capability=(9, 0))
    monkeypatch.setattr("numba.cuda.dispatcher.get_current_device", lambda: device)

    def compile_kernel(kernel, signature, *, most_registers):
        code, _ = cuda.compile_ptx(kernel.py_func, signature, cc=device.compute_capability)
        assert ".local" not in code
        if assembler := shutil.which("ptxas"):
            file = tmp_path / "kernel.ptx"
            file.write_text(code)
            command = [assembler, "-v", "-arch=sm_90", str(file), "-o", str(tmp_path / "out")]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            report = done.stdout + done.stderr
            assert "0 bytes spill stores" in report
            assert int(re.search(r"Used (\d+) registers", report)[1]) <= most_registers
        return code

    return compile_kernel


@pytest.fixture
def run_examples():
    """Run the examples of a docstring that are skipped where there is no GPU."""

    def run(function):
        (test,) = doctest.DocTestFinder().find(function, globs={})
        for example in test.examples:
            example.options.pop(doctest.SKIP, None)
        outcome = doctest.DocTestRunner().run(test)
        assert outcome.attempted > 1
        assert outcome.failed == 0

    return run
