"""The application: which address leads where."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.routing import Route

from kernelcore import _extras
from kernelcore._check import as_list
from kernelcore.web import actions, pages
from kernelcore.web.guard import LOOPBACK_HOSTS, Guard, Token
from kernelcore.web.site import Site
from kernelcore.web.uploads import MOST_BYTES

if TYPE_CHECKING:
    from kernelcore.search import Collection

_FORM_BYTES = 2**16  # of a form around the photo in it


def make_app(
    collection: Collection,
    *,
    token: str | None = None,
    allowed_hosts: Sequence[str] = LOOPBACK_HOSTS,
) -> Starlette:
    """Make the search page of a collection, an application for servers of ASGI.

    Parameters
    ----------
    collection : Collection
        Photos that can be searched.
    token : str, optional
        Requests are answered only if they know it; at least 16 characters. A browser is asked
        once, or is given it in an address, as ``/?token=...``.
    allowed_hosts : sequence of str, default ("localhost", "127.0.0.1", "[::1]")
        Names by which the server may be addressed. ``"*"`` allows any, which is safe only with
        a token: a page of another site could give its name the address of this server.

    Returns
    -------
    Starlette

    Raises
    ------
    TypeError, ValueError
        If the token is too short, or there is no allowed host.
    MissingExtraError
        If a package of the extra ``web`` is not installed.

    Notes
    -----
    Photos have numbers in addresses, and only pictures made of them are sent. A request is
    refused with a status of 4xx if it names another host, asks for a part of a file, comes
    from a page of another site, or is too long. Uploaded photos are decoded in a process of
    their own with 3 GiB of memory and 20 seconds, and are kept in memory for half an hour.

    Examples
    --------
    >>> from kernelcore.models import Encoders
    >>> from kernelcore.search import Collection
    >>> from kernelcore.web import make_app
    >>> def letters(texts):
    ...     return [[str(text).count(letter) for letter in "abcdeghot"] for text in texts]
    >>> encoders = Encoders(letters, letters, name="letters")
    >>> photos = Collection(encoders, "photos", encoders.index(["dog.jpg", "cat.jpg"]))
    >>> app = make_app(photos, token="a long and secret token")
    >>> type(app).__name__
    'Starlette'
    """
    _extras.require("python_multipart")
    hosts = as_list("allowed_hosts", allowed_hosts)
    if not hosts or not all(isinstance(host, str) and host for host in hosts):
        raise ValueError(f"allowed_hosts must be names of hosts, got {allowed_hosts!r:.80}")
    needed = None if token is None else Token(token)
    guard = Middleware(
        Guard,
        allowed_hosts=hosts,
        token=needed,
        most_bytes=MOST_BYTES + _FORM_BYTES,
        refuse=pages.error_page,
    )
    app = Starlette(
        routes=[
            Route("/", pages.search),
            Route("/photo/{number:int}", pages.photo),
            Route("/photo/{number:int}/{size}.jpg", actions.picture),
            Route("/upload", actions.send_photo, methods=["POST"]),
            Route("/upload/{name}", pages.upload),
            Route("/upload/{name}/large.jpg", actions.uploaded_picture),
            Route("/names", actions.name_photos, methods=["POST"]),
            Route("/look", actions.look, methods=["POST"]),
            Route("/look", actions.look_state),
            Route("/help", pages.show_help),
            Route("/enter", actions.enter, methods=["POST"]),
            Route("/static/{name}", actions.asset),
        ],
        middleware=[guard],
        exception_handlers={HTTPException: pages.error_page, Exception: pages.error_page},
    )
    app.router.redirect_slashes = False
    app.state.site = Site(collection, needed)
    return app
