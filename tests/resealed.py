"""Changed files in a folder with a manifest that agrees, for checks behind the checksums."""

import json
from pathlib import Path
from typing import Any

from kernelcore._store import folder_checksums, save_json


def reseal(manifest: Path, about: dict[str, Any] | None = None) -> None:
    """Write a manifest anew, with this content, for the files that are beside it."""
    content = json.loads(manifest.read_text("utf-8")) if about is None else dict(about)
    manifest.unlink()
    content.pop("crc32", None)
    save_json(manifest, {**content, "files": folder_checksums(manifest.parent)})
