"""What a long call is, and the tables of them by subpackage.

A function that makes the inputs of a size and returns the call on them stands for each public
function; the call takes ``n_threads`` if the function does, and returns what its digest is made
of. `test_interrupts.py` runs them in processes of their own, through `child.py`.
"""

import dataclasses
import functools
import hashlib
import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

PARTS = (
    *("evaluation", "captions", "kernels", "matching", "images", "models", "deep"),
    "distributed",
    "search",
)

# Published systems: each wants a corpus, and is made of calls that are in the tables.
MADE_OF_OTHERS = {"hessel2019", "hodosh2013", "hu2019", "karpathy2014", "khojasteh2019"}


class Call(NamedTuple):
    """``make(size)`` makes the inputs and returns the call."""

    make: Callable[[int], Callable[..., Any]]
    long: int  # a size for which the call takes some seconds
    short: int  # a size for which it takes some milliseconds
    delay: float  # seconds into the call at which Ctrl-C comes
    may_end: bool  # ends soon for every size that fits into memory
    fast: bool  # interrupted in the default suite
    same_bits: bool  # for every number of threads


def table() -> tuple[dict[str, Call], Callable[..., Any]]:
    """Return an empty table, and the decorator that puts calls into it."""
    calls: dict[str, Call] = {}

    def call(
        name, long, short, *, delay=0.3, may_end=False, fast=False, same_bits=True
    ) -> Callable[..., Any]:
        def enter(make):
            assert name not in calls, name
            calls[name] = Call(make, long, short, delay, may_end, fast, same_bits)
            return make

        return enter

    return calls, call


@functools.cache
def calls_of(part: str) -> dict[str, Call]:
    return importlib.import_module(f"calls_of_{part}").CALLS


def find(name: str) -> Any:
    """Return what a name such as ``images.CNN.transform`` stands for."""
    module, *path = name.partition("[")[0].split(".")
    found = importlib.import_module(f"kernelcore.{module}")
    while path and inspect.ismodule(getattr(found, path[0], None)):
        found = getattr(found, path.pop(0))
    return functools.reduce(getattr, path, found)


def takes_threads(function: Any) -> bool:
    try:
        return "n_threads" in inspect.signature(function).parameters
    except (TypeError, ValueError):
        return False


def threaded_functions() -> Iterator[str]:
    """Names of all public functions, methods and constructors that take ``n_threads``."""
    import kernelcore

    packages = [
        name for name in kernelcore.__all__ if inspect.ismodule(getattr(kernelcore, name))
    ]
    for package in packages:
        module = find(package)
        for name in getattr(module, "__all__", ()):
            found = getattr(module, name)
            if inspect.ismodule(found):
                packages.append(f"{package}.{name}")
            elif inspect.isclass(found):
                if takes_threads(found):
                    yield f"{package}.{name}"
                for method, function in inspect.getmembers(found, inspect.isroutine):
                    is_public = method == "__call__" or not method.startswith("_")
                    if is_public and takes_threads(function):
                        yield f"{package}.{name}.{method}"
            elif takes_threads(found):
                yield f"{package}.{name}"
    for info in pkgutil.iter_modules(kernelcore.experiments.__path__):
        module = importlib.import_module(f"kernelcore.experiments.{info.name}")
        if info.name not in MADE_OF_OTHERS and takes_threads(getattr(module, "run", None)):
            yield f"experiments.{info.name}.run"


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
