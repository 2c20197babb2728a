"""What an image file says of itself before it is decoded: its format and its size.

The format is told from the content, never from the file's name. Only as much of each format
is understood as it takes to refuse a file that is too large to decode, or one that stops
before its end.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterator
from typing import NamedTuple, TypeAlias


class Header(NamedTuple):
    """Format and size in pixels that an image file declares."""

    format: str
    width: int
    height: int


class HeaderError(ValueError):
    """The bytes are no image of a supported format, or they end too early."""


_Size: TypeAlias = tuple[int, int]

# JPEG markers: start of frame (baseline, progressive, ...), and those that stand alone.
_START_OF_FRAME = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_STANDALONE = frozenset({0x01, *range(0xD0, 0xD9)})
_START_OF_SCAN = 0xDA
_END_OF_IMAGE = b"\xff\xd9"

_TIFF_WIDTH, _TIFF_HEIGHT = 256, 257
_TIFF_CODES = {1: "B", 3: "H", 4: "I"}  # type of a field -> how struct reads it

_NETPBM_GAP = rb"(?:\s|#[^\n]*\n)+"  # a comment runs to the end of its line
_NETPBM = re.compile(rb"P[1-6]" + _NETPBM_GAP + rb"(\d{1,10})" + _NETPBM_GAP + rb"(\d{1,10})\s")


def read_header(data: bytes) -> Header:
    """Tell the format and size of the image in `data`, or raise `HeaderError`."""
    for name, start, read_size in _FORMATS:
        if re.match(start, data, re.DOTALL):
            try:
                width, height = read_size(data)
            except (struct.error, IndexError, ValueError):
                raise HeaderError(f"its {name} header is damaged or cut off") from None
            if width < 1 or height < 1:
                raise HeaderError(f"its {name} header declares {width} x {height} pixels")
            return Header(name, width, height)
    names = ", ".join(sorted({name for name, _, _ in _FORMATS}))
    raise HeaderError(f"it is not an image of a supported format ({names})")


def check_complete(data: bytes, header: Header) -> None:
    """Raise `HeaderError` if the end of a JPEG image is missing.

    JPEG decoders may fill the missing part with grey and succeed; those of the other formats
    fail by themselves.
    """
    if header.format == "JPEG":
        # Within compressed data the byte 0xFF is always followed by 0 or a restart marker;
        # before it, a preview may have an end of its own.
        scan = max(at for _, at in _jpeg_segments(data))
        if data.find(_END_OF_IMAGE, scan) < 0:
            raise HeaderError("it is truncated: the end of the JPEG image is missing")


def _jpeg_segments(data: bytes) -> Iterator[tuple[int, int]]:
    """Marker and start of the content of each segment, up to the first scan or the end."""
    at = data.find(b"\xff", 2)
    while 0 <= at < len(data) - 3:
        marker = data[at + 1]
        if marker in _STANDALONE:
            at += 2
        elif marker not in {0x00, 0xFF}:  # a stuffed or a fill byte is no marker
            yield marker, at + 4
            if marker == _START_OF_SCAN:
                return
            at += 2 + struct.unpack_from(">H", data, at + 2)[0]
        else:
            at += 1
        at = data.find(b"\xff", at)


def _jpeg_size(data: bytes) -> _Size:
    for marker, at in _jpeg_segments(data):
        if marker in _START_OF_FRAME:
            height, width = struct.unpack_from(">xHH", data, at)
            return width, height
    raise HeaderError("no frame")


def _png_size(data: bytes) -> _Size:
    width, height = struct.unpack_from(">II", data, 16)
    return width, height


def _gif_size(data: bytes) -> _Size:
    width, height = struct.unpack_from("<HH", data, 6)
    return width, height


def _bmp_size(data: bytes) -> _Size:
    (header_size,) = struct.unpack_from("<I", data, 14)
    width, height = struct.unpack_from("<HH" if header_size == 12 else "<ii", data, 18)
    return width, abs(height)  # a negative height counts from the top


def _webp_size(data: bytes) -> _Size:
    kind = data[12:16]
    if kind == b"VP8 ":
        width, height = struct.unpack_from("<HH", data, 26)
        return width & 0x3FFF, height & 0x3FFF
    if kind == b"VP8L":
        (bits,) = struct.unpack_from("<I", data, 21)
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if kind == b"VP8X":
        low_width, high_width, low_height, high_height = struct.unpack_from("<HBHB", data, 24)
        return (high_width << 16 | low_width) + 1, (high_height << 16 | low_height) + 1
    raise HeaderError("unknown chunk")


def _tiff_size(data: bytes) -> _Size:
    order = "<" if data[:2] == b"II" else ">"
    (directory,) = struct.unpack_from(order + "I", data, 4)
    (n_fields,) = struct.unpack_from(order + "H", data, directory)
    values = {}
    for at in range(directory + 2, directory + 2 + 12 * n_fields, 12):
        tag, kind = struct.unpack_from(order + "HH", data, at)
        if tag in {_TIFF_WIDTH, _TIFF_HEIGHT} and kind in _TIFF_CODES:
            (values[tag],) = struct.unpack_from(order + _TIFF_CODES[kind], data, at + 8)
    return values.get(_TIFF_WIDTH, 0), values.get(_TIFF_HEIGHT, 0)


def _netpbm_size(data: bytes) -> _Size:
    match = _NETPBM.match(data)
    if match is None:
        raise HeaderError("no size")
    return int(match[1]), int(match[2])


_FORMATS: tuple[tuple[str, bytes, Callable[[bytes], _Size]], ...] = (
    ("JPEG", rb"\xff\xd8\xff", _jpeg_size),
    ("PNG", rb"\x89PNG\r\n\x1a\n", _png_size),
    ("GIF", rb"GIF8[79]a", _gif_size),
    ("BMP", rb"BM", _bmp_size),
    ("WebP", rb"RIFF....WEBP", _webp_size),
    ("TIFF", rb"II\*\0|MM\0\*", _tiff_size),
    ("Netpbm", rb"P[1-6][\s#]", _netpbm_size),
)
