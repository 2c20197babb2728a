"""Photos that browsers send: they are decoded in another process and kept for a while.

The process has limits of memory, time and files, so a file that harms a decoder harms nothing
else. It reads the file from stdin and writes a line of JSON and the pixels to stdout.
"""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from starlette.exceptions import HTTPException

import kernelcore
from kernelcore import _extras
from kernelcore.images import read
from kernelcore.images.read import RGBImage
from kernelcore.web.pictures import Recent

MOST_BYTES = 20_000_000
"""Largest file of a photo."""
MOST_PIXELS = read.DEFAULT_MAX_PIXELS
MOST_SECONDS = 20
"""Time to decode a photo."""
_LONGEST_SIDE = 2048  # pixels to which the longer side of a photo is shrunk
_MOST_MEMORY = 3 * 2**30
_LIMITS = {
    "RLIMIT_AS": _MOST_MEMORY,
    "RLIMIT_CPU": MOST_SECONDS,
    "RLIMIT_CORE": 0,
    "RLIMIT_FSIZE": 0,
    "RLIMIT_NOFILE": 3,  # those that are open: no file can be opened any more
}
_UNSAFE = {"status": 501, "reason": "this system cannot limit the process that would decode it"}
_PROGRAM = "from kernelcore.web.uploads import main; main()"
_HOME = Path(kernelcore.__file__).parents[1]  # from where a new Python finds this package
_ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
_MOST_ANSWER_BYTES = 3 * _LONGEST_SIDE**2 + 2**12
_waiting = threading.BoundedSemaphore(4)  # uploads that are decoded or wait for it
_decoding = threading.BoundedSemaphore(2)
_KEPT_BYTES = 2**27
_KEPT_SECONDS = 1800.0


class Uploads(Recent[str, RGBImage]):
    """Uploaded photos under random names, until half an hour after their last use."""

    def __init__(self) -> None:
        super().__init__(_KEPT_BYTES, seconds=_KEPT_SECONDS)

    def add(self, content: bytes) -> str:
        """Decode the file of a photo and return its name; see `decode` for errors."""
        if not _waiting.acquire(blocking=False):
            later = {"Retry-After": "5"}
            raise HTTPException(503, "Other photos are being read. Please try again.", later)
        try:
            with _decoding:
                pixels = decode(content)
        finally:
            _waiting.release()
        name = secrets.token_urlsafe(16)
        self.put(name, pixels, size=pixels.nbytes)
        return name


def decode(content: bytes) -> RGBImage:
    """Decode the file of a photo in another process, with limits on memory and time.

    Returns
    -------
    ndarray of uint8, shape (height, width, 3)
        RGB, shrunk to 2,048 pixels a side.

    Raises
    ------
    HTTPException
        If it is no photo, is damaged, or takes too much to decode.

    Examples
    --------
    >>> import cv2
    >>> import numpy as np
    >>> from kernelcore.web.uploads import decode
    >>> _, png = cv2.imencode(".png", np.array([[97, 98]], np.uint8))
    >>> decode(png.tobytes()).tolist()
    [[[97, 97, 97], [98, 98, 98]]]
    """
    about_line, _, pixels = _answer(content).partition(b"\n")
    try:
        about = json.loads(about_line)
        if "reason" not in about:
            shape = about["height"], about["width"], 3
            return np.frombuffer(pixels, np.uint8).reshape(shape)
    except (ValueError, KeyError):  # the decoder was ended by a limit, or crashed
        about = {"status": 422, "reason": "to decode it takes too much memory or time"}
    raise HTTPException(about["status"], f"The reason: {about['reason']}.")


def _answer(content: bytes) -> bytes:
    """Return the output of the decoder for a file; less than all where it is ended."""
    with subprocess.Popen(
        [sys.executable, "-c", _PROGRAM],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=_HOME,
        env={**os.environ, **_ONE_THREAD},
    ) as decoder:
        assert decoder.stdin is not None
        assert decoder.stdout is not None
        end = threading.Timer(MOST_SECONDS, decoder.kill)
        end.start()
        try:
            with suppress(BrokenPipeError):
                decoder.stdin.write(content)
            with suppress(BrokenPipeError):
                decoder.stdin.close()
            return decoder.stdout.read(_MOST_ANSWER_BYTES)
        finally:
            end.cancel()
            decoder.kill()


def main() -> None:
    """Decode the file on stdin, in a process of its own."""
    for module in ("cv2", "PIL.ImageOps", "PIL.WebPImagePlugin"):  # while files can be opened
        _extras.require(module)
    _extras.require("PIL.Image").preinit()
    about, pixels = _UNSAFE, b""
    if _limit_this_process():
        about, pixels = answer(sys.stdin.buffer.read())
    sys.stdout.buffer.write(json.dumps(about).encode() + b"\n" + pixels)


def answer(content: bytes) -> tuple[dict[str, Any], bytes]:
    """Decode a file in this process.

    Returns
    -------
    about : dict
        Height and width of the pixels; for a file that cannot be used the reason, and the
        status of HTTP that fits it.
    pixels : bytes
        RGB, row by row.
    """
    try:
        pixels = read.decode(content, MOST_PIXELS, read.WEB_FORMATS)
        pixels = read.limit_side(pixels, _LONGEST_SIDE)
    except read.DecodeError as error:
        reason = str(error)
        if error.status == 413:
            reason = f"it has more than {MOST_PIXELS // 2**20} megapixels"
        return {"status": error.status, "reason": reason}, b""
    except MemoryError:
        return {"status": 422, "reason": "to decode it takes too much memory"}, b""
    return {"height": pixels.shape[0], "width": pixels.shape[1]}, pixels.tobytes()


def _limit_this_process() -> bool:
    """Limit memory, time and files of this process for good; False where nothing can."""
    try:
        import resource
    except ImportError:  # Windows
        return False
    for name, most in _LIMITS.items():
        kind = getattr(resource, name)
        _, hard = resource.getrlimit(kind)
        allowed = most if hard == resource.RLIM_INFINITY else min(most, hard)
        with suppress(OSError, ValueError):  # some systems do not know every limit
            resource.setrlimit(kind, (allowed, allowed))
    return True
