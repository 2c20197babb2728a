"""Checks of every request, the token, and the headers of every answer.

A server on this machine stands open to each page that a browser here has loaded. The host is
checked so that no name of another site can point to it (DNS rebinding), and the origin of each
POST and the site of each request, so that no other page can act through the browser.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from kernelcore.web.uploads import MOST_BYTES

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
_MOST_BYTES = MOST_BYTES + 2**16  # a photo, and the form around it
# Browsers show the answer to a form only after they have sent all of it. So the rest of a form
# that is too large is read and dropped, up to this multiple of the limit.
_READ_ON = 4
_SHORTEST_TOKEN = 16
_A_YEAR = 31_536_000


class Token:
    """Token authentication with constant-time comparison; a cookie remembers the browser.

    Parameters
    ----------
    token : str
        At least 16 characters.

    Attributes
    ----------
    cookie : str
        Name of the cookie. Browsers share cookies among all ports of a host, so it differs
        between tokens.
    value : str
        Value of the cookie. It follows from the token but does not reveal it, and stays valid
        when the server starts again.

    Examples
    --------
    >>> from kernelcore.web.guard import Token
    >>> token = Token("a long and secret token")
    >>> token.matches("a guess"), token.matches("a long and secret token")
    (False, True)
    >>> token.admits({token.cookie: token.value})
    True
    """

    def __init__(self, token: Any) -> None:
        if not isinstance(token, str):
            raise TypeError(f"token must be a str, got type {type(token).__name__}")
        if len(token) < _SHORTEST_TOKEN:
            raise ValueError(
                f"token must have at least {_SHORTEST_TOKEN} characters, got {len(token)}"
            )
        self._token = token.encode(errors="surrogatepass")
        self.cookie = f"kernelcore-{self._sign('name')[:8]}"
        self.value = self._sign("value")

    def matches(self, token: str) -> bool:
        """Whether this is the token."""
        return hmac.compare_digest(token.encode(errors="surrogatepass"), self._token)

    def admits(self, cookies: Mapping[str, str]) -> bool:
        """Whether the right cookie is among these."""
        given = cookies.get(self.cookie, "").encode(errors="surrogatepass")
        return hmac.compare_digest(given, self.value.encode())

    def let_in(self, request: Request, address: str) -> Response:
        """Set the cookie, and lead to an address of this server."""
        response = RedirectResponse(own_address(address), 303)
        response.set_cookie(
            self.cookie,
            self.value,
            max_age=_A_YEAR,
            httponly=True,
            samesite="lax",
            secure=request.url.scheme == "https",
        )
        return response

    def _sign(self, purpose: str) -> str:
        return hmac.new(self._token, purpose.encode(), hashlib.sha256).hexdigest()


def own_address(address: str) -> str:
    r"""Return an address without a host as it is, and ``/`` for any other.

    Browsers read two slashes of either kind as the beginning of a host.

    Examples
    --------
    >>> from kernelcore.web.guard import own_address
    >>> own_address("/photo/3?q=dog"), own_address("//evil.example"), own_address(r"/\evil")
    ('/photo/3?q=dog', '/', '/')
    """
    is_own = address.startswith("/") and address[1:2] not in {"/", "\\"}
    return address if is_own and address.isprintable() else "/"


class Guard:
    """ASGI middleware that raises `HTTPException` for what no page of this server sends.

    Parameters
    ----------
    app : ASGI application
    hosts : sequence of str
        Names in the header ``Host``, without ports, IPv6 addresses in brackets. ``"*"`` allows
        any name.
    token : Token, optional
        The token that requests need.
    """

    def __init__(self, app: ASGIApp, hosts: Sequence[str], token: Token | None) -> None:
        self._app, self._token = app, token
        self._allowed = {name.lower() for name in hosts}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_safely(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(SAFE_HEADERS)
            await send(message)

        request = Request(scope)
        check_sizes(request)
        self._check_host(request.headers)
        if "range" in request.headers:
            raise HTTPException(416, "Pictures are sent as a whole.")
        check_site(request)
        app = self._authenticated(request) or self._app
        await app(scope, self._limited(receive), send_safely)

    def _check_host(self, headers: Headers) -> None:
        hosts = headers.getlist("host")
        found = _HOST.fullmatch(hosts[0]) if len(hosts) == 1 else None
        if found is None or not self._allowed & {found[1].lower(), "*"}:
            raise HTTPException(400, "This server does not go by that name.")

    def _authenticated(self, request: Request) -> Response | None:
        """Raise without the token; an answer takes it out of the address."""
        path, token = request.scope["path"], self._token
        if token is None or path.startswith(_OPEN_PATHS):
            return None
        if token.matches(request.query_params.get("token", "")):
            others = [own for own in request.query_params.multi_items() if own[0] != "token"]
            return token.let_in(request, f"{path}?{urlencode(others)}" if others else path)
        if not token.admits(request.cookies):
            raise HTTPException(401, "This page needs its token.")
        return None

    def _limited(self, receive: Receive) -> Receive:
        """Count the bytes of the body; too many end the request."""
        n_bytes = 0

        async def limited() -> Message:
            nonlocal n_bytes
            message = await receive()
            n_bytes += len(message.get("body", b""))
            if n_bytes <= _MOST_BYTES:
                return message
            while message.get("more_body") and n_bytes < _READ_ON * _MOST_BYTES:
                message = await receive()
                n_bytes += len(message.get("body", b""))
            raise HTTPException(413, f"A photo may have {MOST_BYTES // 10**6} MB.")

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
    kind = headers.get("sec-fetch-mode"), headers.get("sec-fetch-dest")
    is_link = request.method == "GET" and kind == ("navigate", "document")
    if headers.get("sec-fetch-site", "none") not in {"none", "same-origin"} and not is_link:
        raise HTTPException(403, "This request came from another site.")
    if request.method == "POST":
        origins = [origin.lower() for origin in headers.getlist("origin")]
        host = headers["host"].lower()
        if origins not in ([f"http://{host}"], [f"https://{host}"]):
            raise HTTPException(403, "This form was not sent by a page of this server.")
