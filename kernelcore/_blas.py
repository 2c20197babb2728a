"""BLAS on one thread: the only setting under which its results are the same everywhere.

OpenBLAS and MKL cut a product differently for every number of threads, and the pieces round
differently. Where a result has to be the same bit for bit, the calls stand in
`one_blas_thread`; independent calls run side by side in the pool of `one_blas_thread_each`.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from threadpoolctl import threadpool_limits

# With some builds of BLAS the limit is the process's, with others the thread's. So one thread
# at a time sets it, and the threads that it starts meanwhile inherit or repeat it.
_setter = threading.Lock()
_here = threading.local()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Keep BLAS and LAPACK to one thread; another thread that wants the same waits."""
    if getattr(_here, "limited", False):
        yield
        return
    with _setter, threadpool_limits(1, user_api="blas"):
        _here.limited = True
        try:
            yield
        finally:
            _here.limited = False


@contextmanager
def one_blas_thread_each(n_threads: int) -> Iterator[ThreadPoolExecutor]:
    """Give a pool of threads that call BLAS on one thread each."""
    with (
        one_blas_thread(),
        ThreadPoolExecutor(n_threads, initializer=_repeat_the_limit) as pool,
    ):
        yield pool


def _repeat_the_limit() -> None:
    threadpool_limits(1, user_api="blas")  # for as long as this thread of the pool lives
    _here.limited = True
