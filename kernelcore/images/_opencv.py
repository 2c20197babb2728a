"""OpenCV on the calling thread and without messages of its own."""

from __future__ import annotations

from contextlib import ExitStack
from types import ModuleType

from kernelcore import _extras
from kernelcore.images._shared import SharedSetting

_SILENT = 0  # level of OpenCV's log


def _enter(undo: ExitStack) -> None:
    cv2 = _extras.require("cv2")
    log = log_settings()
    undo.callback(cv2.setNumThreads, cv2.getNumThreads())
    undo.callback(log.setLogLevel, log.getLogLevel())
    cv2.setNumThreads(1)
    log.setLogLevel(_SILENT)


# Images are what runs side by side; what a decoder complains of is in our error messages.
one_opencv_thread = SharedSetting(_enter)


def log_settings() -> ModuleType:
    """Find the functions that get and set OpenCV's log level: version 5 moved them."""
    cv2 = _extras.require("cv2")
    module: ModuleType = getattr(cv2.utils, "logging", cv2)
    return module
