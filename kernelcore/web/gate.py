"""The token that lets browsers in, and the cookie by which they are known afterwards."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

_SHORTEST = 16
_A_YEAR = 31_536_000


def check_token(token: Any) -> str:
    """Return a token that is long enough, or raise an error that names the argument."""
    if not isinstance(token, str):
        raise TypeError(f"token must be a str, got type {type(token).__name__}")
    if len(token) < _SHORTEST:
        raise ValueError(f"token must have at least {_SHORTEST} characters, got {len(token)}")
    return token


class Gate:
    """Tells who knows the token from who does not, in a time that reveals nothing.

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
    >>> from kernelcore.web.gate import Gate
    >>> gate = Gate("a long and secret token")
    >>> gate.opens("a guess"), gate.opens("a long and secret token")
    (False, True)
    >>> gate.admits({gate.cookie: gate.value})
    True
    """

    def __init__(self, token: str) -> None:
        self._token = check_token(token).encode(errors="surrogatepass")
        self.cookie = f"kernelcore-{self._sign('name')[:8]}"
        self.value = self._sign("value")

    def opens(self, token: str) -> bool:
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
    >>> from kernelcore.web.gate import own_address
    >>> own_address("/photo/3?q=dog"), own_address("//evil.example"), own_address(r"/\evil")
    ('/photo/3?q=dog', '/', '/')
    """
    is_own = address.startswith("/") and address[1:2] not in {"/", "\\"}
    return address if is_own and address.isprintable() else "/"
