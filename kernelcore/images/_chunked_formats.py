"""GIF, PNG and WebP files: sequences of chunks; only the chunks of the picture are kept.

Texts, colour profiles, later pictures and the frames of animations are left out, so that
nothing in them can cost memory or time. The compressed pixels of PNG are decompressed once in
small pieces and must give as many bytes as the header asks for: a megabyte can hold a
gigabyte.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from itertools import chain
from typing import TypeAlias

Size: TypeAlias = tuple[int, int]
"""Width and height in pixels."""

_MAX_CHUNKS = 2**17
_MAX_EXIF_BYTES = 2**18  # a decoder's time is quadratic in them


class HeaderError(ValueError):
    """The bytes are no image of a supported format, they end too early, or cost too much."""


def damaged(kind: str, detail: str) -> HeaderError:
    """Error of a file whose parts do not fit together; `detail` says which."""
    return HeaderError(
        f"its {kind} data are damaged, truncated or of an unsupported kind: {detail}"
    )


_GIF_EXTENSION, _GIF_PICTURE = 0x21, 0x2C
_GIF_CONTROL = 0xF9
_MAX_GIF_BLOCKS = 2**20

# A pixel takes at most one code of 12 bits, and another one where the table begins anew.
_GIF_BYTES_PER_PIXEL = 3
_GIF_SPARE_BYTES = 2**10


def gif_size(data: bytes) -> Size:
    """Width and height of the screen that pictures are drawn on."""
    width, height = struct.unpack_from("<HH", data, 6)
    return width, height


def gif_for_decoder(data: bytes, size: Size) -> bytes:
    """Return a file of the first picture alone."""
    at = 13 + _gif_table_bytes(data[10])
    beginning, control = data[:at], b""
    for _ in range(_MAX_GIF_BLOCKS):
        kind = data[at]
        if kind == _GIF_EXTENSION:
            end = _end_of_gif_blocks(data, at + 2)
            if data[at + 1] == _GIF_CONTROL:
                control = data[at:end]
            at = end
        elif kind == _GIF_PICTURE:
            left, top, width, height, flags = struct.unpack_from("<HHHHB", data, at + 1)
            if left + width > size[0] or top + height > size[1] or not width * height:
                raise damaged("GIF", "its first picture is not within its screen")
            pixels = at + 11 + _gif_table_bytes(flags)
            end = _end_of_gif_blocks(data, pixels)
            if end - pixels > _GIF_BYTES_PER_PIXEL * width * height + _GIF_SPARE_BYTES:
                raise damaged("GIF", f"{width} x {height} pixels take {end - pixels} bytes")
            return b"".join((beginning, control, data[at:end], b";"))
        else:
            break
    raise damaged("GIF", "it has no picture")


def _gif_table_bytes(flags: int) -> int:
    """Length of the table of colours that these flags announce."""
    return 3 << ((flags & 7) + 1) if flags & 0x80 else 0


def _end_of_gif_blocks(data: bytes, at: int) -> int:
    """Return the place behind a sequence of blocks, each after its length, 0 the last."""
    for _ in range(_MAX_GIF_BLOCKS):
        length = data[at]
        at += 1 + length
        if length == 0:
            return at
    raise damaged("GIF", f"it has more than {_MAX_GIF_BLOCKS} blocks in a row")


_PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_PNG_HEADER = struct.Struct(">IIBBBBB")

# Samples of a pixel and allowed bits of a sample, by the type of colour.
_PNG_PALETTE = 3
_PNG_SAMPLES = {0: 1, 2: 3, _PNG_PALETTE: 1, 4: 2, 6: 4}
_PNG_BITS = {
    0: {1, 2, 4, 8, 16},
    2: {8, 16},
    _PNG_PALETTE: {1, 2, 4, 8},
    4: {8, 16},
    6: {8, 16},
}
_PNG_TRANSPARENT_BYTES = {0: 2, 2: 6}

# First column and row, and the steps from one to the next, in the passes of interlacing.
_WHOLE = ((0, 0, 1, 1),)
_ADAM7 = (
    (0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2),
    (0, 1, 1, 2),
)  # fmt: skip

_STEP_IN, _STEP_OUT = 2**16, 2**20


def png_size(data: bytes) -> Size:
    """Width and height in the first chunk."""
    if data[12:16] != b"IHDR":
        raise HeaderError("no header")
    width, height, *_ = _PNG_HEADER.unpack_from(data, 16)
    return width, height


def png_for_decoder(data: bytes, size: Size) -> bytes:
    """Return a file of the same picture that holds nothing else."""
    chunks: dict[bytes, memoryview] = {}
    pixels: list[memoryview] = []
    for kind, content in _png_chunks(data):
        if kind == b"IDAT":
            pixels.append(content)
        elif chunks.setdefault(kind, content) is not content:
            raise damaged("PNG", f"it has two chunks {kind.decode()}")
    if len(chunks[b"IHDR"]) != _PNG_HEADER.size:
        raise damaged("PNG", f"its header has {len(chunks[b'IHDR'])} bytes")
    _, _, bits, colour, compression, filters, interlaced = _PNG_HEADER.unpack(chunks[b"IHDR"])
    if (
        bits not in _PNG_BITS.get(colour, ())
        or (compression, filters) != (0, 0)
        or interlaced > 1
    ):
        raise damaged("PNG", f"no such kind of pixels: {bytes(chunks[b'IHDR'][8:]).hex()}")
    n_bytes = _n_png_bytes(size, bits * _PNG_SAMPLES[colour], _ADAM7 if interlaced else _WHOLE)
    kept = [(b"IHDR", bytes(chunks[b"IHDR"]))]
    if b"eXIf" in chunks:
        if len(chunks[b"eXIf"]) > _MAX_EXIF_BYTES:
            raise damaged("PNG", f"its Exif has more than {_MAX_EXIF_BYTES} bytes")
        kept.append((b"eXIf", bytes(chunks[b"eXIf"])))
    kept += _png_colours(chunks, colour, bits)
    kept.append((b"IDAT", _png_pixels(pixels, n_bytes)))
    kept.append((b"IEND", b""))
    return _PNG_SIGNATURE + b"".join(
        part for kind, content in kept for part in _png_chunk(kind, content)
    )


def _png_chunks(data: bytes) -> Iterator[tuple[bytes, memoryview]]:
    """Kind and content of each chunk that the picture depends on."""
    view, at, last = memoryview(data), len(_PNG_SIGNATURE), b""
    has_pixels = False
    for _ in range(_MAX_CHUNKS):
        if at + 12 > len(data):
            raise damaged("PNG", "its end is missing")
        length, kind = struct.unpack_from(">I4s", data, at)
        end = at + 8 + length
        if end + 4 > len(data):
            raise damaged(
                "PNG", f"the chunk {kind!r} declares {length} bytes, more than are there"
            )
        if kind in {b"IHDR", b"PLTE", b"tRNS", b"eXIf", b"IDAT", b"IEND"}:
            if zlib.crc32(view[at + 4 : end]) != struct.unpack_from(">I", data, end)[0]:
                raise damaged("PNG", f"the checksum of the chunk {kind.decode()} is wrong")
            if kind == b"IEND":
                return
            if kind == b"IDAT" and has_pixels and last != b"IDAT":
                raise damaged("PNG", "its chunks IDAT do not follow one another")
            has_pixels |= kind == b"IDAT"
            yield kind, view[at + 8 : end]
        elif not kind[0] & 0x20:  # a capital: nobody may leave it out
            raise damaged("PNG", f"it has a chunk {kind!r}")
        at, last = end + 4, kind
    raise damaged("PNG", f"it has more than {_MAX_CHUNKS} chunks")


def _n_png_bytes(size: Size, bits: int, passes: tuple[tuple[int, int, int, int], ...]) -> int:
    """Bytes of all rows, each after one that names its filter."""
    n_bytes = 0
    for left, top, right, down in passes:
        width, height = -((left - size[0]) // right), -((top - size[1]) // down)
        if width > 0 and height > 0:
            n_bytes += height * (1 + (width * bits + 7) // 8)
    return n_bytes


def _png_colours(
    chunks: dict[bytes, memoryview], colour: int, bits: int
) -> Iterator[tuple[bytes, bytes]]:
    """Palette, with an entry for every value a pixel can have, and transparent colours."""
    palette, transparent = bytes(chunks.get(b"PLTE", b"")), bytes(chunks.get(b"tRNS", b""))
    if colour == _PNG_PALETTE:
        if not 0 < len(palette) <= 3 << bits or len(palette) % 3:
            raise damaged("PNG", f"its palette has {len(palette)} bytes for {bits} bits")
        yield b"PLTE", palette.ljust(3 << bits, b"\0")
    if transparent and colour in {0, 2, _PNG_PALETTE}:
        expected = _PNG_TRANSPARENT_BYTES.get(colour, len(transparent))
        if len(transparent) != expected or (
            colour == _PNG_PALETTE and len(transparent) > len(palette) // 3
        ):
            raise damaged("PNG", f"{len(transparent)} bytes name its transparent colours")
        yield b"tRNS", transparent


def _png_pixels(pixels: list[memoryview], n_bytes: int) -> bytes:
    """Compressed pixels that inflate to `n_bytes` bytes, without anything behind them."""
    inflate, n_out, used = zlib.decompressobj(), 0, []
    for content in pixels:
        for at in range(0, len(content), _STEP_IN):
            piece: memoryview | bytes = content[at : at + _STEP_IN]
            used.append(piece)
            while True:
                try:
                    out = len(inflate.decompress(piece, _STEP_OUT))
                except zlib.error as error:
                    raise damaged("PNG", str(error)) from None
                n_out += out
                if n_out > n_bytes:
                    raise damaged("PNG", f"its pixels take more than {n_bytes} bytes")
                piece = inflate.unconsumed_tail
                if inflate.eof or (out < _STEP_OUT and not piece):
                    break
            if inflate.eof:
                break
        if inflate.eof:
            break
    if n_out < n_bytes or not inflate.eof:
        raise damaged("PNG", f"its pixels take {n_out} bytes instead of {n_bytes}")
    compressed = b"".join(used)
    return compressed[: len(compressed) - len(inflate.unused_data)]


def _png_chunk(kind: bytes, content: bytes) -> tuple[bytes, bytes, bytes, bytes]:
    checksum = zlib.crc32(content, zlib.crc32(kind))
    return struct.pack(">I", len(content)), kind, content, struct.pack(">I", checksum)


_WEBP_BITSTREAMS = frozenset({b"VP8 ", b"VP8L"})
_WEBP_PROFILE, _WEBP_XMP = 0x20, 0x04  # flags of chunks that are left out
_WEBP_FRAME_HEADER = 16


def webp_size(data: bytes) -> Size:
    """Width and height of the picture, or of the canvas of an animation."""
    kind = data[12:16]
    if kind == b"VP8X":
        return _webp_canvas(data[20:30])
    return _webp_coded_size(kind, data[20:30])


def webp_for_decoder(data: bytes, size: Size) -> bytes:
    """Return a file of the first picture alone, with its transparency and Exif."""
    (length,) = struct.unpack_from("<I", data, 4)
    if length + 8 > len(data):
        raise damaged("WebP", f"it declares {length + 8} bytes and has {len(data)}")
    found: dict[bytes, memoryview] = {}
    for kind, content in _webp_chunks(memoryview(data)[12 : 8 + length]):
        found.setdefault(kind, content)
        if kind in _WEBP_BITSTREAMS and data[12:16] != b"VP8X":
            break
    kept: list[tuple[bytes, bytes | memoryview]] = []
    if b"VP8X" in found:
        kept.append((b"VP8X", _webp_described(found[b"VP8X"])))
    if b"ANMF" in found:
        frame = found[b"ANMF"]
        _check_webp_frame(frame, size)
        kept += [(b"ANIM", found[b"ANIM"]), (b"ANMF", frame)]
    else:
        coded = _webp_picture_size(found)
        if coded != size:
            raise damaged("WebP", f"it declares {size} pixels and codes {coded}")
        kept += [(k, found[k]) for k in (b"ALPH", *_WEBP_BITSTREAMS) if k in found]
    exif = found.get(b"EXIF", b"") if b"VP8X" in found else b""
    if len(exif) > _MAX_EXIF_BYTES:
        raise damaged("WebP", f"its Exif has more than {_MAX_EXIF_BYTES} bytes")
    if len(exif) > 0:
        kept.append((b"EXIF", exif))
    body = b"".join([b"WEBP", *chain.from_iterable(_webp_chunk(*chunk) for chunk in kept)])
    return b"RIFF" + struct.pack("<I", len(body)) + body


def _webp_canvas(content: bytes | memoryview) -> Size:
    low_width, high_width, low_height, high_height = struct.unpack_from("<HBHB", content, 4)
    return (high_width << 16 | low_width) + 1, (high_height << 16 | low_height) + 1


def _webp_coded_size(kind: bytes, content: bytes | memoryview) -> Size:
    """Size that the compressed data themselves declare."""
    if kind == b"VP8 ":
        width, height = struct.unpack_from("<HH", content, 6)
        return width & 0x3FFF, height & 0x3FFF
    if kind == b"VP8L":
        (bits,) = struct.unpack_from("<I", content, 1)
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    raise HeaderError("unknown chunk")


def _webp_picture_size(found: dict[bytes, memoryview]) -> Size:
    kinds = [kind for kind in found if kind in _WEBP_BITSTREAMS]
    if len(kinds) != 1:
        raise damaged("WebP", f"it must have one picture, and it has {len(kinds)}")
    return _webp_coded_size(kinds[0], found[kinds[0]])


def _check_webp_frame(frame: memoryview, size: Size) -> None:
    """Raise unless the first picture of an animation lies on the canvas."""
    if len(frame) < _WEBP_FRAME_HEADER:
        raise damaged("WebP", "its first picture is cut off")
    left, top, width, height = (
        int.from_bytes(frame[i : i + 3], "little") for i in (0, 3, 6, 9)
    )
    found = dict(_webp_chunks(frame[_WEBP_FRAME_HEADER:]))
    if (
        2 * left + width + 1 > size[0]
        or 2 * top + height + 1 > size[1]
        or _webp_picture_size(found) != (width + 1, height + 1)
    ):
        raise damaged("WebP", "its first picture is not within its canvas")


def _webp_described(canvas: memoryview) -> bytes:
    """Chunk VP8X without the flags of chunks that are left out."""
    return bytes([canvas[0] & ~(_WEBP_PROFILE | _WEBP_XMP)]) + bytes(canvas[1:])


def _webp_chunks(data: memoryview) -> Iterator[tuple[bytes, memoryview]]:
    at = 0
    for _ in range(_MAX_CHUNKS):
        if at + 8 > len(data):
            return
        kind, length = struct.unpack_from("<4sI", data, at)
        if at + 8 + length > len(data):
            raise damaged(
                "WebP", f"the chunk {kind!r} declares {length} bytes, more than are there"
            )
        yield kind, data[at + 8 : at + 8 + length]
        at += 8 + length + length % 2
    raise damaged("WebP", f"it has more than {_MAX_CHUNKS} chunks")


def _webp_chunk(kind: bytes, content: bytes | memoryview) -> tuple[bytes, bytes, bytes]:
    padding = b"\0" if len(content) % 2 else b""
    return kind + struct.pack("<I", len(content)), bytes(content), padding
