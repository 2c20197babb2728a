"""Damaged images and bombs: the promises of `read_image` hold in a process of its own."""

import io
import os
import struct
import subprocess
import sys
import zlib
from pathlib import Path

import cv2
import numpy as np
import pytest
from programs import output_of

from fuzz import photo_files
from fuzz.images import check, read_damaged
from fuzz.photo_files import ADAM7, MAKERS, bmp, make, png_chunk, tiff

ROOT = Path(__file__).parents[2]
CORPUS = ROOT / "fuzz" / "corpus" / "images.read_image"
SIGNATURE = b"\x89PNG\r\n\x1a\n"


def png_of(pixels, *chunks, size=(4, 4), bits=8, colour=2, interlaced=0):
    """Put a PNG file together from what inflates to `pixels`, and any other chunks."""
    header = struct.pack(">IIBBBBB", *size, bits, colour, 0, 0, interlaced)
    return b"".join(
        (
            SIGNATURE,
            png_chunk(b"IHDR", header),
            *chunks,
            png_chunk(b"IDAT", zlib.compress(pixels, 9)),
            png_chunk(b"IEND", b""),
        )
    )


def png_with_length(kind, length):
    head = png_of(b"")[: 8 + 25]
    return head + struct.pack(">I", length) + kind + b"abc" + png_chunk(b"IEND", b"")


def jpeg(size=16, **options):
    from PIL import Image

    file = io.BytesIO()
    Image.new(options.pop("mode", "RGB"), (size, size)).save(file, "JPEG", **options)
    return file.getvalue()


def many_scans():
    data = jpeg(512, progressive=True)
    scan = data[data.rfind(b"\xff\xda") : -2]
    return data[:-2] + 2000 * scan + data[-2:]


