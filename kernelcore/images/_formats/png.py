"""PNG files: a sequence of chunks; only those that decoding needs are kept.

Texts, colour profiles and the frames of animations are left out, so that nothing in them can
cost memory or time. The compressed pixels are decompressed once in small pieces and must
give as many bytes as the header asks for: a megabyte can hold a gigabyte.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator

from kernelcore.images._formats.header import HeaderError, Size, damaged

MAX_CHUNKS = 2**17
MAX_EXIF_BYTES = 2**18  # a decoder's time is quadratic in them

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_HEADER = struct.Struct(">IIBBBBB")

# Samples of a pixel and allowed bits of a sample, by the type of colour.
_PALETTE = 3
_SAMPLES = {0: 1, 2: 3, _PALETTE: 1, 4: 2, 6: 4}
_BITS = {0: {1, 2, 4, 8, 16}, 2: {8, 16}, _PALETTE: {1, 2, 4, 8}, 4: {8, 16}, 6: {8, 16}}
_TRANSPARENT_BYTES = {0: 2, 2: 6}

# First column and row, and the steps from one to the next, in the passes of interlacing.
_WHOLE = ((0, 0, 1, 1),)
_ADAM7 = (
    (0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2),
    (0, 1, 1, 2),
)  # fmt: skip

_STEP_IN, _STEP_OUT = 2**16, 2**20


def read_size(data: bytes) -> Size:
    """Width and height in the first chunk."""
    if data[12:16] != b"IHDR":
        raise HeaderError("no header")
    width, height, *_ = _HEADER.unpack_from(data, 16)
    return width, height


def for_decoder(data: bytes, size: Size) -> bytes:
    """Return a file of the same picture that holds nothing else."""
    chunks: dict[bytes, memoryview] = {}
    pixels: list[memoryview] = []
    for kind, content in _needed(data):
        if kind == b"IDAT":
            pixels.append(content)
        elif chunks.setdefault(kind, content) is not content:
            raise damaged("PNG", f"it has two chunks {kind.decode()}")
    if len(chunks[b"IHDR"]) != _HEADER.size:
        raise damaged("PNG", f"its header has {len(chunks[b'IHDR'])} bytes")
    _, _, bits, colour, compression, filters, interlaced = _HEADER.unpack(chunks[b"IHDR"])
    if bits not in _BITS.get(colour, ()) or (compression, filters) != (0, 0) or interlaced > 1:
        raise damaged("PNG", f"no such kind of pixels: {bytes(chunks[b'IHDR'][8:]).hex()}")
    n_bytes = _n_bytes(size, bits * _SAMPLES[colour], _ADAM7 if interlaced else _WHOLE)
    kept = [(b"IHDR", bytes(chunks[b"IHDR"]))]
    if b"eXIf" in chunks:
        if len(chunks[b"eXIf"]) > MAX_EXIF_BYTES:
            raise damaged("PNG", f"its Exif has more than {MAX_EXIF_BYTES} bytes")
        kept.append((b"eXIf", bytes(chunks[b"eXIf"])))
    kept += _colours(chunks, colour, bits)
    kept.append((b"IDAT", _compressed(pixels, n_bytes)))
    kept.append((b"IEND", b""))
    return _SIGNATURE + b"".join(
        part for kind, content in kept for part in _chunk(kind, content)
    )


def _needed(data: bytes) -> Iterator[tuple[bytes, memoryview]]:
    """Kind and content of each chunk that the picture depends on."""
    view, at, last = memoryview(data), len(_SIGNATURE), b""
    has_pixels = False
    for _ in range(MAX_CHUNKS):
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
    raise damaged("PNG", f"it has more than {MAX_CHUNKS} chunks")


def _n_bytes(size: Size, bits: int, passes: tuple[tuple[int, int, int, int], ...]) -> int:
    """Bytes of all rows, each after one that names its filter."""
    n_bytes = 0
    for left, top, right, down in passes:
        width, height = -((left - size[0]) // right), -((top - size[1]) // down)
        if width > 0 and height > 0:
            n_bytes += height * (1 + (width * bits + 7) // 8)
    return n_bytes


def _colours(
    chunks: dict[bytes, memoryview], colour: int, bits: int
) -> Iterator[tuple[bytes, bytes]]:
    """Palette, with an entry for every value a pixel can have, and transparent colours."""
    palette, transparent = bytes(chunks.get(b"PLTE", b"")), bytes(chunks.get(b"tRNS", b""))
    if colour == _PALETTE:
        if not 0 < len(palette) <= 3 << bits or len(palette) % 3:
            raise damaged("PNG", f"its palette has {len(palette)} bytes for {bits} bits")
        yield b"PLTE", palette.ljust(3 << bits, b"\0")
    if transparent and colour in {0, 2, _PALETTE}:
        expected = _TRANSPARENT_BYTES.get(colour, len(transparent))
        if len(transparent) != expected or (
            colour == _PALETTE and len(transparent) > len(palette) // 3
        ):
            raise damaged("PNG", f"{len(transparent)} bytes name its transparent colours")
        yield b"tRNS", transparent


def _compressed(pixels: list[memoryview], n_bytes: int) -> bytes:
    """Compressed pixels without what may follow them; they give `n_bytes` bytes."""
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


def _chunk(kind: bytes, content: bytes) -> tuple[bytes, bytes, bytes, bytes]:
    checksum = zlib.crc32(content, zlib.crc32(kind))
    return struct.pack(">I", len(content)), kind, content, struct.pack(">I", checksum)
