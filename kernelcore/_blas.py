"""BLAS on one thread: the only setting under which its results are the same everywhere.

OpenBLAS and MKL cut a product differently for every number of threads, and the pieces round
differently. Where a result has to be the same bit for bit, the calls stand in
`one_blas_thread`; what is left to run side by side is independent calls.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from threadpoolctl import threadpool_limits

_lock = threading.Lock()
_limits: list[threadpool_limits] = []
_n_users = 0


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Keep BLAS and LAPACK to one thread in this process until the last user has left.

    The setting is the process's, not the thread's: it must outlive whichever of several
    overlapping users came first, so users are counted.
    """
    global _n_users  # noqa: PLW0603
    with _lock:
        if _n_users == 0:
            _limits.append(threadpool_limits(1, user_api="blas"))
        _n_users += 1
    try:
        yield
    finally:
        with _lock:
            _n_users -= 1
            if _n_users == 0:
                _limits.pop().restore_original_limits()
