"""Decoding of photos to RGB pixels; errors name the file and the reason."""

from __future__ import annotations

import os
import struct
import threading
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from kernelcore import _extras
from kernelcore._check import check_integer
from kernelcore._store import printable
from kernelcore._threads import silent_opencv
from kernelcore.errors import (
    UnreadableImageError,
)
from kernelcore.images._formats import HeaderError, for_decoder, read_header

if TYPE_CHECKING:
    from PIL.Image import Image


_UNSCALED = frozenset({"F", "I"})  # modes without a defined black and white
_DEEP = "I;16"  # prefix of the modes of 16 bits
_ALPHA_MODES = frozenset({"LA", "P", "PA", "RGBA", "RGBa"})  # P by its palette
_DAMAGE = (ArithmeticError, EOFError, LookupError, OSError, SyntaxError, ValueError)

# Pillow reads a file when its pixels are first used, which two threads may do at once.
_loading = threading.Lock()

RGBImage: TypeAlias = npt.NDArray[np.uint8]
"""Pixels of shape (height, width, 3), in RGB order."""
ImageSource: TypeAlias = "str | os.PathLike[str] | bytes | npt.NDArray[np.uint8] | Image"
"""A file, the bytes of one, an image of Pillow, or decoded pixels: grey (h, w) or (h, w, 1),
RGB (h, w, 3) or RGBA (h, w, 4)."""
ImageSources: TypeAlias = Sequence[ImageSource] | npt.NDArray[np.uint8]
"""Photos one by one, or decoded pixels of one size as an array of shape (n, ...)."""
DEFAULT_MAX_PIXELS = 2**26
_KINDS = "a path, bytes, an array of uint8 or an image of Pillow"
_ROWS_BLENDED = 64
# A fourth channel of a BMP file is seldom meant as transparency; JPEG and Netpbm have none.
_WITH_ALPHA = frozenset({"GIF", "PNG", "TIFF", "WebP"})
# Most bytes of a pixel in a file, and room for metadata.
_BYTES_PER_PIXEL = 8
_METADATA_BYTES = 2**26


def check_pillow(name: str, image: Image) -> None:
    """Raise unless an image has pixels of a known range."""
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
        has_alpha = image.mode in _ALPHA_MODES or "transparency" in image.info
        return np.asarray(image.convert("RGBA" if has_alpha else "RGB"))
    except (*_DAMAGE, struct.error, zlib.error) as error:
        raise HeaderError(f"Pillow cannot read it: {error}") from None


def _size(image: Image) -> str:
    return f"{image.width} x {image.height}"


def read_image(source: ImageSource, *, max_pixels: int = DEFAULT_MAX_PIXELS) -> RGBImage:
    """Read one photo as RGB pixels.

    Parameters
    ----------
    source : path, bytes, ndarray of uint8 or image of Pillow
        An image file (JPEG, PNG, WebP, BMP, GIF, TIFF or Netpbm, recognised by its content);
        the bytes of such a file; pixels of shape (h, w), (h, w, 1), (h, w, 3) in RGB order or
        (h, w, 4) in RGBA order; or a `PIL.Image.Image`, which Pillow then has read.
    max_pixels : int, default 2**26
        Files and images of Pillow that declare more pixels are refused before they are
        decoded.

    Returns
    -------
    ndarray of uint8, shape (height, width, 3)
        The pixels as a viewer shows them: turned as the file's EXIF orientation says (files
        with transparency excepted), palettes and CMYK converted, 16 bits brought to 8,
        transparency laid over white, the first picture of several.

    Raises
    ------
    TypeError
        If `source` is none of these.
    ValueError
        If an array has another shape or no pixels, or an image of Pillow has none or is of
        mode "F" or "I", whose white is not defined.
    UnreadableImageError
        If the file is missing, no regular file, empty, no image of a supported format,
        truncated, damaged or too large. Damage within JPEG or TIFF data that the decoder
        can step over is not noticed. HEIC and AVIF are named, with a way to convert them.

    Notes
    -----
    Files and bytes need not be trusted; images of Pillow have been opened by Pillow, whose
    checks are its own. Before a decoder sees a file, all lengths in it are compared with the
    file's own, and it is cut down to what the picture needs: texts, colour profiles and later
    pictures are left out. Reading takes at most 24 bytes of memory for each pixel that the
    header declares, four times the length of the file, and 32 MiB; the length may be 8
    bytes for each of `max_pixels` and 64 MiB. Time is bounded likewise. So these are refused:
    JPEG files of more than 64 scans, PNG files whose pixels inflate to more than their
    header asks for, TIFF files whose compression is not LZW, Deflate, PackBits or none,
    whose fields or strips together take more bytes than the file has, or whose pixels are
    16 bits in separate planes. One thing is not counted: lossless WebP allows a table of
    codes for every 16 pixels, 65,536 of them at most, of 5 to 12 kB each, which adds up to
    0.8 GB.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelcore.images import read_image
    >>> read_image(np.array([[0, 255]], dtype=np.uint8))
    array([[[  0,   0,   0],
            [255, 255, 255]]], dtype=uint8)
    """
    max_pixels = check_integer("max_pixels", max_pixels, minimum=1)
    check_source("source", source)
    return Photo(source, "source", max_pixels).pixels()


