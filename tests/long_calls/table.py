"""What a long call is, and the tables of them by subpackage.

A row names a public function, and has a function that makes its arguments for a size. The call
takes ``n_threads`` if the function does. `test_interrupts.py` makes the calls in processes of
their own, through `child.py`.
"""

import dataclasses
import functools
import hashlib
import importlib
import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from public_api import parameters_of
from scipy import sparse

PARTS = ("evaluation", "kernels", "matching", "images", "models", "deep", "distributed")


class Call(NamedTuple):
    """``make(size)`` makes the inputs and returns the call."""

    make: Callable[[int], Callable[..., Any]]
    long: int  # a size for which the call takes some seconds
    short: int  # a size for which it takes some milliseconds
    delay: float  # seconds into the call at which Ctrl-C comes
    may_end: bool  # ends soon for every size that fits into memory
    fast: bool  # interrupted in the default suite
    same_bits: bool  # for every number of threads


class Table(dict[str, Call]):
    """Long calls by the names of functions, with what tells calls of one function apart."""

    def add(
        self, name, long, short, arguments, *, delay=0.3, may_end=False, fast=False,
        same_bits=True, **options,
    ) -> None:  # fmt: skip
        """Enter a row; `arguments` returns those of a size, or the whole call."""
        assert name not in self, name

        def make(size):
            given = arguments(size)
            if callable(given):
                return given
            return functools.partial(find(name), *given, **options)

        self[name] = Call(make, long, short, delay, may_end, fast, same_bits)


@functools.cache
def calls_of(part: str) -> Table:
    return importlib.import_module(f"calls_of_{part}").CALLS


def find(name: str) -> Any:
    """Return what a name such as ``images.CNN.transform`` stands for."""
    module, *path = name.partition("[")[0].split(".")
    found = importlib.import_module(f"kernelcore.{module}")
    while path and inspect.ismodule(getattr(found, path[0], None)):
        found = getattr(found, path.pop(0))
    return functools.reduce(getattr, path, found)


def takes_threads(function: Any) -> bool:
    return "n_threads" in parameters_of(function)


def is_threaded(name: str) -> bool:
    owner = find(name.rpartition(".")[0])
    return takes_threads(find(name)) or (isinstance(owner, type) and takes_threads(owner))


def digest(result: Any) -> str:
    """Digest of every bit of arrays, and of what holds them."""
    sha = hashlib.sha256()
    for part in _parts(result):
        sha.update(part)
    return sha.hexdigest()[:16]


def _parts(value: Any) -> Iterator[bytes]:
    if sparse.issparse(value):
        value = (value.data, value.indices, value.indptr)
    elif dataclasses.is_dataclass(value):
        value = [getattr(value, field.name) for field in dataclasses.fields(value)]
    elif isinstance(value, Mapping):
        value = list(value.items())
    if hasattr(value, "detach"):
        value = value.detach().numpy()
    if isinstance(value, np.ndarray):
        yield f"{value.dtype}{value.shape}".encode()
        yield np.ascontiguousarray(value).tobytes()
    elif isinstance(value, (list, tuple)):
        yield b"("
        for item in value:
            yield from _parts(item)
        yield b")"
    elif isinstance(value, (str, int, float, np.generic, type(None), range)):
        yield repr(value).encode()
    else:
        yield from _parts(vars(value))
