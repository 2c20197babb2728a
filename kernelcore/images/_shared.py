"""Settings of the whole process that several users want changed at the same time."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager


class SharedSetting:
    """Changes a setting of the process for the first user, and back after the last has left.

    Parameters
    ----------
    enter : callable
        Makes the change, and leaves with the `ExitStack` that it is given how to undo it.
    """

    def __init__(self, enter: Callable[[ExitStack], None]) -> None:
        self._enter = enter
        self._lock = threading.Lock()
        self._undo = ExitStack()
        self._n_users = 0

    @contextmanager
    def __call__(self) -> Iterator[None]:
        """Keep the change for the length of a block."""
        with self._lock:
            if self._n_users == 0:
                self._enter(self._undo)
            self._n_users += 1
        try:
            yield
        finally:
            with self._lock:
                self._n_users -= 1
                if self._n_users == 0:
                    self._undo.close()
