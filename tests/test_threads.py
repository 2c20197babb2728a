"""Threads change nothing but the time: same bits, also after a fork, and reports once each."""

import multiprocessing
import os
import signal
import threading

import numpy as np
import pytest
from programs import output_of
from refusals import refuses
from scipy.sparse import csr_array

from kernelcore import _core, _threads
from kernelcore.captions import EncodedCaptions
from kernelcore.kernels import histogram_intersection, tag_rank, word_assignment, word_sequence
from kernelcore.matching import linear_assignments, set_similarity

X = np.random.default_rng(0).random((301, 777), np.float32)


def forks(test):
    ignoring = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")(test)
    return pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")(ignoring)


def digest() -> bytes:
    return histogram_intersection(X, n_threads=2).tobytes()


@forks
def test_same_bits_in_a_forked_child():
    before = digest()
    with multiprocessing.get_context("fork").Pool(1) as pool:
        assert pool.apply(digest) == before


@forks
def test_a_fork_while_another_thread_computes_a_cached_property():
    begun, forked = threading.Event(), threading.Event()

    class Slow:
        @_threads.cached_property
        def value(self):
            begun.set()
            forked.wait(30)
            return 1

    thread = threading.Thread(target=lambda: Slow().value)
    thread.start()
    begun.wait(30)
    child = os.fork()
    if child == 0:
        signal.alarm(20)  # ends a process that waits for the lost thread
        forked.set()
        os._exit(0 if Slow().value == 1 else 1)
    _, status = os.waitpid(child, 0)
    forked.set()
    thread.join()
    assert status == 0


def test_n_threads_none_follows_the_environment(monkeypatch):
    monkeypatch.delenv("KERNELCORE_NUM_THREADS", raising=False)
    assert _threads.resolve_n_threads(None) == _threads.available_cores()
    monkeypatch.setenv("KERNELCORE_NUM_THREADS", "3")
    assert _threads.resolve_n_threads(None) == 3
    assert _threads.resolve_n_threads(5) == 5
    monkeypatch.setenv("KERNELCORE_NUM_THREADS", "zero")
    refuses(ValueError, "KERNELCORE_NUM_THREADS", _threads.resolve_n_threads, None)


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
def test_progress_ends_at_its_total_once_and_an_error_there_leaves_the_call(name, n_threads):
    def refuse_the_last(done, total):
        if done == total:
            raise LookupError

    with pytest.raises(LookupError):
        REPORTING_CALLS[name](n_threads=n_threads, progress=refuse_the_last)
    seen = []
    REPORTING_CALLS[name](n_threads=n_threads, progress=lambda *step: seen.append(step))
    (total,) = {total for _, total in seen}
    assert seen == sorted(seen)
    assert [done for done, _ in seen].count(total) == 1
    assert seen[-1] == (total, total)


@pytest.mark.parametrize("isa", _core.supported_isas())
def test_environment_forces_the_instruction_set(isa):
    code = "import kernelcore; print(kernelcore.show_config()['instruction_set'])"
    assert output_of(code, KERNELCORE_ISA=isa).strip() == isa


def test_wrong_instruction_set_is_one_clear_error():
    with pytest.raises(AssertionError, match=r"KERNELCORE_ISA.*v9"):
        output_of("import kernelcore", KERNELCORE_ISA="v9")
