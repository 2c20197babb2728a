"""Headers of image files: size and format are checked before a decoder sees the file.

The format is told from the content, never from the file's name. Of each format as much is
understood as it takes to refuse a file that would cost more than its pixels: lengths are
compared with the file's own, and parts that add up are counted. What a decoder can do
without, such as texts, colour profiles and later pictures, it is not shown.
"""

from __future__ import annotations

import re
import struct
from types import ModuleType

from kernelcore.images._formats import bmp, gif, jpeg, netpbm, png, tiff, webp
from kernelcore.images._formats.header import Header, HeaderError, damaged

__all__ = ["Header", "HeaderError", "for_decoder", "read_header"]

_FORMATS: dict[str, tuple[bytes, ModuleType]] = {
    "JPEG": (rb"\xff\xd8\xff", jpeg),
    "PNG": (rb"\x89PNG\r\n\x1a\n", png),
    "GIF": (rb"GIF8[79]a", gif),
    "BMP": (rb"BM", bmp),
    "WebP": (rb"RIFF....WEBP", webp),
    "TIFF": (rb"II\*\0|MM\0\*", tiff),
    "Netpbm": (rb"P[1-6][\s#]", netpbm),
}

_MAX_BRANDS_BYTES = 256

# What cameras and web pages use and OpenCV seldom reads: brands of ISO base media files.
_BRANDS = {
    "AVIF": {b"avif", b"avis"},
    "HEIC": {b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx", b"mif1", b"msf1"},
}


def read_header(data: bytes) -> Header:
    """Tell the format and size of the image in `data`, or raise `HeaderError`."""
    for name, (start, module) in _FORMATS.items():
        if re.match(start, data, re.DOTALL):
            try:
                width, height = module.read_size(data)
            except (struct.error, IndexError, ValueError):
                raise HeaderError(f"its {name} header is damaged or cut off") from None
            if width < 1 or height < 1:
                raise HeaderError(f"its {name} header declares {width} x {height} pixels")
            return Header(name, width, height)
    for name, brands in _BRANDS.items():
        if brands & _brands_of(data):
            raise HeaderError(
                f"it is {name}, which is not read here: convert it to JPEG, as `magick "
                f"photo.{name.lower()} photo.jpg` does, or open it with Pillow (HEIC needs "
                "pillow-heif) and pass that image"
            )
    names = ", ".join(sorted(_FORMATS))
    raise HeaderError(f"it is not an image of a supported format ({names})")


def _brands_of(data: bytes) -> set[bytes]:
    """Brands of an ISO base media file, none for other files."""
    if data[4:8] != b"ftyp":
        return set()
    end = min(int.from_bytes(data[:4], "big"), _MAX_BRANDS_BYTES)
    return {data[at : at + 4] for at in (8, *range(16, end, 4))}


def for_decoder(data: bytes, header: Header) -> bytes:
    """Return what a decoder needs of a file, or raise `HeaderError`.

    A decoder that is given it takes a bounded number of bytes and of steps for each of the
    pixels that the header declares and for each byte of the file.
    """
    _, module = _FORMATS[header.format]
    try:
        content: bytes = module.for_decoder(data, header[1:])
    except HeaderError:
        raise
    except (struct.error, IndexError, KeyError, ValueError):
        raise damaged(header.format, "a part is cut off or missing") from None
    return content
