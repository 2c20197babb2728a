"""What an experiment keeps on disk, so that a run that was killed goes on where it was."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

import kernelcore
from kernelcore._files import (
    check_digest,
    digest,
    load_tensors,
    make_folder,
    remove_leftovers,
    save_tensors,
)
from kernelcore._validation import Array

_KIND = "arrays of an experiment"

_Value = TypeVar("_Value")


class Store:
    """Values in files that are named by a digest of what they were made from.

    A value whose file is missing or damaged, by a single bit even, is made, written whole or
    not at all, and read back the next time that it is asked for, in this process or another
    one.

    Parameters
    ----------
    folder : path
        Where to keep the files; made if missing.

    Examples
    --------
    >>> from kernelcore.experiments.store import Store, key_of
    >>> store = Store("cache")
    >>> key = key_of("squares", 3)
    >>> store.arrays("squares", key, lambda: {"values": np.arange(3) ** 2})
    {'values': array([0, 1, 4])}
    >>> store.arrays("squares", key, lambda: 1 / 0)  # nothing is computed again
    {'values': array([0, 1, 4])}
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        make_folder(self.folder)
        remove_leftovers(self.folder)

    def arrays(
        self, name: str, key: str, make: Callable[[], Mapping[str, Array]]
    ) -> Mapping[str, Array]:
        """Return named arrays, made by `make` unless they are there."""

        def save(values: Mapping[str, Array], path: Path) -> None:
            save_tensors(path, _KIND, values)

        return self.value(name, key, make, save, lambda path: load_tensors(path, _KIND)[0])

    def json(self, name: str, key: str, make: Callable[[], Any]) -> Any:
        """Return what JSON can hold, made by `make` unless it is there."""

        def save(value: Any, path: Path) -> None:
            save_tensors(path, _KIND, {}, {"json": json.dumps(value)})

        def load(path: Path) -> Any:
            return json.loads(load_tensors(path, _KIND)[1]["json"])

        return self.value(name, key, make, save, load)

    def value(
        self,
        name: str,
        key: str,
        make: Callable[[], _Value],
        save: Callable[[_Value, Path], None],
        load: Callable[[Path], _Value],
    ) -> _Value:
        """Return what `load` reads of the file, or else `make` it and `save` it.

        `save` must write by `save_tensors`, whose digest tells a damaged file from a sound
        one.
        """
        path = self._path(name, key)
        try:
            if path.is_file():
                check_digest(path)
            return load(path)
        except (OSError, ValueError, TypeError, KeyError):  # missing, damaged or lacks a part
            value = make()
            save(value, path)
            return value

    def has(self, name: str, key: str) -> bool:
        """Whether the value has been kept."""
        return self._path(name, key).is_file()

    def unfinished(self, name: str) -> Path:
        """Return the folder where training keeps its state; a damaged state is removed."""
        folder = self.folder / name
        for path in folder.glob("*.safetensors"):
            try:
                check_digest(path)
            except (OSError, ValueError):
                path.unlink()
        return folder

    def _path(self, name: str, key: str) -> Path:
        return self.folder / f"{name}-{key}"


@contextmanager
def kept_in(cache_dir: str | os.PathLike[str] | None, name: str) -> Iterator[Path]:
    """Give the folder where an experiment keeps its values, a temporary one without a cache."""
    if cache_dir is not None:
        yield Path(cache_dir) / name
        return
    with tempfile.TemporaryDirectory(prefix=f"{name}-") as folder:
        yield Path(folder)


def key_of(*parts: Any) -> str:
    """Digest of arrays, bytes, and anything JSON can hold, and of the package's version."""
    encoded = []
    for part in (kernelcore.__version__, *parts):
        if isinstance(part, np.ndarray):
            encoded += [f"{part.dtype} {part.shape}".encode(), part.tobytes()]
        elif isinstance(part, bytes):
            encoded.append(part)
        else:
            encoded.append(json.dumps(part, sort_keys=True).encode())
    return digest(*encoded)
