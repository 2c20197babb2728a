"""Decoding of photos to RGB pixels; errors name the file and the reason."""

from __future__ import annotations

import importlib
import io
import logging
import os
import re
import struct
import threading
import warnings
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from kernelcore import _extras
from kernelcore._check import check_integer
from kernelcore._store import printable
from kernelcore._threads import Limit, OneThread
from kernelcore.errors import UnreadableImageError

if TYPE_CHECKING:
    from PIL.Image import Image

RGBImage: TypeAlias = npt.NDArray[np.uint8]
"""Pixels of shape (height, width, 3), in RGB order."""
ImageSource: TypeAlias = "str | os.PathLike[str] | bytes | npt.NDArray[np.uint8] | Image"
"""A file, the bytes of one, an image of Pillow, or decoded pixels: grey (h, w) or (h, w, 1),
RGB (h, w, 3) or RGBA (h, w, 4)."""
ImageSources: TypeAlias = Sequence[ImageSource] | npt.NDArray[np.uint8]
"""Photos one by one, or decoded pixels of one size as an array of shape (n, ...)."""

DEFAULT_MAX_PIXELS = 2**26
WEB_FORMATS = ("JPEG", "PNG", "WebP")
FORMATS = (*WEB_FORMATS, "AVIF", "BMP", "GIF", "TIFF", "Netpbm")
_PILLOW_NAMES = {"WebP": "WEBP", "Netpbm": "PPM"}
_MAX_SCANS = 64  # the longest scripts of progressive encoders have some twenty
_JPEG_START = b"\xff\xd8\xff"
_MAX_EXIF_SEGMENTS = 16
_EXIF, _TAKEN = 0x8769, 0x9003  # tags of metadata: their directory, and when a photo was taken
_MANY_FILL_BYTES = b"\xff" * 2**12
# Scans hold 0xFF before zero and restart markers only; more of them fill up.
_JPEG_MARKER = re.compile(rb"\xff([\x01-\xcf\xd8-\xfe])")
# Brands of ISO base media files, or their beginnings.
_BRANDS = {"AVIF": (b"avif", b"avis"), "HEIC": (b"hei", b"hev", b"mif1", b"msf1")}
_KINDS = "a path, bytes, an array of uint8 or an image of Pillow"
_ROWS_BLENDED = 64
_ALPHA_MODES = frozenset({"LA", "P", "PA", "RGBA", "RGBa"})  # P by its palette
# Most bytes of a pixel in a file, and room for metadata.
_BYTES_PER_PIXEL = 8
_METADATA_BYTES = 2**26
# Errors by which Pillow's plugins report damage.
_DAMAGE = (
    ArithmeticError,
    AttributeError,
    EOFError,
    LookupError,
    OSError,
    RuntimeError,
    SyntaxError,
    TypeError,
    ValueError,
    struct.error,
    zlib.error,
)

_PILLOW = r"PIL\."  # modules whose warnings are ignored
# Pillow reads a file when its pixels are first used, which two threads may do at once.
_loading = threading.Lock()


def _ignore_warnings(ignored: int) -> None:
    if ignored:
        warnings.filterwarnings("ignore", module=_PILLOW)
    else:
        filters: Any = warnings.filters
        with suppress(ValueError):
            filters.remove(("ignore", None, Warning, re.compile(_PILLOW), 0))


def _pillow_messages() -> list[Limit]:
    log = logging.getLogger("PIL")
    return [
        Limit(lambda: log.level, log.setLevel, logging.CRITICAL),
        Limit(lambda: 0, _ignore_warnings),
    ]


# Our errors have what Pillow says of damage; damaged metadata change no pixel.
_silent_pillow = OneThread(_pillow_messages)


