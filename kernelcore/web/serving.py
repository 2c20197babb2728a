"""The server of the search page."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from kernelcore import _extras
from kernelcore._check import check_integer
from kernelcore.web.app import make_app
from kernelcore.web.guard import LOOPBACK_HOSTS, Token
from kernelcore.web.site import counted

if TYPE_CHECKING:
    from kernelcore.search import Collection

_ANY_ADDRESS = frozenset({"0.0.0.0", "::"})
_MOST_CONNECTIONS = 128
_SECONDS_TO_END = 3


def serve(
    collection: Collection,
    *,
    host: str = "127.0.0.1",
    port: int = 8765,
    token: str | None = None,
    allowed_hosts: Sequence[str] | None = None,
) -> None:
    """Answer browsers with the search page until Ctrl-C.

    The address is printed first.

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
    allowed_hosts : sequence of str, optional
        See `make_app`. The default are the names of this machine alone and `host`; any name
        where `host` is all addresses.

    Raises
    ------
    TypeError, ValueError
        If other machines reach the host and there is no token, or a parameter is out of range.
    OSError
        If the server cannot listen there, for example because another one does.
    MissingExtraError
        If a package of the extra ``web`` is not installed.

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
    uvicorn = _extras.require("uvicorn")
    from kernelcore.web.protocol import TimeLimitedProtocol

    port = check_integer("port", port, minimum=0, maximum=65535)
    check_address(host, token)
    is_any = host in _ANY_ADDRESS
    if allowed_hosts is None:
        allowed_hosts = ["*"] if is_any else [*LOOPBACK_HOSTS, _in_address(host)]
    app = make_app(collection, token=token, allowed_hosts=allowed_hosts)
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
    where = f"host {host!r} and port {port}"
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(family, kind, protocol)
    except OSError as error:
        raise OSError(error.errno, f"{error.strerror}: {where} cannot be used") from None
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(_MOST_CONNECTIONS)
    except OSError as error:
        listener.close()
        raise OSError(
            error.errno, f"{error.strerror}: {where} cannot be used; port 0 takes a free one"
        ) from None
    return listener
