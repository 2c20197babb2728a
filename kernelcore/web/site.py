"""What all requests share: the collection, what was made from it, and the templates."""

from __future__ import annotations

import hashlib
import logging
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from starlette.requests import Request
from starlette.responses import HTMLResponse

from kernelcore import _extras
from kernelcore._store import printable
from kernelcore.images.read import RGBImage
from kernelcore.web.asking import LONGEST_SENTENCE
from kernelcore.web.gate import Gate
from kernelcore.web.looking import Looking, counted
from kernelcore.web.pictures import Pictures
from kernelcore.web.recent import Recent
from kernelcore.web.results import Order
from kernelcore.web.uploads import MOST_BYTES, Uploads

if TYPE_CHECKING:
    from kernelcore.search import Collection

_KEPT_BYTES = 2**26
_TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
_log = logging.getLogger(__name__)


class Asset(NamedTuple):
    """A file that belongs to the pages."""

    content: bytes
    media_type: str
    mark: str

    @classmethod
    def read(cls, file: Path) -> Asset:
        """Read a file; its mark is a digest of the content."""
        content = file.read_bytes()
        return cls(content, _TYPES[file.suffix], hashlib.sha256(content).hexdigest()[:16])


class Site:
    """A collection as browsers see it.

    Attributes
    ----------
    collection : Collection
    gate : Gate or None
        Knows the token that requests need.
    assets : dict of str to Asset
        Stylesheet, script and icon by their names.
    pictures : Pictures
    uploads : Uploads
    looking : Looking
    """

    def __init__(
        self,
        collection: Collection,
        *,
        gate: Gate | None,
        cache_dir: str | os.PathLike[str] | None,
    ) -> None:
        self.collection, self.gate = collection, gate
        self.pictures = Pictures(collection, cache_dir)
        self.uploads = Uploads()
        self.looking = Looking(collection)
        files = Path(__file__).with_name("static").iterdir()
        self.assets = {file.name: Asset.read(file) for file in files if file.suffix in _TYPES}
        self._orders: Recent[tuple[str, str, str | int], Order] = Recent(_KEPT_BYTES)
        self._templates = _environment(self.assets)

    def page(
        self,
        template: str,
        status: int = 200,
        *,
        headers: Mapping[str, str] | None = None,
        **values: Any,
    ) -> HTMLResponse:
        """Fill in a template."""
        text = self._templates.get_template(f"{template}.html.j2").render(
            {"sentence": "", **values},
            folder=printable(self.collection.folder.absolute().name) or "Photos",
            looking=self.looking.state,
            most_bytes=MOST_BYTES,
            longest_sentence=LONGEST_SENTENCE,
            n_photos=len(self.collection),
        )
        kept = {"Cache-Control": "private, no-cache", "Vary": "Cookie"}
        return HTMLResponse(text, status, headers={**kept, **(headers or {})})

    def follow(self) -> None:
        """Read the index again if another process has changed it."""
        try:
            self.collection.reload()
        except (OSError, ValueError) as error:  # what is in memory serves on
            _log.error("the index cannot be read again: %s", error)

    def all_photos(self) -> Order:
        """Return all photos in the order of their numbers."""
        return Order(self.collection.numbers())

    def by_sentence(self, sentence: str) -> Order:
        """Search for a sentence."""
        search = self.collection.search
        return self._order("sentence", sentence, lambda: Order.of(search(sentence)))

    def by_photo(self, number: int) -> Order:
        """Search for photos that are similar to one of the collection."""
        similar = self.collection.similar
        return self._order("photo", number, lambda: Order.of(similar(number)))

    def by_upload(self, name: str, pixels: RGBImage) -> Order:
        """Search for photos that are similar to an uploaded one."""
        similar_to = self.collection.similar_to
        return self._order("upload", name, lambda: Order.of(similar_to(pixels)))

    def _order(self, kind: str, query: str | int, search: Callable[[], Order]) -> Order:
        """Search once for all pages of the results."""
        key = (self.collection.version, kind, query)
        order = self._orders.get(key)
        if order is None:
            order = search()
            self._orders.put(key, order, size=order.nbytes + sys.getsizeof(query))
        return order


def site_of(request: Request) -> Site:
    """Return the site that a request is about."""
    return cast(Site, request.app.state.site)


def _environment(assets: Mapping[str, Asset]) -> Any:
    jinja2 = _extras.require("jinja2")
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("kernelcore.web"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["counted"] = counted
    environment.filters["printable"] = printable
    environment.globals["asset"] = lambda name: f"/static/{name}?v={assets[name].mark}"
    return environment
