import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.linalg  # noqa: F401  (the second BLAS, where numpy and scipy bring their own)
from programs import output_of
from threadpoolctl import threadpool_info, threadpool_limits

from kernelcore._threads import Limit, OneThread, in_threads, one_blas_thread


def n_blas_threads() -> set[int]:
    """Limits of the process; a library with one for each thread tells what any thread set."""
    libraries = [lib for lib in threadpool_info() if lib["user_api"] == "blas"]
    return {o["num_threads"] for o in libraries if o.get("threading_layer") != "openmp"}


class OpenMP:
    """A library with a limit for each thread, which tells the number that was set last."""

    def __init__(self):
        self.last, self.own = 2, threading.local()

    def get_num_threads(self):
        return self.last

    def set_num_threads(self, n):
        self.last = self.own.limit = n


@pytest.mark.parametrize("first_out", ["first in", "second in"])
def test_a_limit_for_each_thread_is_restored_in_each(monkeypatch, first_out):
    """Whichever thread leaves first, with or without another one inside."""
    library = OpenMP()
    limit = Limit(library.get_num_threads, library.set_num_threads, is_per_thread=True)
    one_blas_thread = OneThread(lambda: [limit])
    events = {name: threading.Event() for name in ("first in", "second in")}
    limits = []

    def work(name):
        with one_blas_thread():
            assert library.own.limit == 1
            events[f"{name} is in"].set()
            assert events[name].wait(10)
            assert library.own.limit == 1
        limits.append(library.own.limit)

    threads = {}
    for name in ("first in", "second in"):
        events[f"{name} is in"] = threading.Event()
        threads[name] = threading.Thread(target=work, args=(name,))
        threads[name].start()
        assert events[f"{name} is in"].wait(10)
    for name in sorted(threads, key=lambda name: name != first_out):
        events[name].set()
        threads[name].join(10)
    assert limits == [2, 2]
    assert library.last == 2


@pytest.fixture(autouse=True)
def two_threads():
    """Start from two threads of BLAS, and see that they are restored."""
    if not n_blas_threads():
        pytest.skip("no BLAS here that can be limited")
    with threadpool_limits(2, user_api="blas"):
        yield
        assert n_blas_threads() == {2}


def test_limits_and_restores_also_after_an_error():
    with one_blas_thread():
        assert n_blas_threads() == {1}
        with one_blas_thread():
            assert n_blas_threads() == {1}
        assert n_blas_threads() == {1}
    assert n_blas_threads() == {2}
    with pytest.raises(KeyError), one_blas_thread():
        raise KeyError
    assert n_blas_threads() == {2}


def test_a_short_call_does_not_wait_for_a_long_one():
    """The one that came first leaves first; the limit holds until the last one leaves."""
    seen, is_inside, may_leave = [], threading.Event(), threading.Event()

    def work():
        with one_blas_thread():
            is_inside.set()
            assert may_leave.wait(10)
            seen.append(n_blas_threads())

    long = threading.Thread(target=work)
    with one_blas_thread():
        long.start()
        assert is_inside.wait(10)
    assert long.is_alive()
    assert n_blas_threads() == {1}
    with one_blas_thread():
        assert n_blas_threads() == {1}
    with pytest.raises(KeyError), one_blas_thread():
        raise KeyError
    assert n_blas_threads() == {1}
    may_leave.set()
    long.join(10)
    assert seen == [{1}]
    assert n_blas_threads() == {2}


def test_many_threads_come_and_go():
    """None of them set the former limit, which threadpoolctl would let only that one change."""

    def work(k):
        for i in range(20):
            with one_blas_thread():
                if n_blas_threads() != {1}:
                    return False
                time.sleep((k * 7 + i) % 3 / 2000)
        return True

    with ThreadPoolExecutor(8) as executor:
        assert all(executor.map(work, range(8), timeout=30))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.parametrize("forker_is_inside", [False, True])
def test_a_fork_does_not_count_the_threads_that_it_lost(forker_is_inside):
    program = """
        import os, sys, threading
        import numpy, scipy.linalg
        from contextlib import ExitStack
        from threadpoolctl import threadpool_info, threadpool_limits
        from kernelcore._threads import one_blas_thread

        def limits():
            libraries = threadpool_info()
            return {lib["num_threads"] for lib in libraries if lib["user_api"] == "blas"}

        def stay():
            with one_blas_thread():
                inside.set()
                may_leave.wait(20)

        threadpool_limits(2, user_api="blas")
        inside, may_leave = threading.Event(), threading.Event()
        other = threading.Thread(target=stay)
        other.start()
        inside.wait(20)
        with ExitStack() as stack:
            if sys.argv[1] == "True":
                stack.enter_context(one_blas_thread())
            child = os.fork()
            if not child:
                with one_blas_thread():
                    assert limits() == {1}
                stack.close()
                os._exit(0 if limits() == {2} else 3)
            assert os.waitpid(child, 0)[1] == 0, "child"
        assert limits() == {1}
        may_leave.set()
        other.join()
        assert limits() == {2}
    """
    output_of(program, forker_is_inside, timeout=60)


def test_threads_that_each_stand_in_it_give_the_same_bits():
    """Threads that did not set the limit would fight for the cores, and round otherwise."""
    A = np.random.default_rng(0).normal(size=(300, 300))
    with one_blas_thread():
        expected = A @ A
    results = in_threads(
        lambda _: (A @ A, n_blas_threads()), range(8), 2, setting=one_blas_thread
    )
    for product, limit in results:
        assert product.tobytes() == expected.tobytes()
        assert limit == {1}


def test_a_library_that_comes_later_is_limited_too():
    script = """
        import numpy
        from threadpoolctl import threadpool_info
        from kernelcore._threads import one_blas_thread

        with one_blas_thread():
            pass
        import scipy.linalg  # with a BLAS of its own

        with one_blas_thread():
            limited = [lib for lib in threadpool_info() if lib["user_api"] == "blas"]
            print({lib["num_threads"] for lib in limited})
    """
    assert output_of(script, OPENBLAS_NUM_THREADS="2").strip() == "{1}"
