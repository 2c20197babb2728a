"""Threads change nothing but the time: same bits, also after a fork, and Ctrl-C works."""

import multiprocessing
import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest

from kernelcore import _core, _parallel
from kernelcore.kernels import histogram_intersection

X = np.random.default_rng(0).random((301, 777), np.float32)


def digest() -> bytes:
    return histogram_intersection(X, n_threads=2).tobytes()


@pytest.mark.parametrize("n_threads", [2, 3, 7, 64])
def test_same_bits_for_every_number_of_threads(n_threads):
    one = histogram_intersection(X, X[:100], n_threads=1)
    assert histogram_intersection(X, X[:100], n_threads=n_threads).tobytes() == one.tobytes()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_same_bits_in_a_forked_child():
    before = digest()
    with multiprocessing.get_context("fork").Pool(1) as pool:
        assert pool.apply(digest) == before


def test_n_threads_none_follows_the_environment(monkeypatch):
    monkeypatch.delenv("KERNELCORE_NUM_THREADS", raising=False)
    assert _parallel.resolve_n_threads(None) == _parallel.available_cores()
    monkeypatch.setenv("KERNELCORE_NUM_THREADS", "3")
    assert _parallel.resolve_n_threads(None) == 3
    assert _parallel.resolve_n_threads(5) == 5
    monkeypatch.setenv("KERNELCORE_NUM_THREADS", "zero")
    with pytest.raises(ValueError, match=r"KERNELCORE_NUM_THREADS must be .*'zero'"):
        _parallel.resolve_n_threads(None)


@pytest.mark.parametrize(
    ("value", "error"), [(0, ValueError), (1.5, TypeError), (True, TypeError)]
)
def test_bad_n_threads(value, error):
    with pytest.raises(error, match="n_threads must be an integer"):
        histogram_intersection(X, n_threads=value)


@pytest.mark.skipif(os.name == "nt", reason="POSIX signals")
@pytest.mark.parametrize("n_threads", [1, 2])
def test_ctrl_c_stops_a_long_call(n_threads):
    script = f"""
        import os, signal, threading, time
        import numpy as np
        from kernelcore.kernels import histogram_intersection
        X = np.ones((6000, 8000), np.float32)
        small = histogram_intersection(X[:3])
        threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
        start = time.perf_counter()
        try:
            histogram_intersection(X, n_threads={n_threads})
        except KeyboardInterrupt:
            print(time.perf_counter() - start)
        assert (histogram_intersection(X[:3]) == small).all()
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert float(done.stdout) < 1.5, done.stdout  # the signal comes after half a second


@pytest.mark.parametrize("isa", _core.supported_isas())
def test_environment_forces_the_instruction_set(isa):
    code = "import kernelcore; print(kernelcore.show_config()['instruction_set'])"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "KERNELCORE_ISA": isa},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == isa


def test_wrong_instruction_set_is_one_clear_error():
    done = subprocess.run(
        [sys.executable, "-c", "import kernelcore"],
        env={**os.environ, "KERNELCORE_ISA": "v9"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0
    assert "KERNELCORE_ISA: instruction set must be one of" in done.stderr
