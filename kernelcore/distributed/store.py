"""Stores: folders of numbered pieces, each of them complete with its digest, or missing.

A piece is one or more files. They are written under hidden names, forced to the disk and
renamed; then a mark with their digests is written in the same way. So a process may be killed
at any time, and several may write the same piece: a piece with a mark is complete.

    about.json         kind, number of pieces, settings and inputs
    done/0000017.json  the mark of piece 17
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import kernelcore
from kernelcore._check import Array, check_integer
from kernelcore._store import (
    Contents,
    create_once,
    digest,
    is_inside,
    json_value,
    locked,
    make_folder,
    read_text,
    reading,
    remove_leftovers,
    replacing,
)

_FORMAT = 1
ABOUT, _DONE = "about.json", "done"
_MARK = re.compile(r"(\d{7,})\.json")
_READ_BYTES = 1 << 20


@dataclass(frozen=True)
class Piece:
    """Arrays by the names of their files, and facts about them.

    Files that end in ``.npy`` have the header of NumPy. Others hold the numbers alone, in
    little-endian order.
    """

    files: Mapping[str, Array]
    facts: Mapping[str, Any] = field(default_factory=dict)

    def digests(self) -> dict[str, str]:
        """Return the digest of the content of each file."""
        return {name: _digest(encoded(name, array)) for name, array in self.files.items()}


class Store:
    """A folder of pieces that one function computes from settings and inputs.

    Attributes
    ----------
    folder : Path
    kind : str
        Name of the function that computes a piece; see `tasks`.
    n_pieces : int
    settings : dict
        Values of JSON that a piece depends on.
    inputs : dict
        What `RowFiles.to_json` returns for each input.
    version : str
        That of the package: pieces of two versions may differ in last bits.
    """

    def __init__(
        self,
        folder: Path,
        kind: str,
        n_pieces: int,
        settings: Mapping[str, Any],
        inputs: Mapping[str, Any],
        *,
        version: str | None = None,
    ) -> None:
        self.folder = folder
        self.version = kernelcore.__version__ if version is None else version
        self.kind = kind
        self.n_pieces = n_pieces
        self.settings = json.loads(json.dumps(settings))  # as they are read back
        self.inputs = json.loads(json.dumps(inputs))

    @classmethod
    def begin(
        cls,
        folder: str | os.PathLike[str],
        kind: str,
        n_pieces: int,
        settings: Mapping[str, Any],
        inputs: Mapping[str, Any] | None = None,
    ) -> Store:
        """Make a store, or go on with the one that is there.

        Raises
        ------
        ValueError
            If the folder holds a store of another kind, or of other settings or inputs.
        """
        store = cls(Path(folder).absolute(), kind, n_pieces, settings, inputs or {})
        text = store._text()
        if not create_once(store._about_file, text):
            found = cls.open(folder)
            if found.identity != store.identity:
                raise ValueError(
                    f"{store.folder} must be empty or the same store, and it differs in "
                    f"{', '.join(store._differences(found))}; give another folder"
                )
            if found.inputs != store.inputs:  # the same content elsewhere
                with replacing(store._about_file) as temporary:
                    temporary.write_bytes(text)
        make_folder(store.folder / _DONE)
        for place, _, _ in os.walk(store.folder):
            remove_leftovers(Path(place))
        return store

    @classmethod
    def open(cls, folder: str | os.PathLike[str]) -> Store:
        """Read what a folder holds.

        Raises
        ------
        FileNotFoundError, ValueError
            If there is no store, or `about.json` is damaged or of a later version.
        """
        path = Path(folder).absolute() / ABOUT
        if not path.is_file():
            raise FileNotFoundError(f"{folder} must be a store, and it has no {ABOUT}")
        with reading(path):
            about = Contents(path, json_value(read_text(path)))
            if about["format"] != _FORMAT:
                raise ValueError(
                    f"format must be {_FORMAT}, got {about['format']!r:.80} of a later version"
                )
            kind, n_pieces, version = about["kind"], about["n_pieces"], str(about["version"])
            if not isinstance(kind, str) or type(n_pieces) is not int or n_pieces < 0:
                raise ValueError(f"kind and n_pieces are {kind!r:.80} and {n_pieces!r:.80}")
            settings, inputs = dict(about["settings"]), dict(about["inputs"])
        return cls(path.parent, kind, n_pieces, settings, inputs, version=version)

    @property
    def identity(self) -> str:
        """Digest of everything that the pieces depend on; not of the places of the inputs."""
        return digest(json.dumps(self._content(), sort_keys=True).encode())

    def read_setting(self, name: str, value: Any = None) -> int:
        """Return a setting, or a part of one, that must be a positive integer.

        `about.json` may be damaged or hostile: what bounds a loop or an array is checked.
        """
        with reading(self._about_file):
            return check_integer(
                name, self.settings[name] if value is None else value, minimum=1
            )

    def done(self) -> set[int]:
        """Return the numbers of the pieces that are there."""
        try:
            with os.scandir(self.folder / _DONE) as entries:  # a million: no path for each
                names = [entry.name for entry in entries]
        except FileNotFoundError:
            return set()
        found = (_MARK.fullmatch(name) for name in names)
        return {int(match[1]) for match in found if match}

    def missing(self) -> list[int]:
        """Return the numbers of the pieces that are not there, ascending."""
        done = self.done()
        return [number for number in range(self.n_pieces) if number not in done]

    def is_done(self, number: int) -> bool:
        """Whether a piece is there."""
        return self._mark_file(number).is_file()

    def check_complete(self) -> None:
        """Raise ValueError unless all pieces are there."""
        n_missing = self.n_pieces - sum(number < self.n_pieces for number in self.done())
        if n_missing:
            raise ValueError(
                f"{self.folder} must be complete, and {n_missing} of {self.n_pieces} pieces "
                "are missing: run the call that made it again"
            )

    def put(self, number: int, piece: Piece) -> None:
        """Write a piece, and its mark when the files are on the disk."""
        digests = {}
        for name, array in piece.files.items():
            path = self.folder / name
            make_folder(path.parent)
            parts = encoded(name, array)
            with (
                replacing(path, one_of_many=True, forced=True) as temporary,
                temporary.open("wb") as file,
            ):
                file.writelines(parts)
            digests[name] = _digest(parts)
        mark = {"files": digests, "facts": dict(piece.facts)}
        with replacing(self._mark_file(number), one_of_many=True, forced=True) as temporary:
            temporary.write_text(json.dumps(mark, sort_keys=True), encoding="utf-8")

    def remove_mark(self, number: int) -> None:
        """Let a piece count as missing, so that the next run computes it again."""
        self._mark_file(number).unlink(missing_ok=True)

    def facts(self, number: int) -> dict[str, Any]:
        """Return the facts of a piece."""
        return self._mark(number)[1]

    def digests(self, number: int) -> dict[str, str]:
        """Return the digests of the files of a piece, as they were written."""
        return self._mark(number)[0]

    def content(self) -> str:
        """Return a digest of all files, in the order of the pieces."""
        self.check_complete()
        digests = [self.digests(number) for number in range(self.n_pieces)]
        return digest(json.dumps(digests, sort_keys=True).encode())

    @property
    def _about_file(self) -> Path:
        return self.folder / ABOUT

    def _mark_file(self, number: int) -> Path:
        return self.folder / _DONE / f"{number:07d}.json"

    def _mark(self, number: int) -> tuple[dict[str, str], dict[str, Any]]:
        path = self._mark_file(number)
        with reading(path):
            mark = Contents(path, json_value(read_text(path)))
            files, facts = mark["files"], mark["facts"]
            if not isinstance(files, dict) or not isinstance(facts, dict):
                raise ValueError("files and facts must be JSON objects")
            for name, written in files.items():
                if not isinstance(written, str) or not is_inside(name):
                    raise ValueError(f"it names the file {name!r:.80}")
        return files, facts

    def _content(self) -> dict[str, Any]:
        return {
            "version": self.version,
            "kind": self.kind,
            "n_pieces": self.n_pieces,
            "settings": self.settings,
            "inputs": {name: about["digest"] for name, about in self.inputs.items()},
        }

    def _text(self) -> bytes:
        about = {
            "format": _FORMAT,
            "version": self.version,
            "kind": self.kind,
            "n_pieces": self.n_pieces,
            "settings": self.settings,
            "inputs": self.inputs,
        }
        return (json.dumps(about, indent=1, sort_keys=True) + "\n").encode()

    def _differences(self, other: Store) -> list[str]:
        mine, theirs = _flat(self._content()), _flat(other._content())
        return [
            f"{name} ({theirs.get(name)!r:.60} there, {mine.get(name)!r:.60} here)"
            for name in sorted(mine.keys() | theirs.keys())
            if mine.get(name) != theirs.get(name)
        ][:5]


@contextmanager
def working_on(folder: Path) -> Iterator[None]:
    """Keep other runs off a store; RuntimeError if one is at work.

    The system ends this with the process. On file systems without locks it does nothing.
    """
    make_folder(folder)
    with ExitStack() as stack:
        try:
            stack.enter_context(locked(folder))
        except BlockingIOError:
            raise RuntimeError(
                f"another run is working on {folder}; wait until it has ended"
            ) from None
        yield


def encoded(name: str, array: Array) -> list[bytes | memoryview]:
    """Return the content of a file: a header for ``.npy``, and the numbers."""
    plain = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
    numbers = plain.reshape(-1).view(np.uint8).data
    if not name.endswith(".npy"):
        return [numbers]
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        header, {"shape": plain.shape, "fortran_order": False, "descr": plain.dtype.str}
    )
    return [header.getvalue(), numbers]


def digest_of_file(path: Path) -> str:
    """Return the digest of a whole file, a megabyte at a time."""
    state = hashlib.blake2b(digest_size=20)
    with path.open("rb") as file:
        while part := file.read(_READ_BYTES):
            state.update(part)
    return state.hexdigest()


def _digest(parts: Iterable[bytes | memoryview]) -> str:
    state = hashlib.blake2b(digest_size=20)
    for part in parts:
        state.update(part)
    return state.hexdigest()


def _flat(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings and digests of inputs by names of one level."""
    return {
        **{name: content[name] for name in ("version", "kind", "n_pieces")},
        **content["settings"],
        **{f"input {name}": written for name, written in content["inputs"].items()},
    }
