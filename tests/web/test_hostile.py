"""Hostile requests: each gets a status of 4xx, and nothing else."""

import asyncio
import gc
import socket
from contextlib import suppress
from itertools import product
from urllib.parse import unquote_to_bytes
from urllib.request import urlopen

import pytest

pytest.importorskip("httpx2")

from kernelcore.web import make_app, uploads

pytest.importorskip("uvicorn")

SECRET = b"the content of a file beside the folder"
HOST = b"localhost:8765"
ORIGIN = b"http://" + HOST
FORM = b"application/x-www-form-urlencoded"


def ask(app, method="GET", address=b"/", headers=(), body=()):
    """Make a request of bytes; return its status, its headers and its body."""
    path, _, query = address.partition(b"?")
    given = list(headers)
    for name, value in ((b"host", HOST), (b"origin", ORIGIN)):
        if name not in dict(given):
            given.append((name, value))
    scope = {"type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1"}
    scope |= {"method": method, "scheme": "http", "raw_path": path, "query_string": query}
    scope["path"] = unquote_to_bytes(path).decode("utf-8", "surrogateescape")
    scope["headers"] = [pair for pair in given if pair[1] is not None]
    scope |= {"client": ("127.0.0.1", 50_000), "server": ("127.0.0.1", 8765), "root_path": ""}
    parts = iter(body)
    sent = []

    async def receive():
        part = next(parts, None)
        return {"type": "http.request", "body": part or b"", "more_body": part is not None}

    async def send(message):
        sent.append(message)

    asyncio.run(app(scope, receive, send))
    text = b"".join(message.get("body", b"") for message in sent[1:])
    return sent[0]["status"], dict(sent[0]["headers"]), text


@pytest.fixture
def app(photos):
    (photos.folder.parent / "secret.txt").write_bytes(SECRET)
    return make_app(photos)


@pytest.fixture
def get_nothing(app, photos):
    """Make a request that must get a status of 4xx, and nothing of the machine."""

    def get_nothing(*expected, **request):
        status, headers, text = ask(app, **request)
        assert 400 <= status < 500, request
        assert not expected or status in expected, (status, request)
        told = SECRET, b"root:", str(photos.folder.parent).encode(), b"Traceback"
        assert not any(own in text for own in told)
        assert headers[b"content-type"].startswith((b"text/html", b"text/plain"))
        assert headers[b"x-content-type-options"] == b"nosniff"
        assert b"default-src 'none'" in headers[b"content-security-policy"]

    return get_nothing


FOLDERS = [b"/", b"/static/", b"/photo/", b"/photo/10/", b"/upload/", b"/upload/x/"]
UPWARDS = rb"""
../ ..%2f %2e%2e/ %2e%2e%2f ..\ ..%5c %252e%252e%252f ....// ..;/ %c0%ae%c0%ae/ ..%00/ ./../
""".split()
FILES = [b"secret.txt", b"etc/passwd", b"pages.py"]
ROOTED = rb"""
/etc/passwd //etc/passwd %2fetc%2fpasswd file:///etc/passwd C:\boot.ini %00 page.css%00.jpg
~root page.css/../site.py small.jpg/../../x page.css%0d%0aX:y %e2%80%a5/secret.txt
""".split()


def test_no_path_leads_out_and_no_file_is_reached_by_its_name(get_nothing, photos):
    for folder, up, name, times in product(FOLDERS, UPWARDS, FILES, (1, 6)):
        get_nothing(404, address=folder + up * times + name)
    names = [photos.name(number).encode() for number in (10, 13, 16)]
    for folder, name in product([*FOLDERS, b"/photo/10/small.jpg/"], [*ROOTED, *names]):
        get_nothing(404, address=folder + name)


NUMBERS = [
    *["-1", "1.0", "1e1", "0x10", "%31%30x", "NaN", "10;11", "10,11", "null", "10'--"],
    *["$(id)", "{{7*7}}", "１０", "٣", "%D9%A3", "10%00", "%20", "1_0"],
]


def test_photos_have_plain_numbers(get_nothing):
    for text in NUMBERS:
        number = text.encode()
        get_nothing(404, address=b"/photo/" + number)
        get_nothing(404, address=b"/photo/" + number + b"/small.jpg")
        get_nothing(400, address=b"/?start=" + number)
        get_nothing(400, address=b"/photo/10?start=" + number)
        form = {"headers": [(b"content-type", FORM)], "body": [b"number=" + number]}
        get_nothing(400, method="POST", address=b"/names", **form)
    for digits in (5, 18, 19, 20, 25, 2000):
        get_nothing(404, address=b"/photo/" + b"9" * digits)
    for digits in (19, 25, 2000):
        get_nothing(400, address=b"/?start=" + b"9" * digits)


