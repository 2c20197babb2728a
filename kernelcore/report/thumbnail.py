"""Small pictures that travel inside a page."""

from __future__ import annotations

import base64
import io
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernelcore import _extras

_MAX_SIDE = 256
_QUALITY = 82


@dataclass(frozen=True)
class Thumbnail:
    """A small JPEG picture.

    Attributes
    ----------
    jpeg : bytes
        The file.
    width, height : int
        In pixels.
    alt : str
        What it shows, for those who do not see it.
    """

    jpeg: bytes
    width: int
    height: int
    alt: str

    @property
    def uri(self) -> str:
        """The picture as a ``data:`` address."""
        return data_uri("image/jpeg", self.jpeg)


def make_thumbnail(name: str, pixels: Any, *, alt: str) -> Thumbnail:
    """Shrink RGB `pixels`, called `name` in errors, to at most 256 pixels a side."""
    if not isinstance(pixels, np.ndarray) or pixels.dtype != np.uint8:
        kind = pixels.dtype if isinstance(pixels, np.ndarray) else type(pixels).__name__
        raise TypeError(f"{name} must be an array of uint8, got {kind}")
    if pixels.ndim != 3 or pixels.shape[2] != 3 or not pixels.size:
        raise ValueError(f"{name} must have shape (height, width, 3), got {pixels.shape}")
    picture = _extras.require("PIL.Image").fromarray(np.ascontiguousarray(pixels))
    picture.thumbnail((_MAX_SIDE, _MAX_SIDE))
    buffer = io.BytesIO()
    picture.save(buffer, format="JPEG", quality=_QUALITY, optimize=True)
    return Thumbnail(buffer.getvalue(), picture.width, picture.height, alt)


def data_uri(kind: str, content: bytes) -> str:
    """Return `content` of the media type `kind` as a ``data:`` address."""
    return f"data:{kind};base64,{base64.b64encode(content).decode('ascii')}"
