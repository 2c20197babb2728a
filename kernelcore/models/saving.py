"""Saved models and indices: folders of several files with a manifest in JSON."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import kernelcore
from kernelcore._store import Contents, is_unused, read_folder, write_folder

MODEL, INDEX = "model.json", "index.json"
"""Names of manifests."""

_KINDS = {MODEL: ("a model", "photo ranker"), INDEX: ("an index", "photo index")}

_Value = TypeVar("_Value")


def save_parts(
    folder: str | os.PathLike[str],
    manifest: str,
    about: Mapping[str, Any],
    write_parts: Callable[[Path], None],
    *,
    overwrite: bool,
) -> None:
    """Write a folder, whole or not at all; `about` must fit into JSON."""
    check_target(folder, manifest, overwrite=overwrite)
    content = {"version": kernelcore.__version__, "kind": _KINDS[manifest][1], **about}
    write_folder(folder, manifest, content, write_parts)


def load_parts(
    folder: str | os.PathLike[str],
    manifest: str,
    load: Callable[[Contents, Path], _Value],
) -> _Value:
    """Return what `load` makes of the manifest of a folder and the place of its files."""
    source, (what, kind) = _as_folder(folder), _KINDS[manifest]
    if not source.is_dir():
        raise FileNotFoundError(f"there is no folder {source} to load {what} from")
    if not (source / manifest).is_file():
        raise ValueError(f"{source} must hold {what}, and it has no {manifest}")

    def checked(about: Contents, parts: Path) -> _Value:
        if about.get("kind") != kind:
            raise ValueError(f"{source / manifest} must describe a {kind}, and it does not")
        return load(about, parts)

    return read_folder(source, manifest, checked)


def check_target(folder: str | os.PathLike[str], manifest: str, *, overwrite: bool) -> None:
    """Raise unless a model or an index may be written into this folder."""
    target = _as_folder(folder)
    if is_unused(target):
        return
    if not (target / manifest).is_file():
        raise FileExistsError(f"{target} must be a new or empty folder, and it is not")
    if not overwrite:
        raise FileExistsError(
            f"{target} holds {_KINDS[manifest][0]} already; overwrite=True, of commands "
            "--overwrite, would replace it"
        )


def _as_folder(folder: Any) -> Path:
    if not isinstance(folder, (str, os.PathLike)):
        raise TypeError(f"folder must be a path, got {folder!r:.80}")
    return Path(folder)
