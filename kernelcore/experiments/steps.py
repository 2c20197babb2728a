"""Cached steps: function calls whose results are files, under keys made from their inputs.

A `Step` is a call of a function that has not been made yet. Its key is a digest of the name and
version of its kind, of its inputs and of its settings. Nobody writes a key by hand. A step runs
when its value is asked for and the `Store` does not have it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np

from kernelcore._check import Array
from kernelcore._store import (
    digest,
    load_tensors,
    make_folder,
    remove_leftovers,
    save_tensors,
)
from kernelcore._threads import cached_property

_KIND = "arrays of an experiment"

_Value = TypeVar("_Value")


class Store:
    """A folder of values, one file each, named by kind and key.

    A value is computed if its file is missing or damaged, even by one bit. It is written whole
    or not at all. The next call reads it back, in this process or in another one.

    Parameters
    ----------
    folder : path
        Where to keep the files; made if missing.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        make_folder(self.folder)
        remove_leftovers(self.folder)

    def value(
        self,
        name: str,
        key: str,
        make: Callable[[], _Value],
        save: Callable[[_Value, Path], None],
        load: Callable[[Path], _Value],
    ) -> _Value:
        """Return the value that `load` reads from its file, or else `make` and `save` it.

        `save` must write with `save_tensors`, whose checksum shows whether a file is damaged.
        """
        path = self._path(name, key)
        try:
            return load(path)
        except (OSError, ValueError, TypeError, KeyError):  # missing, damaged or lacks a part
            pass
        value = make()
        save(value, path)
        return value

    def has(self, name: str, key: str) -> bool:
        """Whether the value has a file."""
        return self._path(name, key).is_file()

    def unfinished(self, name: str) -> Path:
        """Return the folder for checkpoints of training; damaged checkpoints are removed."""
        folder = self.folder / name
        for path in folder.glob("*.safetensors"):
            try:
                load_tensors(path, None)
            except (OSError, ValueError):
                path.unlink()
        return folder

    def _path(self, name: str, key: str) -> Path:
        return self.folder / f"{name}-{key}"


def key_of(*parts: Any) -> str:
    """Digest of steps, sources, arrays, bytes and anything that JSON can hold.

    Parts may be nested in sequences and mappings.
    """
    return digest(json.dumps(_plain(parts), sort_keys=True).encode())


@dataclass(frozen=True)
class Kind(Generic[_Value]):
    """A kind of cached values: name, version of the format, and how files are written.

    Attributes
    ----------
    name : str
        Prefix of the file names.
    version : int
        Part of every key. Raise it when the meaning of the values changes; older files are
        then computed again.
    save, load : callable
        Write a value to a path, and read it back.
    """

    name: str
    version: int
    save: Callable[[_Value, Path], None]
    load: Callable[[Path], _Value]

    @classmethod
    def of(cls, name: str, version: int, saved: Any) -> Kind[Any]:
        """Return a kind of objects of a class that has `save` and `load`."""
        return Kind(name, version, saved.save, saved.load)

    @classmethod
    def array(cls, name: str, version: int) -> Kind[Array]:
        """Return a kind of single arrays."""
        return Kind(
            name,
            version,
            lambda value, path: save_tensors(path, _KIND, {"values": value}),
            lambda path: load_tensors(path, _KIND)[0]["values"],
        )

    @classmethod
    def json(cls, name: str, version: int) -> Kind[Any]:
        """Return a kind of values that JSON can hold."""
        return Kind(
            name,
            version,
            lambda value, path: save_tensors(path, _KIND, {}, {"json": json.dumps(value)}),
            lambda path: json.loads(load_tensors(path, _KIND)[1]["json"]),
        )


class Source(Generic[_Value]):
    """An input that is read, not computed: a value and the parts that identify it.

    Parameters
    ----------
    value : object
    *identity : array, bytes, or anything JSON can hold
        The key is a digest of these parts. By default `value` is the only part.
    """

    def __init__(self, value: _Value, *identity: Any) -> None:
        self._value, self._identity = value, identity or (value,)

    @cached_property
    def key(self) -> str:
        """Digest of the parts."""
        return key_of(*self._identity)

    def value(self) -> _Value:
        """Return the value."""
        return self._value


