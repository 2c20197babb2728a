"""Forms of the pages, and the pictures and files that they are made of."""

from __future__ import annotations

import threading

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response

from kernelcore.web.pages import GONE, gone, is_number, tile_of, tiles_of, uploaded
from kernelcore.web.pictures import SIDES, draw
from kernelcore.web.site import counted, site_of
from kernelcore.web.uploads import MOST_BYTES, UnusablePhotoError

_FOR_EVER = "private, max-age=31536000, immutable"
_ASK_AGAIN = "private, no-cache"
_MOST_CHOSEN = 100_000
_MOST_WAITING = 4  # uploads that are decoded or wait for it
_waiting = threading.BoundedSemaphore(_MOST_WAITING)


async def send_photo(request: Request) -> Response:
    """Take a photo that was uploaded, and lead to the page about it."""
    site, content = site_of(request), await _uploaded(request)
    if not _waiting.acquire(blocking=False):
        raise HTTPException(
            503, "Other photos are being read. Please try again.", {"Retry-After": "5"}
        )
    try:
        name = await run_in_threadpool(site.uploads.add, content)
    except UnusablePhotoError as error:
        raise HTTPException(error.status, f"The reason: {error}.") from None
    finally:
        _waiting.release()
    return RedirectResponse(f"/upload/{name}", 303)


async def _uploaded(request: Request) -> bytes:
    """Read the file in a form."""
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
    return content


async def name_photos(request: Request) -> Response:
    """Name chosen photos in a text file, one a line."""
    site = site_of(request)
    async with request.form(max_files=0, max_fields=_MOST_CHOSEN) as form:
        texts = [str(text) for text in form.getlist("number")]
    if not texts:
        raise HTTPException(400, "Choose photos first.")
    if not all(map(is_number, texts)):
        raise HTTPException(400, "Photos have whole numbers.")
    tiles = tiles_of(site.collection, dict.fromkeys(map(int, texts)))
    return PlainTextResponse(
        "".join(f"{tile.name}\n" for tile in tiles),
        headers={
            "Content-Disposition": 'attachment; filename="photos.txt"',
            "Cache-Control": _ASK_AGAIN,
        },
    )


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
    if size not in SIDES:
        raise gone()
    try:
        mark = tile_of(site.collection, number).mark
        jpeg = site.pictures.of(number, size).jpeg
    except GONE:
        raise gone() from None
    return _file(request, jpeg, "image/jpeg", f"{mark}-{size}", mark)


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
    headers = {
        "Cache-Control": _FOR_EVER if is_marked else _ASK_AGAIN,
        "ETag": f'"{tag}"',
    }
    if request.headers.get("if-none-match") == headers["ETag"]:
        return Response(status_code=304, headers=headers)
    return Response(content, media_type=kind, headers=headers)
