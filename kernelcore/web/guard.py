"""Checks that every request passes, and the headers that every answer has.

A server on this machine stands open to each page that a browser here has loaded. The host is
checked so that no name of another site can point to it (DNS rebinding), and the origin of each
POST and the site of each request, so that no other page can act through the browser.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING
from urllib.parse import urlencode, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from kernelcore.web.gate import Gate

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

LOOPBACK_HOSTS = ("localhost", "127.0.0.1", "[::1]")
SAFE_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; connect-src 'self'; form-action 'self'; img-src 'self'; "
        "script-src 'self'; style-src 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Referrer-Policy": "same-origin",  # with no-referrer, forms would have no origin
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
_OPEN_PATHS = ("/static/", "/enter")  # which need no token
_HOST = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::[0-9]{1,5})?", re.ASCII | re.IGNORECASE)
_MOST_HEADER_BYTES = 2**14
_MOST_ADDRESS_BYTES = 2**12
# Browsers show the answer to a form only after they have sent all of it. So the rest of a form
# that is too large is read and dropped, up to this multiple of the limit.
_READ_ON = 4

Refuse = Callable[[Request, HTTPException], Response]


class Guard:
    """ASGI middleware that refuses what no page of this server sends.

    Parameters
    ----------
    app : ASGI application
    allowed_hosts : sequence of str
        Names in the header ``Host``, without ports, IPv6 addresses in brackets. ``"*"`` allows
        any name.
    gate : Gate, optional
        Knows the token that requests need.
    most_bytes : int
        Longest body of a request.
    refuse : callable
        Makes the answer to a refused request.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        allowed_hosts: Sequence[str],
        gate: Gate | None,
        most_bytes: int,
        refuse: Refuse,
    ) -> None:
        self._app, self._gate, self._refuse = app, gate, refuse
        self._allowed = {name.lower() for name in allowed_hosts}
        self._most_bytes = most_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        app, request = self._app, Request(scope)
        try:
            self._check(request)
            if self._gate is not None:
                app = self._gate_keeper(request, self._gate) or app
        except HTTPException as error:
            app = self._refuse(request, error)
        await app(scope, self._limited(receive), _with_safe_headers(send))

    def _check(self, request: Request) -> None:
        check_sizes(request)
        self._check_host(request.headers)
        if "range" in request.headers:
            raise HTTPException(416, "Pictures are sent as a whole.")
        check_site(request)
        if request.method == "POST":
            check_origin(request.headers)

    def _check_host(self, headers: Headers) -> None:
        hosts = headers.getlist("host")
        found = _HOST.fullmatch(hosts[0]) if len(hosts) == 1 else None
        if found is None or not self._allowed & {found[1].lower(), "*"}:
            raise HTTPException(400, "This server does not go by that name.")

    @staticmethod
    def _gate_keeper(request: Request, gate: Gate) -> Response | None:
        """Let in who has the token; the answer takes it out of the address."""
        path = request.scope["path"]
        if path.startswith(_OPEN_PATHS):
            return None
        others = [item for item in request.query_params.multi_items() if item[0] != "token"]
        if gate.opens(request.query_params.get("token", "")):
            return gate.let_in(request, f"{path}?{urlencode(others)}" if others else path)
        if not gate.admits(request.cookies):
            raise HTTPException(401, "This page needs its token.")
        return None

    def _limited(self, receive: Receive) -> Receive:
        """Count the bytes of the body; too many end the request."""
        n_bytes = 0

        async def limited() -> Message:
            nonlocal n_bytes
            message = await receive()
            n_bytes += len(message.get("body", b""))
            if n_bytes <= self._most_bytes:
                return message
            while message.get("more_body") and n_bytes < _READ_ON * self._most_bytes:
                message = await receive()
                n_bytes += len(message.get("body", b""))
            raise HTTPException(413, f"A photo may have {self._most_bytes // 10**6} MB.")

        return limited


def check_sizes(request: Request) -> None:
    """Raise unless the address and the headers are short."""
    scope = request.scope
    address = scope.get("raw_path") or scope["path"]
    if len(address) + len(scope["query_string"]) > _MOST_ADDRESS_BYTES:
        raise HTTPException(414, "This address is too long.")
    if sum(len(name) + len(value) for name, value in scope["headers"]) > _MOST_HEADER_BYTES:
        raise HTTPException(431, "The headers of this request are too long.")


def check_site(request: Request) -> None:
    """Raise if another site sent the request, unless it is a link that was followed."""
    headers = request.headers
    if headers.get("sec-fetch-site", "none") in {"none", "same-origin"}:
        return
    kind = headers.get("sec-fetch-mode"), headers.get("sec-fetch-dest")
    if request.method != "GET" or kind != ("navigate", "document"):
        raise HTTPException(403, "This request came from another site.")


def check_origin(headers: Headers) -> None:
    """Raise unless a page of this server sent the form."""
    origins = headers.getlist("origin")
    try:
        origin = urlsplit(origins[0] if len(origins) == 1 else "")
    except ValueError:  # brackets that do not match
        origin = urlsplit("")
    is_own = origin.netloc.lower() == headers["host"].lower()
    if origin.scheme not in {"http", "https"} or not is_own:
        raise HTTPException(403, "This form was not sent by a page of this server.")


def _with_safe_headers(send: Send) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            MutableHeaders(scope=message).update(SAFE_HEADERS)
        await send(message)

    return sending
