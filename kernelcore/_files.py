"""Writing and reading files of tensors: a reader never meets a half-written file."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from kernelcore._reading import Contents, check_is_file, json_value, reading
from kernelcore._validation import Array

_METADATA_KEY = "kernelcore"


def digest(*parts: bytes) -> str:
    """Hexadecimal BLAKE2b digest of `parts`; where they meet matters."""
    state = hashlib.blake2b(digest_size=20)
    for part in parts:
        state.update(len(part).to_bytes(8, "little"))
        state.update(part)
    return state.hexdigest()


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Give a temporary path beside `path` that takes its place when the block ends well."""
    target = Path(path)
    if not target.parent.is_dir():
        raise FileNotFoundError(f"no such folder to write {target.name} into: {target.parent}")
    temporary = target.with_name(f".{target.name}.{uuid.uuid4().hex}.tmp")
    try:
        yield temporary
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def replacing_folder(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Give a temporary folder beside `path` that takes its place when the block ends well."""
    target = Path(path).absolute()
    temporary, former = (
        target.with_name(f".{target.name}.{uuid.uuid4().hex}.{end}") for end in ("tmp", "old")
    )
    temporary.mkdir(parents=True)
    try:
        yield temporary
        if target.exists():
            target.rename(former)
        temporary.rename(target)
    finally:
        if former.exists() and not target.exists():  # stopped between the two
            former.rename(target)
        for folder in (temporary, former):
            shutil.rmtree(folder, ignore_errors=True)


def save_tensors(
    path: str | os.PathLike[str],
    kind: str,
    tensors: Mapping[str, Array],
    metadata: Mapping[str, Any] | None = None,
) -> None:
    """Write arrays and JSON `metadata` as one safetensors file that says it holds a `kind`."""
    from safetensors.numpy import save_file

    text = json.dumps({"kind": kind, **(metadata or {})}, sort_keys=True)
    contiguous = {name: np.asarray(array, order="C") for name, array in tensors.items()}
    with replacing(path) as temporary:
        temporary.touch()
        mode = temporary.stat().st_mode  # safetensors would leave a file for its owner alone
        save_file(contiguous, temporary, metadata={_METADATA_KEY: text})
        temporary.chmod(mode)


def load_tensors(path: str | os.PathLike[str], kind: str) -> tuple[Contents, Contents]:
    """Read the arrays and metadata of a file that `save_tensors` wrote for the same `kind`.

    Arrays take no more memory than the file is long: their shapes are checked against it.
    """
    from safetensors import SafetensorError, safe_open

    check_is_file(Path(path))
    name = os.fspath(path)
    with reading(path):
        try:
            with safe_open(name, framework="numpy") as file:
                text = (file.metadata() or {}).get(_METADATA_KEY, "{}")
                metadata = Contents(path, json_value(text))
                if metadata.pop("kind", None) != kind:
                    raise ValueError(f"{name} must hold {kind}, and it does not say so")
                tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
                return Contents(path, tensors), metadata
        except SafetensorError as error:
            raise ValueError(error) from error
