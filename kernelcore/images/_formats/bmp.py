"""BMP files: a header, then rows of pixels."""

from __future__ import annotations

import struct

from kernelcore.images._formats.header import Size, damaged

_CORE_HEADER = 12  # bytes of the oldest header
_PLAIN = frozenset({0, 3, 6})  # kinds of compression that are none


def read_size(data: bytes) -> Size:
    """Width and height; a negative height counts from the top."""
    (header_size,) = struct.unpack_from("<I", data, 14)
    width, height = struct.unpack_from(
        "<HH" if header_size == _CORE_HEADER else "<ii", data, 18
    )
    return width, abs(height)


def for_decoder(data: bytes, size: Size) -> bytes:
    """Return the file if it holds all rows; compressed ones end where the file does."""
    first, header_size = struct.unpack_from("<II", data, 10)
    if header_size == _CORE_HEADER:
        (bits,), compression = struct.unpack_from("<H", data, 24), 0
    else:
        bits, compression = struct.unpack_from("<HI", data, 28)
    if compression in _PLAIN and first + (size[0] * bits + 31) // 32 * 4 * size[1] > len(data):
        raise damaged("BMP", "rows are missing")
    return data
