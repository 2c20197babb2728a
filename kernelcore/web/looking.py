"""Looking for new photos in the folder while pages are served."""

from __future__ import annotations

import logging
import os
import threading
from typing import TYPE_CHECKING, NamedTuple

from kernelcore._store import printable

if TYPE_CHECKING:
    from kernelcore.search import Changes, Collection

_log = logging.getLogger(__name__)
_MOST_NAMED = 5


class State(NamedTuple):
    """What is known about the last look.

    Attributes
    ----------
    busy : bool
        Whether it goes on.
    said : str
        Its outcome in words; empty before the first.
    unreadable : tuple of str
        The first files that could not be read, with the reasons.
    """

    busy: bool = False
    said: str = ""
    unreadable: tuple[str, ...] = ()


class Looking:
    """Looks for new photos in a thread, one look at a time.

    Attributes
    ----------
    state : State
    """

    def __init__(self, collection: Collection) -> None:
        self._collection = collection
        self._lock = threading.Lock()
        self.state = State()

    def start(self) -> None:
        """Begin to look, unless a look goes on."""
        with self._lock:
            if self.state.busy:
                return
            self.state = State(busy=True, said="Looking for new photos …")
        threading.Thread(target=self._look, name="look for new photos", daemon=True).start()

    def _look(self) -> None:
        state = State(said="Looking for new photos failed.")
        try:
            changes = self._collection.refresh()
            state = State(said=sentence_about(changes), unreadable=self._named(changes))
        except (OSError, ValueError) as error:
            _log.error("looking for new photos failed: %s", error)
        finally:
            self.state = state

    def _named(self, changes: Changes) -> tuple[str, ...]:
        start = f"{self._collection.folder}{os.sep}"
        first = changes.unreadable[:_MOST_NAMED]
        return tuple(printable(reason.removeprefix(start)) for reason in first)


def sentence_about(changes: Changes) -> str:
    """Say what a look has changed.

    Examples
    --------
    >>> from kernelcore.search import Changes
    >>> from kernelcore.web.looking import sentence_about
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


def counted(number: int, what: str) -> str:
    """Return a number of things in words.

    Examples
    --------
    >>> from kernelcore.web.looking import counted
    >>> counted(1, "photo"), counted(1200, "photo")
    ('1 photo', '1,200 photos')
    """
    return f"{number:,} {what}{'' if number == 1 else 's'}"
