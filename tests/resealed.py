"""Changed files in a folder with a manifest that agrees, for checks behind the checksums."""

import json
from pathlib import Path
from typing import Any

from kernelcore._store import folder_checksums, save_json


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
