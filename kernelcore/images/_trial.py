"""The first run of an ONNX file, in a child process.

OpenCV trusts such files. Most damage makes it raise an error, but some ends the process.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

from kernelcore._files import digest

_SECONDS = 120.0
_SCRIPT = """
import sys
sys.path[:] = filter(None, sys.path)  # modules of the current folder are not ours
import json
import cv2, numpy
path, engine, outputs, shape = json.loads(sys.argv[1])
cv2.setNumThreads(1)
network = cv2.dnn.readNetFromONNX(path, **engine)
if shape:
    network.setInput(numpy.zeros(shape, numpy.float32))
    network.forward(outputs)
"""

_survived: set[str] = set()
_lock = threading.Lock()


def check_runs(
    path: Path,
    engine: Mapping[str, int],
    outputs: Sequence[str] = (),
    shape: Sequence[int] = (),
) -> None:
    """Raise a ValueError if reading an ONNX file ends the process, or running it does.

    An error that OpenCV reports itself is left to the caller, who will meet it again. A file
    is tried once by each process, for each shape of a photo.

    Parameters
    ----------
    path : Path
    engine : mapping
        Options of OpenCV's reader.
    outputs : sequence of str
        Layers to compute.
    shape : sequence of int
        Shape of an input of zeros; without it the file is only read.
    """
    if not sys.executable:  # Python is part of another program: nothing can be started
        return
    task = json.dumps([os.fspath(path), dict(engine), list(outputs), list(shape)])
    one_photo = json.dumps([dict(engine), list(outputs), list(shape[1:])])
    with _lock:
        key = digest(one_photo.encode(), path.read_bytes())
        if key in _survived:
            return
        try:
            trial = subprocess.run(
                [sys.executable, "-c", _SCRIPT, task],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                timeout=_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise ValueError(
                f"{path} is damaged or too large: OpenCV took longer than {_SECONDS:g} s"
            ) from None
        if trial.returncode < 0:
            raise ValueError(
                f"{path} is damaged or truncated: OpenCV ends with signal {-trial.returncode}"
            )
        _survived.add(key)
