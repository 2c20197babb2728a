"""Photos that browsers send, and the process that decodes them."""

import json
import struct
import time
import zlib

import cv2
import numpy as np
import pytest
from programs import output_of

pytest.importorskip("httpx2")

from starlette.exceptions import HTTPException

from kernelcore.images import read_image
from kernelcore.web import uploads
from kernelcore.web.uploads import MOST_BYTES, decode


def png_of(width, height, rows=b""):
    """Return a PNG file that declares a size; its pixels are those that are given."""

    def chunk(kind, content):
        crc = zlib.crc32(kind + content)
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", crc)

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    parts = (b"IHDR", header), (b"IDAT", zlib.compress(rows)), (b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunk(*part) for part in parts)


def refused(content):
    with pytest.raises(HTTPException) as caught:
        decode(content)
    return caught.value.status_code, caught.value.detail


def test_pixels_come_back_as_they_are(scenes):
    _, content = cv2.imencode(".png", scenes.images[0, :, :, ::-1])
    assert (decode(content.tobytes()) == scenes.images[0]).all()


def test_large_photos_are_shrunk():
    pixels = np.zeros((1024, 4096, 3), np.uint8)
    pixels[:, 2048:] = (10, 200, 60)
    _, content = cv2.imencode(".jpg", pixels[:, :, ::-1])
    shrunk = decode(content.tobytes())
    assert shrunk.shape == (512, 2048, 3)
    assert np.abs(shrunk[:, 1030:].astype(int).mean((0, 1)) - (10, 200, 60)).max() < 3


@pytest.mark.parametrize(
    ("content", "status", "reason"),
    [
        (b"<svg xmlns='http://www.w3.org/2000/svg'/>", 415, "not an image"),
        (b"%PDF-1.7", 415, "not an image"),
        (b"\0\0\0\x18ftypheic\0\0\0\0mif1heic", 415, "it is HEIC"),
        (b"\xff\xd8\xff", 415, "its header is damaged"),
        (b"P5 2 1 255 ab", 415, "not an image of a supported format (JPEG, PNG, WebP)"),
        (png_of(8193, 8192), 413, "more than 64 megapixels"),
        (png_of(2**31 - 1, 2**31 - 1), 413, "more than 64 megapixels"),
        (png_of(30, 30, b"\0" * 50), 422, "damaged, truncated"),
    ],
)
def test_other_files_are_refused(content, status, reason):
    found, said = refused(content)
    assert found == status
    assert reason in said
    assert "source" not in said


