"""Small files that cost a decoder far more than their pixels: `read_image` keeps its bound."""

import io
import struct
import warnings
import zlib
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from limits import bounded
from PIL import Image

from kernelcore.images import UnreadableImageError, read_image

FOUND = sorted(Path(__file__).parents[1].joinpath("properties/corpus").glob("photo-*"))
ADAM7 = ((0, 8), (0, 8), (4, 8), (0, 4), (2, 4), (0, 2), (1, 2))  # first row of each pass, step
LARGE = 8192  # squared, as many pixels as are allowed


def saved(kind: str, size: int = 16, mode: str = "RGB", **options: Any) -> bytes:
    buffer = io.BytesIO()
    Image.new(mode, (size, size)).save(buffer, kind, **options)
    return buffer.getvalue()


def chunk(kind: bytes, content: bytes) -> bytes:
    checksum = struct.pack(">I", zlib.crc32(kind + content))
    return struct.pack(">I", len(content)) + kind + content + checksum


def png(pixels: bytes, *chunks: bytes, size: int = 4, about: tuple[int, ...] = (8, 2)) -> bytes:
    """A PNG file of what inflates to `pixels`, and other chunks."""
    bits, colour, interlaced = (*about, 0)[:3]
    header = struct.pack(">IIBBBBB", size, size, bits, colour, 0, 0, interlaced)
    parts = chunk(b"IHDR", header), *chunks, chunk(b"IDAT", zlib.compress(pixels, 9))
    return b"\x89PNG\r\n\x1a\n" + b"".join((*parts, chunk(b"IEND", b"")))


def png_of_length(kind: bytes, length: int) -> bytes:
    return png(b"")[:33] + struct.pack(">I", length) + kind + b"abc" + chunk(b"IEND", b"")


