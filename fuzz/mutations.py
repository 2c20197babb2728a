"""Damage to files: to their bytes, to the values of their JSON, to their tensors."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from safetensors.numpy import load, save

Rng = np.random.Generator

_METADATA = "__metadata__"
_NUMBER = re.compile(rb"-?[0-9]+(?:\.[0-9]+)?")
_NUMBERS = (
    *(b"0", b"-1", b"1", b"7", b"1e999", b"-1e308", b"NaN", b"Infinity", b"0.5", b"1_0"),
    *(b"2147483648", b"4294967296", b"9223372036854775807", b"18446744073709551616"),
    *(b"1" * 30, b"9" * 400, b"1" * 4301),
)
_PIECES = (
    *(b"\x00", b"\xff", b"\xef\xbb\xbf", b"\r", b"\n", b"\t", b"\xe2\x80\xa8", b"\xed\xa0\x80"),
    *(b'"', b"'", b",", b"#", b"/", b"\\", b"[" * 3, b"]", b"{", b"}", b" " * 500, b"\\ud800"),
    *(b"../../etc/passwd", b"x" * 300, b"x" * 5000, b"%s%n", "\u00df\U0001f600".encode()),
)
_VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 0.5, -0.0, 2**31, 2**63, 2**64, -(2**63), 10**30, 10**400),
    *(float("nan"), float("inf"), "", "x", "0", "x" * 300, "\x00", "\ud800", "../x", [], {}),
    *([[]], [None], ["a", "a"], [0.5, "x"], {"x": 1}, "precomputed", [1, 2, 3], ["", []]),
)
_DTYPES = "?bBhHiIqQefd"
_SPECIAL = (0, 1, -1, 2**15, 2**31 - 1, -(2**31), 2**62, -(2**62), 2**63 - 1, -(2**63))
_BF16 = {"F16": "BF16", "I16": "BF16", "U16": "BF16", "I8": "F8_E4M3", "U8": "F8_E5M2"}


def pick(rng: Rng, values: Sequence[Any]) -> Any:
    """Draw one of some values."""
    return values[int(rng.integers(len(values)))]


def damaged(rng: Rng, name: str, content: bytes) -> bytes:
    """Damage a file as what it is, one to three times."""
    for _ in range(int(rng.integers(1, 4))):
        content = pick(rng, _ways(name))(rng, content)
    return content


def _ways(name: str) -> list[Callable[[Rng, bytes], bytes]]:
    if ".safetensors" in name:
        return [in_tensors, in_tensors, in_tensors, in_header, in_bytes]
    if name.endswith(".json"):
        return [in_json, in_json, in_bytes]
    return [in_bytes]


def in_bytes(rng: Rng, content: bytes) -> bytes:
    """Flip, cut, move, repeat or insert bytes, or change a number that they spell."""
    size = len(content)
    start, end = sorted(int(at) for at in rng.integers(0, size + 1, 2))
    end = min(end, start + 200)
    head, piece, tail = content[:start], content[start:end], content[end:]
    way = int(rng.integers(9))
    if way == 0 and size:
        data = bytearray(content)
        for at in rng.integers(0, size, int(rng.integers(1, 9))):
            data[at] ^= 1 << int(rng.integers(8))
        content = bytes(data)
    elif way == 1:
        content = head
    elif way == 2:
        content = head + tail
    elif way == 3:
        content = head + piece * int(rng.integers(2, 20)) + tail
    elif way == 4:
        other = int(rng.integers(0, size + 1))
        content = content[:other] + piece + content[other:]
    elif way == 5 and rng.random() < 0.1:
        content = head + b"[" * 200_000 + piece + tail
    elif way in (6, 7) and (found := list(_NUMBER.finditer(content))):
        spot = pick(rng, found)
        content = content[: spot.start()] + pick(rng, _NUMBERS) + content[spot.end() :]
    else:
        content = head + pick(rng, _PIECES) + piece + tail
    return content


def in_json(rng: Rng, content: bytes) -> bytes:
    """Change a value, a key or the nesting of a JSON text."""
    try:
        value = json.loads(content)
    except (ValueError, RecursionError):
        return in_bytes(rng, content)
    return json.dumps(in_value(rng, value)).encode()


def in_value(rng: Rng, value: Any) -> Any:
    """Change something within a value as JSON has it; lists and objects in place."""
    if not isinstance(value, (list, dict)) or not value or rng.random() < 0.05:
        return pick(rng, _VALUES)
    key = pick(rng, list(value) if isinstance(value, dict) else range(len(value)))
    way = int(rng.integers(8))
    if way == 0:
        del value[key]
    elif way == 1 and isinstance(value, dict):
        value[str(pick(rng, _VALUES))] = value[key] if rng.random() < 0.5 else value.pop(key)
    elif way == 1 and isinstance(value, list):
        value.append(value[key])
    elif way == 2:
        value[key] = value[pick(rng, list(value) if isinstance(value, dict) else [0])]
    elif way == 3:
        value[key] = [value[key]]
    else:
        value[key] = in_value(rng, value[key])
    return value


def in_tensors(rng: Rng, content: bytes) -> bytes:
    """Change dtype, shape, values, names or metadata in a safetensors file."""
    try:
        tensors, header = load(content), _header(content)[0]
    except Exception:
        return in_bytes(rng, content)
    metadata = header.get(_METADATA) or {}  # a first change may have left null there
    if not tensors or rng.random() < 0.3:
        for key in metadata:
            metadata[key] = in_json(rng, metadata[key].encode()).decode(errors="replace")
            if rng.random() < 0.03:
                metadata[key] = "[" * 200_000
    else:
        name = pick(rng, sorted(tensors))
        way = int(rng.integers(4))
        if way == 0:
            tensors[pick(rng, ["x", *sorted(tensors)])] = tensors.pop(name)
        else:
            tensors[name] = in_array(rng, tensors[name])
    return save({key: np.ascontiguousarray(array) for key, array in tensors.items()}, metadata)


def in_array(rng: Rng, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Change values, dtype or shape of an array."""
    way = int(rng.integers(8))
    with np.errstate(all="ignore"):
        if way == 0:
            return array.astype(pick(rng, _DTYPES))
        if way == 1:
            return array.ravel()
        if way == 2:
            return array[: int(rng.integers(len(array) + 1))] if array.ndim else array[None]
        if way == 3 and array.ndim:
            return np.concatenate([array, array[:1]])
        if way == 4:
            return array[..., None]
        changed: np.ndarray[Any, Any] = array.copy()
        for _ in range(int(rng.integers(1, 4))) if changed.size else ():
            at = int(rng.integers(changed.size))
            if changed.dtype.kind == "f":
                changed.flat[at] = pick(rng, (np.nan, np.inf, -np.inf, 0, -1, 1e30, 1e-30, 3))
            elif changed.dtype.kind in "iu":
                changed.flat[at] = np.array(pick(rng, _SPECIAL)).astype(changed.dtype)
        return changed


def in_header(rng: Rng, content: bytes) -> bytes:
    """Change what a safetensors file says of its tensors, and not the tensors."""
    try:
        header, body = _header(content)
    except (ValueError, RecursionError):
        return in_bytes(rng, content)
    if isinstance(header, dict) and rng.random() < 0.3:
        for about in header.values():
            if isinstance(about, dict) and "dtype" in about:
                about["dtype"] = _BF16.get(str(about["dtype"]), about["dtype"])
    else:
        header = in_value(rng, header)
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + body


def _header(content: bytes) -> tuple[Any, bytes]:
    size = int.from_bytes(content[:8], "little")
    return json.loads(content[8 : 8 + size]), content[8 + size :]
