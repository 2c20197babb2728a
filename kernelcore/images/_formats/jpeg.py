"""JPEG files: a sequence of segments with scans of compressed data between them.

A scan may be empty and yet costs the decoder a walk over all pixels; a segment of Exif costs
it the product of its length and its number of fields. Both are counted here. Memory is no
danger: the decoder keeps at most the coefficients of all pixels.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator

from kernelcore.images._formats.header import HeaderError, Size, damaged

# The longest scripts of progressive encoders have some twenty scans.
MAX_SCANS = 64
MAX_SEGMENTS = 2**14
MAX_EXIF_SEGMENTS = 16

# Markers: start of frame (baseline, progressive, ...), and those that have no length.
_START_OF_FRAME = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_STANDALONE = frozenset({*range(0x01, 0xC0), *range(0xD0, 0xD9)})
_START_OF_SCAN, _END_OF_IMAGE, _APP1 = 0xDA, 0xD9, 0xE1

# Compressed data holds 0xFF before zero and restart markers only; more of them fill up.
_MARKER = re.compile(rb"\xff[^\x00\xff\xd0-\xd7]")


def read_size(data: bytes) -> Size:
    """Width and height in the first frame; a preview within a segment is not looked at."""
    for marker, at in _segments(data):
        if marker in _START_OF_FRAME:
            height, width = struct.unpack_from(">xHH", data, at)
            return width, height
        if marker in {_START_OF_SCAN, _END_OF_IMAGE}:
            break
    raise HeaderError("no frame")


def for_decoder(data: bytes, size: Size) -> bytes:
    """Return the file if its image ends and its scans and segments are not too many.

    Decoders may fill a missing end with grey and succeed.
    """
    del size
    n_scans = n_exif = 0
    try:
        for marker, at in _segments(data):
            if marker == _END_OF_IMAGE and n_scans > 0:
                return data
            n_scans += marker == _START_OF_SCAN
            n_exif += marker == _APP1 and data.startswith(b"Exif\0", at)
            for n, largest, what in (
                (n_scans, MAX_SCANS, "scans"),
                (n_exif, MAX_EXIF_SEGMENTS, "segments of Exif"),
            ):
                if n > largest:
                    raise damaged("JPEG", f"it has more than {largest} {what}")
    except struct.error:  # a length at the very end
        pass
    raise HeaderError("it is truncated: the end of the JPEG image is missing")


def _segments(data: bytes) -> Iterator[tuple[int, int]]:
    """Marker and start of the content of each segment, to the end of the first image."""
    found, n_segments = _MARKER.search(data, 2), 0
    while found is not None:
        n_segments += 1
        if n_segments > MAX_SEGMENTS:
            raise damaged("JPEG", f"it has more than {MAX_SEGMENTS} segments")
        at, marker = found.start(), data[found.start() + 1]
        if marker in _STANDALONE:
            at += 2
        else:
            yield marker, at + 4
            if marker == _END_OF_IMAGE:
                return
            at += 2 + struct.unpack_from(">H", data, at + 2)[0]
        found = _MARKER.search(data, at)
