"""Ways to whole files: what objects save, text, JSON, and the begin of real data."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

Files = Mapping[str, bytes]
"""Contents by name."""

Readers = Mapping[str, tuple[Callable[[], Files], Callable[[Path], Any]]]
"""For each reader a function that gives whole files, and one that reads and uses them."""


def written(write: Callable[[Path], object]) -> Files:
    """Return the files that a function writes into a folder."""
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder))
        found = [path for path in Path(folder).rglob("*") if path.is_file()]
        return {str(path.relative_to(folder)): path.read_bytes() for path in found}


def saved(make: Callable[[], Any], name: str = "x.safetensors") -> Callable[[], Files]:
    """Return what gives the file that an object saves."""
    return lambda: written(lambda folder: make().save(folder / name))


def text(**files: str | Any) -> Callable[[], Files]:
    """Return what gives files of text, or of JSON; ``__`` stands for the dot of a name."""

    def give() -> Files:
        return {
            name.replace("__", "."): (
                value if isinstance(value, str) else json.dumps(value)
            ).encode()
            for name, value in files.items()
        }

    return give


def real(path: str, name: str, n_bytes: int, made: Callable[[], Files]) -> Callable[[], Files]:
    """Return what gives the begin of a real file where ``KERNELCORE_DATA`` has it."""

    def give() -> Files:
        source = Path(os.environ.get("KERNELCORE_DATA", "nowhere")) / path
        if not source.is_file():
            return made()
        with source.open("rb") as file:
            return {**made(), name: b"\n".join(file.read(n_bytes).split(b"\n")[:-1]) + b"\n"}

    return give


def file(load: Callable[[Path], Any], name: str = "x.safetensors") -> Callable[[Path], Any]:
    """Return what reads one file of a folder."""
    return lambda folder: load(folder / name)
