"""Modules whose weights come from a file: none are drawn before, and the file's must fit."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from kernelcore._validation import Array, check_finite

_Module = TypeVar("_Module", bound=nn.Module)

_MAKERS = frozenset(
    {torch.empty, torch.empty_like, torch.eye, torch.ones, torch.rand, torch.randn, torch.zeros}
)


class _Unfilled(TorchFunctionMode):
    """Tensors that are made under it have a shape and no memory, whatever a file claims."""

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        options = dict(kwargs or {})
        if func in _MAKERS:
            options.pop("generator", None)
            options["device"] = "meta"
        return func(*args, **options)


@contextmanager
def unfilled() -> Iterator[None]:
    """Make modules that take no memory until `fill` gives them weights; see `_Unfilled`."""
    try:
        with _Unfilled():
            yield
    except RuntimeError as error:  # torch counts in 64 bits even what it does not hold
        raise ValueError(f"it asks for sizes that no module can have: {error}") from error


def fill(
    space: _Module, weights: Mapping[str, Array], path: str | os.PathLike[str], owner: str
) -> _Module:
    """Give a module that was made under `unfilled` the weights of a file.

    Raises
    ------
    ValueError
        If a weight is missing, not asked for, or of another shape or dtype than the module's,
        or is not finite.
    """
    tensors = {}
    for name, wanted in space.state_dict().items():
        if name in weights:
            tensors[name] = torch.from_numpy(check_finite(name, weights[name]).copy())
            if tensors[name].dtype != wanted.dtype:
                raise ValueError(
                    f"{name} must be of dtype {wanted.dtype}, got {tensors[name].dtype}"
                )
    for name in weights.keys() - tensors.keys():
        tensors[name] = torch.empty(0)  # torch names what it was not asked for
    try:
        space.load_state_dict(tensors, assign=True)
    except RuntimeError as error:  # torch's word for names and shapes that do not fit
        raise ValueError(
            f"{os.fspath(path)} must hold the weights of its {owner}: {error}"
        ) from error
    return space
