"""Changed files whose checksums are right, for checks behind the checksums."""

import json
from pathlib import Path
from typing import Any

from safetensors.numpy import load

from kernelcore._store import folder_checksums, save_json, tensor_bytes


def parts_of(manifest: Path) -> Path:
    """Return the folder of the files of a manifest."""
    return manifest.parent / str(json.loads(manifest.read_text("utf-8"))["parts"])


def reseal(manifest: Path, about: dict[str, Any] | None = None) -> None:
    """Write a manifest anew, with this content, for the files that are there."""
    content = json.loads(manifest.read_text("utf-8"))
    parts = {"parts": content["parts"], "files": folder_checksums(parts_of(manifest))}
    content = dict(content if about is None else about)
    content.pop("crc32", None)
    save_json(manifest, {**content, **parts})


def holds_tensors(path: Path) -> bool:
    return b'"__metadata__"' in path.read_bytes()[:24]


def tensors_in(content: bytes) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the tensors of a file and its metadata, without the checksum."""
    size = int.from_bytes(content[:8], "little")
    about = json.loads(json.loads(content[8 : 8 + size])["__metadata__"]["kernelcore"])
    del about["crc32"]
    return load(content), about


def with_tensors(tensors: dict[str, Any], about: dict[str, Any]) -> bytes:
    """Return a file of tensors and metadata with the right checksum."""
    rest = dict(about)
    return tensor_bytes(rest.pop("kind", ""), tensors, rest)


def reseal_all(folder: Path) -> None:
    """Give manifests the checksums of the files that are there now."""
    for manifest in folder.rglob("*.json"):
        if b'"parts": "' in manifest.read_bytes():
            reseal(manifest)
