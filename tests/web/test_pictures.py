"""Pictures of photos: their content, and what browsers may keep."""

import numpy as np
import pytest
from refusals import refuses

pytest.importorskip("httpx2")

from kernelcore.images import UnreadableImageError, read_image
from kernelcore.web import pictures as module
from kernelcore.web.pictures import SIDES, Pictures, draw


def pixels_of(jpeg):
    return read_image(jpeg)


@pytest.mark.parametrize(
    ("shape", "size", "expected"),
    [
        ((960, 1200), "small", (384, 480)),
        ((1200, 960), "small", (480, 384)),
        ((100, 7), "small", (100, 7)),
        ((1, 5000), "small", (1, 480)),
        ((1200, 960), "large", (1200, 960)),
        ((800, 3200), "large", (400, 1600)),
    ],
)
def test_pictures_are_shrunk_to_their_size(shape, size, expected):
    picture = draw(np.full((*shape, 3), (200, 30, 90), np.uint8), size)
    assert (picture.height, picture.width) == expected
    pixels = pixels_of(picture.jpeg)
    assert pixels.shape == (*expected, 3)
    assert np.abs(pixels.mean((0, 1)) - (200, 30, 90)).max() < 3  # RGB, not BGR
    assert max(expected) <= SIDES[size]


def test_a_picture_is_made_once(photos, monkeypatch):
    made = []
    monkeypatch.setattr(
        module, "read_image", lambda path: made.append(path) or read_image(path)
    )
    pictures = Pictures(photos)
    first = pictures.of(10, "small")
    assert pictures.of(10, "small") == first
    assert made == [photos.path(10)]
    pictures.of(10, "large")
    pictures.of(13, "small")
    assert len(made) == 3


def test_photos_without_a_file(photos):
    pictures = Pictures(photos)
    with pytest.raises(KeyError):
        pictures.of(11, "small")
    photos.names[10] = "gone.jpg"
    refuses(UnreadableImageError, "gone.jpg", pictures.of, 10, "small")


def test_browsers_keep_pictures_whose_address_has_their_mark(client, photos):
    mark = photos.digest(10)[:16]
    for size in SIDES:
        answer = client.get(f"/photo/10/{size}.jpg?v={mark}")
        assert answer.status_code == 200
        assert answer.headers["content-type"] == "image/jpeg"
        assert answer.headers["cache-control"] == "private, max-age=31536000, immutable"
        assert pixels_of(answer.content).shape == (48, 64, 3)
        tag = answer.headers["etag"]
        for address in (f"/photo/10/{size}.jpg", f"/photo/10/{size}.jpg?v=0"):
            other = client.get(address)
            assert other.headers["cache-control"] == "private, no-cache"
            assert other.content == answer.content
            same = client.get(address, headers={"If-None-Match": tag})
            assert (same.status_code, same.content) == (304, b"")
            assert same.headers["etag"] == tag
            assert client.get(address, headers={"If-None-Match": '"x"'}).status_code == 200
    small, large = (client.get(f"/photo/10/{size}.jpg").headers["etag"] for size in SIDES)
    assert small != large


def test_no_metadata_reaches_browsers(client, photos, tmp_path, jpeg):
    marked = jpeg[:2] + b"\xff\xfe\x00\x0dSECRETPLACE" + jpeg[2:]
    (tmp_path / "photo.jpg").write_bytes(marked)
    photos.folder = tmp_path
    photos.names[10] = "photo.jpg"
    photos.texts["photo.jpg"] = ["a dog"]
    answer = client.get("/photo/10/large.jpg")
    assert answer.status_code == 200
    assert b"SECRET" in marked
    assert b"SECRET" not in answer.content


@pytest.mark.parametrize(
    "address",
    ["/photo/11/small.jpg", "/photo/10/huge.jpg", "/photo/10/small.png", "/photo/10/.jpg"],
)
def test_pictures_that_are_not_there(client, address):
    assert client.get(address).status_code == 404


def test_pictures_of_photos_that_have_gone(client, photos):
    photos.names[10] = "gone.jpg"
    assert client.get("/photo/10/small.jpg").status_code == 404


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("page.css", "text/css; charset=utf-8"),
        ("page.js", "text/javascript; charset=utf-8"),
        ("icon.svg", "image/svg+xml"),
    ],
)
def test_files_of_the_pages(client, name, kind):
    text = client.get("/").text
    start = text.index(f"/static/{name}")
    address = text[start : text.index('"', start)]
    answer = client.get(address)
    assert answer.status_code == 200
    assert answer.headers["content-type"] == kind
    assert "immutable" in answer.headers["cache-control"]
    assert client.get(f"/static/{name}").headers["cache-control"] == "private, no-cache"


def test_there_are_no_other_files(client):
    for name in ("", "page.py", "base.html.j2", "page.css.map"):
        assert client.get(f"/static/{name}").status_code == 404
