"""Images of Pillow as pixels, turned, scaled and blended as those of files are."""

from __future__ import annotations

import struct
import sys
import threading
import zlib
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np
import numpy.typing as npt

from kernelcore import _extras
from kernelcore.images._formats import HeaderError

if TYPE_CHECKING:
    from PIL.Image import Image

_UNSCALED = frozenset({"F", "I"})  # modes whose black and white are nowhere said
_DEEP = "I;16"  # what modes of 16 bits begin with
_WITH_ALPHA = frozenset({"LA", "P", "PA", "RGBA", "RGBa"})  # P by its palette
_DAMAGE = (ArithmeticError, EOFError, LookupError, OSError, SyntaxError, ValueError)

# Pillow reads a file when pixels are first asked for, which two threads may do at once.
_loading = threading.Lock()


def is_pillow(source: Any) -> TypeGuard[Image]:
    """Whether this is an image of Pillow; only where Pillow is loaded can there be one."""
    module = sys.modules.get("PIL.Image")
    return module is not None and isinstance(source, module.Image)


def check_pillow(name: str, image: Image) -> None:
    """Raise unless an image has pixels whose range is known."""
    if 0 in image.size:
        raise ValueError(f"{name} must have pixels, got an image of {_size(image)}")
    if image.mode in _UNSCALED:
        raise ValueError(
            f"{name} must be an image whose white is known, got one of mode {image.mode!r}: "
            "scale it to 0 .. 255 and convert it to 'L'"
        )


def pillow_pixels(image: Image, max_pixels: int) -> npt.NDArray[np.uint8]:
    """Pixels of shape (h, w), (h, w, 3) or (h, w, 4), or `HeaderError` if there are none."""
    if image.width * image.height > max_pixels:
        raise HeaderError(
            f"it declares {_size(image)} pixels, more than max_pixels={max_pixels}"
        )
    try:
        with _loading:
            image.load()
        image = _extras.require("PIL.ImageOps").exif_transpose(image)
        if image.mode.startswith(_DEEP):
            return (np.asarray(image) >> 8).astype(np.uint8)
        has_alpha = image.mode in _WITH_ALPHA or "transparency" in image.info
        return np.asarray(image.convert("RGBA" if has_alpha else "RGB"))
    except (*_DAMAGE, struct.error, zlib.error) as error:
        raise HeaderError(f"Pillow cannot read it: {error}") from None


def _size(image: Image) -> str:
    return f"{image.width} x {image.height}"
