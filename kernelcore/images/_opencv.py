"""OpenCV on one thread and without log messages."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from types import ModuleType

from kernelcore import _extras


class SharedSetting:
    """A setting of the process that is changed while at least one user needs it.

    Parameters
    ----------
    enter : callable
        Makes the change, and pushes its undoing on the `ExitStack` that it is given.
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


_SILENT = 0  # level of OpenCV's log


def _one_thread(undo: ExitStack) -> None:
    cv2 = _extras.require("cv2")
    undo.callback(cv2.setNumThreads, cv2.getNumThreads())
    cv2.setNumThreads(1)


def _silent(undo: ExitStack) -> None:
    log = log_settings()
    undo.callback(log.setLogLevel, log.getLogLevel())
    log.setLogLevel(_SILENT)


# Our error messages have what decoders log.
silent_opencv = SharedSetting(_silent)
_on_one_thread = SharedSetting(_one_thread)


@contextmanager
def one_opencv_thread() -> Iterator[None]:
    """Keep OpenCV silent and on one thread: images run side by side."""
    with _on_one_thread(), silent_opencv():
        yield


def log_settings() -> ModuleType:
    """Find the functions that get and set OpenCV's log level: version 5 moved them."""
    cv2 = _extras.require("cv2")
    module: ModuleType = getattr(cv2.utils, "logging", cv2)
    return module
