"""The server of the search page, which limits the time of connections."""

from __future__ import annotations

import asyncio
import ipaddress
import os
import socket
from contextlib import suppress

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from kernelcore._check import check_integer
from kernelcore._store import counted
from kernelcore.search import Collection
from kernelcore.web.app import make_app
from kernelcore.web.guard import LOOPBACK_HOSTS, Token

_ANY_ADDRESS = frozenset({"0.0.0.0", "::"})
_MOST_CONNECTIONS = 128
_SECONDS_TO_END = 3
HEADER_SECONDS = 10.0
"""Time to send the headers of a request, from the connection or the last answer on."""
REQUEST_SECONDS = 120.0
"""Time from the headers of a request to the end of its answer: upload, search and download."""


def serve(
    collection: Collection,
    *,
    host: str = "127.0.0.1",
    port: int = 8765,
    token: str | None = None,
) -> None:
    """Answer browsers with the search page until Ctrl-C.

    The address is printed first. Requests must name this machine or `host`, or any host where
    `host` is all addresses.

    Parameters
    ----------
    collection : Collection
        Photos that can be searched.
    host : str, default "127.0.0.1"
        Name or address to listen at. Other machines reach the page only if it is not one of
        this machine alone; then the page needs a token. ``"0.0.0.0"`` are all addresses.
    port : int, default 8765
        Port to listen at; 0 takes a free one.
    token : str, optional
        Secret that browsers have to know, of at least 16 characters. The connection is not
        encrypted, so use it in networks that you trust or behind a server that speaks HTTPS.

    Raises
    ------
    TypeError, ValueError
        If other machines reach the host and there is no token, or a parameter is out of range.
    OSError
        If the server cannot listen there, for example because another one does.

    Examples
    --------
    >>> from kernelcore.models import Encoders
    >>> from kernelcore.search import Collection
    >>> from kernelcore.web import serve
    >>> def letters(texts):
    ...     return [[str(text).count(letter) for letter in "abcdeghot"] for text in texts]
    >>> encoders = Encoders(letters, letters, name="letters")
    >>> photos = Collection(encoders, "photos", encoders.index(["dog.jpg", "cat.jpg"]))
    >>> serve(photos, host="0.0.0.0")
    Traceback (most recent call last):
    ValueError: token must have at least 16 characters where other machines reach the page, got
    none for host '0.0.0.0'
    """
    port = check_integer("port", port, minimum=0, maximum=65535)
    check_address(host, token)
    is_any = host in _ANY_ADDRESS
    allowed = ["*"] if is_any else [*LOOPBACK_HOSTS, _in_address(host)]
    app = make_app(collection, token=token, allowed_hosts=allowed)
    config = uvicorn.Config(
        app,
        http=TimeLimitedProtocol,
        loop="asyncio",
        ws="none",
        lifespan="off",
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        limit_concurrency=_MOST_CONNECTIONS,
        timeout_graceful_shutdown=_SECONDS_TO_END,
    )
    with _listening(host, port) as listener:
        name = socket.gethostname() if is_any else _in_address(host)
        address = f"http://{name}:{listener.getsockname()[1]}/"
        photos = counted(len(collection), "photo")
        print(f"{photos} can be searched at {address} until Ctrl-C.", flush=True)
        with suppress(KeyboardInterrupt):
            uvicorn.Server(config).run(sockets=[listener])


class TimeLimitedProtocol(H11Protocol):
    """The HTTP/1.1 protocol of uvicorn, which by itself waits for clients without a limit.

    So silent clients do not use up all connections.
    """

    _limit: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for headers."""
        super().connection_made(transport)
        self._close_after(HEADER_SECONDS)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        super().connection_lost(exc)
        if self._limit is not None:
            self._limit.cancel()

    def handle_events(self) -> None:
        """Read what came; complete headers begin a request."""
        before = self.cycle
        super().handle_events()
        if self.cycle is not before:
            self._close_after(REQUEST_SECONDS)

    def on_response_complete(self) -> None:
        """Begin to wait for the headers of the next request."""
        answered = self.cycle
        super().on_response_complete()  # may begin a request that waited behind this one
        if self.cycle is answered:
            self._close_after(HEADER_SECONDS)

    def _close_after(self, seconds: float) -> None:
        if self._limit is not None:
            self._limit.cancel()
        self._limit = self.loop.call_later(seconds, self.transport.abort)


def check_address(host: str, token: str | None) -> None:
    """Raise unless the page may be shown at this host."""
    if not isinstance(host, str) or not host:
        raise ValueError(f"host must be the name or the address of a host, got {host!r:.80}")
    if token is not None:
        Token(token)
    elif not is_loopback(host):
        raise ValueError(
            "token must have at least 16 characters where other machines reach the page, "
            f"got none for host {host!r}"
        )


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches a host.

    Examples
    --------
    >>> from kernelcore.web.serving import is_loopback
    >>> is_loopback("localhost"), is_loopback("::1"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def _in_address(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _listening(host: str, port: int) -> socket.socket:
    """Return a socket that listens, or raise an error that says what cannot be used."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        both = host == "::" and socket.has_dualstack_ipv6()
        return socket.create_server(
            (host, port), family=family, backlog=_MOST_CONNECTIONS, dualstack_ipv6=both
        )
    except OSError as error:
        is_unknown, where = isinstance(error, socket.gaierror), f"host {host!r} and port {port}"
        reason = error.strerror if is_unknown else os.strerror(error.errno or 0)
        hint = "" if is_unknown else "; port=0, of the command --port 0, takes a free one"
        raise OSError(error.errno, f"{reason}: {where} cannot be used{hint}") from None