def test_a_truncated_photo_is_refused(jpeg):
    assert refused(jpeg[: len(jpeg) // 2])[0] == 422


def test_64_megapixels_are_decoded(monkeypatch):
    monkeypatch.setattr(uploads, "MOST_PIXELS", 4)
    four, five = (png_of(n, 1, bytes(1 + 3 * n)) for n in (4, 5))
    assert uploads.answer(four)[0] == {"height": 1, "width": 4}
    about, pixels = uploads.answer(five)
    assert (about["status"], pixels) == (413, b"")


@pytest.mark.parametrize(
    ("program", "seconds"),
    [
        ("import os; os.abort()", 20),
        ("print('{}')", 20),
        ("print('no json')", 20),
        ("", 20),
        ("import time; time.sleep(60)", 0.5),
        ("import sys\nwhile True: sys.stdout.buffer.write(b'x' * 65536)", 20),
    ],
)
def test_a_decoder_that_crashes_or_takes_too_long_is_a_refusal(monkeypatch, program, seconds):
    monkeypatch.setattr(uploads, "_PROGRAM", program)
    monkeypatch.setattr(uploads, "MOST_SECONDS", seconds)
    begun = time.monotonic()
    content = b"photo" if "while" in program else b"x" * 2_000_000
    assert refused(content) == (422, "The reason: to decode it takes too much memory or time.")
    assert time.monotonic() - begun < 10


LIMITS = """
    import json, resource
    from kernelcore.web import uploads

    uploads.main()
    kinds = ("AS", "CPU", "CORE", "FSIZE", "NOFILE")
    print(json.dumps([resource.getrlimit(getattr(resource, f"RLIMIT_{k}")) for k in kinds]))
    try:
        open("/dev/null")
    except OSError:
        print("no file")
    try:
        bytearray(4 * 2**30)
    except MemoryError:
        print("no memory")
"""


def test_the_decoder_is_limited():
    answer, limits, *refused = output_of(LIMITS).splitlines()
    assert json.loads(answer)["status"] == 415
    most = [3 * 2**30, 20, 0, 0, 3]
    for (soft, hard), expected in zip(json.loads(limits), most, strict=True):
        assert soft == hard
        assert 0 <= soft <= expected
    assert refused == ["no file", "no memory"]


def test_an_uploaded_photo_leads_to_its_page(client, page, photos, jpeg):
    answer = client.post("/upload", files={"photo": ("dog.jpg", jpeg, "image/jpeg")})
    assert answer.status_code == 303
    address = answer.headers["location"]
    assert address.startswith("/upload/")
    assert len(address) > 25
    found = page(address)
    assert found.texts("h1") == ["Your photo"]
    assert photos.queries == [(48, 64, 3)]
    assert found.all("article")
    assert "From here on by chance" in found.texts("li")
    [picture] = (own for own in found.all("img") if own["src"] == f"{address}/large.jpg")
    assert (picture["width"], picture["height"]) == ("64", "48")
    shown = client.get(picture["src"])
    assert shown.headers["content-type"] == "image/jpeg"
    assert shown.headers["cache-control"] == "private, no-cache"
    unmarked = client.get(f"{picture['src']}?v=")
    assert unmarked.headers["cache-control"] == "private, no-cache"
    assert read_image(shown.content).shape == (48, 64, 3)
    [more] = found.all("a", rel="next")
    assert more["href"] == f"{address}?start=48"
    page(more["href"])
    assert len(photos.queries) == 1
    again = client.post("/upload", files={"photo": ("dog.jpg", jpeg)})
    assert again.headers["location"] != address


def test_the_name_of_an_uploaded_file_is_not_used(client, jpeg):
    for name in ("../../evil.jpg", "/etc/passwd", "<script>", "a\0b", "x" * 3000):
        answer = client.post("/upload", files={"photo": (name, jpeg)})
        assert answer.status_code == 303


@pytest.mark.parametrize(
    ("files", "data", "status"),
    [
        ({}, {}, 400),
        ({"photo": ("", b"")}, {}, 400),
        ({"photo": ("a.jpg", b"")}, {}, 400),
        ({"other": ("a.jpg", b"P5 1 1 255 a")}, {}, 400),
        ({}, {"photo": "text"}, 400),
        ({"photo": ("a.txt", b"text")}, {}, 415),
        ({"photo": ("a.jpg", b"x" * MOST_BYTES)}, {}, 415),
        ({"photo": ("a.jpg", b"x" * (MOST_BYTES + 1))}, {}, 413),
        ({"photo": ("a.jpg", b"x" * (MOST_BYTES + 70_000))}, {}, 413),
        ({"photo": ("a.png", png_of(10**5, 10**5))}, {}, 413),
        ({"photo": ("a.png", png_of(30, 30, b"\0" * 50))}, {}, 422),
    ],
)
def test_what_is_no_photo_has_a_page_that_says_so(client, files, data, status):
    answer = client.post("/upload", files=files, data=data)
    assert answer.status_code == status
    assert "<h1" in answer.text


def test_few_uploads_are_decoded_at_a_time(client, jpeg):
    taken = 0
    while uploads._waiting.acquire(blocking=False):
        taken += 1
    try:
        assert taken == 4
        answer = client.post("/upload", files={"photo": ("a.jpg", jpeg)})
        assert answer.status_code == 503
        assert answer.headers["retry-after"] == "5"
        assert "Please try again" in answer.text
    finally:
        for _ in range(taken):
            uploads._waiting.release()
    assert client.post("/upload", files={"photo": ("a.jpg", jpeg)}).status_code == 303
    assert client.post("/upload", files={"photo": ("a.jpg", b"no")}).status_code == 415
    assert client.post("/upload", files={"photo": ("a.jpg", jpeg)}).status_code == 303


def test_uploads_are_forgotten(client, jpeg, monkeypatch):
    address = client.post("/upload", files={"photo": ("a.jpg", jpeg)}).headers["location"]
    now = time.monotonic()
    monkeypatch.setattr("kernelcore.web.pictures.time.monotonic", lambda: now + 1801)
    answer = client.get(address)
    assert answer.status_code == 404
    assert "not kept any more" in answer.text
    assert client.get(f"{address}/large.jpg").status_code == 404
