"""Reading text and JSON whose errors name the file and the line."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any


def read_lines(path: Path) -> list[str]:
    """Lines of a UTF-8 file without a byte order mark; a carriage return is left at the end.

    Only line feeds end a line: ``str.splitlines`` would also cut captions at the rarer
    separators of Unicode.
    """
    return read_text(path).split("\n")


def read_text(path: Path) -> str:
    """Return the text of a UTF-8 file; other encodings are an error that names the line."""
    if not path.exists() or path.is_dir():
        raise FileNotFoundError(f"no such file: {path}")
    if not path.is_file():  # opening a pipe might wait for ever
        raise ValueError(f"{path} must be a regular file, and it is not")
    content = path.read_bytes()
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ValueError(
            f"{path} must be UTF-8 text, got byte 0x{content[error.start]:02x} in line {line}"
        ) from None


def read_json(path: Path, lists: Iterable[str]) -> dict[str, Any]:
    """JSON object of a file that holds a list of objects under each of the keys `lists`."""
    content = parse_json(path)
    for key in lists:
        entries = content.get(key) if isinstance(content, dict) else None
        if not isinstance(entries, list) or not all(isinstance(e, dict) for e in entries):
            raise ValueError(f"{path} must hold a JSON object with a list of objects {key!r}")
    result: dict[str, Any] = content
    return result


def parse_json(path: Path) -> Any:
    """Value of a JSON file; a damaged file is an error that names the place."""
    try:
        return json.loads(read_text(path))
    except (json.JSONDecodeError, RecursionError) as error:
        raise ValueError(f"{path} must be JSON and is damaged or truncated: {error}") from None


def field(path: Path, where: str, entry: Any, key: str, *kinds: type) -> Any:
    """Value of `key` in a JSON object; the error says where it should have been."""
    value = entry.get(key) if isinstance(entry, dict) else None
    if not isinstance(value, kinds):
        names = " or ".join(kind.__name__ for kind in kinds)
        raise ValueError(f"{path}: {where} must have {key!r} of type {names}, got {value!r}")
    return value
