"""Threads change nothing but the time: same bits, also after a fork, and Ctrl-C works."""

import json
import multiprocessing
import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest
from scipy.sparse import csr_array

from kernelcore import _core, _parallel
from kernelcore.captions import EncodedCaptions
from kernelcore.kernels import histogram_intersection, tag_rank, word_assignment, word_sequence
from kernelcore.matching import linear_assignments, set_similarity

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


LONG_CALLS = {
    "histogram_intersection": (
        "X = np.ones((4000, 8000), np.float32)",
        "histogram_intersection(X, n_threads=n)",
    ),
    "histogram_intersection of bytes": (
        "X = np.ones((8000, 16000), np.uint8)",
        "histogram_intersection(X, n_threads=n)",
    ),
    "histogram_intersection of sparse rows": (
        "X = csr_array(np.arange(4000 * 1500).reshape(4000, 1500) % 3 == 0, dtype=float)",
        "histogram_intersection(X, n_threads=n)",
    ),
    # One row of images and all columns were one task.
    "word_assignment": ("X = captions(8000, 5, 11, 500)", "word_assignment(X, n_threads=n)"),
    # A table for each word of one text and each of another: long links of few texts.
    "word_assignment of long texts": (
        "X = captions(8, 1, 3000, 300)",
        "word_assignment(X, word_kernel=SOFT[:300, :300], n_threads=n)",
    ),
    "word_sequence": (
        "X = captions(1500, 5, 40, 300)",
        "word_sequence(X, word_kernel=SOFT[:300, :300], max_length=4, n_threads=n)",
    ),
    "word_sequence of short subsequences": (
        "X = captions(4000, 5, 12, 900)",
        "word_sequence(X, word_kernel=SOFT, max_length=3, n_threads=n)",
    ),
    "word_sequence of exact matches": (
        "X = captions(6000, 5, 11, 30)",
        "word_sequence(X, max_length=3, n_threads=n)",
    ),
    "tag_rank": ("X = captions(9000, 5, 11, 90)", "tag_rank(X, n_threads=n)"),
    # The calling thread has the small problem, and then nothing to do but wait.
    "linear_assignments": (
        "C = hard(4000)",
        "linear_assignments([C, np.ones((2, 2))], n_threads=n)",
    ),
    "linear_assignments below a threshold": (
        "C = hard(4000)",
        "linear_assignments([C, np.ones((2, 2))], threshold=1e9, n_threads=n)",
    ),
    "set_similarity": (
        "S = -hard(4000)",
        "set_similarity(S, [0, 4000], [0, 4000], n_threads=n)",
    ),
}


DELAYS = {"word_sequence": 1.0}  # before, it prepares its tables


@pytest.fixture(scope="module")
def seconds_to_stop():
    """Seconds from Ctrl-C to the end of each of LONG_CALLS, on one thread and on two."""
    script = f"""
        import json, os, signal, sys, threading, time
        import numpy as np
        from scipy.sparse import csr_array
        from kernelcore.captions import EncodedCaptions
        from kernelcore.kernels import *
        from kernelcore.matching import *

        rng = np.random.default_rng(0)
        factors = rng.random((900, 4))
        SOFT = factors @ factors.T / 4

        def captions(n_images, per_image, n_words, n_symbols):
            n_captions = n_images * per_image
            return EncodedCaptions(
                rng.integers(0, n_symbols, n_captions * n_words).astype(np.int32),
                np.arange(n_captions + 1) * n_words,
                np.arange(n_images + 1) * per_image,
                np.tile(np.arange(per_image), n_images),
                n_symbols,
            )

        def hard(n):
            return np.add.outer(np.arange(float(n)), np.arange(float(n)) ** 2) ** 0.5

        sent = 0.0
        def interrupt():
            global sent
            sent = time.perf_counter()
            os.kill(os.getpid(), signal.SIGINT)

        def measure(run, n):
            timer = threading.Timer({DELAYS!r}.get(name, 0.4), interrupt)
            timer.start()
            over = False
            try:
                run(n)
                over = True
                timer.cancel()
                timer.join()
            except KeyboardInterrupt:
                if not over:
                    return time.perf_counter() - sent
            raise SystemExit(f"{{name}} was over before Ctrl-C")

        seconds = {{}}
        for name, (setup, call) in {LONG_CALLS!r}.items():
            exec(setup)
            run = eval("lambda n: " + call)
            seconds[name] = [measure(run, n) for n in (1, 2)]
            if max(seconds[name]) > 0.5:  # the machine may have been busy with something else
                seconds[name] = [measure(run, n) for n in (1, 2)]
        print(json.dumps(seconds))
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    return json.loads(done.stdout)


@pytest.mark.skipif(os.name == "nt", reason="POSIX signals")
@pytest.mark.parametrize("name", LONG_CALLS)
def test_ctrl_c_stops_every_compiled_function(name, seconds_to_stop):
    assert max(seconds_to_stop[name]) < 0.5


TEXTS = EncodedCaptions.from_lists(
    [[[(7 * i + k) % 5 for k in range(1 + i % 4)]] for i in range(150)], n_words=5
)
REPORTING_CALLS = {
    "histogram_intersection": lambda **run: histogram_intersection(X, **run),
    "histogram_intersection of sparse rows": lambda **run: histogram_intersection(
        csr_array(X[:, :50]), **run
    ),
    "word_assignment": lambda **run: word_assignment(TEXTS, **run),
    "word_sequence": lambda **run: word_sequence(TEXTS, word_kernel=np.eye(5), **run),
    "word_sequence of exact matches": lambda **run: word_sequence(TEXTS, **run),
    "tag_rank": lambda **run: tag_rank(TEXTS, **run),
    "linear_assignments": lambda **run: linear_assignments(
        X[:, :768].reshape(-1, 16, 16), **run
    ),
    "set_similarity": lambda **run: set_similarity(X, range(302), range(0, 778, 7), **run),
}


@pytest.mark.parametrize("n_threads", [1, 2, 5])
@pytest.mark.parametrize("name", REPORTING_CALLS)
def test_progress_ends_at_its_total_once(name, n_threads):
    seen = []
    REPORTING_CALLS[name](n_threads=n_threads, progress=lambda *step: seen.append(step))
    (total,) = {total for _, total in seen}
    assert seen == sorted(seen)
    assert [done for done, _ in seen].count(total) == 1
    assert seen[-1] == (total, total)


@pytest.mark.parametrize("n_threads", [1, 2, 5])
@pytest.mark.parametrize("name", REPORTING_CALLS)
def test_an_error_in_the_last_report_leaves_the_call(name, n_threads):
    def refuse(done, total):
        if done == total:
            raise LookupError

    with pytest.raises(LookupError):
        REPORTING_CALLS[name](n_threads=n_threads, progress=refuse)


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
