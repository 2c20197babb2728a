"""Functions by name: "module:function" for a function that processes can import."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any


def named_function(name: str, module: str, function: str) -> Callable[..., Any]:
    """Import a function; `name` stands for it in errors.

    Raises
    ------
    TypeError, ValueError
        If there is no such function.
    """
    try:
        found: Any = importlib.import_module(module)
        for part in function.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError, ValueError) as error:
        raise ValueError(
            f"{name} must be a function that can be imported, got {module}:{function} ({error})"
        ) from None
    if not callable(found):
        raise TypeError(f"{name} must be a function, got {module}:{function}")
    result: Callable[..., Any] = found
    return result
