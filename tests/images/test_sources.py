"""A photo is the same photo as a file, as its bytes, as pixels and as an image of Pillow."""

import io
import os
import sys
import threading
import types

import cv2
import numpy as np
import pytest
from PIL import ImageFile
from refusals import refuses

from kernelcore.images import (
    CNN,
    RegionCNN,
    UnreadableImageError,
    VisualWords,
    cielab,
    dense_sift,
    oriented_energy,
    read_image,
)
from kernelcore.images.read import file_facts, limit_side

image = pytest.importorskip("PIL.Image")
RNG = np.random.default_rng(0)
PIXELS = RNG.integers(0, 256, (20, 30, 3), np.uint8)
# Smooth, so that JPEG keeps it, and different along both axes and in every channel.
ROWS, COLUMNS = np.mgrid[0:160:4, 0:240:4]
SMOOTH = np.stack([ROWS, COLUMNS, np.full((40, 60), 90)], axis=-1).astype(np.uint8)
HEIC = b"\0\0\0\x18ftypheic\0\0\0\0mif1heic"


def encoded(picture, kind="png", **options):
    file = io.BytesIO()
    picture.save(file, kind, **options)
    return file.getvalue()


def opened(data):
    return image.open(io.BytesIO(data))


def by_opencv(pixels, extension=".png"):
    """Encode RGB(A) or grey pixels, of 16 bits where they have them."""
    order = [2, 1, 0, 3][: pixels.shape[2]] if pixels.ndim == 3 else slice(None)
    return cv2.imencode(extension, pixels[..., order])[1].tobytes()


PNG = encoded(image.fromarray(PIXELS))


@pytest.mark.parametrize("kind", ["png", "bmp", "tiff", "ppm"])
def test_every_form_of_a_photo_has_the_same_pixels(tmp_path, kind):
    data = encoded(image.fromarray(PIXELS), kind)
    path = tmp_path / "photo.jpg"  # the content tells the format
    path.write_bytes(data)
    forms = path, str(path), data, PIXELS, image.fromarray(PIXELS), opened(data)
    for source in (*forms, by_opencv(PIXELS, f".{kind}")):
        pixels = read_image(source)
        assert pixels.dtype == np.uint8
        assert pixels.flags.c_contiguous
        np.testing.assert_array_equal(pixels, PIXELS)


@pytest.mark.parametrize(
    ("kind", "mode"),
    [
        *[("jpeg", "RGB"), ("webp", "RGB"), ("avif", "RGB")],
        *[("jpeg", "CMYK"), ("tiff", "CMYK"), ("gif", "RGB")],
    ],
)
def test_lossy_formats_show_the_same_picture(kind, mode):
    pixels = read_image(encoded(image.fromarray(SMOOTH).convert(mode), kind))
    assert pixels.dtype == np.uint8
    assert np.abs(pixels.astype(int) - SMOOTH).mean() < (6 if kind == "gif" else 3)


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGB", "RGBA"])
def test_modes_of_pillow_are_what_their_file_is(mode):
    alpha = RNG.integers(0, 256, (20, 30, 1), np.uint8)
    picture = image.fromarray(np.concatenate([PIXELS, alpha], axis=2)).convert(mode)
    before = picture.tobytes()
    np.testing.assert_array_equal(read_image(picture), read_image(encoded(picture)))
    assert (picture.mode, picture.tobytes()) == (mode, before)


@pytest.mark.parametrize("mode", ["CMYK", "YCbCr", "HSV", "RGBX", "RGBa", "PA"])
def test_other_modes_show_the_same_picture(mode):
    smooth = np.repeat(np.tile(np.arange(0, 240, 8, np.uint8), (20, 1))[..., None], 3, axis=2)
    picture = image.fromarray(smooth)
    if mode in {"RGBa", "PA"}:
        picture = picture.convert("RGBA")
    assert np.abs(read_image(picture.convert(mode)).astype(int) - smooth).max() <= 3


@pytest.mark.parametrize("extension", [".png", ".tiff"])
def test_16_bits_become_8(extension):
    deep = RNG.integers(0, 65536, (6, 4, 3), np.uint16)
    for pixels in (deep, deep[:, :, :1]):
        read = read_image(by_opencv(pixels.squeeze(), extension))
        assert np.abs(read - pixels / 257).max() < 1
    pixels = read_image(image.fromarray(deep[:, :, 0]))
    np.testing.assert_array_equal(pixels[:, :, 1], deep[:, :, 0] >> 8)


