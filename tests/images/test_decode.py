import os
import pickle
import struct
import threading
import zlib

import cv2
import numpy as np
import pytest

from kernelcore.images import UnreadableImageError, UnreadableImagesError, read_image
from kernelcore.images.read import limit_side

RNG = np.random.default_rng(0)
# Smooth, so that JPEG keeps it, and different along both axes and in every channel.
SMOOTH = np.stack(
    np.broadcast_arrays(
        np.arange(0, 160, 4)[:, None], np.arange(0, 240, 4)[None, :], np.full((40, 60), 90)
    ),
    axis=-1,
).astype(np.uint8)


def write(path, pixels, *options):
    """Write RGB(A) or grey pixels as OpenCV does."""
    if pixels.ndim == 3:
        order = [2, 1, 0, 3][: pixels.shape[2]]
        pixels = pixels[:, :, order]
    assert cv2.imwrite(str(path), pixels, options)
    return path


def png(width, height, bits, colour, rows, *chunks):
    """Put together a PNG file; `rows` are the packed pixels of each row."""

    def chunk(kind, content):
        crc = zlib.crc32(kind + content)
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", crc)

    header = struct.pack(">IIBBBBB", width, height, bits, colour, 0, 0, 0)
    data = zlib.compress(b"".join(b"\0" + row for row in rows))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        chunk(*c) for c in ((b"IHDR", header), *chunks, (b"IDAT", data), (b"IEND", b""))
    )


@pytest.mark.parametrize("extension", [".png", ".bmp", ".tiff", ".ppm"])
def test_lossless_formats(tmp_path, extension):
    pixels = RNG.integers(0, 256, (7, 5, 3), np.uint8)
    assert (read_image(write(tmp_path / f"photo{extension}", pixels)) == pixels).all()
    assert (read_image(str(tmp_path / f"photo{extension}")) == pixels).all()


@pytest.mark.parametrize("extension", [".jpg", ".webp"])
def test_lossy_formats(tmp_path, extension):
    pixels = read_image(write(tmp_path / f"photo{extension}", SMOOTH))
    assert pixels.dtype == np.uint8
    assert np.abs(pixels.astype(int) - SMOOTH).mean() < 3


def test_gif(tmp_path):
    if not cv2.haveImageWriter("photo.gif"):
        pytest.skip("this OpenCV does not write GIF")
    pixels = np.repeat(np.repeat(RNG.integers(0, 2, (4, 5, 3), np.uint8) * 255, 8, 0), 8, 1)
    read = read_image(write(tmp_path / "photo.gif", pixels))
    assert np.abs(read.astype(int) - pixels).mean() < 40


@pytest.mark.parametrize("extension", [".png", ".tiff"])
def test_16_bits_become_8(tmp_path, extension):
    pixels = RNG.integers(0, 65536, (6, 4, 3), np.uint16)
    read = read_image(write(tmp_path / f"photo{extension}", pixels))
    assert np.abs(read - pixels / 257).max() < 1
    grey = read_image(write(tmp_path / f"grey{extension}", pixels[:, :, 0]))
    assert np.abs(grey - pixels[:, :, :1] / 257).max() < 1


