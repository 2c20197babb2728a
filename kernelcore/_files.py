"""Writing and reading files of tensors."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from kernelcore._reading import Contents, check_is_file, json_value, reading
from kernelcore._replacing import replacing, replacing_folder
from kernelcore._validation import Array

__all__ = [
    "check_digest",
    "digest",
    "load_tensors",
    "replacing",
    "replacing_folder",
    "save_tensors",
]

_METADATA_KEY, _DIGEST_KEY = "kernelcore", "kernelcore.blake2b"


def digest(*parts: bytes | memoryview) -> str:
    """Hexadecimal BLAKE2b digest of `parts`; where they meet matters."""
    state = hashlib.blake2b(digest_size=20)
    for part in parts:
        state.update(len(part).to_bytes(8, "little"))
        state.update(part)
    return state.hexdigest()


def save_tensors(
    path: str | os.PathLike[str],
    kind: str,
    tensors: Mapping[str, Array],
    metadata: Mapping[str, Any] | None = None,
    *,
    one_of_many: bool = False,
) -> None:
    """Write arrays and JSON `metadata` as one safetensors file that says it holds a `kind`.

    `one_of_many` is that of `replacing`.
    """
    from safetensors.numpy import save

    text = json.dumps({"kind": kind, **(metadata or {})}, sort_keys=True)
    contiguous = {name: np.asarray(array, order="C") for name, array in tensors.items()}
    about = {_METADATA_KEY: text, _DIGEST_KEY: _digest_of(text, contiguous)}
    # Not `save_file`: it has a temporary file of its own, which nobody would find again.
    content = save(contiguous, metadata=about)
    with replacing(path, one_of_many=one_of_many) as temporary:
        temporary.write_bytes(content)


def check_digest(path: str | os.PathLike[str]) -> None:
    """Raise ValueError unless a file holds the very bits that `save_tensors` wrote.

    Files of earlier versions, which have no digest, pass. Twice the time of reading alone.
    """
    about, tensors = _contents(path)
    expected = about.get(_DIGEST_KEY)
    if expected not in {None, _digest_of(about.get(_METADATA_KEY, ""), tensors)}:
        raise ValueError(f"{os.fspath(path)} is damaged: its digest is of other content")


def _digest_of(text: str, tensors: Mapping[str, Array]) -> str:
    names = sorted(tensors)
    kinds = [f"{name} {tensors[name].dtype.str} {tensors[name].shape}" for name in names]
    return digest(
        json.dumps([text, *kinds]).encode(),
        *(tensors[name].reshape(-1).view(np.uint8).data for name in names),
    )


def load_tensors(path: str | os.PathLike[str], kind: str) -> tuple[Contents, Contents]:
    """Read the arrays and metadata of a file that `save_tensors` wrote for the same `kind`.

    Arrays take no more memory than the file is long: their shapes are checked against it.
    """
    name = os.fspath(path)
    check_is_file(Path(path))
    about, tensors = _contents(path)
    with reading(path):
        metadata = Contents(path, json_value(about.get(_METADATA_KEY, "{}")))
        if metadata.pop("kind", None) != kind:
            raise ValueError(f"{name} must hold {kind}, and it does not say so")
        return Contents(path, tensors), metadata


def _contents(path: str | os.PathLike[str]) -> tuple[dict[str, str], dict[str, Array]]:
    """Read the strings and the arrays of a safetensors file."""
    from safetensors import SafetensorError, safe_open

    with reading(path):
        try:
            with safe_open(os.fspath(path), framework="numpy") as file:
                tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
                return file.metadata() or {}, tensors
        except SafetensorError as error:
            raise ValueError(error) from error