@pytest.mark.parametrize("shape", [(6, 4), (6, 4, 1), (1, 1), (1, 1, 3), (1, 1, 4), (1, 99, 3)])
def test_grey_has_three_equal_channels_and_odd_shapes_are_kept(shape):
    pixels = RNG.integers(0, 256, shape, np.uint8)
    picture = image.fromarray(pixels.squeeze(axis=2) if shape[2:] == (1,) else pixels)
    for source in (pixels, picture, encoded(picture), opened(encoded(picture))):
        found = read_image(source)
        np.testing.assert_array_equal(found, read_image(pixels))
        if shape[2:] in {(), (1,), (3,)}:
            assert (found == pixels.reshape(*shape[:2], -1)).all()


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
def test_transparency_lies_over_white(dtype):
    one = np.iinfo(dtype).max
    pixels = np.array([[[0, one, 0, one], [one, 0, 0, 0], [0, 0, 0, one // 2]]], dtype)
    expected = [[[0, 255, 0], [255, 255, 255], [128, 128, 128]]]
    for source in (by_opencv(pixels), *([pixels] if dtype == np.uint8 else [])):
        assert read_image(source).tolist() == expected


def test_colours_that_are_transparent_are_white_but_not_the_fourth_channel_of_bmp():
    picture = image.fromarray(np.array([[[9, 9, 9], [1, 2, 3]]], np.uint8))
    picture.info["transparency"] = (9, 9, 9)
    assert read_image(picture).tolist() == [[[255, 255, 255], [1, 2, 3]]]
    palette = image.fromarray(np.array([[0, 1, 2]], np.uint8), "P")
    palette.putpalette([255, 0, 0, 0, 255, 0, 0, 0, 255])
    colours = [[[255, 0, 0], [0, 255, 0], [0, 0, 255]]]
    assert read_image(encoded(palette)).tolist() == colours
    colours[0][1] = [255, 255, 255]
    assert read_image(encoded(palette, transparency=b"\xff\0")).tolist() == colours
    pixels = np.full((2, 2, 4), [50, 50, 50, 0], np.uint8)
    assert (read_image(by_opencv(pixels, ".bmp")) == 50).all()


TURNS = {1: np.array, 2: np.fliplr, 3: lambda a: np.rot90(a, 2), 4: np.flipud,
         5: lambda a: a.swapaxes(0, 1), 6: lambda a: np.rot90(a, -1),
         7: lambda a: np.rot90(a, 2).swapaxes(0, 1), 8: np.rot90}  # fmt: skip


@pytest.mark.parametrize("kind", ["png", "jpeg"])
@pytest.mark.parametrize("orientation", TURNS)
def test_exif_turns_files_and_what_pillow_has_opened(orientation, kind):
    exif = image.Exif()
    exif[0x0112] = orientation
    picture = image.fromarray(SMOOTH)
    data = encoded(picture, kind, exif=exif)
    expected = TURNS[orientation](read_image(encoded(picture, kind)))
    np.testing.assert_array_equal(read_image(data), expected)
    np.testing.assert_array_equal(read_image(opened(data)), expected)


@pytest.mark.parametrize(
    ("stamp", "taken"),
    [("2019:05:03 14:05:59", "2019-05-03 14:05"), ("yesterday", ""), (None, "")],
)
@pytest.mark.parametrize("kind", ["png", "jpeg", "webp"])
def test_the_header_of_a_file_says_its_format_and_date(kind, stamp, taken, tmp_path):
    exif = image.Exif()
    exif[0x0110] = "camera"  # Pillow writes no part of an empty directory to PNG
    if stamp is not None:
        exif.get_ifd(0x8769)[0x9003] = stamp
    path = tmp_path / "photo.x"
    path.write_bytes(encoded(image.fromarray(SMOOTH), kind, exif=exif))
    assert file_facts(path) == (f"image/{kind}", taken)
    path.write_text("no photo")
    refuses(UnreadableImageError, str(path), file_facts, path)
    path.unlink()
    refuses(UnreadableImageError, str(path), file_facts, path)


@pytest.mark.parametrize(
    "make",
    [np.asfortranarray, lambda a: a[::-1, ::-1], lambda a: np.repeat(a, 2, axis=2)[:, :, ::2]],
)
def test_arrays_in_any_layout(make):
    array = make(PIXELS)
    array.flags.writeable = False
    read = read_image(array)
    assert read.flags.c_contiguous
    assert (read == array).all()


REFUSED = [
    ("empty", b""),
    ("not an image", b"A dog runs through the grass."),
    ("header is damaged", b"\x89PNG\r\n\x1a\n junk"),
    ("header is damaged", b"P6\n99999999999 2\n255\n"),
    ("too many pixels", b"P6\n9999999999 2\n255\n"),
    ("data are damaged", PNG[:-90]),
    ("not an image", b"\0\0\0\x18ftypisom\0\0\0\0mp41"),  # films
    ("not an image", b"\0\0\0\x18ftyp"),
    ("HEIC, .* JPEG", HEIC + bytes(100)),
    ("HEIC, .* JPEG", b"\0\0\0\x18ftypmif1\0\0\0\0mif1miaf"),
    ("AVIF, .* JPEG", b"\0\0\0\x1cftypmif1\0\0\0\0avifmif1miaf"),
    ("AVIF, .* JPEG", b"\0\0\0\x14ftypavis\0\0\0\0"),
]


@pytest.mark.parametrize(("reason", "content"), REFUSED)
def test_unusable_files_are_named(tmp_path, reason, content):
    path = tmp_path / "photo.jpg"
    path.write_bytes(content)
    refuses(UnreadableImageError, rf".*photo\.jpg: .*{reason}", read_image, path)
    refuses(UnreadableImageError, f"source: .*{reason}", read_image, content)


def test_heic_is_read_where_its_package_is_installed(monkeypatch):
    """A toy in its place: the pixels follow as PNG."""
    content = HEIC.ljust(64, b"\0") + PNG

    class Heif(ImageFile.ImageFile):
        format = "HEIF"

        def _open(self):
            self._own = opened(content[64:])
            self._size, self._mode = self._own.size, self._own.mode

        def load(self):
            self.im = self._own.convert("RGB").im
            return self.im.pixel_access(self.readonly)

    def register():
        image.register_open("HEIF", Heif, lambda start: start[4:8] == b"ftyp")

    monkeypatch.setattr(image, "OPEN", dict(image.OPEN))
    monkeypatch.setattr(image, "ID", list(image.ID))
    module = types.SimpleNamespace(register_heif_opener=register)
    monkeypatch.setitem(sys.modules, "pillow_heif", module)
    np.testing.assert_array_equal(read_image(content), PIXELS)


@pytest.mark.parametrize("kind", ["jpeg", "png", "bmp", "webp", "tiff", "ppm"])
@pytest.mark.parametrize("kept", [0.5, 0.9, 0.995])
def test_truncated_files_are_refused(kind, kept):
    data = encoded(image.fromarray(RNG.integers(0, 256, (40, 60, 3), np.uint8)), kind)
    reason = "truncated|cut off|damaged"
    refuses(UnreadableImageError, reason, read_image, data[: int(kept * len(data))])


def test_no_such_file_and_no_file_at_all(tmp_path):
    absent = tmp_path / "absent.jpg"
    refuses(UnreadableImageError, r".*absent\.jpg: .*no such", read_image, absent)
    refuses(UnreadableImageError, ".*regular", read_image, tmp_path)
    refuses(UnreadableImageError, ".*too long", read_image, "x" * 5000)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe.jpg")
    said = []

    def read():
        pipe = tmp_path / "pipe.jpg"
        said.append(refuses(UnreadableImageError, ".*regular", read_image, pipe))

    thread = threading.Thread(target=read, daemon=True)
    thread.start()
    thread.join(10)
    assert said


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root reads all")
def test_no_permission(tmp_path):
    (tmp_path / "photo.png").write_bytes(PNG)
    (tmp_path / "photo.png").chmod(0)
    refuses(UnreadableImageError, ".*Permission", read_image, tmp_path / "photo.png")


def test_max_pixels_is_the_largest_allowed(tmp_path):
    for source in (PNG, opened(PNG), image.fromarray(PIXELS)):
        assert read_image(source, max_pixels=600).shape == (20, 30, 3)
        refuses(UnreadableImageError, ".*30 x 20 .*599", read_image, source, max_pixels=599)
    refuses(ValueError, "max_pixels", read_image, PNG, max_pixels=0)
    n_bytes, path = 2**26 + 8 * 100, tmp_path / "photo.png"  # as many as an image may have
    for n, is_too_long in ((n_bytes, False), (n_bytes + 1, True)):
        with path.open("wb") as file:
            file.truncate(n)
        for source in (path, bytes(n)):
            said = refuses(UnreadableImageError, ".*", read_image, source, max_pixels=100)
            assert (str(n) in said) == is_too_long


def test_neither_path_nor_pixels():
    for source in (None, 3, bytearray(b"II*"), [[1]], np.zeros((2, 2, 3))):
        refuses(TypeError, "source", read_image, source)
    for named, source in (
        ("'F'", image.new("F", (2, 2))),
        ("'I'", image.new("I", (2, 2))),
        ("0 x 2", image.new("RGB", (0, 2))),
        ("La", image.new("La", (2, 2))),
        ("damaged", opened(PNG[:-400])),
    ):
        refuses(ValueError, f"source.*{named}", read_image, source)


@pytest.mark.parametrize(
    ("shape", "max_side", "expected"),
    [
        ((224, 224), 255, (224, 224)), ((255, 100), 255, (255, 100)),
        ((375, 500), 255, (191, 255)), ((500, 375), 255, (255, 191)),
        ((4000, 2), 100, (100, 1)), ((5, 9), 1, (1, 1)),
    ],
)  # fmt: skip
def test_limit_side(shape, max_side, expected):
    shrunk = limit_side(np.full((*shape, 3), 77, np.uint8), max_side)
    assert shrunk.shape == (*expected, 3)
    assert (shrunk == 77).all()


def test_shrinking_averages_areas():
    pixels = RNG.integers(0, 256, (12, 16, 3), np.uint8)
    means = pixels.reshape(3, 4, 4, 4, 3).mean(axis=(1, 3))
    np.testing.assert_allclose(limit_side(pixels, 4), means, atol=0.51)


SHAPES = [
    (1, 1), (1, 1, 1), (1, 1, 4), (2, 2), (2, 3, 3), (1, 10000), (10000, 1, 3), (1, 9, 4),
    (3, 5000, 4),
]  # fmt: skip
ODD_PHOTOS = [RNG.integers(0, 256, shape, np.uint8) for shape in SHAPES]


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    """Arrays, and files of the same sizes with 16 bits."""
    folder = tmp_path_factory.mktemp("odd")
    files = [folder / f"{i}.png" for i in range(len(ODD_PHOTOS))]
    for file, photo in zip(files, ODD_PHOTOS, strict=True):
        deep = np.atleast_3d(photo).astype(np.uint16) * 257
        assert cv2.imwrite(str(file), deep)
    return [*ODD_PHOTOS, *files]


@pytest.mark.parametrize("feature", [cielab, oriented_energy, dense_sift])
def test_photos_of_odd_sizes_have_dense_features(sources, feature):
    for points in (feature(read_image(source)).points for source in sources):
        assert len(points) > 0
        assert np.isfinite(points).all()


def test_photos_of_odd_sizes_have_visual_words(sources):
    words = VisualWords(n_words={"colour": 4, "texture": 4, "sift": 4}, rng=0).fit(sources)
    for histograms in words.transform(sources).values():
        assert len(histograms) == len(sources)
        assert (histograms.totals > 0).all()


def test_photos_of_odd_sizes_are_described_by_networks(sources):
    nn = pytest.importorskip("torch").nn
    cnn = CNN(nn.AvgPool2d(4), input_size=48)
    features = cnn.transform(sources).features
    assert len(features) == len(sources)
    assert np.isfinite(features).all()
    regions = RegionCNN(cnn, max_regions=5).transform(sources)
    assert np.isfinite(regions.features).all()
    sizes = [read_image(source).shape[:2] for source in sources]
    np.testing.assert_array_equal(regions.sizes, sizes)
