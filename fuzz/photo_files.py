"""Small image files of every kind that `read_image` accepts, for tests and for mutation."""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

import cv2
import numpy as np
import numpy.typing as npt
from PIL import Image

Pixels: TypeAlias = npt.NDArray[np.uint8]
Maker: TypeAlias = Callable[[np.random.Generator, tuple[int, int]], bytes]
"""Gives a file of random pixels and of this width and height."""

ADAM7 = ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2),
          (0, 1, 1, 2))  # fmt: skip
_SAMPLES = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}


def png_chunk(kind: bytes, content: bytes) -> bytes:
    """Give a chunk of PNG with its length and its checksum."""
    checksum = zlib.crc32(kind + content)
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", checksum)


def png(
    rng: np.random.Generator,
    size: tuple[int, int],
    *,
    colour: int = 2,
    bits: int = 8,
    interlaced: bool = False,
    extra: bytes = b"",
) -> bytes:
    """Give a PNG file of any type of colour, with filters drawn for each row."""
    width, height = size
    rows = b""
    for left, top, right, down in ADAM7 if interlaced else ((0, 0, 1, 1),):
        columns, lines = len(range(left, width, right)), len(range(top, height, down))
        if columns:
            for _ in range(lines):
                row = rng.bytes((columns * bits * _SAMPLES[colour] + 7) // 8)
                rows += bytes([rng.integers(5)]) + row
    header = struct.pack(">IIBBBBB", width, height, bits, colour, 0, 0, interlaced)
    palette = png_chunk(b"PLTE", rng.bytes(3 << bits)) if colour == 3 else b""
    data = zlib.compress(rows)
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        (
            png_chunk(b"IHDR", header),
            palette,
            extra,
            png_chunk(b"IDAT", data[: len(data) // 2]),
            png_chunk(b"IDAT", data[len(data) // 2 :]),
            png_chunk(b"IEND", b""),
        )
    )


def exif(orientation: int) -> bytes:
    """Exif data that say nothing but how the picture is turned."""
    return (
        b"MM\0*\0\0\0\x08\0\1" + struct.pack(">HHIHH", 0x0112, 3, 1, orientation, 0) + bytes(4)
    )


def tiff(fields: dict[int, list[int]], data: bytes, *, order: str = "<") -> bytes:
    """Give a TIFF file whose offsets of strips and tiles count from the start of `data`."""
    start = 8 + 2 + 12 * len(fields) + 4
    first = start + sum(4 * len(values) for values in fields.values() if len(values) > 1)
    directory, arrays = b"", b""
    for tag, numbers in sorted(fields.items()):
        values = [first + number for number in numbers] if tag in {273, 324} else numbers
        if len(values) == 1:
            directory += struct.pack(order + "HHII", tag, 4, 1, values[0])
        else:
            directory += struct.pack(order + "HHII", tag, 4, len(values), start + len(arrays))
            arrays += struct.pack(f"{order}{len(values)}I", *values)
    head = (b"II*\0" if order == "<" else b"MM\0*") + struct.pack(order + "I", 8)
    return head + struct.pack(order + "H", len(fields)) + directory + bytes(4) + arrays + data


def bmp(width: int, height: int, bits: int, data: bytes, *, compression: int = 0) -> bytes:
    """Give a BMP file with a palette of greys where it needs one."""
    colours = 1 << bits if bits <= 8 else 0
    greys = [value * 255 // (colours - 1) for value in range(colours)]
    palette = b"".join(bytes([grey, grey, grey, 0]) for grey in greys)
    first = 54 + len(palette)
    about = (40, width, height, 1, bits, compression, 0, 0, 0, colours, 0)
    file = struct.pack("<IHHI", first + len(data), 0, 0, first)
    return b"BM" + file + struct.pack("<IiiHHIIiiII", *about) + palette + data


def _photo(rng: np.random.Generator, size: tuple[int, int], n_channels: int = 3) -> Pixels:
    """Draw pixels that are smooth, as in photos, below some noise."""
    y, x = np.mgrid[: size[1], : size[0]]
    slopes = rng.uniform(-9, 9, (3, n_channels))
    plane = 128 + x[..., None] * slopes[0] + y[..., None] * slopes[1]
    noise = rng.normal(0, 6, (size[1], size[0], n_channels))
    pixels: Pixels = np.clip(plane + noise, 0, 255).astype(np.uint8)
    return pixels


def _with_pillow(
    mode: str, kind: str, rng: np.random.Generator, size: tuple[int, int], **options: Any
) -> bytes:
    n_channels = len(Image.new(mode, (1, 1)).getbands())
    pixels = _photo(rng, size, min(n_channels, 3) if mode == "CMYK" else n_channels)
    picture = Image.fromarray(pixels[:, :, 0] if n_channels == 1 else pixels)
    if mode == "CMYK":
        picture = picture.convert("CMYK")
    file = io.BytesIO()
    if options.pop("n_frames", 1) > 1:
        options |= {"save_all": True, "append_images": [picture.rotate(90 * k) for k in (1, 2)]}
    picture.save(file, kind, **options)
    return file.getvalue()


def _with_opencv(
    extension: str,
    rng: np.random.Generator,
    size: tuple[int, int],
    *,
    n_channels: int = 3,
    options: tuple[int, ...] = (),
    bits: int = 8,
) -> bytes:
    pixels = _photo(rng, size, n_channels)
    array = pixels if bits == 8 else pixels.astype(np.uint16) * 257
    return bytes(cv2.imencode(extension, array, options)[1])


def _turned_jpeg(rng: np.random.Generator, size: tuple[int, int]) -> bytes:
    orientation = exif(int(rng.integers(1, 9)))
    return _with_pillow("RGB", "JPEG", rng, size, exif=b"Exif\0\0" + orientation)


def _netpbm(rng: np.random.Generator, size: tuple[int, int]) -> bytes:
    kind = int(rng.integers(1, 7))
    largest = int(rng.choice([1, 200, 255, 65535]))
    n = size[0] * (3 if kind in {3, 6} else 1) * size[1]
    head = b"P%d\n# made\n%d %d\n" % (kind, *size)
    if kind not in {1, 4}:
        head += b"%d\n" % largest
    if kind == 4:
        return head + rng.bytes((size[0] + 7) // 8 * size[1])
    values = rng.integers(0, (1 if kind == 1 else largest) + 1, n)
    if kind < 4:
        return head + b" ".join(b"%d" % value for value in values) + b"\n"
    return head + values.astype(">u2" if largest > 255 else "u1").tobytes()


def _any_bmp(rng: np.random.Generator, size: tuple[int, int]) -> bytes:
    width, height = size
    bits = int(rng.choice([1, 4, 8, 16, 24, 32]))
    row = (width * bits + 31) // 32 * 4
    down = int(rng.choice([1, -1]))
    return bmp(width, down * height, bits, rng.bytes(row * height))


def _packed_bmp(rng: np.random.Generator, size: tuple[int, int]) -> bytes:
    width, height = size
    rows = b""
    for _ in range(height):
        rows += bytes([width, rng.integers(256)]) + b"\0\0"
    return bmp(width, height, 8, rows + b"\0\1", compression=1)


def _any_tiff(rng: np.random.Generator, size: tuple[int, int]) -> bytes:
    width, height = size
    order = str(rng.choice(["<", ">"]))
    samples, bits = int(rng.choice([1, 3, 4])), int(rng.choice([8, 16]))
    # Deep tiles, deep planes and plain tiles are beyond OpenCV.
    tiled = bits == 8 and rng.random() < 0.6
    planes = samples if bits == 8 and rng.random() < 0.3 else 1
    compression = int(rng.choice([8, 32946] if tiled else [1, 8, 32946]))
    fields = {
        256: [width], 257: [height], 258: [bits] * samples, 259: [compression],
        262: [1 if samples == 1 else 2], 277: [samples],
    }  # fmt: skip
    if planes > 1:
        fields[284] = [2]
    part = (16, 16) if tiled else (width, int(rng.integers(1, height + 1)))
    n_parts = -(-width // part[0]) * -(-height // part[1]) * planes
    n_bytes = part[0] * part[1] * bits // 8 * (samples // planes)
    parts = [rng.bytes(n_bytes) for _ in range(n_parts)]
    if compression != 1:
        parts = [zlib.compress(content) for content in parts]
    offsets = [0, *np.cumsum([len(content) for content in parts])[:-1].tolist()]
    lengths = [len(content) for content in parts]
    if tiled:
        fields |= {322: [16], 323: [16], 324: offsets, 325: lengths}
    else:
        fields |= {273: offsets, 278: [part[1]], 279: lengths}
    return tiff(fields, b"".join(parts), order=order)


MAKERS: dict[str, Maker] = {
    "jpeg": partial(_with_opencv, ".jpg"),
    "grey jpeg": partial(_with_opencv, ".jpg", n_channels=1),
    "jpeg with restarts": partial(
        _with_opencv, ".jpg", options=(cv2.IMWRITE_JPEG_RST_INTERVAL, 2)
    ),
    "progressive jpeg": partial(_with_pillow, "RGB", "JPEG", progressive=True),
    "cmyk jpeg": partial(_with_pillow, "CMYK", "JPEG"),
    "jpeg with profile": partial(_with_pillow, "RGB", "JPEG", icc_profile=bytes(300)),
    "turned jpeg": _turned_jpeg,
    **{
        f"png {colour}/{bits}{' interlaced' if interlaced else ''}": partial(
            png, colour=colour, bits=bits, interlaced=interlaced
        )
        for colour, allowed in (
            (0, (1, 2, 4, 8, 16)), (2, (8, 16)), (3, (1, 2, 4, 8)), (4, (8, 16)), (6, (8, 16)),
        )
        for bits in allowed
        for interlaced in (False, True)
    },
    "png with text": partial(png, extra=png_chunk(b"tEXt", b"a\0b")),
    "png with transparent colours": partial(
        png, colour=3, bits=4, extra=png_chunk(b"tRNS", bytes(range(16)))
    ),
    "turned png": partial(png, extra=png_chunk(b"eXIf", exif(6))),
    "animated png": partial(_with_pillow, "RGB", "PNG", n_frames=3),
    "gif": partial(_with_pillow, "RGB", "GIF"),
    "animated gif": partial(_with_pillow, "RGB", "GIF", n_frames=3),
    "bmp": _any_bmp,
    "packed bmp": _packed_bmp,
    "webp": partial(_with_opencv, ".webp", options=(cv2.IMWRITE_WEBP_QUALITY, 80)),
    "lossless webp": partial(_with_opencv, ".webp", options=(cv2.IMWRITE_WEBP_QUALITY, 101)),
    "webp with alpha": partial(_with_pillow, "RGBA", "WEBP"),
    "turned webp": partial(_with_pillow, "RGB", "WEBP", exif=b"Exif\0\0" + exif(8)),
    "animated webp": partial(_with_pillow, "RGBA", "WEBP", n_frames=3),
    "tiff": partial(_with_opencv, ".tiff"),
    "deep tiff": partial(_with_opencv, ".tiff", bits=16),
    "packbits tiff": partial(_with_pillow, "RGB", "TIFF", compression="packbits"),
    "lzw tiff": partial(_with_pillow, "RGBA", "TIFF", compression="tiff_lzw"),
    "cmyk tiff": partial(_with_pillow, "CMYK", "TIFF"),
    "any tiff": _any_tiff,
    "netpbm": _netpbm,
}  # fmt: skip


def make(name: str, rng: np.random.Generator, size: tuple[int, int]) -> bytes:
    """Give a file of the kind `name` in `MAKERS`."""
    return MAKERS[name](rng, size)
