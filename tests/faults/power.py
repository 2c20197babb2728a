"""What a power cut may leave of a run: the calls that `shim.c` noted, replayed up to a point.

A simple model of a file system. What was written into a file since its last sync may be there,
be lost or be torn; changes of names in a folder since its last sync may be lost, in any order
but with what the names stood for. Nothing else is promised by POSIX, and nothing else is
relied upon.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

PARTS = ((0.0, 0.0), (1.0, 0.0), (0.0, 1.0), (1.0, 1.0), (0.5, 0.5), (0.5, 0.5), (0.9, 0.3))
"""Shares of the changes of names, and of data, since a sync that survive a cut."""


class Call(NamedTuple):
    """One line of the log."""

    name: str
    path: Path
    other: Path
    number: int
    data: bytes


def read_log(path: Path) -> list[Call]:
    """Read what the shim noted."""
    content, calls, place = path.read_bytes(), [], 0
    while place < len(content):
        end = content.index(b"\n", place)
        name, first, second, number, length = content[place:end].decode().split("\t")
        place = end + 1 + int(length)
        data = content[end + 1 : place]
        calls.append(Call(name, Path(first), Path(second), int(number), data))
    return calls


@dataclass
class File:
    """Content that is safe, and changes since: (offset, data), or (length, None) for a cut."""

    safe: bytes = b""
    changes: list[tuple[int, bytes | None]] = field(default_factory=list)

    def content(self, rng: random.Random, kept: float) -> bytes:
        """Return what may be read after a cut."""
        held = bytearray(self.safe)
        for place, data in self.changes:
            if rng.random() >= kept:
                continue
            if data is None:
                held = held[:place].ljust(place, b"\0")
                continue
            torn = data if kept == 1 else data[: rng.randint(0, len(data))]
            held = held.ljust(place, b"\0")
            held[place : place + len(torn)] = torn
        return bytes(held)


@dataclass
class Folder:
    """Names that are safe, and changes since: each gives names what they stand for, or None."""

    safe: dict[str, File | Folder] = field(default_factory=dict)
    changes: list[dict[str, File | Folder | None]] = field(default_factory=list)

    def names(
        self, rng: random.Random | None = None, kept: float = 1
    ) -> dict[str, File | Folder]:
        """Return what may be found after a cut; without `rng` what is found now."""
        found: dict[str, File | Folder | None] = dict(self.safe)
        for change in self.changes:
            if rng is None or rng.random() < kept:
                found |= change
        return {name: item for name, item in found.items() if item is not None}


class Disk:
    """A folder and all below it."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self.top = _read(root)

    def apply(self, call: Call) -> None:
        """Follow one call."""
        folder, name = self._folder(call.path), call.path.name
        if call.name in {"create", "mkdir"}:
            folder.changes.append({name: File() if call.name == "create" else Folder()})
        elif call.name in {"unlink", "rmdir"}:
            folder.changes.append({name: None})
        elif call.name == "sync":
            item = self._item(call.path)
            if isinstance(item, File):
                item.safe, item.changes = item.content(random.Random(0), 1), []
            else:
                item.safe, item.changes = item.names(), []
        elif call.name == "rename":
            if self._folder(call.other) is not folder:
                raise NotImplementedError("renames are within one folder")
            folder.changes.append({call.other.name: self._item(call.path), name: None})
        else:
            file = self._item(call.path)
            assert isinstance(file, File)
            file.changes.append((call.number, call.data if call.name == "write" else None))

    def lay_out(self, target: Path, rng: random.Random, names: float, data: float) -> None:
        """Write what a cut leaves, of these shares of the changes since a sync."""
        shutil.rmtree(target, ignore_errors=True)
        _write(self.top, target, rng, names, data)

    def _item(self, path: Path) -> File | Folder:
        item: File | Folder = self.top
        for part in path.relative_to(self._root).parts:
            assert isinstance(item, Folder)
            item = item.names()[part]
        return item

    def _folder(self, path: Path) -> Folder:
        folder = self._item(path.parent) if path != self._root else self.top
        assert isinstance(folder, Folder)
        return folder


def cuts(root: Path, calls: list[Call]) -> Iterator[tuple[int, tuple[float, float]]]:
    """Lay out, one after the other, what cuts after each call may leave in `root`.

    `root` must hold what the calls began with.
    """
    disk, rng = Disk(root), random.Random(0)
    for number, call in enumerate(calls, 1):
        disk.apply(call)
        for parts in PARTS:
            disk.lay_out(root, rng, *parts)
            yield number, parts


def _read(path: Path) -> Folder:
    folder = Folder()
    for item in path.iterdir():
        folder.safe[item.name] = _read(item) if item.is_dir() else File(item.read_bytes())
    return folder


def _write(folder: Folder, target: Path, rng: random.Random, names: float, data: float) -> None:
    target.mkdir()
    for name, item in folder.names(rng, names).items():
        if isinstance(item, Folder):
            _write(item, target / name, rng, names, data)
        else:
            (target / name).write_bytes(item.content(rng, data))
