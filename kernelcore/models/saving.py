"""Saved models: folders with a description in JSON, and parameters as JSON."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import kernelcore
import kernelcore.kernels
from kernelcore._check import check_choice
from kernelcore._store import (
    check_files,
    folder_checksums,
    load_json,
    recover_folder,
    replacing_folder,
    save_json,
)

DESCRIPTION = "model.json"

KERNELS = (
    "bag_of_words",
    "bag_of_words_f1",
    "histogram_intersection",
    "spatial_pyramid",
    "word_sequence",
)
"""Functions of `kernelcore.kernels` that a file may name."""


def write_folder(
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
    with replacing_folder(folder) as temporary:
        write_parts(temporary)
        save_json(temporary / DESCRIPTION, {**about, "files": folder_checksums(temporary)})


def read_description(folder: str | os.PathLike[str], kind: str) -> dict[str, Any]:
    """Read the description in a model folder; errors name the missing or damaged file."""
    source = as_folder(folder)
    recover_folder(source)
    if not source.is_dir():
        raise FileNotFoundError(f"there is no folder {source} to load a model from")
    if not (source / DESCRIPTION).is_file():
        raise ValueError(f"{source} must hold a model, and it has no {DESCRIPTION}")
    description = load_json(source / DESCRIPTION)
    if description.get("kind") != kind:
        raise ValueError(f"{source / DESCRIPTION} must describe a {kind}, and it does not")
    check_files(source / DESCRIPTION, description.pop("files", None))
    return description


def check_model_folder(folder: str | os.PathLike[str], *, overwrite: bool) -> None:
    """Raise unless a model may be written into this folder."""
    target = as_folder(folder)
    recover_folder(target)
    if not target.exists() or (target.is_dir() and not any(target.iterdir())):
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
