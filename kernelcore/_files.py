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

_METADATA_KEY, _DIGEST_KEY = "kernelcore", "blake2b"


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

    about = json.loads(json.dumps({"kind": kind, **(metadata or {})}))  # as it is read back
    contiguous = {name: _plain(array) for name, array in tensors.items()}
    about[_DIGEST_KEY] = _digest_of(about, contiguous)
    # Not `save_file`: it has a temporary file of its own, which nobody would find again.
    text = json.dumps(about, sort_keys=True)
    content = save(contiguous, metadata={_METADATA_KEY: text})
    with replacing(path, one_of_many=one_of_many) as temporary:
        temporary.write_bytes(content)


def check_digest(path: str | os.PathLike[str]) -> None:
    """Raise ValueError unless a file holds the very bits that `save_tensors` wrote.

    Files of earlier versions, which have no digest, pass. Twice the time of reading alone.
    """
    about, tensors = _contents(path)
    expected = about.pop(_DIGEST_KEY, None)
    if expected not in {None, _digest_of(about, tensors)}:
        raise ValueError(f"{os.fspath(path)} is damaged: its digest is of other content")


def _plain(array: Array) -> Array:
    """C-contiguous and in this machine's byte order, a copy where it is not."""
    return array.astype(array.dtype.newbyteorder("="), order="C", copy=False)


def _digest_of(about: Mapping[str, Any], tensors: Mapping[str, Array]) -> str:
    names = sorted(tensors)
    kinds = [f"{name} {tensors[name].dtype.str} {tensors[name].shape}" for name in names]
    return digest(
        json.dumps([about, *kinds], sort_keys=True).encode(),
        *(tensors[name].reshape(-1).view(np.uint8).data for name in names),
    )


def load_tensors(path: str | os.PathLike[str], kind: str) -> tuple[Contents, Contents]:
    """Read the arrays and metadata of a file that `save_tensors` wrote for the same `kind`.

    Arrays take no more memory than the file is long: their shapes are checked against it.
    """
    name = os.fspath(path)
    check_is_file(Path(path))
    metadata, tensors = _contents(path)
    metadata.pop(_DIGEST_KEY, None)
    if metadata.pop("kind", None) != kind:
        raise ValueError(f"{name} must hold {kind}, and it does not say so")
    return tensors, metadata


def _contents(path: str | os.PathLike[str]) -> tuple[Contents, Contents]:
    """Read the metadata and the arrays of a file."""
    from safetensors import SafetensorError, safe_open

    with reading(path):
        try:
            with safe_open(os.fspath(path), framework="numpy") as file:
                text = (file.metadata() or {}).get(_METADATA_KEY, "{}")
                tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        except SafetensorError as error:
            raise ValueError(error) from error
        for name, array in tensors.items():
            if array.dtype.kind not in "biuf":  # NumPy takes bfloat16 where a package adds it
                raise ValueError(f"{name} must hold numbers of NumPy, got {array.dtype}")
        return Contents(path, json_value(text)), Contents(path, tensors)
