"""Context manager that runs BLAS on one thread, so that results do not depend on the machine.

OpenBLAS and MKL cut a product differently for every number of threads, and the pieces round
differently. Where a result has to be the same bit for bit, the calls stand in
`one_blas_thread`; independent calls run side by side in threads that each stand in it.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from threadpoolctl import ThreadpoolController

# With most builds of BLAS the limit is the process's: the first thread sets it and the last one
# out restores it, whichever that is, so that none waits for another. OpenBLAS over OpenMP has a
# limit for each thread, which every thread sets and restores for itself. But it tells the last
# number that any thread set, so what is restored is the limit before the first thread came.
_lock = threading.Lock()
_libraries: list[Any] = []
_n_modules = 0  # that were imported when `_libraries` were found
_before: list[int] = []  # limits of `_libraries` before the first thread came
_n_inside = 0
_here = threading.local()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit BLAS and LAPACK to one thread, at least for calls from this thread.

    It waits for no other thread. The limit of the process is restored when the last thread
    leaves, which need not be the first that entered.
    """
    if getattr(_here, "limited", False):
        yield
        return
    _enter()
    _here.limited = True
    try:
        yield
    finally:
        _here.limited = False
        _leave()


def _enter() -> None:
    """Count this thread, and limit its calls."""
    global _before, _n_inside  # noqa: PLW0603
    with _lock:
        if not _before:
            _find_libraries()
            _before = [library.get_num_threads() for library in _libraries]
        _n_inside += 1
        for library in _libraries:
            _limit(library, 1)


def _find_libraries() -> None:
    """Search for libraries again if modules were imported since the last search.

    The search takes milliseconds.
    """
    global _libraries, _n_modules  # noqa: PLW0603
    if len(sys.modules) != _n_modules:
        every = ThreadpoolController().lib_controllers
        _libraries = [library for library in every if library.user_api == "blas"]
        _n_modules = len(sys.modules)


def _leave() -> None:
    """Stop counting this thread; restore limits of its own, and all if it is the last."""
    global _before, _n_inside  # noqa: PLW0603
    with _lock:
        _n_inside -= 1
        for library, before in zip(_libraries, _before, strict=True):
            if _n_inside == 0 or _is_per_thread(library):
                _limit(library, before)
        if _n_inside == 0:
            _before = []


def _limit(library: Any, n_threads: int) -> None:
    """Set the limit of a library from any thread.

    From version 3.7 on, threadpoolctl lets only the first thread change the limit of the
    process. Here a later thread may be the last to leave.
    """
    release = getattr(library, "clear_controlling_thread", _nothing)
    release(force=True)
    library.set_num_threads(n_threads)
    release(force=True)


def _nothing(*, force: bool) -> None:
    """Replace a method that older versions of threadpoolctl lack."""


def _is_per_thread(library: Any) -> bool:
    """Whether a library has a limit for each thread."""
    layer: str = library.info().get("threading_layer", "")
    return layer == "openmp" and str(library.internal_api) == "openblas"


def _forget_other_threads() -> None:
    """Reset the counts after a fork, when only this thread is left."""
    global _lock, _n_inside  # noqa: PLW0603
    _lock = threading.Lock()
    _n_inside = int(getattr(_here, "limited", False))


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_other_threads)
