import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.linalg  # noqa: F401  (the second BLAS, where numpy and scipy bring their own)
from threadpoolctl import threadpool_info, threadpool_limits

from kernelcore._blas import one_blas_thread, one_blas_thread_each


def n_blas_threads() -> set[int]:
    return {lib["num_threads"] for lib in threadpool_info() if lib["user_api"] == "blas"}


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


def test_the_first_thread_waits_for_the_others():
    second_is_inside, may_leave = threading.Event(), threading.Event()
    seen = []

    def second():
        with one_blas_thread():
            second_is_inside.set()
            may_leave.wait(10)
            seen.append(n_blas_threads())

    thread = threading.Thread(target=second)
    with one_blas_thread():
        thread.start()
        assert second_is_inside.wait(10)
        threading.Timer(0.1, may_leave.set).start()
    assert seen == [{1}]
    thread.join()


@pytest.mark.parametrize("pool", [ThreadPoolExecutor, one_blas_thread_each])
def test_a_pool_inside_does_not_block(pool):
    def work(_):
        with one_blas_thread():
            return n_blas_threads()

    with one_blas_thread(), pool(3) as executor:
        assert list(executor.map(work, range(20), timeout=30)) == [{1}] * 20


def test_pool_works_as_fast_as_it_should_after_a_lone_call():
    """Threads of the pool that did not inherit the limit would fight for the cores."""
    A = np.random.default_rng(0).normal(size=(300, 300))
    with one_blas_thread():
        expected = A @ A
    with one_blas_thread_each(2) as executor:
        for product, limit in executor.map(lambda _: (A @ A, n_blas_threads()), range(8)):
            assert product.tobytes() == expected.tobytes()
            assert limit == {1}
