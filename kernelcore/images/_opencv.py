"""OpenCV on the calling thread and without messages of its own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from types import ModuleType

from kernelcore import _extras
from kernelcore.images._shared import SharedSetting

_SILENT = 0  # level of OpenCV's log


def _one_thread(undo: ExitStack) -> None:
    cv2 = _extras.require("cv2")
    undo.callback(cv2.setNumThreads, cv2.getNumThreads())
    cv2.setNumThreads(1)


def _silent(undo: ExitStack) -> None:
    log = log_settings()
    undo.callback(log.setLogLevel, log.getLogLevel())
    log.setLogLevel(_SILENT)


# What a decoder complains of is in our error messages.
silent_opencv = SharedSetting(_silent)
_on_one_thread = SharedSetting(_one_thread)


@contextmanager
def one_opencv_thread() -> Iterator[None]:
    """Keep OpenCV to the calling thread, as images are what runs side by side, and silent."""
    with _on_one_thread(), silent_opencv():
        yield


def log_settings() -> ModuleType:
    """Find the functions that get and set OpenCV's log level: version 5 moved them."""
    cv2 = _extras.require("cv2")
    module: ModuleType = getattr(cv2.utils, "logging", cv2)
    return module
