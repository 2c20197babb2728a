"""The pages: results of a sentence, a photo with what is like it, help, and errors."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, NamedTuple

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from kernelcore._store import printable
from kernelcore.web.asking import gone, number_of, sentence_of, start_of
from kernelcore.web.guard import SAFE_HEADERS
from kernelcore.web.pictures import GONE, draw
from kernelcore.web.results import results_page, tile_of
from kernelcore.web.site import site_of
from kernelcore.web.wording import advice, marked

if TYPE_CHECKING:
    from kernelcore.models import Match
    from kernelcore.search import Collection

_N_CAPTIONS = 6
_FAILED = "Something went wrong"
_TITLES = {
    400: "This request makes no sense",
    401: "This page needs its token",
    403: "This is not allowed",
    404: "There is nothing here",
    405: "This is not allowed",
    413: "This photo is too large",
    415: "This is no photo",
    422: "This photo cannot be read",
    503: "One moment, please",
}


class Caption(NamedTuple):
    """A sentence for a photo, and whether it stands below the line of chance."""

    text: str
    is_below: bool


def search(request: Request) -> Response:
    """Show the photos that fit a sentence; without one, all photos."""
    site, start, sentence = site_of(request), start_of(request), sentence_of(request)
    site.follow()
    collection = site.collection
    if not sentence:
        return site.page("home", results=results_page(collection, site.all_photos(), start))
    order = site.by_sentence(sentence)
    results = results_page(collection, order, start)
    best = (results.above or results.below)[:1] if start == 0 else []
    shares = [
        s for found in best for s in collection.contributions(sentence, found.tile.number)
    ]
    return site.page(
        "search",
        sentence=sentence,
        pieces=marked(sentence, shares),
        advice=advice(sentence, collection.unknown_words(sentence)),
        results=results,
        false_rate=collection.false_rate,
    )


def photo(request: Request) -> Response:
    """Show a photo with its captions and the photos that are most similar."""
    site, start, sentence = site_of(request), start_of(request), sentence_of(request)
    number = number_of(request)
    site.follow()
    collection = site.collection
    try:
        picture = site.pictures.of(number, "large")
        order = site.by_photo(number)
        captions = _captions(collection, collection.annotate_photo(number, k=_N_CAPTIONS))
        shares = collection.contributions(sentence, number) if sentence else []
        tile = tile_of(collection, number)
    except GONE:
        raise gone() from None
    return site.page(
        "photo",
        tile=tile,
        picture=picture,
        source=tile.picture("large"),
        sentence=sentence,
        pieces=marked(sentence, shares),
        captions=captions,
        results=results_page(collection, order, start),
        false_rate=collection.false_rate,
    )


def upload(request: Request) -> Response:
    """Show an uploaded photo with its captions and the photos that are most similar."""
    site, start, name = site_of(request), start_of(request), request.path_params["name"]
    pixels = site.uploads.get(name)
    if pixels is None:
        raise HTTPException(404, "This photo is not kept any more. Please choose it again.")
    site.follow()
    collection = site.collection
    return site.page(
        "upload",
        picture=draw(pixels, "large"),
        address=f"/upload/{name}",
        source=f"/upload/{name}/large.jpg",
        captions=_captions(collection, collection.annotate(pixels, k=_N_CAPTIONS)),
        results=results_page(collection, site.by_upload(name, pixels), start),
        false_rate=collection.false_rate,
    )


def show_help(request: Request) -> Response:
    """Show what the page can do, and its keys."""
    site = site_of(request)
    return site.page("help", false_rate=site.collection.false_rate)


def error_page(request: Request, error: Exception) -> Response:
    """Say in the style of the other pages why there is no other answer."""
    site = site_of(request)
    if not isinstance(error, HTTPException):  # the guard does not see this answer
        return site.page("error", 500, headers=SAFE_HEADERS, title=_FAILED, detail="")
    status, query = error.status_code, request.scope["query_string"].decode("latin-1")
    path = request.scope["path"]
    return site.page(
        "token" if status == HTTPStatus.UNAUTHORIZED else "error",
        status,
        headers=error.headers,
        title=_TITLES.get(status, HTTPStatus(status).phrase),
        detail="" if error.detail == HTTPStatus(status).phrase else error.detail,
        address=f"{path}?{query}" if query else path,
    )


def _captions(collection: Collection, matches: list[Match]) -> list[Caption]:
    return [
        Caption(
            printable(match.name),
            match.by_chance is not None and match.by_chance > collection.false_rate,
        )
        for match in matches
    ]
