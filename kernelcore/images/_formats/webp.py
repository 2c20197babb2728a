"""WebP files: chunks in a RIFF container; only the first picture is decoded."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from itertools import chain

from kernelcore.images._formats.header import HeaderError, Size, damaged

MAX_CHUNKS = 2**17
MAX_EXIF_BYTES = 2**18  # a decoder's time is quadratic in them

_BITSTREAMS = frozenset({b"VP8 ", b"VP8L"})
_PROFILE, _XMP = 0x20, 0x04  # flags of what is left out
_FRAME_HEADER = 16


def read_size(data: bytes) -> Size:
    """Width and height of the picture, or of the canvas of an animation."""
    kind = data[12:16]
    if kind == b"VP8X":
        return _canvas(data[20:30])
    return _coded_size(kind, data[20:30])


def for_decoder(data: bytes, size: Size) -> bytes:
    """Return a file of the first picture alone, with its transparency and Exif."""
    (length,) = struct.unpack_from("<I", data, 4)
    if length + 8 > len(data):
        raise damaged("WebP", f"it declares {length + 8} bytes and has {len(data)}")
    found: dict[bytes, memoryview] = {}
    for kind, content in _chunks(memoryview(data)[12 : 8 + length]):
        found.setdefault(kind, content)
        if kind in _BITSTREAMS and data[12:16] != b"VP8X":
            break
    kept: list[tuple[bytes, bytes | memoryview]] = []
    if b"VP8X" in found:
        kept.append((b"VP8X", _described(found[b"VP8X"])))
    if b"ANMF" in found:
        frame = found[b"ANMF"]
        _check_frame(frame, size)
        kept += [(b"ANIM", found[b"ANIM"]), (b"ANMF", frame)]
    else:
        coded = _picture_size(found)
        if coded != size:
            raise damaged("WebP", f"it declares {size} pixels and codes {coded}")
        kept += [(k, found[k]) for k in (b"ALPH", *_BITSTREAMS) if k in found]
    exif = found.get(b"EXIF", b"") if b"VP8X" in found else b""
    if len(exif) > MAX_EXIF_BYTES:
        raise damaged("WebP", f"its Exif has more than {MAX_EXIF_BYTES} bytes")
    if len(exif) > 0:
        kept.append((b"EXIF", exif))
    body = b"".join([b"WEBP", *chain.from_iterable(_chunk(*chunk) for chunk in kept)])
    return b"RIFF" + struct.pack("<I", len(body)) + body


def _canvas(content: bytes | memoryview) -> Size:
    low_width, high_width, low_height, high_height = struct.unpack_from("<HBHB", content, 4)
    return (high_width << 16 | low_width) + 1, (high_height << 16 | low_height) + 1


def _coded_size(kind: bytes, content: bytes | memoryview) -> Size:
    """Size that the compressed data themselves declare."""
    if kind == b"VP8 ":
        width, height = struct.unpack_from("<HH", content, 6)
        return width & 0x3FFF, height & 0x3FFF
    if kind == b"VP8L":
        (bits,) = struct.unpack_from("<I", content, 1)
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    raise HeaderError("unknown chunk")


def _picture_size(found: dict[bytes, memoryview]) -> Size:
    kinds = [kind for kind in found if kind in _BITSTREAMS]
    if len(kinds) != 1:
        raise damaged("WebP", f"it must have one picture, and it has {len(kinds)}")
    return _coded_size(kinds[0], found[kinds[0]])


def _check_frame(frame: memoryview, size: Size) -> None:
    """Raise unless the first picture of an animation lies on the canvas."""
    if len(frame) < _FRAME_HEADER:
        raise damaged("WebP", "its first picture is cut off")
    left, top, width, height = (
        int.from_bytes(frame[i : i + 3], "little") for i in (0, 3, 6, 9)
    )
    found = dict(_chunks(frame[_FRAME_HEADER:]))
    if (
        2 * left + width + 1 > size[0]
        or 2 * top + height + 1 > size[1]
        or _picture_size(found) != (width + 1, height + 1)
    ):
        raise damaged("WebP", "its first picture is not within its canvas")


def _described(canvas: memoryview) -> bytes:
    """Chunk VP8X without the flags of what is left out."""
    return bytes([canvas[0] & ~(_PROFILE | _XMP)]) + bytes(canvas[1:])


def _chunks(data: memoryview) -> Iterator[tuple[bytes, memoryview]]:
    at = 0
    for _ in range(MAX_CHUNKS):
        if at + 8 > len(data):
            return
        kind, length = struct.unpack_from("<4sI", data, at)
        if at + 8 + length > len(data):
            raise damaged(
                "WebP", f"the chunk {kind!r} declares {length} bytes, more than are there"
            )
        yield kind, data[at + 8 : at + 8 + length]
        at += 8 + length + length % 2
    raise damaged("WebP", f"it has more than {MAX_CHUNKS} chunks")


def _chunk(kind: bytes, content: bytes | memoryview) -> tuple[bytes, bytes, bytes]:
    padding = b"\0" if len(content) % 2 else b""
    return kind + struct.pack("<I", len(content)), bytes(content), padding
