"""TIFF files: a directory of fields that point to strips or tiles of pixels.

The decoder copies every field and every strip, so that many that share the same bytes of
the file could ask for any amount of memory and time. Here all of them together must fit
into the file, and a tile may not be larger than the picture by much.
"""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import numpy.typing as npt

from kernelcore.images._formats.header import Size, damaged

_WIDTH, _HEIGHT, _BITS, _COMPRESSION = 256, 257, 258, 259
_SAMPLES, _PLANES = 277, 284
_TILE_WIDTH, _TILE_HEIGHT = 322, 323
_STRIP_OFFSETS, _STRIP_BYTES, _TILE_OFFSETS, _TILE_BYTES = 273, 279, 324, 325

_CODES = {1: "u1", 3: "u2", 4: "u4"}  # type of a field -> type of its numbers
_SIZES = {1: 1, 2: 1, 3: 2, 4: 4, 5: 8, 6: 1, 7: 1, 8: 2, 9: 4, 10: 8, 11: 4, 12: 8, 13: 4}

# None, LZW, Deflate under two numbers, PackBits: what photos are kept in.
_COMPRESSIONS = {1: "none", 5: "LZW", 8: "Deflate", 32946: "Deflate", 32773: "PackBits"}
_MAX_BITS, _MAX_SAMPLES, _BITS_OF_PLANES = 16, 4, 8
_SPARE_TILE_PIXELS = 2**20
_BYTES_IN_PLACE = 4


class _Directory:
    """The first directory of a file."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._order = "<" if data[:2] == b"II" else ">"
        (self._at,) = struct.unpack_from(self._order + "I", data, 4)
        (n_fields,) = struct.unpack_from(self._order + "H", data, self._at)
        self._fields: dict[int, tuple[int, int, int]] = {}
        self.n_bytes = 0
        for at in range(self._at + 2, self._at + 2 + 12 * n_fields, 12):
            tag, kind, n = struct.unpack_from(self._order + "HHI", data, at)
            if tag in self._fields:
                raise damaged("TIFF", f"it has two fields {tag}")
            length, place = n * _SIZES.get(kind, 0), at + 8
            self.n_bytes += 12
            if length > _BYTES_IN_PLACE:
                (place,) = struct.unpack_from(self._order + "I", data, place)
                self.n_bytes += length
            self._fields[tag] = kind, n, place

    def values(self, tag: int) -> npt.NDArray[np.integer[Any]]:
        """Return all numbers of a field, none if it is absent or no list of integers."""
        kind, n, place = self._fields.get(tag, (0, 0, 0))
        if kind not in _CODES:
            return np.empty(0, np.uint8)
        dtype = np.dtype(self._order + _CODES[kind])
        return np.frombuffer(self._data, dtype, n, place)

    def value(self, tag: int, default: int = 0) -> int:
        """Return the first number of a field."""
        values = self.values(tag)
        return int(values[0]) if len(values) else default

    def __contains__(self, tag: int) -> bool:
        return tag in self._fields


def read_size(data: bytes) -> Size:
    """Width and height in the first directory."""
    directory = _Directory(data)
    return directory.value(_WIDTH), directory.value(_HEIGHT)


def for_decoder(data: bytes, size: Size) -> bytes:
    """Return the file if what its first picture asks for fits into it."""
    directory = _Directory(data)
    if directory.n_bytes > len(data):
        raise damaged("TIFF", f"its fields take {directory.n_bytes} bytes")
    compression = directory.value(_COMPRESSION, 1)
    if compression not in _COMPRESSIONS:
        names = ", ".join(dict.fromkeys(_COMPRESSIONS.values()))
        raise damaged("TIFF", f"its compression is {compression}, not one of {names}")
    samples = directory.value(_SAMPLES, 1)
    bits = int(directory.values(_BITS).max(initial=1))
    if not 1 <= samples <= _MAX_SAMPLES or bits > _MAX_BITS:
        raise damaged("TIFF", f"a pixel has {samples} values of {bits} bits")
    if samples > 1 and bits > _BITS_OF_PLANES and directory.value(_PLANES, 1) != 1:
        # OpenCV 5.0 gives what memory held before.
        raise damaged("TIFF", f"values of {bits} bits lie in planes of their own")
    tile = directory.value(_TILE_WIDTH) * directory.value(_TILE_HEIGHT)
    if tile > size[0] * size[1] + _SPARE_TILE_PIXELS:
        raise damaged("TIFF", f"a tile has {tile} pixels")
    tiled = _TILE_OFFSETS in directory
    offsets = directory.values(_TILE_OFFSETS if tiled else _STRIP_OFFSETS)
    lengths = directory.values(_TILE_BYTES if tiled else _STRIP_BYTES)
    if len(offsets) == 0 or len(offsets) != len(lengths):
        raise damaged("TIFF", f"{len(offsets)} strips have {len(lengths)} lengths")
    ends = offsets.astype(np.int64) + lengths
    if ends.max() > len(data) or lengths.sum(dtype=np.int64) > len(data):
        raise damaged("TIFF", "its strips take more bytes than it has")
    return data
