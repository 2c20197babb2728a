"""OpenCV on the calling thread and without messages of its own."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from types import ModuleType

from kernelcore import _extras

_SILENT = 0  # level of OpenCV's log

_lock = threading.Lock()
_settings = ExitStack()
_n_users = 0


@contextmanager
def one_opencv_thread() -> Iterator[None]:
    """Keep OpenCV to the calling thread and silence its log until the last user has left.

    Images are what runs side by side; what a decoder complains of is in our error messages.
    Both settings are the process's, so users are counted.
    """
    global _n_users  # noqa: PLW0603
    with _lock:
        if _n_users == 0:
            _enter(_settings)
        _n_users += 1
    try:
        yield
    finally:
        with _lock:
            _n_users -= 1
            if _n_users == 0:
                _settings.close()


def _enter(settings: ExitStack) -> None:
    cv2 = _extras.require("cv2")
    log = log_settings()
    settings.callback(cv2.setNumThreads, cv2.getNumThreads())
    settings.callback(log.setLogLevel, log.getLogLevel())
    cv2.setNumThreads(1)
    log.setLogLevel(_SILENT)


def log_settings() -> ModuleType:
    """Find the functions that get and set OpenCV's log level: version 5 moved them."""
    cv2 = _extras.require("cv2")
    module: ModuleType = getattr(cv2.utils, "logging", cv2)
    return module
