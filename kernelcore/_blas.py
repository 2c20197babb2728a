"""BLAS on one thread: the only setting under which its results are the same everywhere.

OpenBLAS and MKL cut a product differently for every number of threads, and the pieces round
differently. Where a result has to be the same bit for bit, the calls stand in
`one_blas_thread`; independent calls run side by side in the pool of `one_blas_thread_each`.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager

from threadpoolctl import ThreadpoolController

# With most builds of BLAS the limit is the process's, with some the thread's. So every thread
# sets it for itself, and the one that came first stays until the others have left: were it to
# restore the process's limit before, they would go on with more threads.
_changed = threading.Condition()
_controller: ThreadpoolController | None = None  # while a first thread is inside
_n_inside = 0
_here = threading.local()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Keep BLAS and LAPACK to one thread, in this thread at least."""
    global _controller, _n_inside  # noqa: PLW0603
    if getattr(_here, "limited", False):
        yield
        return
    with ExitStack() as limit:
        with _changed:
            is_first = _controller is None
            if _controller is None:
                _controller = ThreadpoolController()
            limit.enter_context(_controller.limit(limits=1, user_api="blas"))
            _n_inside += 1
        _here.limited = True
        try:
            yield
        finally:
            _here.limited = False
            with _changed:
                _n_inside -= 1
                _changed.notify_all()
                if is_first:
                    try:
                        _changed.wait_for(lambda: _n_inside == 0)
                    finally:
                        _controller = None
                        limit.close()


@contextmanager
def one_blas_thread_each(n_threads: int) -> Iterator[ThreadPoolExecutor]:
    """Give a pool of threads that call BLAS on one thread each."""
    with one_blas_thread():
        controller = ThreadpoolController()  # looked up here: while others import, it can hang

        def limit_this_thread() -> None:
            controller.limit(limits=1, user_api="blas")  # for as long as the thread lives
            _here.limited = True

        with ThreadPoolExecutor(n_threads, initializer=limit_this_thread) as pool:
            yield pool
