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


def test_photos_come_back_as_they_are_or_shrunk(scenes):
    _, content = cv2.imencode(".png", scenes.images[0, :, :, ::-1])
    assert (decode(content.tobytes()) == scenes.images[0]).all()
    pixels = np.zeros((1024, 4096, 3), np.uint8)
    pixels[:, 2048:] = (10, 200, 60)
    _, content = cv2.imencode(".jpg", pixels[:, :, ::-1])
    about, rows = uploads.answer(content.tobytes())
    assert about == {"height": 512, "width": 2048}
    shrunk = np.frombuffer(rows, np.uint8).reshape(512, 2048, 3)[:, 1030:]
    assert np.abs(shrunk.astype(int).mean((0, 1)) - (10, 200, 60)).max() < 3


DAMAGED = png_of(30, 30, b"\0" * 50)


OTHERS = {
    b"<svg xmlns='http://www.w3.org/2000/svg'/>": 415,
    b"\0\0\0\x18ftypheic\0\0\0\0mif1heic": 415,
    b"P5 2 1 255 ab": 415,  # a format that is not of the web
    png_of(8193, 8192): 413,
    png_of(2**31 - 1, 2**31 - 1): 413,
    DAMAGED: 422,
}


def test_other_files_are_refused():
    """In this process; the tests of what is uploaded decode in another one."""
    for content, status in OTHERS.items():
        about, pixels = uploads.answer(content)
        assert (about["status"], pixels) == (status, b"")
        assert "source" not in about["reason"]


def test_pixels_are_counted(monkeypatch):
    monkeypatch.setattr(uploads, "MOST_PIXELS", 4)
    four, five = (png_of(n, 1, bytes(1 + 3 * n)) for n in (4, 5))
    assert uploads.answer(four)[0] == {"height": 1, "width": 4}
    assert uploads.answer(five)[0]["status"] == 413


ENDLESS = "import sys\nwhile True: sys.stdout.buffer.write(b'x' * 65536)"
PROGRAMS = ["import os; os.abort()", "print('{}')", "print('no json')", "", ENDLESS]


@pytest.mark.parametrize("program", [*PROGRAMS, "import time; time.sleep(60)"])
def test_a_decoder_that_crashes_or_takes_too_long_is_a_refusal(monkeypatch, program):
    monkeypatch.setattr(uploads, "_PROGRAM", program)
    monkeypatch.setattr(uploads, "MOST_SECONDS", 0.5 if "sleep" in program else 20)
    begun = time.monotonic()
    with pytest.raises(HTTPException) as caught:
        decode(b"photo" if "while" in program else b"x" * 2_000_000)
    assert caught.value.status_code == 422
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


@pytest.fixture
def send(client, monkeypatch):
    """Send a photo, which is decoded in this process."""

    def answer(content):
        about, pixels = uploads.answer(content)
        return json.dumps(about).encode() + b"\n" + pixels

    monkeypatch.setattr(uploads, "_answer", answer)

    def send(content, name="dog.jpg"):
        return client.post("/upload", files={"photo": (name, content, "image/jpeg")})

    return send


def test_an_uploaded_photo_leads_to_its_page(client, page, photos, jpeg):
    answer = client.post("/upload", files={"photo": ("dog.jpg", jpeg, "image/jpeg")})
    assert answer.status_code == 303
    address = answer.headers["location"]
    assert address.startswith("/upload/")
    assert len(address) > 25
    found = page(address)
    assert photos.queries == [(48, 64, 3)]
    assert found.all("article")
    assert "From here on by chance" in found.texts("li")
    [picture] = (own for own in found.all("img") if own["src"] == f"{address}/large.jpg")
    assert (picture["width"], picture["height"]) == ("64", "48")
    for shown in (client.get(picture["src"]), client.get(f"{picture['src']}?v=")):
        assert shown.headers["content-type"] == "image/jpeg"
        assert shown.headers["cache-control"] == "private, no-cache"
        assert read_image(shown.content).shape == (48, 64, 3)
    [more] = found.all("a", rel="next")
    assert more["href"] == f"{address}?start=48"
    page(more["href"])
    assert len(photos.queries) == 1


def test_the_name_of_an_uploaded_file_is_not_used(send, jpeg):
    for name in ("../../evil.jpg", "/etc/passwd", "<script>", "a\0b", "x" * 3000):
        assert send(jpeg, name).status_code == 303


@pytest.mark.usefixtures("send")
def test_what_is_no_photo_has_a_page_that_says_so(client):
    sizes = {MOST_BYTES: 415, MOST_BYTES + 1: 413, MOST_BYTES + 70_000: 413}
    photos = [(b"x" * size, status) for size, status in sizes.items()]
    forms = [({"photo": ("a.png", own)}, status) for own, status in [*photos, (DAMAGED, 422)]]
    forms += [({"photo": (name, b"")}, 400) for name in ("", "a.jpg")]
    forms += [({}, 400), ({"other": ("a.jpg", b"P5 1 1 255 a")}, 400), ({"photo": "text"}, 400)]
    for form, status in forms:
        is_text = form.get("photo") == "text"
        answer = client.post("/upload", **{"data" if is_text else "files": form})
        assert answer.status_code == status
        assert "<h1" in answer.text


def test_few_uploads_are_decoded_at_a_time(send, jpeg):
    taken = 0
    while uploads._waiting.acquire(blocking=False):
        taken += 1
    try:
        assert taken == 4
        answer = send(jpeg)
        assert answer.status_code == 503
        assert answer.headers["retry-after"] == "5"
    finally:
        for _ in range(taken):
            uploads._waiting.release()
    answers = [send(content) for content in (jpeg, b"no", jpeg)]
    assert [answer.status_code for answer in answers] == [303, 415, 303]
    assert answers[0].headers["location"] != answers[2].headers["location"]


def test_uploads_are_forgotten(client, send, jpeg, monkeypatch):
    address = send(jpeg).headers["location"]
    now = time.monotonic()
    monkeypatch.setattr("kernelcore.web.pictures.time.monotonic", lambda: now + 1801)
    for gone in (address, f"{address}/large.jpg"):
        assert client.get(gone).status_code == 404
