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
    for name, (write, names) in WRITERS.items():
        yield Case(f"careless: {name}", partial(_case, write), names)


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


WRITERS: dict[str, tuple[Callable[[Path], None], tuple[str, ...]]] = {
    "nameless": (_in_place, ("file",)), "leftovers": (_without_cleaning, ("file",)),
    "silent": (_without_looking, ()), "differing": (_by_what_is_there, ()),
    "unnamed errors": (_in_place, ()), "power cut": (_without_sync, ("file",)),
}  # fmt: skip
