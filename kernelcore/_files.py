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


def load_tensors(
    path: str | os.PathLike[str], kind: str
) -> tuple[dict[str, Array], dict[str, Any]]:
    """Read the arrays and metadata of a file that `save_tensors` wrote for the same `kind`."""
    from safetensors import SafetensorError, safe_open

    if not Path(path).is_file():
        raise FileNotFoundError(f"no such file: {os.fspath(path)}")
    try:
        with safe_open(os.fspath(path), framework="numpy") as file:
            metadata = _Contents(
                path, json.loads((file.metadata() or {}).get(_METADATA_KEY, "{}"))
            )
            if metadata.pop("kind", None) != kind:
                raise ValueError(f"{os.fspath(path)} must hold {kind}, and it does not say so")
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            return _Contents(path, tensors), metadata
    except (SafetensorError, json.JSONDecodeError) as error:
        raise ValueError(f"{os.fspath(path)} is damaged or truncated: {error}") from error


class _Contents(dict[str, Any]):
    """What a file holds or says of itself; a key that is missing is the file's fault."""

    def __init__(self, path: str | os.PathLike[str], values: Any) -> None:
        super().__init__(values if isinstance(values, dict) else {})
        self._path = os.fspath(path)

    def __missing__(self, key: str) -> Any:
        raise ValueError(f"{self._path} is damaged or truncated: it does not tell its {key}")