NAMES = rb"""
evil.example localhost.evil.example evil.example:8765 127.0.0.1.evil.example *.example
localhost@evil.example evil.example#localhost localhost:80:80 localhost: localhost:x 0.0.0.0
localhost:999999 127.0.0.2 10.0.0.1 2130706433 0x7f.1 [::] [::1 ::1 [::ffff:127.0.0.1] *
localhost,evil.example localhost\evil localhost/x LOCALHOST. [fe80::1%25eth0]
"""
HOSTS = [*NAMES.split(), b"", b" ", b"localhost ", b"localhost\0", b"loc\xd0\xb0lhost", None]


def test_other_hosts_are_refused(get_nothing):
    for host, address in product(HOSTS, (b"/", b"/photo/10/small.jpg", b"/static/page.js")):
        get_nothing(400, address=address, headers=[(b"host", host)])
    for pair in ([HOST, b"evil.example"], [HOST, HOST]):
        get_nothing(400, headers=[(b"host", host) for host in pair])


SITES = b"""
http://evil.example http://localhost http://localhost:8766 http://127.0.0.1:8765 null
file://localhost:8765 http://localhost:8765.evil.example http://x@localhost:8765
http://evil.example/http://localhost:8765 //localhost:8765 http://[::1 ftp://localhost:8765
localhost:8765
"""
ORIGINS = [*SITES.split(), b"", b"http://localhost:8765\0", None]
FORMS = [b"/upload", b"/names", b"/look", b"/enter"]


def test_forms_of_other_pages_are_refused(get_nothing):
    for origin, address in product(ORIGINS, FORMS):
        get_nothing(403, method="POST", address=address, headers=[(b"origin", origin)])
    twice = [(b"origin", ORIGIN), (b"origin", b"http://evil.example")]
    get_nothing(403, method="POST", address=b"/look", headers=twice)


def fetched(site, mode, kind):
    values = {b"sec-fetch-site": site, b"sec-fetch-mode": mode, b"sec-fetch-dest": kind}
    return list(values.items())


def test_other_sites_can_embed_nothing(get_nothing):
    kinds = {b"no-cors": (b"image", b"script"), b"navigate": (b"iframe", b"embed")}
    kinds |= {b"cors": (b"empty",), b"": (b"",)}
    modes = [(mode, kind) for mode, own in kinds.items() for kind in own]
    addresses = [b"/", b"/photo/10/small.jpg", b"/static/page.js"]
    for site, mode, address in product((b"cross-site", b"same-site", b"x"), modes, addresses):
        get_nothing(403, address=address, headers=fetched(site, *mode))
    link = fetched(b"cross-site", b"navigate", b"document")
    get_nothing(403, method="POST", address=b"/look", headers=link)


PARTS = b"""
bytes=0-0 bytes=0- bytes=-1 bytes=5-1 bytes=99999999999- bytes= bytes=-0 bytes=a-b items=0-1 x
bytes=0-1, bytes=\xff
"""
RANGES = [*PARTS.split(), b"bytes=0-" + b"9" * 300, b"bytes=" + b",".join([b"0-"] * 1000)]
RANGES.append(b"bytes=" + b",".join(b"%d-%d" % (i, i) for i in range(500)))


def test_parts_are_not_sent(get_nothing):
    for text, address in product(RANGES, (b"/photo/10/large.jpg", b"/static/page.css", b"/")):
        get_nothing(416, address=address, headers=[(b"range", text)])


def test_long_requests_are_refused(get_nothing):
    get_nothing(414, address=b"/" + b"a" * 5000)
    get_nothing(414, address=b"/?q=" + b"a" * 5000)
    get_nothing(414, address=b"/?" + b"&".join([b"start=0"] * 1000))
    get_nothing(414, address=b"/?q=" + b"%41" * 2000)
    get_nothing(431, headers=[(b"cookie", b"a" * 20_000)])
    get_nothing(431, headers=[(b"x-%d" % i, b"y" * 100) for i in range(200)])


def test_requests_of_this_site_and_links_to_it_are_answered(app):
    hosts = (b"localhost", b"LocalHost:1", b"127.0.0.1:8765", b"[::1]:8765", b"[::1]")
    links = [fetched(site, b"cors", b"empty") for site in (b"same-origin", b"none")]
    links += [fetched(b"cross-site", b"navigate", b"document"), [(b"cookie", b"a" * 16_000)]]
    for headers in (*([(b"host", host)] for host in hosts), *links):
        assert ask(app, headers=headers)[0] == 200
    assert ask(app, address=b"/?q=" + b"a" * 1000)[0] == 200
    for origin in (ORIGIN, b"https://localhost:8765", b"HTTP://LOCALHOST:8765"):
        headers = [(b"origin", origin)]
        assert ask(app, method="POST", address=b"/look", headers=headers)[0] == 303


def test_other_methods_are_refused(get_nothing):
    methods = ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT", "PROPFIND", "get", "X"]
    addresses = [b"/", b"/photo/10", b"/look", b"/photo/10/small.jpg"]
    for method, address in product(methods, addresses):
        get_nothing(405, method=method, address=address)


