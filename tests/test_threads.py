"""Threads change nothing but the time: same bits, also after a fork, and reports once each."""

import os
import signal
import threading
from functools import partial

import numpy as np
import pytest
from programs import output_of
from refusals import refuses

from kernelcore import _core, _threads
from kernelcore.matching import linear_assignments, set_similarity

X = np.random.default_rng(0).random((301, 777), np.float32)


def forks(test):
    ignoring = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")(test)
    return pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")(ignoring)


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


REPORTING_CALLS = {
    "linear_assignments": partial(linear_assignments, X[:, :768].reshape(-1, 16, 16)),
    "set_similarity": partial(set_similarity, X, range(302), range(0, 778, 7)),
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