class Photo:
    """One photo of any kind of source; a file is read when its content is first used.

    Parameters
    ----------
    source : ImageSource
        Checked by `check_source`.
    name : str
        Its name in errors if it has no path.
    max_pixels : int
        Most pixels that it may declare.
    """

    def __init__(self, source: ImageSource, name: str, max_pixels: int) -> None:
        self._source, self._max_pixels = source, max_pixels
        self._content: bytes | None = None
        self._pillow_pixels: npt.NDArray[np.uint8] | None = None
        self.name = printable(source) if isinstance(source, (str, os.PathLike)) else name

    @classmethod
    def of(cls, images: ImageSources, i: int, max_pixels: int) -> Photo:
        """Photo `i` of the argument `images`."""
        return cls(images[i], f"images[{i}]", max_pixels)

    def check_there(self) -> None:
        """Raise `UnreadableImageError` unless a file is there, of a size an image can have."""
        if isinstance(self._source, (str, os.PathLike)):
            try:
                file = Path(self._source)
                if not file.exists():
                    raise self._unreadable("there is no such file")
                if not file.is_file():  # opening a pipe or a device might wait for ever
                    raise self._unreadable("it is not a regular file")
                self._check_length(file.stat().st_size)
            except OSError as error:
                raise self._unreadable(f"{error.strerror or error}") from error

    def content(self) -> bytes:
        """Bytes that identify the photo: those of its file, or its shape and its pixels."""
        if self._content is None:
            self._content = self._read()
        return self._content

    def pixels(self) -> RGBImage:
        """Give RGB pixels of shape (h, w, 3)."""
        if not isinstance(self._source, (str, os.PathLike, bytes)):
            return as_rgb(self._decoded())
        content = self.content()
        try:
            return as_rgb(_decode(content, self._max_pixels))
        except HeaderError as error:
            raise self._unreadable(f"{error}") from None

    def _read(self) -> bytes:
        if isinstance(self._source, bytes):
            self._check_length(len(self._source))
            return self._source
        if not isinstance(self._source, (str, os.PathLike)):
            return repr(self._decoded().shape).encode() + self._decoded().tobytes()
        self.check_there()
        try:
            return Path(self._source).read_bytes()
        except OSError as error:
            raise self._unreadable(f"{error.strerror or error}") from error

    def _decoded(self) -> npt.NDArray[np.uint8]:
        """Pixels of a source that is no file."""
        given: Any = self._source
        if isinstance(given, np.ndarray):
            return given
        if self._pillow_pixels is None:
            try:
                self._pillow_pixels = pillow_pixels(given, self._max_pixels)
            except HeaderError as error:
                raise self._unreadable(f"{error}") from None
        return self._pillow_pixels

    def _check_length(self, n_bytes: int) -> None:
        if n_bytes == 0:
            raise self._unreadable("it is empty")
        if n_bytes > _BYTES_PER_PIXEL * self._max_pixels + _METADATA_BYTES:
            raise self._unreadable(
                f"it has {n_bytes} bytes, more than an image of "
                f"max_pixels={self._max_pixels} needs"
            )

    def _unreadable(self, reason: str) -> UnreadableImageError:
        return UnreadableImageError(f"{self.name}: {reason}")


def check_sources(name: str, images: Any) -> None:
    """Raise unless `images` is a sequence of photos, not empty."""
    if isinstance(images, (str, bytes, os.PathLike)) or not isinstance(
        images, (Sequence, np.ndarray)
    ):
        raise TypeError(
            f"{name} must be a sequence of photos ({_KINDS}), got {type(images).__name__}"
        )
    if isinstance(images, np.ndarray) and images.dtype.kind not in "OU" and images.ndim != 4:
        raise ValueError(
            f"{name} must be a list of images or a 4-D array of them, "
            f"got an array of shape {images.shape}"
        )
    if len(images) == 0:
        raise ValueError(f"{name} must hold at least one image, got none")
    for i, source in enumerate(images):
        check_source(f"{name}[{i}]", source)