MULTIPART = b"multipart/form-data; boundary=b"
PART = b'--b\r\nContent-Disposition: form-data; name="photo"; filename="a.jpg"\r\n\r\n'
BODIES = [
    *((MULTIPART, [text]) for text in (b"", b"junk", PART, PART + b"x\r\n--b--\r\n")),
    (MULTIPART, [b"--b\r\nContent-Disposition: x\r\n\r\nx\r\n--b--\r\n"]),
    (MULTIPART, [b'--b\r\nContent-Disposition: form-data; name="photo"\r\n\r\nx\r\n--b--\r\n']),
    (MULTIPART, [b"--b\r\n" + b"A: b\r\n" * 10_000 + b"\r\nx\r\n--b--\r\n"]),
    (MULTIPART, [b"--b\r\n" + b"A" * 100_000 + b": b\r\n\r\nx\r\n--b--\r\n"]),
    (MULTIPART, [(PART + b"x\r\n") * 3000 + b"--b--\r\n"]),
    (MULTIPART, [PART.replace(b"a.jpg", b"a" * 100_000) + b"x\r\n--b--\r\n"]),
    (MULTIPART, [PART.replace(b"a.jpg", b"\xff\xfe") + b"x\r\n--b--\r\n"]),
    (MULTIPART, [PART[:i] for i in (3, 30, 60)]),
    (b"multipart/form-data", [PART + b"x\r\n--b--\r\n"]),
    (b"multipart/form-data; boundary=" + b"b" * 3000, [b"--" + b"b" * 3000 + b"\r\n"]),
    (b"multipart/form-data; boundary=\xff", [b"--\xff\r\n"]),
    (b"multipart/form-data; boundary=b; charset=rot13", [PART + b"x\r\n--b--\r\n"]),
    (b"multipart/mixed; boundary=b", [PART + b"x\r\n--b--\r\n"]),
    (b"application/json", [b'{"photo": "/etc/passwd"}']),
    (FORM, [b"&" * 100_000]),
    (FORM, [b"photo=" + b"%" * 100_000]),
    (b"\xff\xff", [b"x"]),
]


# Starlette leaves the file of a form that ends too early to the garbage collector.
@pytest.mark.filterwarnings("ignore:Exception ignored in. <function SpooledTemporaryFile")
@pytest.mark.parametrize("address", [b"/upload", b"/names"])
def test_forms_that_are_none(get_nothing, address, monkeypatch):
    answer = b'{"status": 415, "reason": "no"}\n'
    monkeypatch.setattr(uploads, "_answer", lambda content: answer)
    for kind, body in BODIES:
        headers = [(b"content-type", kind)]
        get_nothing(400, 415, method="POST", address=address, headers=headers, body=body)
    get_nothing(400, method="POST", address=address, headers=[(b"origin", ORIGIN)], body=[b"x"])
    gc.collect()


def test_bodies_that_are_too_long_are_read_to_a_limit(get_nothing):
    read = []

    def endless():
        yield PART
        for _ in range(5000):
            read.append(2**16)
            yield b"x" * 2**16

    kind = (b"content-type", MULTIPART)
    for headers in ([kind], [kind, (b"content-length", b"5")]):
        read.clear()
        get_nothing(413, method="POST", address=b"/upload", headers=headers, body=endless())
        assert 60e6 < sum(read) < 90e6
    form = {"method": "POST", "address": b"/upload", "headers": headers}
    get_nothing(413, **form, body=[PART, b"x" * 10**8])


REQUESTS = [
    b"GET / HTTP/1.1\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n",
    b"GET http://evil.example/ HTTP/1.1\r\nHost: evil.example\r\n\r\n",
    b"GET /static/../pages.py HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET ../../etc/passwd HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET /\0 HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET / HTTP/9.9\r\nHost: localhost\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
    b"CONNECT localhost:22 HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 100_000 + b"\r\n\r\n",
    b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: local\x00host\r\n\r\n",
    b"POST /look HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
    b"POST /look HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
    b"POST /names HTTP/1.1\r\nHost: localhost\r\nOrigin: http://localhost\r\n"
    b"Content-Type: application/x-www-form-urlencoded\r\nTransfer-Encoding: chunked\r\n\r\n"
    b"zz\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Origin: http://evil.example\r\nSec-Fetch-Site: cross-site\r\n\r\n",
]


def exchange(port, request):
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        connection.sendall(request)
        connection.shutdown(socket.SHUT_WR)
        answer = b""
        with suppress(ConnectionResetError):
            while part := connection.recv(65_536):
                answer += part
    return answer


def test_a_server_answers_hostile_bytes_with_4xx_or_not_at_all(app, served):
    with served(app) as port:
        for request in REQUESTS:
            answer = exchange(port, request)
            assert answer == b"" or answer.startswith(b"HTTP/1.1 4"), request[:80]
            assert not any(own in answer for own in (SECRET, b"root:"))
        with urlopen(f"http://127.0.0.1:{port}/help", timeout=20) as answer:
            assert answer.status == 200
