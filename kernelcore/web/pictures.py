"""Small and large pictures of photos, kept in memory and in a folder."""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from kernelcore import _extras
from kernelcore._store import load_tensors, make_folder, save_tensors
from kernelcore._threads import available_cores, one_opencv_thread
from kernelcore.images import UnreadableImageError, read_image
from kernelcore.images.read import RGBImage, limit_side
from kernelcore.web.recent import Recent

if TYPE_CHECKING:
    from kernelcore.search import Collection

SIDES = {"small": 480, "large": 1600}
"""Longest side in pixels of each size of picture."""
GONE = (KeyError, OSError, UnreadableImageError)
"""Errors of a photo that has left the collection, or whose file has left the folder."""
_QUALITY = 85
_KEPT_BYTES = 2**27
_KIND = "picture of a photo"
_UNUSABLE = (OSError, ValueError, TypeError, KeyError)  # a file that is missing or damaged


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


class Pictures:
    """Pictures of the photos of a collection.

    Parameters
    ----------
    collection : Collection
    folder : path, optional
        Keeps pictures by the content of their photos. It is made if missing.
    """

    def __init__(
        self, collection: Collection, folder: str | os.PathLike[str] | None = None
    ) -> None:
        self._collection = collection
        self._folder = None if folder is None else Path(folder).absolute()
        if self._folder is not None:
            make_folder(self._folder)
        self._recent: Recent[str, Picture] = Recent(_KEPT_BYTES)
        # Half of the cores are left to queries; and a photo may take a gigabyte while it is
        # decoded.
        self._decoding = threading.BoundedSemaphore(max(1, available_cores() // 2))

    def of(self, number: int, size: str) -> Picture:
        """Return the picture of a photo.

        Raises
        ------
        KeyError
            If there is no photo of this number.
        OSError, UnreadableImageError
            If its file is gone or damaged.
        """
        path, key = self._collection.path(number), f"{self._collection.digest(number)}-{size}"
        picture = self._recent.get(key)
        if picture is None:
            picture = self._load(key)
            if picture is None:
                with self._decoding, one_opencv_thread():
                    picture = draw(read_image(path), size)
                self._save(key, picture)
            self._recent.put(key, picture, size=len(picture.jpeg))
        return picture

    def _load(self, key: str) -> Picture | None:
        if self._folder is None:
            return None
        try:
            tensors, about = load_tensors(_file(self._folder, key), _KIND)
            return Picture(tensors["jpeg"].tobytes(), about["width"], about["height"])
        except _UNUSABLE:
            return None

    def _save(self, key: str, picture: Picture) -> None:
        if self._folder is None:
            return
        file = _file(self._folder, key)
        about = {"width": picture.width, "height": picture.height}
        with suppress(OSError):  # a full disk, say: the picture is shown all the same
            make_folder(file.parent)
            jpeg = np.frombuffer(picture.jpeg, np.uint8)
            save_tensors(file, _KIND, {"jpeg": jpeg}, about, one_of_many=True)


def _file(folder: Path, key: str) -> Path:
    return folder / key[:2] / f"{key}.safetensors"