def exif(n_bytes: int) -> bytes:
    """Exif data whose every field has all of its bytes."""
    n = min(65535, n_bytes // 24)
    fields = struct.pack(">HHII", 0x010E, 2, n_bytes - 100, 8) * n
    return (b"MM\0*\0\0\0\x08" + struct.pack(">H", n) + fields).ljust(n_bytes, b"\0")


def jpeg(segments: bytes) -> bytes:
    data = saved("JPEG")
    return data[:2] + segments + data[2:]


def app1(content: bytes) -> bytes:
    return b"\xff\xe1" + struct.pack(">H", 8 + len(content)) + b"Exif\0\0" + content


def many_scans() -> bytes:
    data = saved("JPEG", 512, progressive=True)
    return data[:-2] + 2000 * data[data.rfind(b"\xff\xda") : -2] + data[-2:]


def tiff(data: bytes, **changes: Any) -> bytes:
    """A grey picture of 16 x 16 pixels; offsets of strips count from the start of `data`."""
    fields: dict[int, Any] = {256: 16, 257: 16, 258: 8, 259: 1, 262: 1, 277: 1}
    fields |= {273: 0, 278: 16, 279: 256} | {int(tag[1:]): own for tag, own in changes.items()}
    lists = {tag: own if isinstance(own, list) else [own] for tag, own in fields.items()}
    place = 8 + 2 + 12 * len(lists) + 4
    first = place + 4 * sum(len(own) for own in lists.values() if len(own) > 1)
    directory, arrays = b"", b""
    for tag, own in sorted(lists.items()):
        values = [first + number for number in own] if tag in {273, 324} else own
        packed = struct.pack(f"<{len(values)}I", *values)
        where = struct.pack("<I", place + len(arrays)) if len(values) > 1 else packed
        directory += struct.pack("<HHI", tag, 4, len(values)) + where
        arrays += packed if len(values) > 1 else b""
    count = struct.pack("<H", len(lists))
    return b"II*\0\x08\0\0\0" + count + directory + bytes(4) + arrays + data


def webp(*chunks: tuple[bytes, bytes]) -> bytes:
    parts = (
        kind + struct.pack("<I", len(own)) + own + bytes(len(own) % 2) for kind, own in chunks
    )
    body = b"WEBP" + b"".join(parts)
    return b"RIFF" + struct.pack("<I", len(body)) + body


def gif(blocks: bytes, side: int = 4) -> bytes:
    screen = b"GIF89a" + struct.pack("<HHBBB", 4, 4, 0x80, 0, 0) + bytes(6)
    place = b"," + struct.pack("<HHHHB", 0, 0, side, side, 0)
    return screen + blocks + place + b"\2\2\x44\1\0;"


def bmp(side: int, bits: int, compression: int, data: bytes) -> bytes:
    about = struct.pack("<IiiHHIIiiII", 40, side, side, 1, bits, compression, 0, 0, 0, 0, 0)
    palette = bytes(1024) if bits == 8 else b""
    first = 54 + len(palette)
    return b"BM" + struct.pack("<IHHI", first + len(data), 0, 0, first) + about + palette + data


SHARED = {"t257": 65535, "t278": 1, "t273": [0] * 65535, "t279": [500_000] * 65535}
CANVAS = b"VP8X", bytes(4) + b"\xff\x1f\0\xff\x1f\0"
PIXEL = b"VP8L", b"\x2f\0\0\0\0\x88\x88\x08"
REFUSED = {
    "png, pixels of 2 GiB declared": lambda: png_of_length(b"IDAT", 0x7FFFFFFF),
    "png, text of 2 GiB declared": lambda: png_of_length(b"tEXt", 0x7FFFFFFF),
    "png, profile that inflates": lambda: png(
        bytes(52), chunk(b"iCCP", b"x\0\0" + zlib.compress(bytes(30_000_000), 9))),
    "png, large second picture": lambda: png(
        bytes(52), chunk(b"acTL", struct.pack(">II", 2, 0)),
        chunk(b"fcTL", struct.pack(">5I2H2B", 0, 60000, 60000, 0, 0, 1, 10, 0, 0))),
    "jpeg, many scans": many_scans,
    "jpeg, fill bytes": lambda: b"\xff\xd8" + b"\xff" * 2_000_000,
    "jpeg, many segments of Exif": lambda: jpeg(app1(b"0123456789") * 30_000),
    "jpeg, much Exif": lambda: jpeg(app1(exif(65000)) * 100),
    "tiff, many samples": lambda: tiff(bytes(300), t277=65535),
    "tiff, deep planes": lambda: tiff(
        bytes(1536), t258=16, t277=3, t284=2, t273=[0] * 3, t279=[512] * 3),
    "webp, long chunk": lambda: b"RIFF\x20\0\0\0WEBPVP8L\xff\xff\xff\x7f" + PIXEL[1] * 3,
    "webp, small picture on a large canvas": lambda: webp(CANVAS, PIXEL),
    "webp, many chunks": lambda: webp(CANVAS, *[(b"JUNK", b"")] * 150_000, PIXEL),
    "gif, large picture on a small screen": lambda: gif(b"", 65535),
    "gif, many blocks": lambda: gif(b"!\xfe" + b"\1a" * 500_000 + b"\0"),
    "bmp, no rows": lambda: bmp(LARGE, 24, 0, b""),
    "bmp, packed": lambda: bmp(1200, 8, 1, b"\0\1"),
    "netpbm, no values": lambda: b"P6\n8192 8192\n255\n",
    "netpbm, no written values": lambda: b"P3\n8192 8192\n255\n1 2 3",
}  # fmt: skip
READ = {  # what else they declare is skipped, or their pixels are dear
    "png, pixels that inflate": lambda: png(bytes(50_000_000)),
    "png, Exif in every field": lambda: png(bytes(52), chunk(b"eXIf", exif(2**20))),
    "png, many chunks": lambda: png(bytes(52), chunk(b"tEXt", b"a\0b") * 150_000),
    "png, 16 bits, interlaced": lambda: png(
        bytes(8 * 1200**2 + sum(len(range(top, 1200, step)) for top, step in ADAM7)),
        size=1200, about=(16, 6, 1)),
    "jpeg, many segments": lambda: jpeg(b"\xff\xfe\0\2" * 200_000),
    "jpeg, progressive, cmyk": lambda: saved("JPEG", 1200, "CMYK", progressive=True),
    "webp, lossless": lambda: saved("WEBP", 1200, lossless=True),
    "avif": lambda: saved("AVIF", 1200),
    "tiff, large tile": lambda: tiff(bytes(300), t322=16383, t323=16383, t324=0, t325=100),
    "tiff, long strip": lambda: tiff(bytes(300), t279=0x7FFFFFFF),
    "tiff, strips that share": lambda: tiff(bytes(500_000), **SHARED),
    "netpbm, blanks": lambda: b"P5\n" + b" " * 1_000_000 + b"2 2 255\n1234",
}  # fmt: skip


def n_pixels(data: bytes) -> int:
    """Number of pixels that the header declares, 0 without a header."""
    damage = OSError, ValueError, SyntaxError, Image.DecompressionBombError
    with suppress(*damage), warnings.catch_warnings(action="ignore"):
        width, height = Image.open(io.BytesIO(data)).size
        return min(width * height, LARGE**2)
    return 0


def is_read(data: bytes, path: Path) -> bool:
    """Whether a file gives pixels, in the memory that the documentation promises, and 2 s."""
    path.write_bytes(data)
    try:
        with bounded(24 * n_pixels(data) + 4 * len(data) + 2**25, 2.0):
            return read_image(path).dtype == np.uint8
    except UnreadableImageError as error:
        if not str(error).startswith(f"{path}: "):
            raise AssertionError("the error does not name the file") from error
        return False


@pytest.mark.parametrize("name", REFUSED)
def test_bombs_are_refused(name: str, tmp_path: Path) -> None:
    assert not is_read(REFUSED[name](), tmp_path / "photo")


@pytest.mark.parametrize("name", READ)
def test_what_is_skipped_costs_nothing(name: str, tmp_path: Path) -> None:
    assert is_read(READ[name](), tmp_path / "photo")


@pytest.mark.parametrize("found", FOUND, ids=lambda path: path.name)
def test_what_was_found_by_chance_keeps_the_bound(found: Path, tmp_path: Path) -> None:
    is_read(found.read_bytes(), tmp_path / "photo")
