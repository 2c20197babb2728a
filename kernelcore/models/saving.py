"""Saved models: folders with a description in JSON, and parameters as JSON."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import kernelcore
import kernelcore.kernels
from kernelcore._check import check_choice
from kernelcore._store import Contents, is_unused, read_folder, write_folder

DESCRIPTION = "model.json"

_Model = TypeVar("_Model")

KERNELS = (
    "bag_of_words",
    "bag_of_words_f1",
    "histogram_intersection",
    "spatial_pyramid",
    "word_sequence",
)
"""Functions of `kernelcore.kernels` that a file may name."""


def save_model(
    folder: str | os.PathLike[str],
    kind: str,
    description: Mapping[str, Any],
    write_parts: Callable[[Path], None],
    *,
    overwrite: bool,
) -> None:
    """Write a model as a folder, whole or not at all; `description` must fit into JSON."""
    check_model_folder(folder, overwrite=overwrite)
    about = {"kind": kind, "version": kernelcore.__version__, **description}
    write_folder(folder, DESCRIPTION, about, write_parts)


def load_model(
    folder: str | os.PathLike[str], kind: str, load: Callable[[Contents, Path], _Model]
) -> _Model:
    """Return what `load` makes of the description of a model and the folder of its files."""
    source = as_folder(folder)
    if not source.is_dir():
        raise FileNotFoundError(f"there is no folder {source} to load a model from")
    if not (source / DESCRIPTION).is_file():
        raise ValueError(f"{source} must hold a model, and it has no {DESCRIPTION}")

    def checked(description: Contents, parts: Path) -> _Model:
        if description.get("kind") != kind:
            raise ValueError(f"{source / DESCRIPTION} must describe a {kind}, and it does not")
        return load(description, parts)

    return read_folder(source, DESCRIPTION, checked)


def check_model_folder(folder: str | os.PathLike[str], *, overwrite: bool) -> None:
    """Raise unless a model may be written into this folder."""
    target = as_folder(folder)
    if is_unused(target):
        return
    if not (target / DESCRIPTION).is_file():
        raise FileExistsError(f"{target} must be a new or empty folder, and it is not")
    if not overwrite:
        raise FileExistsError(f"{target} holds a model already; overwrite would replace it")


def as_folder(folder: Any) -> Path:
    """Return the path of a folder, if it is one."""
    if not isinstance(folder, (str, os.PathLike)):
        raise TypeError(f"folder must be a path, got {folder!r:.80}")
    return Path(folder)


def kernel_to_json(name: str, kernel: Any) -> str:
    """Return "precomputed", or the name of a kernel of this package."""
    if isinstance(kernel, str) and kernel == "precomputed":
        return kernel
    own: str = getattr(kernel, "__name__", "")
    if own in KERNELS and getattr(kernelcore.kernels, own) is kernel:
        return own
    raise ValueError(
        f'{name} must be "precomputed" or one of {", ".join(KERNELS)} to be saved: '
        f"a file cannot hold a function, got {kernel!r:.200}"
    )


def kernel_from_json(name: str, value: Any) -> Any:
    """Return the kernel that `kernel_to_json` named."""
    check_choice(name, value, ("precomputed", *KERNELS))
    return value if value == "precomputed" else getattr(kernelcore.kernels, value)
