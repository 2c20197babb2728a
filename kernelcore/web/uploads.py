"""Photos that browsers send: they are decoded in another process and kept for a while."""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

import numpy as np

import kernelcore
from kernelcore.images.read import RGBImage
from kernelcore.web.recent import Recent

MOST_BYTES = 20_000_000
"""Largest file of a photo."""
LONGEST_SIDE = 2048
"""Pixels to which the longer side of a photo is shrunk."""
MOST_SECONDS = 20
"""Time to decode a photo."""
_PROGRAM = "kernelcore.web._decode"
_HOME = Path(kernelcore.__file__).parents[1]  # from where a new Python finds this package
_ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
_MOST_ANSWER_BYTES = 3 * LONGEST_SIDE**2 + 2**12
_N_DECODERS = 2
_KEPT_BYTES = 2**27
_KEPT_SECONDS = 1800.0


class UnusablePhotoError(ValueError):
    """A file that is not the photo it should be; the message says why.

    Attributes
    ----------
    status : int
        The status of HTTP that fits it.
    """

    def __init__(self, reason: str, status: int = 422) -> None:
        super().__init__(reason)
        self.status = status


def decode(content: bytes) -> RGBImage:
    """Decode the file of a photo in another process, with limits on memory and time.

    Returns
    -------
    ndarray of uint8, shape (height, width, 3)
        RGB, shrunk to 2,048 pixels a side.

    Raises
    ------
    UnusablePhotoError
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
        if "reason" in about:
            raise UnusablePhotoError(about["reason"], about["status"])
        shape = about["height"], about["width"], 3
        return np.frombuffer(pixels, np.uint8).reshape(shape)
    except UnusablePhotoError:
        raise
    except (ValueError, KeyError):  # the decoder was ended by a limit, or crashed
        raise UnusablePhotoError("to decode it takes too much memory or time") from None


def _answer(content: bytes) -> bytes:
    """Return what the decoder says about a file; less than all where it is ended."""
    with subprocess.Popen(
        [sys.executable, "-m", _PROGRAM],
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


class Uploads:
    """Uploaded photos under random names, until half an hour after their last use."""

    def __init__(self) -> None:
        self._recent: Recent[str, RGBImage] = Recent(_KEPT_BYTES, seconds=_KEPT_SECONDS)
        self._decoders = threading.BoundedSemaphore(_N_DECODERS)

    def add(self, content: bytes) -> str:
        """Decode the file of a photo and return the name that it gets.

        Raises
        ------
        UnusablePhotoError
            If it cannot be decoded.
        """
        with self._decoders:
            pixels = decode(content)
        name = secrets.token_urlsafe(16)
        self._recent.put(name, pixels, size=pixels.nbytes)
        return name

    def get(self, name: str) -> RGBImage | None:
        """Return the pixels of an uploaded photo, None if it is not kept any more."""
        return self._recent.get(name)
