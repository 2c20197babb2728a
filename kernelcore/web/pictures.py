"""Pictures of photos for browsers, and a cache of limited size."""

from __future__ import annotations

import math
import threading
import time
from collections import OrderedDict
from typing import Generic, NamedTuple, TypeVar

from kernelcore import _extras
from kernelcore._threads import available_cores, one_opencv_thread
from kernelcore.images import read_image
from kernelcore.images.read import RGBImage, limit_side
from kernelcore.search import Collection

SIDES = {"small": 480, "large": 1600}
"""Longest side in pixels of each size of picture."""
_QUALITY = 85
_KEPT_BYTES = 2**27

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


class Recent(Generic[_Key, _Value]):
    """Values by keys; those unused for longest are dropped once all together are too large.

    Threads may share it.

    Parameters
    ----------
    most : int
        Largest sum of the sizes of all values.
    seconds : float, optional
        A value that was not used for so long is dropped too.

    Examples
    --------
    >>> from kernelcore.web.pictures import Recent
    >>> recent = Recent(most=10)
    >>> for name in ("a", "b", "c"):
    ...     recent.put(name, name.upper(), size=4)
    >>> recent.get("a"), recent.get("c")
    (None, 'C')
    """

    def __init__(self, most: int, *, seconds: float = math.inf) -> None:
        self._most, self._seconds = most, seconds
        # Value, size and time of the last use, in the order of these times.
        self._kept: OrderedDict[_Key, tuple[_Value, int, float]] = OrderedDict()
        self._size = 0
        self._lock = threading.Lock()

    def get(self, key: _Key) -> _Value | None:
        """Return the value of a key, or None if it was dropped or never put."""
        with self._lock:
            self._drop()
            if key not in self._kept:
                return None
            value, size, _ = self._kept.pop(key)
            self._kept[key] = value, size, time.monotonic()
            return value

    def put(self, key: _Key, value: _Value, *, size: int) -> None:
        """Keep a value of this size; one that is larger than all may be is not kept."""
        with self._lock:
            if key in self._kept:
                self._size -= self._kept.pop(key)[1]
            if size <= self._most:
                self._kept[key] = value, size, time.monotonic()
                self._size += size
            self._drop()

    def _drop(self) -> None:
        oldest_allowed = time.monotonic() - self._seconds
        while self._kept:
            first, (_, size, used) = next(iter(self._kept.items()))
            if self._size <= self._most and used >= oldest_allowed:
                return
            del self._kept[first]
            self._size -= size


class Picture(NamedTuple):
    """A JPEG file without metadata, and its size in pixels."""

    jpeg: bytes
    width: int
    height: int


def draw(pixels: RGBImage, size: str) -> Picture:
    """Make the picture of a photo.

    Parameters
    ----------
    pixels : ndarray of uint8, shape (height, width, 3)
    size : str
        A key of `SIDES`. A photo that is smaller keeps its size.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelcore.web.pictures import draw
    >>> draw(np.zeros((1200, 960, 3), np.uint8), "small")[1:]
    (384, 480)
    """
    cv2 = _extras.require("cv2")
    shrunk = limit_side(pixels, SIDES[size])
    options = (cv2.IMWRITE_JPEG_QUALITY, _QUALITY)
    _, jpeg = cv2.imencode(".jpg", cv2.cvtColor(shrunk, cv2.COLOR_RGB2BGR), options)
    return Picture(jpeg.tobytes(), shrunk.shape[1], shrunk.shape[0])


class Pictures(Recent[str, Picture]):
    """Pictures of the photos of a collection; those used last are kept in memory."""

    def __init__(self, collection: Collection) -> None:
        super().__init__(_KEPT_BYTES)
        self._collection = collection
        # Half of the cores are left to queries; and a photo may take a gigabyte while it is
        # decoded.
        self._decoding = threading.BoundedSemaphore(max(1, available_cores() // 2))

    def of(self, number: int, size: str) -> Picture:
        """Return the picture of a photo.

        Raises
        ------
        KeyError
            If there is no photo of this number, or no such size.
        OSError, UnreadableImageError
            If its file is gone or damaged.
        """
        key = f"{self._collection.digest(number)}-{SIDES[size]}"
        path = self._collection.path(number)
        picture = self.get(key)
        if picture is None:
            with self._decoding, one_opencv_thread():
                picture = draw(read_image(path), size)
            self.put(key, picture, size=len(picture.jpeg))
        return picture