class Step(Generic[_Value]):
    """A function call whose result is cached; its key is a digest of all its inputs.

    Parameters
    ----------
    store : Store
    kind : Kind
    make : callable
        Called as ``make(*inputs, **settings)``. Steps and sources among the inputs are passed
        as they are, so that `make` loads only what it needs, by ``value()``. Bind arguments
        that do not change the result, such as a number of threads, with `functools.partial`:
        they are no part of the key.
    *inputs : Step, Source, array, or anything JSON can hold
    stage : str, optional
        The stage of the run in which the step runs.
    resumes : bool, default False
        Pass a folder for checkpoints to `make`, as ``folder``. It is kept, and is the same for
        every value of the setting ``n_epochs``, so that more epochs continue.
    **settings : anything JSON can hold

    Examples
    --------
    >>> from kernelcore.experiments.steps import Kind, Step, Store
    >>> store = Store("cache")
    >>> squares = Step(store, Kind.array("squares", 1), lambda n: np.arange(n) ** 2, 3)
    >>> doubled = Step(store, Kind.array("doubled", 1), lambda step: 2 * step.value(), squares)
    >>> doubled.value()
    array([0, 2, 8])
    >>> squares.is_kept
    True
    """

    def __init__(
        self,
        store: Store,
        kind: Kind[_Value],
        make: Callable[..., _Value],
        *inputs: Any,
        stage: str = "",
        resumes: bool = False,
        **settings: Any,
    ) -> None:
        self.kind, self.stage, self.inputs = kind, stage, inputs
        self._store, self._function, self._resumes = store, make, resumes
        self._settings = settings
        self.key = key_of(kind.name, kind.version, inputs, settings)

    @property
    def is_kept(self) -> bool:
        """Whether the store has the value."""
        return self._store.has(self.kind.name, self.key)

    def value(self) -> _Value:
        """Return the value from the store, or compute it and keep it there."""
        kind = self.kind
        return self._store.value(kind.name, self.key, self._make, kind.save, kind.load)

    def keep(self, value: _Value) -> None:
        """Store a value that is a by-product of another step."""
        if not self.is_kept:
            self._store.value(
                self.kind.name, self.key, lambda: value, self.kind.save, self.kind.load
            )

    def _make(self) -> _Value:
        if not self._resumes:
            return self._function(*self.inputs, **self._settings)
        others = {name: own for name, own in self._settings.items() if name != "n_epochs"}
        run = key_of(self.kind.name, self.kind.version, self.inputs, others)
        folder = self._store.unfinished(f"training-{run}")
        return self._function(*self.inputs, **self._settings, folder=folder)


def pending(steps: Iterable[Step[Any]]) -> list[Step[Any]]:
    """Return all steps that must be computed for some steps: inputs first, each once.

    The inputs of a value that the store has are not needed.
    """
    found: dict[str, Step[Any]] = {}

    def visit(value: Any) -> None:
        if isinstance(value, Mapping):
            visit(list(value.values()))
        elif isinstance(value, (list, tuple)):
            for one in value:
                visit(one)
        elif isinstance(value, Step) and value.key not in found and not value.is_kept:
            visit(value.inputs)
            found[value.key] = value

    visit(list(steps))
    return list(found.values())


def compute(steps: Iterable[Step[Any]]) -> None:
    """Compute the values of some steps that the store does not have."""
    for step in pending(steps):
        if not step.is_kept:  # another step may have kept it as a by-product
            step.value()


def _plain(part: Any) -> Any:
    """Replace what JSON cannot hold by digests."""
    if isinstance(part, (Step, Source)):
        return {"key": part.key}
    if isinstance(part, np.ndarray):
        return {"array": digest(f"{part.dtype} {part.shape}".encode(), part.tobytes())}
    if isinstance(part, bytes):
        return {"bytes": digest(part)}
    if isinstance(part, Mapping):
        return {name: _plain(value) for name, value in part.items()}
    if isinstance(part, (list, tuple)):
        return [_plain(one) for one in part]
    return part