def test_grey_has_three_equal_channels(tmp_path):
    grey = RNG.integers(0, 256, (6, 4), np.uint8)
    for source in (grey, grey[:, :, None], write(tmp_path / "grey.png", grey)):
        pixels = read_image(source)
        assert pixels.shape == (6, 4, 3)
        assert (pixels == grey[:, :, None]).all()


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
def test_transparency_lies_over_white(tmp_path, dtype):
    one = np.iinfo(dtype).max
    pixels = np.array([[[0, one, 0, one], [one, 0, 0, 0], [0, 0, 0, one // 2]]], dtype)
    expected = [[[0, 255, 0], [255, 255, 255], [128, 128, 128]]]
    assert read_image(write(tmp_path / "photo.png", pixels)).tolist() == expected
    if dtype == np.uint8:
        assert read_image(pixels).tolist() == expected


def test_fourth_channel_of_bmp_is_ignored(tmp_path):
    pixels = np.zeros((2, 2, 4), np.uint8)
    pixels[..., :3] = 50
    assert (read_image(write(tmp_path / "photo.bmp", pixels)) == 50).all()


def test_palette_with_transparency(tmp_path):
    palette = (b"PLTE", bytes([255, 0, 0, 0, 255, 0, 0, 0, 255]))
    path = tmp_path / "palette.png"
    path.write_bytes(png(3, 1, 8, 3, [b"\0\1\2"], palette))
    assert read_image(path).tolist() == [[[255, 0, 0], [0, 255, 0], [0, 0, 255]]]
    path.write_bytes(png(3, 1, 8, 3, [b"\0\1\2"], palette, (b"tRNS", b"\xff\0")))
    assert read_image(path).tolist() == [[[255, 0, 0], [255, 255, 255], [0, 0, 255]]]


def test_one_bit_per_pixel(tmp_path):
    path = tmp_path / "bits.png"
    path.write_bytes(png(4, 1, 1, 0, [b"\xa0"]))
    assert read_image(path)[0, :, 0].tolist() == [255, 0, 255, 0]


def test_cmyk(tmp_path):
    image = pytest.importorskip("PIL.Image")
    for extension in ("jpg", "tiff"):
        path = tmp_path / f"cmyk.{extension}"
        image.fromarray(SMOOTH).convert("CMYK").save(path)
        assert np.abs(read_image(path).astype(int) - SMOOTH).mean() < 4


@pytest.mark.parametrize(
    ("orientation", "turn"),
    [
        (1, lambda a: a),
        (3, lambda a: np.rot90(a, 2)),
        (4, np.flipud),
        (6, lambda a: np.rot90(a, -1)),
        (8, np.rot90),
    ],
)
def test_exif_orientation(tmp_path, orientation, turn):
    data = write(tmp_path / "plain.jpg", SMOOTH).read_bytes()
    field = struct.pack(">HHIHH", 0x0112, 3, 1, orientation, 0)
    exif = b"Exif\0\0MM\0*\0\0\0\x08\0\1" + field + bytes(4)
    turned = tmp_path / "turned.jpg"
    turned.write_bytes(
        data[:2] + b"\xff\xe1" + struct.pack(">H", len(exif) + 2) + exif + data[2:]
    )
    assert (read_image(turned) == turn(read_image(tmp_path / "plain.jpg"))).all()


def test_content_counts_not_the_name(tmp_path):
    pixels = RNG.integers(0, 256, (7, 5, 3), np.uint8)
    path = write(tmp_path / "photo.png", pixels).rename(tmp_path / "photo.jpg")
    assert (read_image(path) == pixels).all()


@pytest.mark.parametrize(
    "make",
    [
        np.asfortranarray,
        lambda a: a[::-1, ::-1],
        lambda a: np.repeat(a, 2, axis=2)[:, :, ::2],
    ],
)
def test_arrays_in_any_layout(make):
    pixels = RNG.integers(0, 256, (7, 5, 3), np.uint8)
    array = make(pixels)
    array.flags.writeable = False
    read = read_image(array)
    assert read.flags.c_contiguous
    assert (read == array).all()


@pytest.mark.parametrize(
    ("content", "match"),
    [
        (b"", "it is empty"),
        (b"A dog runs through the grass.", "it is not an image of a supported format"),
        (b"\x89PNG\r\n\x1a\n junk", "its header is damaged"),
        (png(3, 1, 8, 3, [b"\0\1\2"])[:-30], "damaged"),
        (png(60000, 60000, 1, 0, []), "declares too many pixels"),
        (b"P6\n99999999999 2\n255\n", "header is damaged"),
        (b"P6\n9999999999 2\n255\n", "declares too many pixels"),
    ],
)
def test_unusable_files(tmp_path, content, match, capfd):
    path = tmp_path / "photo.jpg"
    path.write_bytes(content)
    with pytest.raises(UnreadableImageError, match=match) as caught:
        read_image(path)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("extension", [".jpg", ".png", ".bmp", ".webp", ".tiff", ".ppm"])
@pytest.mark.parametrize("kept", [0.5, 0.9, 0.995])
def test_truncated_files(tmp_path, extension, kept, capfd):
    path = write(tmp_path / f"photo{extension}", RNG.integers(0, 256, (40, 60, 3), np.uint8))
    data = path.read_bytes()
    path.write_bytes(data[: int(kept * len(data))])
    with pytest.raises(UnreadableImageError, match=r"truncated|cut off|damaged"):
        read_image(path)


def test_no_such_file_and_no_file_at_all(tmp_path):
    with pytest.raises(UnreadableImageError, match=r"absent\.jpg: there is no such file"):
        read_image(tmp_path / "absent.jpg")
    with pytest.raises(UnreadableImageError, match="it is not a regular file"):
        read_image(tmp_path)
    with pytest.raises(UnreadableImageError, match="name too long"):
        read_image("x" * 5000)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe.jpg")
    outcome = []

    def read():
        with pytest.raises(UnreadableImageError, match="not a regular file") as caught:
            read_image(tmp_path / "pipe.jpg")
        outcome.append(caught)

    thread = threading.Thread(target=read, daemon=True)
    thread.start()
    thread.join(10)
    assert outcome


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root reads all")
def test_no_permission(tmp_path):
    path = write(tmp_path / "photo.png", SMOOTH)
    path.chmod(0)
    with pytest.raises(UnreadableImageError, match="Permission denied"):
        read_image(path)


def test_a_file_beyond_any_image_is_not_loaded(tmp_path):
    path = tmp_path / "photo.png"
    with path.open("wb") as file:
        file.truncate(2**26 + 8 * 100 + 1)
    with pytest.raises(UnreadableImageError, match="67109665 bytes, more than an image of"):
        read_image(path, max_pixels=100)


def test_max_pixels_is_the_largest_allowed(tmp_path):
    path = write(tmp_path / "photo.png", SMOOTH)
    assert read_image(path, max_pixels=2400).shape == (40, 60, 3)
    with pytest.raises(UnreadableImageError, match="60 x 40 pixels, more than max_pixels=2399"):
        read_image(path, max_pixels=2399)
    with pytest.raises(ValueError, match="max_pixels must be an integer >= 1"):
        read_image(path, max_pixels=0)


@pytest.mark.parametrize("source", [None, 3, bytearray(b"II*"), [[1]], np.zeros((2, 2, 3))])
def test_neither_path_nor_pixels(source):
    with pytest.raises(TypeError, match=r"source must be a path, bytes, an array .*, got"):
        read_image(source)


@pytest.mark.parametrize(
    ("shape", "max_side", "expected"),
    [
        ((224, 224), 255, (224, 224)),
        ((255, 100), 255, (255, 100)),
        ((375, 500), 255, (191, 255)),
        ((500, 375), 255, (255, 191)),
        ((4000, 2), 100, (100, 1)),
        ((5, 9), 1, (1, 1)),
    ],
)
def test_limit_side(shape, max_side, expected):
    image = np.full((*shape, 3), 77, np.uint8)
    shrunk = limit_side(image, max_side)
    assert shrunk.shape == (*expected, 3)
    assert (shrunk == 77).all()


def test_shrinking_averages_areas():
    image = RNG.integers(0, 256, (12, 16, 3), np.uint8)
    means = image.reshape(3, 4, 4, 4, 3).mean(axis=(1, 3))
    np.testing.assert_allclose(limit_side(image, 4), means, atol=0.51)


def test_the_collected_error_travels_between_processes():
    error = UnreadableImagesError({3: "c.jpg: it is empty", 5: "e.jpg: it is empty"}, 9)
    copy = pickle.loads(pickle.dumps(error))
    assert copy.failures == {3: "c.jpg: it is empty", 5: "e.jpg: it is empty"}
    assert str(copy).splitlines() == [
        "2 of 9 images cannot be read:",
        "  c.jpg: it is empty",
        "  e.jpg: it is empty",
    ]
