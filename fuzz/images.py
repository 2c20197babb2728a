"""Images that were damaged: `read_image` gives the declared pixels or says what is wrong."""

from __future__ import annotations

import io
import logging
import os
import resource
import struct
import sys
import time
import warnings
import zlib
from functools import cache
from pathlib import Path

import cv2
import numpy as np
from PIL import Image

from fuzz.photo_files import MAKERS, make
from fuzz.target import Target
from kernelcore.images import UnreadableImageError, read_image
from kernelcore.images.read import DEFAULT_MAX_PIXELS

# What read_image promises, and what a process takes besides.
BYTES_PER_PIXEL, COPIES_OF_FILE, SPARE_BYTES = 24, 4, 2**25
SECONDS = 2.0

_MAX_PIXELS = 2**22
_N_PHOTOS = 64
_ODD_NUMBERS = (0, 1, 2, 255, 256, 0x7FFF, 0x8000, 0xFFFF, 2**24, 2**31 - 1, 2**31, 2**32 - 1)
_RSS_UNIT = 1 if sys.platform == "darwin" else 1024


def read_damaged(rng: np.random.Generator, folder: Path) -> None:
    """Make an image, damage it, and read it."""
    check(damaged(rng), folder / "photo")


def damaged(rng: np.random.Generator) -> bytes:
    """Give an image file that was damaged in one to four places."""
    data = _whole(rng)
    for _ in range(int(rng.choice([1, 1, 1, 2, 2, 3, 4]))):
        data = _damage(rng, data)
    if rng.random() < 0.8:
        data = mended(data)
    return data


def check(data: bytes, path: Path, *, max_pixels: int = _MAX_PIXELS) -> str:
    """Read an image file and raise unless all promises are kept; tell how it went."""
    path.write_bytes(data)
    before, started = _peak(), time.thread_time()
    try:
        pixels = read_image(path, max_pixels=max_pixels)
    except UnreadableImageError as error:
        outcome, named = "refused", str(error).startswith(f"{path}: ")
    else:
        outcome, named = "read", True
        assert pixels.dtype == np.uint8
        assert pixels.ndim == 3 and pixels.shape[2] == 3  # noqa: PT018
    assert named, "the error does not name the file"
    seconds, grown = time.thread_time() - started, _peak() - before
    declared = declared_size(data)
    if outcome == "read":
        assert declared is not None, "pixels of a file without a header"
        assert sorted(pixels.shape[:2]) == sorted(declared), (pixels.shape, declared)
    assert seconds <= SECONDS, f"{seconds:.1f} seconds"
    n_pixels = 0 if declared is None else min(declared[0] * declared[1], max_pixels)
    allowed = BYTES_PER_PIXEL * n_pixels + COPIES_OF_FILE * len(data) + SPARE_BYTES
    assert grown <= allowed, f"{grown} bytes of memory for {declared} in {len(data)} bytes"
    return outcome


def declared_size(data: bytes) -> tuple[int, int] | None:
    """Width and height that Pillow finds in the header, None if it finds no header."""
    try:
        logging.getLogger("PIL").setLevel(logging.CRITICAL)
        with warnings.catch_warnings(action="ignore"):
            return Image.open(io.BytesIO(data)).size
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError):
        return None


def mended(data: bytes) -> bytes:
    """Give the lengths and checksums of a damaged file the values that decoders check."""
    if data.startswith(b"\x89PNG"):
        return _with_checksums(data)
    if data.startswith(b"RIFF") and len(data) >= 8:
        return data[:4] + struct.pack("<I", len(data) - 8) + data[8:]
    return data


def _with_checksums(data: bytes) -> bytes:
    result, at = bytearray(data), 8
    while at + 12 <= len(data):
        (length,) = struct.unpack_from(">I", data, at)
        end = at + 8 + length
        if end + 4 > len(data):
            break
        result[end : end + 4] = struct.pack(">I", zlib.crc32(data[at + 4 : end]))
        at = end + 4
    return bytes(result)


def _whole(rng: np.random.Generator) -> bytes:
    photos = _photos()
    if photos and rng.random() < 0.1:
        return photos[rng.integers(len(photos))]
    names = list(MAKERS)
    size = int(rng.integers(1, 33)), int(rng.integers(1, 33))
    return make(names[rng.integers(len(names))], rng, size)


def _damage(rng: np.random.Generator, data: bytes) -> bytes:
    if not data:
        return rng.bytes(8)
    result = bytearray(data)
    # Headers come first, and most of what can go wrong is in them.
    at = (
        int(rng.integers(len(data)))
        if rng.random() < 0.5
        else int(rng.integers(min(96, len(data))))
    )
    n = int(rng.integers(1, 33))
    match rng.integers(10):
        case 0:
            result[at] ^= 1 << int(rng.integers(8))
        case 1:
            result[at] = int(rng.integers(256))
        case 2 | 3 | 4:
            number = _ODD_NUMBERS[rng.integers(len(_ODD_NUMBERS))]
            form = ("<I", ">I", "<H", ">H")[rng.integers(4)]
            coded = struct.pack(form, number & (0xFFFFFFFF if form[1] == "I" else 0xFFFF))
            result[at : at + len(coded)] = coded
        case 5:
            del result[at : at + n]
        case 6:
            result[at:at] = rng.bytes(n)
        case 7:
            result[at:at] = result[at : at + n] * int(rng.choice([1, 2, 8, 100]))
        case 8:
            del result[at + 1 :]
        case _:
            result[at] = (result[at] + int(rng.choice([-1, 1]))) % 256
    return bytes(result)


@cache
def _photos() -> tuple[bytes, ...]:
    """Corners of some real photos, if there are any here."""
    root = Path(os.environ.get("KERNELCORE_DATA", "none")) / "flickr8k"
    files = sorted(root.rglob("*.jpg"))[:: 8091 // _N_PHOTOS]
    photos = [cv2.imread(str(file)) for file in files]
    corners = [photo[:48, :64] for photo in photos if photo is not None]
    return tuple(bytes(cv2.imencode(".jpg", corner)[1]) for corner in corners)


def _peak() -> int:
    """Largest memory of this process so far, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _RSS_UNIT


TARGETS: tuple[Target, ...] = (Target("images.read_image", "images", read_damaged),)

if __name__ == "__main__":  # python -m fuzz.images FILE...: what becomes of these files
    for name in sys.argv[1:]:
        print(check(Path(name).read_bytes(), Path(name), max_pixels=DEFAULT_MAX_PIXELS), name)
