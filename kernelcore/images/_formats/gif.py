"""GIF files: a sequence of blocks; only the first picture is decoded."""

from __future__ import annotations

import struct

from kernelcore.images._formats.header import Size, damaged

_EXTENSION, _PICTURE = 0x21, 0x2C
_GRAPHIC_CONTROL = 0xF9
_MAX_BLOCKS = 2**20

# A pixel takes at most one code of 12 bits, and another one where the table begins anew.
_BYTES_PER_PIXEL = 3
_SPARE_BYTES = 2**10


def read_size(data: bytes) -> Size:
    """Width and height of the screen that pictures are drawn on."""
    width, height = struct.unpack_from("<HH", data, 6)
    return width, height


def for_decoder(data: bytes, size: Size) -> bytes:
    """Return a file of the first picture alone."""
    at = 13 + _table_bytes(data[10])
    beginning, control = data[:at], b""
    for _ in range(_MAX_BLOCKS):
        kind = data[at]
        if kind == _EXTENSION:
            end = _end_of_blocks(data, at + 2)
            if data[at + 1] == _GRAPHIC_CONTROL:
                control = data[at:end]
            at = end
        elif kind == _PICTURE:
            left, top, width, height, flags = struct.unpack_from("<HHHHB", data, at + 1)
            if left + width > size[0] or top + height > size[1] or not width * height:
                raise damaged("GIF", "its first picture is not within its screen")
            pixels = at + 11 + _table_bytes(flags)
            end = _end_of_blocks(data, pixels)
            if end - pixels > _BYTES_PER_PIXEL * width * height + _SPARE_BYTES:
                raise damaged("GIF", f"{width} x {height} pixels take {end - pixels} bytes")
            return b"".join((beginning, control, data[at:end], b";"))
        else:
            break
    raise damaged("GIF", "it has no picture")


def _table_bytes(flags: int) -> int:
    """Length of the table of colours that these flags announce."""
    return 3 << ((flags & 7) + 1) if flags & 0x80 else 0


def _end_of_blocks(data: bytes, at: int) -> int:
    """Return the place behind a sequence of blocks, each after its length, 0 the last."""
    for _ in range(_MAX_BLOCKS):
        length = data[at]
        at += 1 + length
        if length == 0:
            return at
    raise damaged("GIF", f"it has more than {_MAX_BLOCKS} blocks in a row")
