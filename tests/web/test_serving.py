"""The server: its address, who may reach it, and how it ends."""

import signal
import socket
import subprocess
import sys
import textwrap
import time
import urllib.error
import urllib.request
from contextlib import suppress
from itertools import product

import pytest
from refusals import refuses

pytest.importorskip("uvicorn")
pytest.importorskip("httpx2")

from kernelcore.web import serve
from kernelcore.web.serving import is_loopback

PROGRAM = """
    import sys
    from kernelcore.models import Encoders
    from kernelcore.search import Collection
    from kernelcore.web import serve, serving

    def letters(texts):
        return [[str(text).count(letter) for letter in "abcdeghot"] for text in texts]

    encoders = Encoders(letters, letters, name="letters")
    photos = Collection(encoders, "photos", encoders.index(["dog.jpg", "cat.jpg"]))
    serving.HEADER_SECONDS, serving.REQUEST_SECONDS = map(float, sys.argv[3:])
    serve(photos, port=0, host=sys.argv[1], token=sys.argv[2] or None)
    print("ended")
"""


@pytest.fixture
def started():
    """Start a server in a process of its own; return it and the line that it prints."""
    running = []

    def started(host="127.0.0.1", token="", limits=(10, 120)):
        program = [sys.executable, "-c", textwrap.dedent(PROGRAM)]
        pipes = dict.fromkeys(("stdout", "stderr"), subprocess.PIPE)
        arguments = host, token, *map(str, limits)
        server = subprocess.Popen([*program, *arguments], text=True, **pipes)
        running.append(server)
        return server, server.stdout.readline()

    yield started
    for server in running:
        server.kill()
        server.communicate()


def test_the_address_is_printed_and_ctrl_c_ends(started):
    server, line = started()
    assert line.startswith("2 photos can be searched at http://127.0.0.1:")
    assert line.endswith("/ until Ctrl-C.\n")
    address = line.split()[6]
    with urllib.request.urlopen(address, timeout=20) as answer:
        assert answer.status == 200
        assert b"Search 2 photos" in answer.read()
        assert answer.headers["Server"] is None
    server.send_signal(signal.SIGINT)
    out, err = server.communicate(timeout=20)
    assert (server.returncode, out, err) == (0, "ended\n", "")


SLOW = {
    "silent": b"",
    "half of the headers": b"GET / HTTP/1.1\r\nHost: localhost\r\n",
    "half of a body": b"POST /by-photo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 999\r\n"
    b"Origin: http://localhost\r\n\r\nab",
    "a second request": b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\nGET / HTTP/1.1\r\n",
}


def test_connections_that_wait_are_closed(started):
    """Slow clients must not hold connections, even if they send a byte now and then."""
    _, line = started(limits=(0.5, 1.0))
    port = int(line.rsplit(":", 1)[1].split("/")[0])
    for name, sent in SLOW.items():
        with socket.create_connection(("127.0.0.1", port), timeout=20) as slow:
            slow.sendall(sent)
            start = time.monotonic()
            slow.settimeout(0.1)
            while not is_closed(slow):
                assert time.monotonic() - start < 10, name
    with urllib.request.urlopen(line.split()[6], timeout=20) as answer:
        assert answer.status == 200


def is_closed(connection):
    try:
        return not connection.recv(2**16)
    except TimeoutError:
        with suppress(OSError):
            connection.send(b"x")
        return False
    except ConnectionError:
        return True


def test_the_token_opens_a_server_at_all_addresses(started):
    server, line = started("0.0.0.0", "a long and secret token")
    assert socket.gethostname() in line
    port = line.rsplit(":", 1)[1].split("/")[0]
    for name in ("127.0.0.1", "photos.example"):
        request = urllib.request.Request(f"http://127.0.0.1:{port}/", headers={"Host": name})
        with pytest.raises(urllib.error.HTTPError, match="401"):
            urllib.request.urlopen(request, timeout=20)
    server.send_signal(signal.SIGINT)
    assert server.communicate(timeout=20)[1] == ""


OWN = ["127.0.0.1", "127.8.9.1", "::1", "localhost", "LOCALHOST"]
BEYOND = ["0.0.0.0", "::", "::2", "10.0.0.1", "127.1", "photos.example", "localhost.example"]


def test_hosts_beyond_this_machine_need_a_token(photos):
    assert all(map(is_loopback, OWN))
    for host, token in product(BEYOND, (None, "", "x" * 15)):
        refuses(ValueError, "token", serve, photos, host=host, token=token)


def test_odd_arguments(photos):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        refuses(OSError, f"port {port} cannot be used", serve, photos, port=port)
    for name, values in {
        "port": [-1, 65_536, "80"],
        "host": ["", None],
        "token": ["x"],
    }.items():
        for odd in values:
            refuses((TypeError, ValueError), name, serve, photos, **{name: odd})
    host = {"host": "no such host", "token": "x" * 16}
    refuses(OSError, "host 'no such host'", serve, photos, **host)
