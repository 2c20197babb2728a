"""Photos as their users hold them: files, bytes, pixels, and images of Pillow."""

from __future__ import annotations

import hashlib
import math
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeGuard, overload

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from PIL.Image import Image

Source: TypeAlias = "bytes | npt.NDArray[np.uint8] | Image | Callable[[], Any]"
"""A photo that is in no file of its own, or a function without arguments that reads one."""

_KINDS = "a path, bytes, an array of uint8 or an image of Pillow"
_DIRECT_MODES = frozenset({"L", "RGB", "RGBA"})  # whose pixels are the picture
_CHUNK = 1 << 20


class Images(Sequence[Any]):
    """Photos one by one, as a ranker takes them; a function is asked for its photo each time.

    Examples
    --------
    >>> from kernelcore.datasets._sources import Images
    >>> images = Images(("a.jpg", None), (None, lambda: b"bytes of a file"))
    >>> list(images)
    ['a.jpg', b'bytes of a file']
    """

    def __init__(self, paths: Sequence[Path | None], sources: Sequence[Source | None]) -> None:
        self._paths, self._sources = paths, sources

    def __len__(self) -> int:
        return len(self._paths)

    @overload
    def __getitem__(self, i: int) -> Any: ...
    @overload
    def __getitem__(self, i: slice) -> Images: ...
    def __getitem__(self, i: int | slice) -> Any:
        if isinstance(i, slice):
            return Images(self._paths[i], self._sources[i])
        source = self._sources[i]
        if source is None:
            return self._paths[i]
        return source() if callable(source) else source


def as_photo(name: str, value: Any) -> Any:
    """Return a photo as a ranker takes it, None for none; `name` is what errors call it.

    A mapping with ``bytes`` or ``path``, as Hugging Face stores images, is one of the two.
    """
    if isinstance(value, Mapping):
        content = value.get("bytes")
        value = value.get("path") if content is None else content
    if is_missing(value):
        return None
    if isinstance(value, (bytearray, memoryview)):
        return bytes(value)
    is_pixels = isinstance(value, np.ndarray) and value.dtype == np.uint8 and value.ndim > 1
    if is_pixels or isinstance(value, (str, os.PathLike, bytes)) or is_pillow(value):
        return value
    kind = f"type {type(value).__name__}"
    if isinstance(value, np.ndarray):
        kind = f"an array of {value.dtype} of shape {value.shape}"
    raise TypeError(f"{name} must have a photo that is {_KINDS}, got {kind}")


def is_missing(value: Any) -> bool:
    """Whether a cell of a table is empty: None, or what pandas writes for it."""
    is_nan = isinstance(value, float) and math.isnan(value)
    return value is None or is_nan or type(value).__name__ in {"NAType", "NaTType"}


def is_pillow(value: Any) -> TypeGuard[Image]:
    """Whether this is an image of Pillow; only where Pillow is loaded can there be one."""
    module = sys.modules.get("PIL.Image")
    return module is not None and isinstance(value, module.Image)


def digest(name: str, photo: Any) -> str:
    """SHA-256 of the bytes of a file, or of the shape and the pixels of a decoded photo."""
    found = hashlib.sha256()
    if isinstance(photo, (str, os.PathLike)):
        with Path(photo).open("rb") as file:
            while chunk := file.read(_CHUNK):
                found.update(chunk)
    elif isinstance(photo, bytes):
        found.update(photo)
    else:
        pixels = _pixels(name, photo)
        found.update(f"pixels {pixels.shape} {pixels.dtype}".encode())
        found.update(np.ascontiguousarray(pixels).data)
    return found.hexdigest()


def _pixels(name: str, photo: Any) -> npt.NDArray[Any]:
    if isinstance(photo, np.ndarray):
        return photo
    try:
        return np.asarray(photo if photo.mode in _DIRECT_MODES else photo.convert("RGBA"))
    except (OSError, SyntaxError, ValueError) as error:  # Pillow reads files when first asked
        raise ValueError(f"{name} must have a photo that can be read: {error}") from None
