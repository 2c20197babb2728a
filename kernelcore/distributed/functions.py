"""Kernels by name: what a task carries in place of a function."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeAlias

import numpy as np

import kernelcore.kernels
from kernelcore._check import Array
from kernelcore._extras import named_function
from kernelcore._store import check_mapping
from kernelcore.kernels.gram import as_gram

KernelLike: TypeAlias = "Callable[..., Any] | str"
"""A function of a module, with options bound by `functools.partial`, or its name."""

_OURS = "kernelcore.kernels"
_STORABLE = ("bag_of_words", "bag_of_words_f1", "histogram_intersection")


def describe_kernel(name: str, kernel: Any) -> dict[str, Any]:
    """Return the module, the name and the options of a kernel as values of JSON.

    Parameters
    ----------
    name : str
        What errors call it.
    kernel : callable or str
        A function that other processes can import, its options bound by `functools.partial`;
        ``"module:function"``; or the name of a function of `kernelcore.kernels`.

    Raises
    ------
    TypeError, ValueError
        If other processes cannot import the function, or an option is no value of JSON.
    """
    options: dict[str, Any] = {}
    while isinstance(kernel, partial):
        if kernel.args:
            raise ValueError(
                f"{name} must have options by name only, got {kernel.args!r:.80} by position"
            )
        options = {**kernel.keywords, **options}
        kernel = kernel.func
    if isinstance(kernel, str):
        module, _, function = kernel.rpartition(":")
        module = module or _OURS
    elif callable(kernel):
        module = getattr(kernel, "__module__", None) or ""
        function = getattr(kernel, "__qualname__", "")
    else:
        raise TypeError(f"{name} must be a function or its name, got {kernel!r:.80}")
    if module == "__main__":
        raise ValueError(
            f"{name} must be a function of a module that other processes can import, got "
            f"{function} of the main script"
        )
    found = named_function(name, module, function)
    if callable(kernel) and found is not kernel:
        raise ValueError(
            f"{name} must be a function that other processes can import by its name, got "
            f"{kernel!r:.80}"
        )
    if found is getattr(kernelcore.kernels, function, None):
        module = _OURS
    try:
        plain = json.loads(json.dumps(options, allow_nan=False))
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must have options that JSON can hold: {error}") from None
    return {"module": module, "function": function, "options": plain}


def check_stored_kernel(about: Any, given: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the kernel of a file that may come from anywhere.

    Parameters
    ----------
    about : mapping
        What the file says; see `describe_kernel`.
    given : mapping, optional
        The kernel that the caller gave.

    Raises
    ------
    ValueError
        If it is neither the given kernel nor, without one, a kernel of this package: a file
        must not choose the function that is called.
    """
    stored = dict(check_mapping("kernel", about))
    named = f"{stored.get('module')}:{stored.get('function')}"
    if given is not None:
        if stored != given:
            raise ValueError(
                f"kernel must be {given['module']}:{given['function']} with the options given, "
                f"and the file was made with {named!s:.80}"
            )
    elif stored.get("module") != _OURS or stored.get("function") not in _STORABLE:
        raise ValueError(f"kernel must be given, because the file was made with {named!s:.80}")
    return stored


def kernel_of(about: Mapping[str, Any]) -> Callable[..., Array]:
    """Return the kernel that `describe_kernel` described, on one thread if it takes threads."""
    function = named_function("kernel", str(about["module"]), str(about["function"]))
    options = dict(about["options"])
    if "n_threads" in _parameters(function):
        options["n_threads"] = 1

    def kernel(X: Array, Y: Array) -> Array:
        values = as_gram("kernel(X, Y)", function(X, Y, **options))
        if values.shape != (len(X), len(Y)):
            raise ValueError(
                f"kernel(X, Y) must have shape {(len(X), len(Y))}, got {values.shape}"
            )
        return values

    return kernel


def diagonal_of(kernel: Callable[..., Array], rows: Array, step: int = 64) -> Array:
    """Return the kernel of each row with itself, from small squares."""
    parts = (rows[k : k + step] for k in range(0, len(rows), step))
    return np.concatenate([kernel(part, part).diagonal() for part in parts])


def _parameters(function: Callable[..., Any]) -> Mapping[str, Any]:
    try:
        return inspect.signature(function).parameters
    except (TypeError, ValueError):  # a compiled function without a signature
        return {}