def check_source(name: str, source: Any) -> None:
    """Raise unless `source` can be a photo; files are not looked at."""
    if _extras.is_pillow(source):
        check_pillow(name, source)
    elif not isinstance(source, (str, os.PathLike, bytes)):
        check_pixels(name, source, kind=_KINDS)


def check_pixels(name: str, pixels: Any, *, kind: str = "an array of uint8") -> None:
    """Raise unless `pixels` is an array that shows a picture."""
    if not isinstance(pixels, np.ndarray):
        raise TypeError(f"{name} must be {kind}, got {pixels!r:.80}")
    if pixels.dtype != np.uint8:
        raise TypeError(f"{name} must be {kind}, got an array of {pixels.dtype}")
    if pixels.size == 0 or not (
        pixels.ndim == 2 or (pixels.ndim == 3 and pixels.shape[2] in {1, 3, 4})
    ):
        raise ValueError(
            f"{name} must have shape (h, w), (h, w, 1), (h, w, 3) or (h, w, 4) and pixels, "
            f"got {pixels.shape}"
        )


def _decode(content: bytes, max_pixels: int) -> npt.NDArray[np.uint8]:
    """Pixels of an image file; raise `HeaderError` if it cannot be used."""
    header = read_header(content)
    if header.width * header.height > max_pixels:
        raise HeaderError(
            f"it declares {header.width} x {header.height} pixels, more than "
            f"max_pixels={max_pixels}"
        )
    content = for_decoder(content, header)
    pixels = None
    if header.format in _WITH_ALPHA:
        pixels = _decode_pixels(content, keep_alpha=True)
    if pixels is None:
        pixels = _decode_pixels(content, keep_alpha=False)
    if pixels is None or sorted(pixels.shape[:2]) != sorted(header[1:]):
        raise HeaderError(
            f"its {header.format} data are damaged, truncated or of an unsupported kind"
        )
    return pixels


def _decode_pixels(data: bytes, *, keep_alpha: bool) -> npt.NDArray[np.uint8] | None:
    """Pixels in RGB or RGBA order, or None if decoding fails."""
    cv2 = _extras.require("cv2")
    flags = cv2.IMREAD_UNCHANGED if keep_alpha else cv2.IMREAD_COLOR
    try:
        with silent_opencv():
            pixels = cv2.imdecode(np.frombuffer(data, dtype=np.uint8), flags)
    except cv2.error:
        return None
    if pixels is None or (keep_alpha and (pixels.ndim < 3 or pixels.shape[2] < 4)):
        return None
    if pixels.dtype == np.uint16:
        pixels >>= 8
        pixels = pixels.astype(np.uint8)
    if pixels.dtype != np.uint8:
        return None
    code = cv2.COLOR_BGRA2RGBA if keep_alpha else cv2.COLOR_BGR2RGB
    return cv2.cvtColor(pixels, code)  # type: ignore[no-any-return]


def as_rgb(pixels: npt.NDArray[np.uint8]) -> RGBImage:
    """Give grey, RGB or RGBA pixels three channels; transparency is laid over white."""
    if pixels.ndim == 2:
        pixels = pixels[:, :, None]
    if pixels.shape[2] == 4:
        rgb = np.empty((*pixels.shape[:2], 3), np.uint8)
        for row in range(0, len(pixels), _ROWS_BLENDED):  # few at once: large photos fit
            rows = slice(row, row + _ROWS_BLENDED)
            alpha = pixels[rows, :, 3:].astype(np.uint16)
            blend = pixels[rows, :, :3] * alpha + np.uint16(255) * (255 - alpha)
            rgb[rows] = (blend + 127) // 255
        return rgb
    return np.ascontiguousarray(np.broadcast_to(pixels, (*pixels.shape[:2], 3)))


def as_grey(image: npt.NDArray[np.uint8]) -> npt.NDArray[np.float32]:
    """Grey levels 0 .. 255 of grey, RGB or RGBA pixels, by the luma of Rec. 601."""
    if image.ndim == 2 or image.shape[2] == 1:
        return image.reshape(image.shape[:2]).astype(np.float32)
    cv2 = _extras.require("cv2")
    grey: npt.NDArray[np.uint8] = cv2.cvtColor(as_rgb(image), cv2.COLOR_RGB2GRAY)
    return grey.astype(np.float32)


def limit_side(image: RGBImage, max_side: int) -> RGBImage:
    """Shrink an image whose longer side exceeds `max_side`, keeping its proportions."""
    height, width = image.shape[:2]
    longer = max(height, width)
    if longer <= max_side:
        return image
    cv2 = _extras.require("cv2")
    size = (max(1, round(width * max_side / longer)), max(1, round(height * max_side / longer)))
    shrunk: RGBImage = cv2.resize(image, size, interpolation=cv2.INTER_AREA)
    return shrunk
