"""Every rule by which a file is refused before it is decoded, one file each."""

import struct
import zlib

import numpy as np
import pytest

from fuzz.photo_files import bmp, make, png_chunk, tiff
from kernelcore.images._formats import HeaderError, for_decoder, read_header

RNG = np.random.default_rng(0)
PIXELS = zlib.compress(bytes(4 * 13))
END = png_chunk(b"IEND", b"")


def head(*, size=(4, 4), bits=8, colour=2, rest=(0, 0, 0)):
    return png_chunk(b"IHDR", struct.pack(">IIBBBBB", *size, bits, colour, *rest))


def png(*chunks):
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


def idat(data=PIXELS):
    return png_chunk(b"IDAT", data)


def palette(n, *others, bits=2, pixels=bytes(4 * 2)):
    colours = png_chunk(b"PLTE", bytes(n))
    return png(head(bits=bits, colour=3), colours, *others, idat(zlib.compress(pixels)), END)


def strips(**other):
    fields = {256: 8, 257: 8, 258: 8, 259: 1, 262: 1, 277: 1, 273: 0, 278: 8, 279: 64}
    fields |= {int(tag[1:]): value for tag, value in other.items()}
    return {
        tag: v if isinstance(v, list) else [v] for tag, v in fields.items() if v is not None
    }


def twice_the_same_field():
    data = bytearray(tiff(strips(), bytes(64)))
    data[10 + 12 : 10 + 14] = data[10:12]
    return bytes(data)


def chunks(*parts, kind=b"WEBP"):
    body = kind + b"".join(k + struct.pack("<I", len(c)) + c for k, c in parts)
    return b"RIFF" + struct.pack("<I", len(body)) + body


VP8L = (b"VP8L", b"\x2f\0\0\0\0\x88\x88\x08")  # one pixel
CANVAS = (b"VP8X", bytes(10))
WIDE = (b"VP8X", bytes(4) + b"\1\0\0\0\0\0")


def frame(left=0, width=0, parts=(VP8L,)):
    place = bytes([left, 0, 0, 0, 0, 0, width, 0, 0, 0, 0, 0]) + bytes(4)
    return b"ANMF", place + b"".join(k + struct.pack("<I", len(c)) + c for k, c in parts)


def gif(picture=(0, 0, 4, 4), blocks=b"\2\2\x44\1\0;"):
    start = b"GIF89a" + struct.pack("<HHBBB", 4, 4, 0x80, 0, 0) + bytes(6)
    return start + b"," + struct.pack("<HHHHB", *picture, 0) + blocks