def wide_exif(n_bytes):
    """Exif data whose every field has all of its bytes."""
    n = min(65535, n_bytes // 24)
    fields = struct.pack(">HHII", 0x010E, 2, n_bytes - 100, 8) * n
    return (b"MM\0*\0\0\0\x08" + struct.pack(">H", n) + fields).ljust(n_bytes, b"\0")


def after_start(segments):
    data = jpeg()
    return data[:2] + segments + data[2:]


def app1(content):
    content = b"Exif\0\0" + content
    return b"\xff\xe1" + struct.pack(">H", 2 + len(content)) + content


def small_tiff(**other):
    fields = {256: 16, 257: 16, 258: 8, 259: 1, 262: 1, 277: 1, 273: 0, 278: 16, 279: 256}
    fields |= {int(tag[1:]): value for tag, value in other.items()}
    return {tag: value if isinstance(value, list) else [value] for tag, value in fields.items()}


def shared_strips():
    """65,535 strips that are the whole file each."""
    fields = small_tiff(t257=65535, t278=1, t273=[0] * 65535, t279=[500_000] * 65535)
    return tiff(fields, bytes(500_000))


def shared_fields():
    fields = small_tiff(t273=0) | {60000 + tag: [2**20] for tag in range(1000)}
    data = bytearray(tiff(fields, bytes(2**22)))
    for at in range(10, 10 + 12 * len(fields), 12):
        if struct.unpack_from("<H", data, at)[0] >= 60000:
            struct.pack_into("<II", data, at + 4, 2**20, 0)
    return bytes(data)


def webp(*chunks):
    padded = (kind + struct.pack("<I", len(c)) + c + bytes(len(c) % 2) for kind, c in chunks)
    body = b"WEBP" + b"".join(padded)
    return b"RIFF" + struct.pack("<I", len(body)) + body


def gif(blocks, *, screen=(4, 4), picture=(4, 4)):
    head = b"GIF89a" + struct.pack("<HHBBB", *screen, 0x80, 0, 0) + bytes(6)
    place = b"," + struct.pack("<HHHHB", 0, 0, *picture, 0)
    return head + blocks + place + b"\2\2\x44\1\0;"


VP8L = (b"VP8L", b"\x2f\0\0\0\0\x88\x88\x08")
WHOLE_CANVAS = (b"VP8X", bytes(4) + b"\xff\x1f\0\xff\x1f\0")


def flipped_length(bit):
    """Flip one bit of the length of a photo's pixels."""
    data = bytearray(photo_files.png(np.random.default_rng(0), (40, 30)))
    at = data.index(b"IDAT") - 4
    data[at] ^= bit
    return bytes(data)


def bombs():
    """Files that cost a decoder far more than their pixels."""

    return {
        "png, pixels of 2 GiB declared": png_with_length(b"IDAT", 0x7FFFFFFF),
        "png, pixels of 4 GiB declared": png_with_length(b"IDAT", 0xFF000000),
        "png, one bit of the pixels' length": flipped_length(0x40),
        "png, the highest bit of the pixels' length": flipped_length(0x80),
        "png, profile that inflates": png_of(
            bytes(52), png_chunk(b"iCCP", b"x\0\0" + zlib.compress(bytes(30_000_000), 9))
        ),
        "png, large second picture": png_of(
            bytes(52),
            png_chunk(b"acTL", struct.pack(">II", 2, 0)),
            png_chunk(b"fcTL", struct.pack(">5I2H2B", 0, 60000, 60000, 0, 0, 1, 10, 0, 0)),
        ),
        "bmp, packed": bmp(1200, 1200, 8, b"\0\1", compression=1),
        "png, text of 2 GiB declared": png_with_length(b"tEXt", 0x7FFFFFFF),
        "png, pixels that inflate": png_of(bytes(50_000_000)),
        "png, Exif in every field": png_of(bytes(52), png_chunk(b"eXIf", wide_exif(2**20))),
        "png, many chunks": png_of(bytes(52), png_chunk(b"tEXt", b"a\0b") * 150_000),
        "jpeg, many scans": many_scans(),
        "jpeg, nothing but fill bytes": b"\xff\xd8" + b"\xff" * 8_000_000,
        "jpeg, many segments": after_start(b"\xff\xfe\0\2" * 200_000),
        "jpeg, many segments of Exif": after_start(app1(b"0123456789") * 100_000),
        "jpeg, much Exif": after_start(app1(wide_exif(65000)) * 100),
        "tiff, large tile": tiff(
            small_tiff(t322=16383, t323=16383, t324=0, t325=100), bytes(300)
        ),
        "tiff, long strip": tiff(small_tiff(t279=0x7FFFFFFF), bytes(300)),
        "tiff, strips that share": shared_strips(),
        "tiff, fields that share": shared_fields(),
        "tiff, many samples": tiff(small_tiff(t277=65535), bytes(300)),
        "tiff, deep planes": tiff(
            small_tiff(t258=16, t277=3, t284=2, t273=[0] * 3, t279=[512] * 3), bytes(1536)
        ),
        "webp, long chunk": b"RIFF\x20\0\0\0WEBPVP8L\xff\xff\xff\x7f" + VP8L[1] * 3,
        "webp, small picture on a large canvas": webp(WHOLE_CANVAS, VP8L),
        "webp, many chunks": webp(WHOLE_CANVAS, *[(b"JUNK", b"")] * 150_000, VP8L),
        "gif, large picture on a small screen": gif(b"", picture=(65535, 65535)),
        "gif, many blocks": gif(b"!\xfe" + b"\1a" * 1_100_000 + b"\0"),
        "bmp, no rows": bmp(8192, 8192, 24, b""),
        "netpbm, no values": b"P6\n8192 8192\n255\n",
        "netpbm, no written values": b"P3\n8192 8192\n255\n1 2 3",
        "netpbm, blanks": b"P5\n" + b" " * 4_000_000 + b"2 2 255\n1234",
    }


# Their pixels are there; what else they declare is skipped.
HARMLESS = {
    "png, pixels that inflate",
    "png, Exif in every field",
    "png, many chunks",
    "jpeg, many segments",
    "tiff, large tile",
    "tiff, long strip",
    "tiff, strips that share",
    "tiff, fields that share",
    "netpbm, blanks",
}


def dear_pictures(side=1200):
    """Files of pictures that take as much memory for a pixel as any do, the cheapest first."""
    lines = sum(-(-(side - top) // down) for _, top, _, down in ADAM7)
    deep = zlib.compress(bytes(8 * side**2))
    return {
        "jpeg, progressive": jpeg(side, progressive=True),
        "webp, lossless": cv2.imencode(
            ".webp", np.zeros((side, side, 3), np.uint8), (cv2.IMWRITE_WEBP_QUALITY, 101)
        )[1].tobytes(),
        "jpeg, progressive, cmyk": jpeg(side, progressive=True, mode="CMYK"),
        "tiff, 16 bits": tiff(
            {
                256: [side], 257: [side], 258: [16] * 4, 259: [8], 262: [2], 277: [4],
                273: [0], 278: [side], 279: [len(deep)],
            },
            deep,
        ),
        "png, 16 bits, interlaced": png_of(
            bytes(8 * side**2 + lines), size=(side, side), bits=16, colour=6, interlaced=1
        ),
    }  # fmt: skip


def outcomes(files, folder):
    """What becomes of image files, in a new process: no memory was taken in it before."""
    for name, data in files.items():
        (folder / name).write_bytes(data)
    done = subprocess.run(
        [sys.executable, "-m", "fuzz.images", *files],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return dict(line.split(" ", 1)[::-1] for line in done.stdout.splitlines())


def test_bombs_cost_no_more_than_their_pixels(tmp_path):
    found = outcomes(bombs(), tmp_path)
    assert found.keys() == bombs().keys()
    assert {name for name, outcome in found.items() if outcome == "read"} == HARMLESS


def test_reading_takes_a_bounded_amount_of_memory_for_each_pixel(tmp_path):
    pictures = dear_pictures()
    assert outcomes(pictures, tmp_path) == dict.fromkeys(pictures, "read")


class Bits(list):
    """Bits of a lossless WebP picture, the lowest of each number first."""

    def put(self, value, n):
        self.extend(value >> i & 1 for i in range(n))

    def one_symbol(self, n_codes):
        """Codes of one symbol each, which take no bits."""
        self.extend([1, 0, 0, 0] * n_codes)

    def code_of_bytes(self, n_symbols):
        """A code of which the symbols 0 to 255 take eight bits each."""
        self.put(0, 1)
        self.put(12 - 4, 4)
        for symbol in (17, 18, 0, 1, 2, 3, 4, 5, 16, 6, 7, 8):
            self.put(symbol in {0, 8}, 3)
        self.put(0, 1)
        self.extend(symbol < 256 for symbol in range(n_symbols))


def webp_of_many_tables(side=1024):
    """Give a picture of zeros in which every 4 x 4 pixels have codes of their own."""
    bits, n_tables = Bits(), (side // 4) ** 2
    for value, n in ((0x2F, 8), (side - 1, 14), (side - 1, 14), (0, 4), (0, 2), (1, 4), (0, 1)):
        bits.put(value, n)
    bits.code_of_bytes(280)
    bits.code_of_bytes(256)
    bits.one_symbol(3)
    for table in range(n_tables):
        bits.put(table, 16)
    bits.one_symbol(5 * n_tables)
    return webp((b"VP8L", np.packbits(np.array(bits, np.uint8), bitorder="little").tobytes()))


@pytest.mark.slow
def test_the_tables_of_lossless_webp_take_what_the_documentation_says(tmp_path):
    path = tmp_path / "tables.webp"
    path.write_bytes(webp_of_many_tables())
    script = """
        import resource, sys
        from kernelcore.images import read_image
        read_image(sys.argv[1], max_pixels=2**20)
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
    """
    assert int(output_of(script, path)) < 800


def test_every_kind_is_read(tmp_path):
    for name in MAKERS:
        data = make(name, np.random.default_rng(1), (17, 5))
        assert check(data, tmp_path / "photo") == "read", name


@pytest.mark.parametrize("path", sorted(CORPUS.iterdir()), ids=lambda path: path.name)
def test_what_was_found_stays_mended(path, tmp_path):
    check(path.read_bytes(), tmp_path / "photo")


def test_damaged_images_of_a_few_seeds(tmp_path):
    for seed in range(150):
        read_damaged(np.random.default_rng(seed), tmp_path)


def test_a_check_that_finds_something_says_so(tmp_path, monkeypatch):
    data = photo_files.png(np.random.default_rng(0), (3, 2))
    monkeypatch.setattr(
        "fuzz.images.read_image", lambda *_, **__: np.zeros((9, 9, 3), np.uint8)
    )
    with pytest.raises(AssertionError, match=r"\(9, 9\)|9, 9, 3"):
        check(data, tmp_path / "photo")
    monkeypatch.setattr("fuzz.images.SECONDS", -1.0)
    with pytest.raises(AssertionError):
        check(b"", tmp_path / "photo")
