"""Answers to requests: pages of results and photos, help and errors, forms, and files."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from http import HTTPStatus
from typing import NamedTuple

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response

from kernelcore._store import counted, printable
from kernelcore.images import UnreadableImageError
from kernelcore.images.read import RGBImage, file_facts
from kernelcore.models import Match
from kernelcore.models.training_items import WORD
from kernelcore.search.collection import Collection, Ranking, n_fitting
from kernelcore.web.guard import SAFE_HEADERS
from kernelcore.web.pictures import draw
from kernelcore.web.site import LONGEST_SENTENCE, site_of
from kernelcore.web.uploads import MOST_BYTES

PER_PAGE = 48
GONE = (KeyError, OSError, UnreadableImageError)
"""Errors of a photo that has left the collection, or whose file has left the folder."""
_FOR_EVER = "private, max-age=31536000, immutable"
_ASK_AGAIN = "private, no-cache"
_MOST_CHOSEN = 100_000
_N_CAPTIONS = 6
_MARK_DIGITS = 16
_MOST_DIGITS = 18  # of a number of 64 bits
_WORD = re.compile(f"({WORD})")
_STRENGTHS = (0.05, 0.2, 0.4)  # least parts of words that are marked faintly, more and most


class Tile(NamedTuple):
    """A photo on a page.

    Attributes
    ----------
    number : int
    name : str
        Its path in the folder, as it can be printed.
    mark : str
        Digits that change with its content.
    position : int
        Place among the results, from 1.
    """

    number: int
    name: str
    mark: str
    position: int = 0

    def picture(self, size: str) -> str:
        """Return the address of the picture that is ``small`` or ``large``."""
        return f"/photo/{self.number}/{size}.jpg?v={self.mark}"


class Results(NamedTuple):
    """Photos of an order that one page shows.

    Attributes
    ----------
    total : int
        Number of photos in the order.
    n_fitting : int or None
        Number of them above the line of chance; None without a line.
    start : int
        Number of photos before this page.
    next_start : int or None
        The `start` of the next page; None on the last.
    above, below : list of Tile
        Photos of this page above the line of chance, and below it. Without a line all are
        above.
    """

    total: int
    n_fitting: int | None
    start: int
    next_start: int | None
    above: list[Tile]
    below: list[Tile]


class Piece(NamedTuple):
    """A piece of a sentence.

    Attributes
    ----------
    text : str
    strength : int
        How much the word counted, from 0 for nothing to 3.
    percent : int
        Its part of what all words contributed.
    """

    text: str
    strength: int
    percent: int


def search(request: Request) -> Response:
    """Show the photos that fit a sentence; without one, all photos."""
    site, start, sentence = site_of(request), start_of(request), sentence_of(request)
    site.follow()
    collection = site.collection
    if not sentence:
        every = Ranking(collection.numbers())
        return site.page("home", results=results_page(collection, every, start))
    order = site.order("sentence", sentence, lambda: collection.search(sentence))
    results = results_page(collection, order, start)
    best = (results.above or results.below)[:1] if start == 0 else []
    shares = [own for tile in best for own in collection.contributions(sentence, tile.number)]
    return site.page(
        "search",
        sentence=sentence,
        pieces=marked(sentence, shares),
        advice=advice(sentence, collection.unknown_words(sentence)),
        results=results,
    )


def photo(request: Request) -> Response:
    """Show a photo with its captions and the photos that are most similar."""
    site, start, sentence = site_of(request), start_of(request), sentence_of(request)
    number, collection = int(request.path_params["number"]), site.collection
    wanted = sentence_of(request, "and")
    site.follow()
    try:
        tile = tile_of(collection, number)
        picture = site.pictures.of(number, "large")
        taken = file_facts(collection.path(number)).taken
        order = site.order(
            "photo", f"{number} {wanted}", lambda: collection.similar(number, wanted)
        )
        captions = captions_of(collection, collection.annotate_photo(number, k=_N_CAPTIONS))
        shares = collection.contributions(sentence, number) if sentence else []
    except GONE:
        raise gone() from None
    among = Ranking(collection.numbers())
    if sentence:
        among = site.order("sentence", sentence, lambda: collection.search(sentence))
    return site.page(
        "photo",
        tile=tile,
        picture=picture,
        taken=taken,
        beside=beside(among.numbers.tolist(), number),
        sentence=sentence,
        wanted=wanted,
        pieces=marked(sentence, shares),
        captions=captions,
        results=results_page(collection, order, start),
    )


def upload(request: Request) -> Response:
    """Show an uploaded photo with its captions and the photos that are most similar."""
    site, start, name = site_of(request), start_of(request), request.path_params["name"]
    pixels, collection, wanted = uploaded(request), site.collection, sentence_of(request, "and")
    site.follow()
    order = site.order(
        "upload", f"{name} {wanted}", lambda: collection.similar_to(pixels, wanted)
    )
    return site.page(
        "upload",
        picture=draw(pixels, "large"),
        address=f"/upload/{name}",
        wanted=wanted,
        captions=captions_of(collection, collection.annotate(pixels, k=_N_CAPTIONS)),
        results=results_page(collection, order, start),
    )


def show_help(request: Request) -> Response:
    """Show what the page can do, and its keys."""
    return site_of(request).page("help")


def error_page(request: Request, error: Exception) -> Response:
    """Say in the style of the other pages why there is no other answer."""
    if not isinstance(error, HTTPException):
        error = HTTPException(500)
    phrase = HTTPStatus(error.status_code).phrase
    path, query = request.scope["path"], request.scope["query_string"].decode("latin-1")
    answer = site_of(request).page(
        "token" if error.status_code == HTTPStatus.UNAUTHORIZED else "error",
        error.status_code,
        phrase=phrase,
        detail="" if error.detail == phrase else error.detail,
        address=f"{path}?{query}" if query else path,
    )
    answer.headers.update({**SAFE_HEADERS, **(error.headers or {})})  # the guard sees few
    return answer


async def send_photo(request: Request) -> Response:
    """Take a photo that was uploaded, and lead to the page about it."""
    try:
        async with request.form(max_files=1, max_fields=1) as form:
            file = form.get("photo")
            content = await file.read(MOST_BYTES + 1) if isinstance(file, UploadFile) else b""
    except ClientDisconnect:
        raise HTTPException(400, "The photo did not arrive as a whole.") from None
    if not content:
        raise HTTPException(400, "No photo was chosen.")
    if len(content) > MOST_BYTES:
        raise HTTPException(413, f"A photo may have {MOST_BYTES // 10**6} MB.")
    name = await run_in_threadpool(site_of(request).uploads.add, content)
    return RedirectResponse(f"/upload/{name}", 303)


async def name_photos(request: Request) -> Response:
    """Name chosen photos in a text file, one a line."""
    async with request.form(max_files=0, max_fields=_MOST_CHOSEN) as form:
        texts = [str(text) for text in form.getlist("number")]
    if not texts:
        raise HTTPException(400, "Choose photos first.")
    if not all(map(is_number, texts)):
        raise HTTPException(400, "Photos have whole numbers.")
    tiles = tiles_of(site_of(request).collection, dict.fromkeys(map(int, texts)))
    headers = {"Cache-Control": _ASK_AGAIN}
    headers["Content-Disposition"] = 'attachment; filename="photos.txt"'
    return PlainTextResponse("".join(f"{tile.name}\n" for tile in tiles), headers=headers)


def look(request: Request) -> Response:
    """Begin to look for new photos."""
    site_of(request).start_update()
    return RedirectResponse("/", 303)


def look_state(request: Request) -> Response:
    """Say how far the look for new photos is."""
    site = site_of(request)
    busy, said, _ = site.update
    about = {"busy": busy, "said": said, "photos": counted(len(site.collection), "photo")}
    return JSONResponse(about, headers={"Cache-Control": "no-store"})


async def enter(request: Request) -> Response:
    """Let in who types the token."""
    token = site_of(request).token
    async with request.form(max_files=0, max_fields=2) as form:
        given, address = str(form.get("token", "")), str(form.get("to", "/"))
    if token is None or not token.matches(given):
        raise HTTPException(401, "This is not the token.")
    return token.let_in(request, address)


def picture(request: Request) -> Response:
    """Send the picture of a photo."""
    site, size = site_of(request), request.path_params["size"]
    number = int(request.path_params["number"])
    try:
        mark = tile_of(site.collection, number).mark
        jpeg = site.pictures.of(number, size).jpeg
    except GONE:
        raise gone() from None
    return _file(request, jpeg, "image/jpeg", f"{mark}-{size}", mark)


def original(request: Request) -> Response:
    """Send the file of a photo as it is."""
    site, number = site_of(request), int(request.path_params["number"])
    try:
        mark, path = tile_of(site.collection, number).mark, site.collection.path(number)
        site.pictures.of(number, "large")  # refuses what is no photo
        kind, content = file_facts(path).media_type, path.read_bytes()
    except GONE:
        raise gone() from None
    return _file(request, content, kind, f"{mark}-original", mark)


def uploaded_picture(request: Request) -> Response:
    """Send the picture of an uploaded photo."""
    jpeg = draw(uploaded(request), "large").jpeg
    return _file(request, jpeg, "image/jpeg", request.path_params["name"], "")


def asset(request: Request) -> Response:
    """Send a file that the pages are made of."""
    found = site_of(request).assets.get(request.path_params["name"])
    if found is None:
        raise HTTPException(404)
    return _file(request, found.content, found.media_type, found.mark, found.mark)


def _file(request: Request, content: bytes, kind: str, tag: str, mark: str) -> Response:
    """Send a file; browsers keep one whose address has its mark for ever."""
    is_marked = mark != "" and request.query_params.get("v") == mark
    kept = _FOR_EVER if is_marked else _ASK_AGAIN
    headers = {"Cache-Control": kept, "ETag": f'"{tag}"'}
    if request.headers.get("if-none-match") == headers["ETag"]:
        return Response(status_code=304, headers=headers)
    return Response(content, media_type=kind, headers=headers)


def sentence_of(request: Request, name: str = "q") -> str:
    """Return a sentence of an address, empty without one."""
    sentence = " ".join(request.query_params.get(name, "").split())
    if len(sentence) > LONGEST_SENTENCE:
        raise HTTPException(
            400, f"A sentence may have {LONGEST_SENTENCE:,} characters, not {len(sentence):,}."
        )
    return sentence


def start_of(request: Request) -> int:
    """Return how many results come before this page."""
    text = request.query_params.get("start", "0")
    if not is_number(text):
        raise HTTPException(400, "The results start at a whole number.")
    return int(text)


def is_number(text: str) -> bool:
    """Whether a text is a number of a photo or a place.

    Examples
    --------
    >>> from kernelcore.web.pages import is_number
    >>> is_number("48"), is_number("-1"), is_number("٣"), is_number("9" * 40)
    (True, False, False, False)
    """
    return text.isascii() and text.isdecimal() and len(text) <= _MOST_DIGITS


def uploaded(request: Request) -> RGBImage:
    """Return the pixels of the uploaded photo in an address."""
    pixels = site_of(request).uploads.get(request.path_params["name"])
    if pixels is None:
        raise HTTPException(404, "This photo is not kept any more. Please choose it again.")
    return pixels


def gone() -> HTTPException:
    """Return the error of a photo that is not in the collection."""
    return HTTPException(404, "This photo is not in the folder, or not any more.")


def results_page(collection: Collection, order: Ranking, start: int) -> Results:
    """Describe the photos of an order from `start` on, at most 48."""
    numbers, n_fitting = order.numbers, order.n_fitting
    total = len(numbers)
    end = min(start + PER_PAGE, total)
    tiles = tiles_of(collection, numbers[start:end].tolist(), start + 1)
    last = total if n_fitting is None else n_fitting
    return Results(
        total,
        n_fitting,
        start,
        end if end < total else None,
        [tile for tile in tiles if tile.position <= last],
        [tile for tile in tiles if tile.position > last],
    )


def beside(numbers: list[int], number: int) -> tuple[int | None, int | None]:
    """Return the photos before and after one of an order.

    Examples
    --------
    >>> from kernelcore.web.pages import beside
    >>> beside([7, 3, 5], 3), beside([7, 3, 5], 5), beside([7], 2)
    ((7, 5), (3, None), (None, None))
    """
    if number not in numbers:
        return None, None
    ends: list[int | None] = [None, *numbers, None]
    place = numbers.index(number)
    return ends[place], ends[place + 2]


def tiles_of(collection: Collection, numbers: Iterable[int], start: int = 1) -> list[Tile]:
    """Describe photos, but for those that have left the collection meanwhile."""
    tiles = []
    for position, number in enumerate(numbers, start):
        with suppress(KeyError):
            tiles.append(tile_of(collection, number, position))
    return tiles


def tile_of(collection: Collection, number: int, position: int = 0) -> Tile:
    """Describe a photo; KeyError if there is none of this number."""
    name, mark = printable(collection.name(number)), ""
    with suppress(OSError):  # its file has gone: it has a name, but no picture
        mark = collection.digest(number)[:_MARK_DIGITS]
    return Tile(number, name, mark, position)


def captions_of(collection: Collection, matches: list[Match]) -> tuple[list[str], int]:
    """Return the sentences found for a photo, and how many stand above the line of chance."""
    texts = [printable(match.name) for match in matches]
    return texts, n_fitting(matches, collection.false_rate)


def marked(sentence: str, shares: Sequence[tuple[str, float]]) -> list[Piece]:
    """Cut a sentence into words and what stands between them.

    Parameters
    ----------
    sentence : str
    shares : sequence of (str, float)
        What each word contributes to a score. Negative ones count as nothing.

    Returns
    -------
    list of Piece

    Examples
    --------
    >>> from kernelcore.web.pages import marked
    >>> [tuple(p) for p in marked("A dog!", [("dog", 0.3), ("A", -0.1)])]
    [('A', 0, 0), (' ', 0, 0), ('dog', 3, 100), ('!', 0, 0)]
    """
    total = sum(max(share, 0.0) for _, share in shares)
    parts: dict[str, float] = {}
    for word, share in shares:
        key = word.casefold()
        parts[key] = max(share / total if total > 0 else 0.0, parts.get(key, 0.0))
    pieces = []
    for text in filter(None, _WORD.split(sentence)):
        part = parts.get(text.casefold(), 0.0)
        strength = sum(part >= least for least in _STRENGTHS)
        pieces.append(Piece(text, strength, round(100 * part)))
    return pieces


def advice(
    sentence: str, unknown: Mapping[str, Sequence[str]]
) -> list[tuple[str, list[tuple[str, str]]]]:
    """Offer sentences without unknown words.

    Returns
    -------
    list of (str, list of (str, str))
        Each unknown word, with known words and the sentence with each in its place.

    Examples
    --------
    >>> from kernelcore.web.pages import advice
    >>> advice("A dogg runs", {"dogg": ("dog",)})
    [('dogg', [('dog', 'A dog runs')])]
    """
    return [
        (word, [(near, _replaced(sentence, word, near)) for near in nearest])
        for word, nearest in unknown.items()
    ]


def _replaced(sentence: str, word: str, near: str) -> str:
    pattern = rf"(?<!\w){re.escape(word)}(?!\w)"
    return re.sub(pattern, lambda _: near, sentence, flags=re.IGNORECASE)
