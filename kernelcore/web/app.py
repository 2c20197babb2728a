"""The application: which address leads where."""

from __future__ import annotations

from collections.abc import Sequence

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.routing import Route, Router

from kernelcore._check import as_list
from kernelcore.search import Collection
from kernelcore.web import pages
from kernelcore.web.guard import LOOPBACK_HOSTS, Guard, Token
from kernelcore.web.site import Site

_ROUTES = [
    Route("/", pages.search),
    Route("/photo/{number:int}", pages.photo),
    Route("/photo/{number:int}/{size}.jpg", pages.picture),
    Route("/photo/{number:int}/original", pages.original),
    Route("/upload", pages.send_photo, methods=["POST"]),
    Route("/upload/{name}", pages.upload),
    Route("/upload/{name}/large.jpg", pages.uploaded_picture),
    Route("/names", pages.name_photos, methods=["POST"]),
    Route("/look", pages.look, methods=["POST"]),
    Route("/look", pages.look_state),
    Route("/help", pages.show_help),
    Route("/enter", pages.enter, methods=["POST"]),
    Route("/static/{name}", pages.asset),
]


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

    Notes
    -----
    Photos have numbers in addresses. Pages show pictures made of them; a link leads to the
    file itself, with all its metadata. A request is
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
    hosts = as_list("allowed_hosts", allowed_hosts)
    if not hosts or not all(isinstance(host, str) and host for host in hosts):
        raise ValueError(f"allowed_hosts must be names of hosts, got {allowed_hosts!r:.80}")
    needed = None if token is None else Token(token)
    guard = Middleware(Guard, hosts=hosts, token=needed)
    handlers = dict.fromkeys((HTTPException, Exception), pages.error_page)
    app = Starlette(exception_handlers=handlers)
    # Around the routes alone: errors that the guard raises have pages, too.
    app.router = Router(_ROUTES, redirect_slashes=False, middleware=[guard])
    app.state.site = Site(collection, needed)
    return app
