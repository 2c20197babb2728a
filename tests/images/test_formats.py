import struct

import cv2
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kernelcore.images._formats import Header, HeaderError, for_decoder, read_header

PHOTO = np.random.default_rng(0).integers(0, 256, (37, 59, 3), np.uint8)


def encode(extension, *options):
    return cv2.imencode(extension, PHOTO, options)[1].tobytes()


def tiff(order, width, height, *, kind=3, magic=42):
    code = {1: "BBH", 3: "HH", 4: "I"}[kind]
    field = struct.Struct(order + "HHI" + code)
    padding = (0,) * (len(code) - 1)
    return (
        struct.pack(order + "2sHIH", b"II" if order == "<" else b"MM", magic, 8, 2)
        + field.pack(256, kind, 1, width, *padding)
        + field.pack(257, kind, 1, height, *padding)
    )


FILES = {
    "jpeg": encode(".jpg"),
    "progressive jpeg": encode(".jpg", cv2.IMWRITE_JPEG_PROGRESSIVE, 1),
    "jpeg with restarts": encode(".jpg", cv2.IMWRITE_JPEG_RST_INTERVAL, 2),
    "png": encode(".png"),
    "bmp": encode(".bmp"),
    "webp": encode(".webp", cv2.IMWRITE_WEBP_QUALITY, 80),
    "lossless webp": encode(".webp", cv2.IMWRITE_WEBP_QUALITY, 101),
    "tiff": encode(".tiff"),
    "ppm": encode(".ppm"),
    "ascii ppm": encode(".ppm", cv2.IMWRITE_PXM_BINARY, 0),
}


@pytest.mark.parametrize("name", FILES)
def test_size_of_what_opencv_writes(name):
    header = read_header(FILES[name])
    assert (header.width, header.height) == (59, 37)
    assert header.format.lower() in name.replace("ppm", "netpbm")
    for_decoder(FILES[name], header)


MADE_BY_HAND = {
    "gif": (b"GIF89a" + struct.pack("<HH", 300, 200), (300, 200)),
    "old bmp": (b"BM" + bytes(12) + struct.pack("<IHH", 12, 300, 200), (300, 200)),
    "bmp from the top": (b"BM" + bytes(12) + struct.pack("<Iii", 40, 300, -200), (300, 200)),
    "extended webp": (
        b"RIFF\0\0\0\0WEBPVP8X\x0a\0\0\0\x10\0\0\0\x2b\x01\x01\xc7\x00\x02",
        (65536 + 300, 131072 + 200),
    ),
    "tiff, bytes": (tiff("<", 200, 100, kind=1), (200, 100)),
    "tiff, big end first": (tiff(">", 300, 200), (300, 200)),
    "tiff, long": (tiff(">", 70000, 80000, kind=4), (70000, 80000)),
    "pbm": (b"P4\n# a comment\n 300 # another\n200\n", (300, 200)),
    "jpeg after fill bytes": (
        b"\xff\xd8\xff\xff\xff\xe0\0\x04\xff\xc0\xff\xc2\0\x0b\x08\0\xc8\x01\x2c\x01\x01\x11\0",
        (300, 200),
    ),
}


@pytest.mark.parametrize("name", MADE_BY_HAND)
def test_size_by_the_format_description(name):
    data, size = MADE_BY_HAND[name]
    assert read_header(data)[1:] == size


def test_a_preview_is_not_the_photo():
    preview = b"\xff\xe1" + struct.pack(">H", 2 + len(FILES["jpeg"])) + FILES["jpeg"]
    photo = cv2.imencode(".jpg", np.zeros((8, 16, 3), np.uint8))[1].tobytes()
    data = photo[:2] + preview + photo[2:]
    header = read_header(data)
    assert header == Header("JPEG", 16, 8)
    for_decoder(data, header)
    with pytest.raises(HeaderError, match="the end of the JPEG image is missing"):
        for_decoder(data[:-2], header)


def test_bytes_after_the_end_do_not_matter():
    for_decoder(FILES["jpeg"] + b"trailer", read_header(FILES["jpeg"]))


@pytest.mark.parametrize("name", ["jpeg", "progressive jpeg", "jpeg with restarts"])
@pytest.mark.parametrize("kept", [0.3, 0.6, 0.99])
def test_truncated_jpeg(name, kept):
    data = FILES[name][: int(kept * len(FILES[name]))]
    with pytest.raises(HeaderError, match="truncated"):
        for_decoder(data, Header("JPEG", 59, 37))


@pytest.mark.parametrize(
    ("data", "match"),
    [
        (b"", "not an image of a supported format"),
        (b"A dog runs.\n", r"\(BMP, GIF, JPEG, Netpbm, PNG, TIFF, WebP\)"),
        (b"P7\nWIDTH 3", "not an image of a supported format"),
        (b"P5 3", "Netpbm header is damaged or cut off"),
        (b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\0", "PNG header is damaged or cut off"),
        (FILES["jpeg"][:20], "JPEG header is damaged or cut off"),
        (FILES["webp"][:12] + b"JUNK" + bytes(20), "WebP header is damaged"),
        (tiff("<", 3, 3)[:-3], "TIFF header is damaged"),
        (tiff("<", 3, 3, magic=43), "not an image of a supported format"),
        (b"GIF89a" + struct.pack("<HH", 0, 200), "GIF header declares 0 x 200 pixels"),
        (tiff("<", 3, 3).replace(b"\1\1", b"\1\2"), "TIFF header declares 3 x 0 pixels"),
    ],
)
def test_not_an_image(data, match):
    with pytest.raises(HeaderError, match=match):
        read_header(data)


@given(
    start=st.sampled_from([*FILES.values(), *(data for data, _ in MADE_BY_HAND.values())]),
    keep=st.integers(2, 60),
    tail=st.binary(max_size=60),
)
@example(start=b"\xff\xd8\xff", keep=3, tail=b"")
@example(start=b"\xff\xd8\xff", keep=3, tail=b"\xda\0\2\xff")
def test_any_bytes_give_a_header_or_a_header_error(start, keep, tail):
    data = start[:keep] + tail
    try:
        header = read_header(data)
        for_decoder(data, header)
    except HeaderError:
        return
    assert header.width > 0
    assert header.height > 0
