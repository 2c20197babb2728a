"""What all requests share: the collection, recent searches, and the templates."""

from __future__ import annotations

import hashlib
import logging
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, cast

import jinja2
from starlette.requests import Request
from starlette.responses import HTMLResponse

from kernelcore._store import counted, printable
from kernelcore.search.collection import Collection, Ranking
from kernelcore.search.update import Changes
from kernelcore.web.guard import Token
from kernelcore.web.pictures import Pictures, Recent
from kernelcore.web.uploads import MOST_BYTES, Uploads

LONGEST_SENTENCE = 1000
_KEPT_BYTES = 2**26
_OBJECT_BYTES = 1024  # of Python for an order and its key, about
_MOST_NAMED = 5
_TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
_log = logging.getLogger(__name__)


class Asset(NamedTuple):
    """A file that belongs to the pages, and a digest of its content."""

    content: bytes
    media_type: str
    mark: str


class Update(NamedTuple):
    """State of the last update of the collection.

    Attributes
    ----------
    busy : bool
        Whether it is running.
    said : str
        Its outcome in words; empty before the first.
    unreadable : tuple of str
        The first files that could not be read, with the reasons.
    """

    busy: bool = False
    said: str = ""
    unreadable: tuple[str, ...] = ()


class Site:
    """A collection as browsers see it.

    Attributes
    ----------
    collection : Collection
    token : Token or None
        The token that requests need.
    assets : dict of str to Asset
        Stylesheet, script and icon by their names.
    pictures : Pictures
    uploads : Uploads
    update : Update
    """

    def __init__(self, collection: Collection, token: Token | None = None) -> None:
        self.collection, self.token = collection, token
        self.pictures, self.uploads, self.update = Pictures(collection), Uploads(), Update()
        self._updating = threading.Lock()
        self._orders: Recent[tuple[str, str, str | int], Ranking] = Recent(_KEPT_BYTES)
        self.assets = {}
        for file in Path(__file__).with_name("static").iterdir():
            if file.suffix in _TYPES:
                content = file.read_bytes()
                mark = hashlib.sha256(content).hexdigest()[:16]
                self.assets[file.name] = Asset(content, _TYPES[file.suffix], mark)
        self._templates = jinja2.Environment(
            loader=jinja2.PackageLoader("kernelcore.web"),
            autoescape=True,
            undefined=jinja2.StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._templates.filters |= {"counted": counted, "printable": printable}
        self._templates.globals["longest_sentence"] = LONGEST_SENTENCE
        self._templates.globals["asset"] = lambda name: (
            f"/static/{name}?v={self.assets[name].mark}"
        )

    def page(self, template: str, status: int = 200, **values: Any) -> HTMLResponse:
        """Fill in a template."""
        text = self._templates.get_template(f"{template}.html.j2").render(
            {"sentence": "", **values},
            folder=printable(self.collection.folder.absolute().name) or "Photos",
            status=status,
            looking=self.update,
            most_bytes=MOST_BYTES,
            n_photos=len(self.collection),
            false_rate=self.collection.false_rate,
            n_training=self.collection.n_training,
        )
        kept = {"Cache-Control": "private, no-cache", "Vary": "Cookie"}
        return HTMLResponse(text, status, headers=kept)

    def follow(self) -> None:
        """Read the index again if another process has changed it."""
        try:
            self.collection.reload()
        except (OSError, ValueError) as error:  # what is in memory serves on
            _log.error("the index cannot be read again: %s", error)

    def order(self, kind: str, query: str | int, search: Callable[[], Ranking]) -> Ranking:
        """Search once for all pages of the results."""
        key = (self.collection.version, kind, query)
        order = self._orders.get(key)
        if order is None:
            order = search()
            size = _OBJECT_BYTES + order.numbers.nbytes + sys.getsizeof(query)
            self._orders.put(key, order, size=size)
        return order

    def start_update(self) -> None:
        """Look for new photos in a thread, unless that is being done."""
        with self._updating:
            if self.update.busy:
                return
            self.update = Update(busy=True, said="Looking for new photos …")
        threading.Thread(target=self._look, name="look for new photos", daemon=True).start()

    def _look(self) -> None:
        state = Update(said="Looking for new photos failed.")
        try:
            changes = self.collection.refresh()
            start = f"{self.collection.folder}{os.sep}"
            first = (one.removeprefix(start) for one in changes.unreadable[:_MOST_NAMED])
            state = Update(False, sentence_about(changes), tuple(map(printable, first)))
        except (OSError, ValueError) as error:
            _log.error("looking for new photos failed: %s", error)
        finally:
            self.update = state


def sentence_about(changes: Changes) -> str:
    """Describe the changes of an update.

    Examples
    --------
    >>> from kernelcore.search.update import Changes
    >>> from kernelcore.web.site import sentence_about
    >>> sentence_about(Changes(1, 2)), sentence_about(Changes(0, 0, ("a.jpg: it is empty",)))
    ('1 photo added, 2 removed.', 'No new photos. 1 file cannot be read.')
    """
    parts = []
    if changes.added:
        parts.append(f"{counted(changes.added, 'photo')} added")
    if changes.removed:
        number = f"{changes.removed:,}" if parts else counted(changes.removed, "photo")
        parts.append(f"{number} removed")
    said = f"{', '.join(parts) or 'No new photos'}."
    if changes.unreadable:
        said += f" {counted(len(changes.unreadable), 'file')} cannot be read."
    return said


def site_of(request: Request) -> Site:
    """Return the site that a request is about."""
    return cast(Site, request.app.state.site)
