"""Models that are folders: a description as JSON, and the files of their parts beside it."""

from __future__ import annotations

import importlib
import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import kernelcore
from kernelcore._files import recover_folder, replacing_folder
from kernelcore._reading import Contents, check_mapping, json_value, read_text, reading

DESCRIPTION = "model.json"


def write_folder(
    folder: str | os.PathLike[str],
    kind: str,
    description: Mapping[str, Any],
    write_parts: Callable[[Path], None],
    *,
    overwrite: bool,
) -> None:
    """Write a model as a folder, whole or not at all; `description` is what JSON can hold."""
    check_model_folder(folder, overwrite=overwrite)
    about = {"kind": kind, "version": kernelcore.__version__, **description}
    with replacing_folder(folder) as temporary:
        (temporary / DESCRIPTION).write_text(json.dumps(about, indent=1), encoding="utf-8")
        write_parts(temporary)


def read_description(folder: str | os.PathLike[str], kind: str) -> dict[str, Any]:
    """Read the description that `write_folder` wrote; what is missing or damaged is named."""
    source = Path(folder)
    recover_folder(source)
    if not source.is_dir():
        raise FileNotFoundError(f"there is no folder {source} to load a model from")
    if not (source / DESCRIPTION).is_file():
        raise ValueError(f"{source} must hold a model, and it has no {DESCRIPTION}")
    description = read_json(source / DESCRIPTION)
    if description.get("kind") != kind:
        raise ValueError(f"{source / DESCRIPTION} must describe a {kind}, and it does not")
    return description


def check_model_folder(folder: str | os.PathLike[str], *, overwrite: bool) -> None:
    """Raise unless a model may be written into this folder."""
    target = Path(folder)
    recover_folder(target)
    if not target.exists() or (target.is_dir() and not any(target.iterdir())):
        return
    if not (target / DESCRIPTION).is_file():
        raise FileExistsError(f"{target} must be a new or empty folder, and it is not")
    if not overwrite:
        raise FileExistsError(f"{target} holds a model already; overwrite would replace it")


def read_json(path: Path) -> dict[str, Any]:
    """Read the JSON object in a file of a model; a damaged file is a ValueError."""
    with reading(path):
        return Contents(path, json_value(read_text(path)))


def write_rankers(folder: Path, rankers: Mapping[str, Any]) -> None:
    """Write rankers by name, each as the file or folder that its own `save` makes."""
    for name, ranker in rankers.items():
        ranker.save(folder / f"ranker-{name}")


def read_rankers(folder: str | os.PathLike[str], classes: Any) -> dict[str, Any]:
    """Read the rankers that `write_rankers` wrote, of the classes that `classes_of` named."""
    with reading(Path(folder) / DESCRIPTION):
        found = {n: _class_of(name) for n, name in check_mapping("rankers", classes).items()}
        if not all(name.isdecimal() for name in found):
            raise ValueError(f"rankers must have numbers as names, got {min(found)!r:.80}")
    return {name: kind.load(Path(folder) / f"ranker-{name}") for name, kind in found.items()}


def classes_of(rankers: Mapping[str, Any]) -> dict[str, str]:
    """Return the public name of each ranker's class, if it is one of this package."""
    return {name: _name_of(ranker) for name, ranker in rankers.items()}


def _name_of(ranker: Any) -> str:
    kind = type(ranker)
    part = kind.__module__.removeprefix("kernelcore.").partition(".")[0]
    if part in ("models", "deep") and kind.__module__.startswith("kernelcore."):
        name = f"{part}.{kind.__name__}"
        if _class_of(name) is kind:
            return name
    raise ValueError(f"only rankers of kernelcore can be saved, got {ranker!r:.200}")


def _class_of(name: Any) -> Any:
    """Return the ranker of a public name; a file can name nothing else."""
    part, _, kind = str(name).partition(".")
    if part in ("models", "deep"):
        module = importlib.import_module(f"kernelcore.{part}")
        found = getattr(module, kind) if kind in module.__all__ else None
        if isinstance(found, type) and all(map(hasattr, [found] * 2, ("scores", "load"))):
            return found
    raise ValueError(f"rankers must be of classes of kernelcore, got {name!r:.80}")
