"""Damage to files: to their bytes, and to their tensors and JSON below new checksums."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st
from resealed import holds_tensors, tensors_in, with_tensors

from kernelcore._store import save_json

PIECES = (
    *(b"", b"\0", b"\xff", b"\xef\xbb\xbf", b"\r", b"\n\n", b"\t", b" " * 500, b"\xed\xa0\x80"),
    *(b'"', b",", b"#", b"/", b"[" * 9000, b"{", b"\\ud800", b"../../x", b"x" * 5000),
    *(b"-1", b"0", b"NaN", b"1e999", b"4294967296", b"9223372036854775808", b"9" * 4301),
)
VALUES = (
    *(None, True, 0, 1, -1, 0.5, 2**31, 2**40, 2**64, 10**400, float("nan"), float("inf")),
    *("", "x", "x" * 300, "\0", "../x", [], {}, [[]], [None], ["a", "a"], {"x": 1}),
)
INTEGERS = (0, 1, -1, 2**15, 2**31 - 1, -(2**31), 2**62, 2**63 - 1, -(2**63))
REALS = (0.0, -1.0, 3.0, 1e-30, 1e30, np.nan, np.inf, -np.inf)


@st.composite
def damaged(draw: Any, content: bytes) -> bytes:
    """Cut a file, flip a bit, drop or repeat a line, replace, insert or repeat bytes."""
    start = draw(st.integers(0, len(content)))
    stop = draw(st.integers(start, min(len(content), start + 40)))
    head, middle, tail = content[:start], content[start:stop], content[stop:]
    way = draw(st.sampled_from(["cut", "flip", "line", "piece", "piece", "repeat"]))
    if way == "flip" and middle:
        middle = bytes([middle[0] ^ 1 << draw(st.integers(0, 7))]) + middle[1:]
    elif way == "line":
        lines = content.splitlines(keepends=True) or [b""]
        lines[draw(st.integers(0, len(lines) - 1))] *= draw(st.sampled_from([0, 2]))
        return b"".join(lines)
    elif way == "piece":
        middle = draw(st.sampled_from(PIECES))
    elif way == "repeat":
        middle *= 2
    return head if way == "cut" else head + middle + tail


@st.composite
def changed(draw: Any, value: Any) -> Any:
    """Change one part of a JSON value, leave it out, or add another."""
    if not isinstance(value, (dict, list)) or not value:
        return draw(st.sampled_from(VALUES))
    copy = value.copy()
    key = draw(st.sampled_from(list(value) if isinstance(value, dict) else range(len(value))))
    way = draw(st.sampled_from(["within", "within", "replace", "remove", "add"]))
    if way == "remove":
        del copy[key]
    elif way == "add":
        copy = copy | {"x": copy[key]} if isinstance(copy, dict) else [*copy, copy[key]]
    else:
        copy[key] = draw(changed(copy[key]) if way == "within" else st.sampled_from(VALUES))
    return copy


@st.composite
def with_odd_numbers(draw: Any, array: Any) -> Any:
    copy = array.copy()
    special = REALS if array.dtype.kind == "f" else INTEGERS
    for at in draw(st.sets(st.integers(0, copy.size - 1), max_size=3)) if copy.size else ():
        copy.flat[at] = np.array(draw(st.sampled_from(special))).astype(copy.dtype)
    return copy


def forge(draw: Any, path: Path) -> None:
    """Change what a file says; its checksum is right."""
    content = path.read_bytes()
    if holds_tensors(path):
        tensors, about = tensors_in(content)
        name = draw(st.sampled_from([*sorted(tensors), ""]))
        if name:
            with np.errstate(all="ignore"):
                tensors[name] = draw(with_odd_numbers(tensors[name]))
        else:
            about = draw(changed(about))
        path.write_bytes(with_tensors(tensors, about))
        return
    try:
        value = json.loads(content)
    except ValueError:
        path.write_bytes(draw(damaged(content)))
        return
    if isinstance(value, dict) and value.pop("crc32", None):
        save_json(path, draw(changed(value)))
    else:
        path.write_text(json.dumps(draw(changed(value))))


def misfits(tensors: dict[str, Any], about: dict[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    """Yield parts of a file without one of them, with one too many, of another kind, ..."""
    yield "one too many", tensors | {"x": np.zeros(3)}, about
    for name, array in tensors.items():
        yield f"no {name}", {n: own for n, own in tensors.items() if n != name}, about
        yield f"{name} of another shape", tensors | {name: array[..., None]}, about
        if array.size:
            yield f"{name} of bools", tensors | {name: np.zeros(array.shape, bool)}, about
            if array.dtype.kind == "f":
                yield f"NaN in {name}", tensors | {name: np.full_like(array, np.nan)}, about
    for key in about.keys() - {"kind"}:
        yield f"no {key}", tensors, {k: v for k, v in about.items() if k != key}
        yield f"another {key}", tensors, about | {key: [None]}


def beyond_memory(about: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield metadata in which one integer asks for terabytes."""
    for key, value in about.items():
        if type(value) is int:
            yield about | {key: 2**40}
        elif isinstance(value, dict):
            yield from (about | {key: other} for other in beyond_memory(value))