REFUSED = {
    "no end": (png(head(), idat()), "its end is missing"),
    "cut checksum": (png(head(), idat())[:-2], "IDAT.* more than are there"),
    "wrong checksum": (png(head(), idat()[:-1] + b"\0", END), "checksum of the chunk IDAT"),
    "two headers": (png(head(), head(), idat(), END), "two chunks IHDR"),
    "long header": (png(png_chunk(b"IHDR", b"\0\0\0\4\0\0\0\4" + bytes(6)), END), "14 bytes"),
    "3 bits": (png(head(bits=3), idat(), END), "no such kind of pixels: 0302000000"),
    "colour 5": (png(head(colour=5), idat(), END), "no such kind of pixels"),
    "compression": (png(head(rest=(1, 0, 0)), idat(), END), "no such kind of pixels"),
    "filter": (png(head(rest=(0, 64, 0)), idat(), END), "no such kind of pixels"),
    "interlacing": (png(head(rest=(0, 0, 2)), idat(), END), "no such kind of pixels"),
    "needed chunk": (png(head(), png_chunk(b"ABCD", b""), idat(), END), "a chunk b'ABCD'"),
    "pixels apart": (
        png(head(), idat(PIXELS[:5]), png_chunk(b"tEXt", b""), idat(PIXELS[5:]), END),
        "do not follow one another",
    ),
    "no pixels": (png(head(), END), "take 0 bytes instead of 52"),
    "few pixels": (png(head(), idat(zlib.compress(bytes(51))), END), "51 bytes instead of 52"),
    "many pixels": (png(head(), idat(zlib.compress(bytes(53))), END), "more than 52 bytes"),
    "no end of pixels": (png(head(), idat(PIXELS[:-4]), END), "52 bytes instead of 52"),
    "no deflate": (png(head(), idat(b"abcdefgh"), END), "Error -3"),
    "no palette": (palette(0), "palette has 0 bytes"),
    "part of a colour": (palette(5), "palette has 5 bytes for 2 bits"),
    "long palette": (palette(15), "palette has 15 bytes for 2 bits"),
    "transparent": (palette(6, png_chunk(b"tRNS", bytes(3))), "3 bytes name its transparent"),
    "transparent colour": (
        png(head(), png_chunk(b"tRNS", bytes(5)), idat(), END),
        "5 bytes name its transparent",
    ),
    "gif off its screen": (gif((1, 0, 4, 4)), "not within its screen"),
    "gif without height": (gif((0, 0, 4, 0)), "not within its screen"),
    "gif without a picture": (gif()[:19] + b";", "it has no picture"),
    "gif cut off": (gif()[:-3], "cut off or missing"),
    "gif, long pixels": (gif(blocks=b"\2" + (b"\xff" + bytes(255)) * 5 + b"\0;"), "16|4 x 4"),
    "bmp, short": (bmp(8, 8, 24, bytes(191)), "rows are missing"),
    "bmp, no bits": (bmp(8, 8, 24, b"")[:27], "cut off or missing"),
    "netpbm, no largest": (b"P5\n1 1\nx 1", "no largest value"),
    "netpbm, largest 0": (b"P5\n1 1\n0\n1", "no largest value"),
    "netpbm, large largest": (b"P5\n1 1\n65536\n11", "no largest value"),
    "netpbm, deep": (b"P5\n2 1\n256\n123", "values are missing"),
    "netpbm, colours": (b"P6\n2 1\n255\n12345", "values are missing"),
    "netpbm, bits": (b"P4\n9 1\n1", "values are missing"),
    "netpbm, digits": (b"P2\n2 1\n9\n12", "values are missing"),
    "netpbm, written bits": (b"P1\n3 1\n10", "values are missing"),
    "webp, shorter than it says": (chunks(VP8L)[:-1], "declares 28 bytes and has 27"),
    "webp, two pictures": (chunks(CANVAS, VP8L, (b"VP8 ", bytes(10))), "one picture.* 2"),
    "webp, no picture": (chunks(CANVAS), "one picture.* 0"),
    "webp, another size": (chunks(WIDE, VP8L), r"declares \(2, 1\) pixels and codes \(1, 1\)"),
    "webp, long Exif": (chunks(CANVAS, VP8L, (b"EXIF", bytes(2**18 + 2))), "its Exif"),
    "webp, off its canvas": (
        chunks(CANVAS, (b"ANIM", bytes(6)), frame(left=1)), "not within its canvas",
    ),
    "webp, another frame": (
        chunks(WIDE, (b"ANIM", bytes(6)), frame(width=1)), "not within its canvas",
    ),
    "webp, short frame": (chunks(CANVAS, (b"ANMF", bytes(8))), "cut off"),
    "tiff, two widths": (twice_the_same_field(), "header is damaged"),
    "tiff, fax": (tiff(strips(t259=4), bytes(64)), "compression is 4, not one of none, LZW"),
    "tiff, jpeg": (tiff(strips(t259=7), bytes(64)), "compression is 7"),
    "tiff, 5 samples": (tiff(strips(t277=5), bytes(320)), "5 values of 8 bits"),
    "tiff, no samples": (tiff(strips(t277=0), bytes(64)), "0 values"),
    "tiff, 32 bits": (tiff(strips(t258=32), bytes(256)), "values of 32 bits"),
    "tiff, no strips": (tiff(strips(t273=None), bytes(64)), "0 strips have 1 lengths"),
    "tiff, no lengths": (tiff(strips(t279=None), bytes(64)), "1 strips have 0 lengths"),
    "tiff, strip beyond": (tiff(strips(t273=1), bytes(64)), "strips take more bytes"),
    "tiff, shared strips": (
        tiff(strips(t278=1, t273=[0] * 8, t279=[60] * 8), bytes(64)), "strips take more bytes",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_breaks_a_rule_is_refused_by_it(name):
    data, reason = REFUSED[name]
    with pytest.raises(HeaderError, match=reason):
        for_decoder(data, read_header(data))


ACCEPTED = {
    "png": png(head(), idat(), END),
    "png, bytes after its end": png(head(), idat(), END) + b"more",
    "png, bytes after its pixels": png(head(), idat(PIXELS + b"more"), idat(b"more"), END),
    "png, palette of a picture in colour": png(
        head(), png_chunk(b"PLTE", bytes(3)), idat(), END
    ),
    "palette": palette(12),
    "gif": gif(),
    "bmp": bmp(8, 8, 24, bytes(192)),
    "bmp of old": b"BM" + struct.pack("<IHHIIHHHH", 34, 0, 0, 26, 12, 1, 2, 1, 24) + bytes(8),
    "bmp, packed": bmp(8, 8, 8, b"\0\1", compression=1),
    "netpbm": b"P5\n2 1\n# comment\n255\n12",
    "netpbm, bits": b"P4\n9 1\n12",
    "netpbm, written bits": b"P1\n3 1\n101",
    "tiff": tiff(strips(), bytes(64)),
    "webp": chunks(VP8L),
    "webp, bytes after its end": chunks(VP8L) + b"more",
    "webp, animated": chunks(CANVAS, (b"ANIM", bytes(6)), frame()),
}


@pytest.mark.parametrize("name", ACCEPTED)
def test_what_keeps_the_rules_is_shown_to_the_decoder(name):
    data = ACCEPTED[name]
    shown = for_decoder(data, read_header(data))
    assert read_header(shown) == read_header(data)
    assert for_decoder(shown, read_header(shown)) == shown


@pytest.mark.parametrize(
    ("name", "marks"),
    [
        ("png with text", [b"tEXt"]),
        ("animated png", [b"acTL", b"fcTL", b"fdAT"]),
        ("animated gif", []),
    ],
)
def test_what_a_picture_does_not_need_is_left_out(name, marks):
    data = make(name, np.random.default_rng(0), (20, 20))
    shown = for_decoder(data, read_header(data))
    for mark in marks:
        assert mark in data
        assert mark not in shown
    assert len(shown) < len(data)
