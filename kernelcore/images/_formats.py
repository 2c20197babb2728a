"""Headers of image files: size and format are checked before a decoder sees the file.

The content decides about the format, not the name of the file. Only as much of a format is
parsed as it takes to refuse files that would cost more than their pixels: lengths are compared
with the length of the file, and parts that add up are counted. Texts, colour profiles and later
pictures are kept from the decoder where the format allows it.

The parsers are our own because no library refuses as much. Pillow, which the extra ``images``
does not install, decodes some truncated JPEG files, PNG files whose pixels take more bytes than
the header asks for, and TIFF files whose fields take more bytes than the file has. OpenCV
believes the lengths that a file declares.

A scan of a JPEG file may be empty and yet costs the decoder a walk over all pixels; a segment
of Exif costs it the product of its length and its number of fields. Both are counted here.
The decoder of TIFF copies every field and every strip, so that many that share the same bytes
of the file could ask for any amount of memory and time: all of them together must fit into
the file, and a tile may not be larger than the picture by much.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kernelcore.images._chunked_formats import (
    HeaderError,
    Size,
    damaged,
    gif_for_decoder,
    gif_size,
    png_for_decoder,
    png_size,
    webp_for_decoder,
    webp_size,
)

__all__ = ["Header", "HeaderError", "for_decoder", "read_header"]


class Header(NamedTuple):
    """Format and size in pixels that an image file declares."""

    format: str
    width: int
    height: int


_BMP_CORE_HEADER = 12  # bytes of the oldest header
_BMP_PLAIN = frozenset({0, 3, 6})  # kinds of compression that are none


def _bmp_size(data: bytes) -> Size:
    """Width and height; a negative height counts from the top."""
    (header_size,) = struct.unpack_from("<I", data, 14)
    width, height = struct.unpack_from(
        "<HH" if header_size == _BMP_CORE_HEADER else "<ii", data, 18
    )
    return width, abs(height)


def _bmp_for_decoder(data: bytes, size: Size) -> bytes:
    """Return the file if it holds all rows; compressed ones end where the file does."""
    first, header_size = struct.unpack_from("<II", data, 10)
    if header_size == _BMP_CORE_HEADER:
        (bits,), compression = struct.unpack_from("<H", data, 24), 0
    else:
        bits, compression = struct.unpack_from("<HI", data, 28)
    if compression in _BMP_PLAIN and first + (size[0] * bits + 31) // 32 * 4 * size[1] > len(
        data
    ):
        raise damaged("BMP", "rows are missing")
    return data


# The longest scripts of progressive encoders have some twenty scans.
_MAX_SCANS = 64
_MAX_SEGMENTS = 2**14
_MAX_EXIF_SEGMENTS = 16

# Markers: start of frame (baseline, progressive, ...), and markers without a length.
_START_OF_FRAME = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_STANDALONE = frozenset({*range(0x01, 0xC0), *range(0xD0, 0xD9)})
_START_OF_SCAN, _END_OF_IMAGE, _APP1 = 0xDA, 0xD9, 0xE1

# Compressed data holds 0xFF before zero and restart markers only; more of them fill up.
_MARKER = re.compile(rb"\xff[^\x00\xff\xd0-\xd7]")


def _jpeg_size(data: bytes) -> Size:
    """Width and height in the first frame; a preview within a segment is not looked at."""
    for marker, at in _jpeg_segments(data):
        if marker in _START_OF_FRAME:
            height, width = struct.unpack_from(">xHH", data, at)
            return width, height
        if marker in {_START_OF_SCAN, _END_OF_IMAGE}:
            break
    raise HeaderError("no frame")


def _jpeg_for_decoder(data: bytes, size: Size) -> bytes:
    """Return the file if its image ends and its scans and segments are not too many.

    Decoders may fill a missing end with grey and succeed.
    """
    del size
    n_scans = n_exif = 0
    try:
        for marker, at in _jpeg_segments(data):
            if marker == _END_OF_IMAGE and n_scans > 0:
                return data
            n_scans += marker == _START_OF_SCAN
            n_exif += marker == _APP1 and data.startswith(b"Exif\0", at)
            for n, largest, what in (
                (n_scans, _MAX_SCANS, "scans"),
                (n_exif, _MAX_EXIF_SEGMENTS, "segments of Exif"),
            ):
                if n > largest:
                    raise damaged("JPEG", f"it has more than {largest} {what}")
    except struct.error:  # a length at the very end
        pass
    raise HeaderError("it is truncated: the end of the JPEG image is missing")


def _jpeg_segments(data: bytes) -> Iterator[tuple[int, int]]:
    """Marker and start of the content of each segment, to the end of the first image."""
    found, n_segments = _MARKER.search(data, 2), 0
    while found is not None:
        n_segments += 1
        if n_segments > _MAX_SEGMENTS:
            raise damaged("JPEG", f"it has more than {_MAX_SEGMENTS} segments")
        at, marker = found.start(), data[found.start() + 1]
        if marker in _STANDALONE:
            at += 2
        else:
            yield marker, at + 4
            if marker == _END_OF_IMAGE:
                return
            at += 2 + struct.unpack_from(">H", data, at + 2)[0]
        found = _MARKER.search(data, at)


_MAX_NETPBM_HEADER = 2**12
_NETPBM_GAP = rb"(?:\s|#[^\n]*\n)+"  # a comment runs to the end of its line
_NETPBM_SIZES = re.compile(
    rb"P([1-6])" + _NETPBM_GAP + rb"(\d{1,10})" + _NETPBM_GAP + rb"(\d{1,10})\s"
)
_NETPBM_LARGEST = re.compile(rb"(?:\s|#[^\n]*\n)*(\d{1,5})\s")

_WITHOUT_LARGEST = frozenset({1, 4})
_IN_COLOUR = frozenset({3, 6})
_AS_TEXT = frozenset({2, 3})


def _netpbm_size(data: bytes) -> Size:
    """Width and height; a header of thousands of bytes is none."""
    _, width, height, _ = _netpbm_header(data)
    return width, height


def _netpbm_for_decoder(data: bytes, size: Size) -> bytes:
    """Return the file if it can hold all values."""
    width, height = size
    kind, _, _, at = _netpbm_header(data)
    bits = 1
    if kind not in _WITHOUT_LARGEST:
        found = _NETPBM_LARGEST.match(data[at : at + _MAX_NETPBM_HEADER])
        if found is None or not 0 < int(found[1]) < 2**16:
            raise damaged("Netpbm", "no largest value from 1 to 65535")
        at += found.end()
        bits = 8 if int(found[1]) < 2**8 else 16
    n_values = width * (3 if kind in _IN_COLOUR else 1)
    if kind == 1:  # white space between bits may be left out
        n_bytes = n_values * height
    elif kind in _AS_TEXT:
        n_bytes = 2 * n_values * height - 1
    else:
        n_bytes = (n_values * bits + 7) // 8 * height
    if at + n_bytes > len(data):
        raise damaged("Netpbm", "values are missing")
    return data


def _netpbm_header(data: bytes) -> tuple[int, int, int, int]:
    """Kind, width, height, and the place behind them."""
    found = _NETPBM_SIZES.match(data[:_MAX_NETPBM_HEADER])
    if found is None:
        raise HeaderError("no size")
    return int(found[1]), int(found[2]), int(found[3]), found.end()


_WIDTH, _HEIGHT, _BITS, _COMPRESSION = 256, 257, 258, 259
_SAMPLES, _PLANES = 277, 284
_TILE_WIDTH, _TILE_HEIGHT = 322, 323
_STRIP_OFFSETS, _STRIP_BYTES, _TILE_OFFSETS, _TILE_BYTES = 273, 279, 324, 325

_CODES = {1: "u1", 3: "u2", 4: "u4"}  # type of a field -> type of its numbers
_SIZES = {1: 1, 2: 1, 3: 2, 4: 4, 5: 8, 6: 1, 7: 1, 8: 2, 9: 4, 10: 8, 11: 4, 12: 8, 13: 4}

# Compressions of photos; Deflate has two numbers.
_COMPRESSIONS = {1: "none", 5: "LZW", 8: "Deflate", 32946: "Deflate", 32773: "PackBits"}
_MAX_BITS, _MAX_SAMPLES, _BITS_OF_PLANES = 16, 4, 8
_SPARE_TILE_PIXELS = 2**20
_BYTES_IN_PLACE = 4


class _TiffDirectory:
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


def _tiff_size(data: bytes) -> Size:
    """Width and height in the first directory."""
    directory = _TiffDirectory(data)
    return directory.value(_WIDTH), directory.value(_HEIGHT)


def _tiff_for_decoder(data: bytes, size: Size) -> bytes:
    """Return the file if it is as long as the fields and strips of its first picture."""
    directory = _TiffDirectory(data)
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


class _Format(NamedTuple):
    """Pattern of the first bytes, and the functions that read the size and check a file."""

    start: bytes
    read_size: Callable[[bytes], Size]
    for_decoder: Callable[[bytes, Size], bytes]


_FORMATS = {
    "JPEG": _Format(rb"\xff\xd8\xff", _jpeg_size, _jpeg_for_decoder),
    "PNG": _Format(rb"\x89PNG\r\n\x1a\n", png_size, png_for_decoder),
    "GIF": _Format(rb"GIF8[79]a", gif_size, gif_for_decoder),
    "BMP": _Format(rb"BM", _bmp_size, _bmp_for_decoder),
    "WebP": _Format(rb"RIFF....WEBP", webp_size, webp_for_decoder),
    "TIFF": _Format(rb"II\*\0|MM\0\*", _tiff_size, _tiff_for_decoder),
    "Netpbm": _Format(rb"P[1-6][\s#]", _netpbm_size, _netpbm_for_decoder),
}

_MAX_BRANDS_BYTES = 256

# Brands of ISO base media files that cameras and web pages use and OpenCV seldom reads.
_BRANDS = {
    "AVIF": {b"avif", b"avis"},
    "HEIC": {b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx", b"mif1", b"msf1"},
}


def read_header(data: bytes) -> Header:
    """Tell the format and size of the image in `data`, or raise `HeaderError`."""
    for name, kind in _FORMATS.items():
        if re.match(kind.start, data, re.DOTALL):
            try:
                width, height = kind.read_size(data)
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
    """Return the part of a file that a decoder needs, or raise `HeaderError`.

    A decoder that is given it takes a bounded number of bytes and of steps for each of the
    pixels that the header declares and for each byte of the file.
    """
    try:
        return _FORMATS[header.format].for_decoder(data, header[1:])
    except HeaderError:
        raise
    except (struct.error, IndexError, KeyError, ValueError):
        raise damaged(header.format, "a part is cut off or missing") from None
