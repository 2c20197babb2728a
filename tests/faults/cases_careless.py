"""Writers with a known fault each: the machine must find it, or it finds nothing."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

from faults import Case

OLD, NEW = b"old" * 100, b"new" * 100


def cases() -> Iterator[Case]:
    """All of them; each is named by what must be found."""
    yield Case("careless: nameless", partial(_case, _in_place), ("file",))
    yield Case("careless: leftovers", partial(_case, _without_cleaning), ("file",))
    yield Case("careless: silent", partial(_case, _without_looking))
    yield Case("careless: differing", partial(_case, _by_what_is_there))
    yield Case("careless: unnamed errors", partial(_case, _in_place))
    yield Case("careless: power cut", partial(_case, _without_sync), ("file",))


def _case(write: Callable[[Path], None], folder: Path) -> Callable[[Path], None]:
    (folder / "file").write_bytes(OLD)
    return lambda folder: write(folder / "file")


def _in_place(path: Path) -> None:
    path.write_bytes(NEW)


def _without_cleaning(path: Path) -> None:
    temporary = path.with_name(f".file.{os.getpid():032x}.tmp")
    temporary.write_bytes(NEW)
    temporary.replace(path)


def _without_looking(path: Path) -> None:
    with suppress(OSError):
        path.write_bytes(NEW)


def _by_what_is_there(path: Path) -> None:
    begun = path.with_name("begun")
    if not begun.exists():
        begun.touch()
        path.write_bytes(NEW)


def _without_sync(path: Path) -> None:
    temporary = path.with_name("next")
    temporary.write_bytes(NEW)
    temporary.replace(path)