def read_image(source: ImageSource, *, max_pixels: int = DEFAULT_MAX_PIXELS) -> RGBImage:
    """Read one photo as RGB pixels.

    Parameters
    ----------
    source : path, bytes, ndarray of uint8 or image of Pillow
        An image file (JPEG, PNG, WebP, AVIF, BMP, GIF, TIFF or Netpbm, recognised by its
        content; HEIC where the package pillow-heif is installed);
        the bytes of such a file; pixels of shape (h, w), (h, w, 1), (h, w, 3) in RGB order or
        (h, w, 4) in RGBA order; or a `PIL.Image.Image`, which Pillow then has read.
    max_pixels : int, default 2**26
        Files and images of Pillow that declare more pixels are refused before they are
        decoded.

    Returns
    -------
    ndarray of uint8, shape (height, width, 3)
        The pixels as a viewer shows them: turned as the EXIF orientation says, palettes and
        CMYK converted, 16 bits brought to 8, transparency laid over white, the first picture
        of several.

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
        can skip is not detected. HEIC is named, with a way to read it.

    Notes
    -----
    Pillow decodes; files and bytes need not be trusted. The header is read first, and nothing
    is decoded unless its size is allowed. Reading takes at most 24 bytes of memory for each
    pixel that the header declares, four times the length of the file, and 32 MiB; the length
    may be 8 bytes for each of `max_pixels` and 64 MiB. JPEG files of more than 64 scans are
    refused, and so are more pixels than twice ``PIL.Image.MAX_IMAGE_PIXELS``. One thing is not
    counted: lossless WebP allows a table of codes for every 16 pixels, 65,536 of them at most,
    of 5 to 12 kB each, which adds up to 0.8 GB.

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
    with naming(source, "source"):
        return pixels_of(content_of(source, max_pixels), max_pixels)


@contextmanager
def naming(source: ImageSource, default: str) -> Iterator[str]:
    """Yield the name of a photo, its path or the default, which errors in the block have.

    They become an `UnreadableImageError`.
    """
    name = printable(source) if isinstance(source, (str, os.PathLike)) else default
    try:
        yield name
    except DecodeError as error:
        raise UnreadableImageError(f"{name}: {error}") from None
    except OSError as error:
        raise UnreadableImageError(f"{name}: {error.strerror or error}") from error


def check_file(path: str | os.PathLike[str], max_pixels: int) -> None:
    """Raise `DecodeError` unless a file is there, of a size that an image can have."""
    file = Path(path)
    if not file.exists():
        raise DecodeError("there is no such file")
    if not file.is_file():  # opening a pipe or a device might wait for ever
        raise DecodeError("it is not a regular file")
    _check_length(file.stat().st_size, max_pixels)


def _check_length(n_bytes: int, max_pixels: int) -> None:
    if n_bytes == 0:
        raise DecodeError("it is empty")
    if n_bytes > _BYTES_PER_PIXEL * max_pixels + _METADATA_BYTES:
        raise DecodeError(
            f"it has {n_bytes} bytes, more than an image of max_pixels={max_pixels} needs"
        )


def content_of(source: Any, max_pixels: int) -> bytes | npt.NDArray[np.uint8]:
    """Return the bytes of a file, or the pixels of an array or of an image of Pillow.

    Parameters
    ----------
    source : ImageSource
        Checked by `check_source`.
    max_pixels : int
        Most pixels that it may declare.
    """
    if isinstance(source, np.ndarray):
        return source
    if isinstance(source, bytes):
        _check_length(len(source), max_pixels)
        return source
    if isinstance(source, (str, os.PathLike)):
        check_file(source, max_pixels)
        return Path(source).read_bytes()
    with _loading:
        return _pixels_of(source, max_pixels)


def pixels_of(content: bytes | npt.NDArray[np.uint8], max_pixels: int) -> RGBImage:
    """Give RGB pixels of shape (h, w, 3) for the output of `content_of`."""
    return decode(content, max_pixels) if isinstance(content, bytes) else as_rgb(content)


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
        if 0 in source.size:
            raise ValueError(f"{name} must have pixels, got an image of {_size(source)}")
        if source.mode in {"F", "I"}:
            raise ValueError(
                f"{name} must be an image whose white is known, got one of mode "
                f"{source.mode!r}: scale it to 0 .. 255 and convert it to 'L'"
            )
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


class DecodeError(ValueError):
    """An image cannot be read or decoded; the message says why, without a name.

    Attributes
    ----------
    status : int
        The HTTP status of this refusal: 413 too large, 415 unknown format, 422 damaged.
    """

    def __init__(self, reason: str, status: int = 422) -> None:
        super().__init__(reason)
        self.status = status


def decode(
    content: bytes, max_pixels: int, formats: Sequence[str] = FORMATS
) -> npt.NDArray[np.uint8]:
    """Decode an image file of one of these formats to RGB pixels; raise `DecodeError`."""
    pillow = _extras.require("PIL.Image")
    if content.startswith(_JPEG_START) and (
        content.count(b"Exif\0\0") > _MAX_EXIF_SEGMENTS or _MANY_FILL_BYTES in content
    ):  # Pillow takes time that is quadratic in the former, and long for the latter
        raise DecodeError("its JPEG data have too many segments of Exif or fill bytes")
    with _silent_pillow():
        try:
            image = pillow.open(io.BytesIO(content), formats=_plugins(content, formats))
        except pillow.DecompressionBombError as error:
            raise DecodeError(f"it declares too many pixels: {error}", 413) from None
        except pillow.UnidentifiedImageError:
            raise DecodeError(_why_unknown(content, formats), 415) from None
        except _DAMAGE as error:
            raise DecodeError(f"its header is damaged or cut off: {error}", 415) from None
        if image.mode == "F" or (image.mode == "I" and image.format != "PPM"):
            raise DecodeError(f"its {image.format} data have 32 bits, which is not supported")
        if content.startswith(_JPEG_START):
            _check_scans(content, image.fp.tell())
        return as_rgb(_pixels_of(image, max_pixels))


class FileFacts(NamedTuple):
    """What the header of an image file says.

    Attributes
    ----------
    media_type : str
        Such as ``image/jpeg``.
    taken : str
        Day and time at which the photo was taken, ``2019-05-03 14:05``; empty if not known.
    """

    media_type: str
    taken: str


def file_facts(path: str | os.PathLike[str]) -> FileFacts:
    """Read the header of an image file; raise `UnreadableImageError` if it is none."""
    pillow = _extras.require("PIL.Image")
    with _silent_pillow():
        try:
            with pillow.open(path) as image:
                kind = pillow.MIME.get(image.format, "image/jpeg")
                stamp = ""
                with suppress(*_DAMAGE):
                    stamp = str(image.getexif().get_ifd(_EXIF).get(_TAKEN))
        except (pillow.DecompressionBombError, *_DAMAGE) as error:
            raise UnreadableImageError(f"{printable(path)}: {error}") from error
    found = re.match(r"(\d{4}):(\d\d):(\d\d) (\d\d:\d\d)", stamp)
    taken = "" if found is None else "{}-{}-{} {}".format(*found.groups())
    return FileFacts("image/jpeg" if kind == "image/mpo" else kind, taken)


def _check_scans(content: bytes, at: int) -> None:
    """Raise unless the scans of a JPEG image are few and end; `at` is within the first one.

    An empty scan of some bytes costs the decoder a walk over all pixels.
    """
    n_scans = 1
    while n_scans <= _MAX_SCANS:
        marker = _JPEG_MARKER.search(content, at)
        if marker is None:
            raise DecodeError("its JPEG data are truncated: the end of the image is missing")
        if marker[1] == b"\xd9":
            return
        n_scans += marker[1] == b"\xda"
        at = marker.end() + int.from_bytes(content[marker.end() : marker.end() + 2])
    raise DecodeError(f"its JPEG data have more than {_MAX_SCANS} scans")


def _pixels_of(image: Image, max_pixels: int) -> npt.NDArray[np.uint8]:
    """Pixels of shape (h, w), (h, w, 3) or (h, w, 4), or `DecodeError` if there are none."""
    if image.width * image.height > max_pixels:
        raise DecodeError(
            f"it declares {_size(image)} pixels, more than max_pixels={max_pixels}", 413
        )
    is_bmp = image.format == "BMP"  # its fourth channel is seldom meant as transparency
    try:
        image.load()
        image = _extras.require("PIL.ImageOps").exif_transpose(image)
        if image.mode.startswith("I"):  # 16 bits
            return (np.asarray(image) >> 8).astype(np.uint8)
        has_alpha = image.mode in _ALPHA_MODES or "transparency" in image.info
        has_alpha &= not is_bmp
        return np.asarray(image.convert("RGBA" if has_alpha else "RGB"))
    except _DAMAGE as error:
        raise DecodeError(
            f"its data are damaged, truncated or not supported: {error}"
        ) from None


def _plugins(content: bytes, formats: Sequence[str]) -> list[str]:
    """Names of Pillow's plugins that may read a file."""
    brand = _brand(content)
    if not brand:
        return [_PILLOW_NAMES.get(name, name) for name in formats if name != "AVIF"]
    if "AVIF" not in formats:
        return []
    if brand == "HEIC":
        with suppress(ImportError):
            importlib.import_module("pillow_heif").register_heif_opener()
            return ["HEIF"]
        return []
    return [brand]


def _brand(content: bytes) -> str:
    """Return AVIF or HEIC for files of these, else nothing."""
    found = content[8:64] if content[4:8] == b"ftyp" else b""
    for name, brands in _BRANDS.items():
        if any(brand in found for brand in brands):
            return name
    return ""


def _why_unknown(content: bytes, formats: Sequence[str]) -> str:
    """Reason why no decoder takes the file, and what to do about HEIC and AVIF."""
    if brand := _brand(content):
        install = "install pillow-heif, or " if brand == "HEIC" and "AVIF" in formats else ""
        return (
            f"it is {brand}, which cannot be read here: {install}convert it to JPEG, as "
            f"`magick photo.{brand.lower()} photo.jpg` does"
        )
    names = ", ".join(sorted(formats))
    return f"it is not an image of a supported format ({names}), or its header is damaged"


def _size(image: Image) -> str:
    return f"{image.width} x {image.height}"


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
