"""Checked reading of files: a damaged file gives one ValueError that names it."""

from __future__ import annotations

import errno
import gzip
import json
import math
import os
import re
import tokenize
import warnings
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from kernelcore._validation import Array, check_finite

# Controls (ESC, CSI, line ends, ...), marks that change the direction of writing, line and
# paragraph separators, and what stands for bytes that are no text.
_CONTROLS = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufff9-\ufffb\ufeff"
    "\ud800-\udfff]"
)


def printable(text: str | os.PathLike[str], *, keep: str = "") -> str:
    r"""Escape control characters, except those in `keep`, as Python does in a string.

    Examples
    --------
    >>> from kernelcore._reading import printable
    >>> print(printable("a dog\x1b[2J\nError: none"))
    a dog\x1b[2J\nError: none
    """

    def escaped(found: re.Match[str]) -> str:
        control = found[0]
        return control if control in keep else control.encode("unicode_escape").decode()

    return _CONTROLS.sub(escaped, os.fspath(text))


# Errors of decoding changed bytes, or of rebuilding an object from them.
_DAMAGE = (
    ArithmeticError,
    AttributeError,
    EOFError,
    LookupError,
    RecursionError,
    SyntaxError,
    TypeError,
    ValueError,
    gzip.BadGzipFile,
    tokenize.TokenError,
    zlib.error,
)
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


@contextmanager
def reading(
    path: str | os.PathLike[str], fault: str = "is damaged or truncated"
) -> Iterator[None]:
    """Turn errors of reading a damaged file into one ValueError.

    Its message is the name of the file, the `fault` and the reason. A ValueError that names
    the file already is left alone. An OSError stays an OSError and names the file too.
    """
    name = os.fspath(path)
    try:
        yield
    except _DAMAGE as error:
        if type(error) is ValueError and name in str(error):
            raise
        raise ValueError(f"{name} {fault}: {_reason(error)}") from error
    except OSError as error:
        if error.errno is not None and error.filename is None:
            error.filename = name
        raise


def is_inside(name: str) -> bool:
    """Whether a path in a folder stays in it."""
    path = Path(name)
    return not path.is_absolute() and ".." not in path.parts


def is_file(path: Path) -> bool:
    """Whether there is a file; False if the name is too long for the system."""
    return _answers(path.is_file)


def is_folder(path: Path) -> bool:
    """Whether there is a folder; False if the name is too long for the system."""
    return _answers(path.is_dir)


def check_is_file(path: Path) -> None:
    """Raise FileNotFoundError if nothing is there, ValueError if it is no regular file."""
    if is_file(path):
        return
    if _answers(path.exists) and not is_folder(
        path
    ):  # a pipe, say: opening it might wait for ever
        raise ValueError(f"{path} must be a regular file, and it is not")
    raise FileNotFoundError(f"no such file: {path}")


def read_text(path: str | os.PathLike[str]) -> str:
    """Return the text of a UTF-8 file without its byte order mark."""
    source = Path(path)
    check_is_file(source)
    with reading(source):
        content = source.read_bytes()
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ValueError(
            f"{source} must be UTF-8 text, got byte 0x{content[error.start]:02x} in line {line}"
        ) from None


def lines_of(text: str) -> list[str]:
    """Lines of a text; a carriage return before a line feed is left at the end.

    Only line feeds end a line, or carriage returns where there is no line feed, as old Macs
    wrote: ``str.splitlines`` would also cut sentences at the rarer separators of Unicode.
    """
    return text.split("\n" if "\n" in text else "\r")


def is_utf8(text: str) -> bool:
    """Whether UTF-8 can write a text: it holds no surrogates."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def json_value(text: str) -> Any:
    """Return the value of a JSON text; refuse unpaired surrogates, which no file can hold.

    Raises
    ------
    ValueError, RecursionError
        If the text is not JSON, or is nested too deeply.
    """
    value = json.loads(text)
    if _SURROGATE.search(text):
        json.dumps(value, ensure_ascii=False).encode()
    return value


def read_npy(path: str | os.PathLike[str]) -> Array:
    """Return the array of a ``.npy`` file; it takes no more memory than the file."""
    source = Path(path)
    check_is_file(source)
    fault = "must be an array of NumPy, got a damaged file"
    with reading(source, fault), source.open("rb") as file:
        shape, is_fortran, dtype = npy_header(file)
        content = file.read()
        n_bytes = math.prod(shape) * dtype.itemsize
        if len(content) != n_bytes:
            raise ValueError(f"it must hold {n_bytes} bytes of numbers, got {len(content)}")
        array = np.frombuffer(content, dtype)
        return array.reshape(shape, order="F" if is_fortran else "C")


def npy_header(file: BinaryIO) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Read shape, order (True for Fortran) and dtype in the header of a ``.npy`` file."""
    version = np.lib.format.read_magic(file)
    readers = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }
    with warnings.catch_warnings():  # that headers of Python 2 take longer to read
        warnings.simplefilter("ignore", UserWarning)
        shape, is_fortran, dtype = readers[version](file)
    if dtype.hasobject or min(shape, default=0) < 0:
        raise ValueError(f"it must hold an array of numbers, got {dtype} of shape {shape}")
    return shape, is_fortran, dtype


class Contents(dict[str, Any]):
    """Entries of a file by name; a missing name is an error about the file."""

    def __init__(self, path: str | os.PathLike[str], values: Any) -> None:
        if not isinstance(values, dict):
            raise ValueError(f"it must hold a JSON object, got a {type(values).__name__}")
        super().__init__(values)
        self._path = os.fspath(path)

    def __missing__(self, key: str) -> Any:
        raise ValueError(f"{self._path} is damaged or truncated: it does not tell its {key}")

    def exactly(self, *names: str) -> dict[str, Any]:
        """Return the entries of these names; raise if there are others."""
        others = self.keys() - set(names)
        if others:
            raise ValueError(
                f"{self._path} is damaged or truncated: it must hold "
                f"{', '.join(names) or 'nothing'}, got {min(others)!r:.80} too"
            )
        return {name: self[name] for name in names}


def check_tensor(
    name: str,
    array: Array,
    shape: tuple[int | None, ...],
    dtype: Any = (np.float32, np.float64),
) -> Array:
    """Return an array from a file if it has this shape, None for any length, and this dtype.

    `dtype` is one or several. Floats must be finite.
    """
    allowed = [np.dtype(kind) for kind in (dtype if isinstance(dtype, tuple) else (dtype,))]
    if array.dtype not in allowed:
        raise ValueError(
            f"{name} must be of dtype {' or '.join(map(str, allowed))}, got {array.dtype}"
        )
    if array.ndim != len(shape) or any(
        wanted not in (None, length) for wanted, length in zip(shape, array.shape, strict=True)
    ):
        wanted_shape = ", ".join("any" if n is None else str(n) for n in shape)
        raise ValueError(f"{name} must have shape ({wanted_shape}), got {array.shape}")
    return check_finite(name, array)


def check_mapping(name: str, value: Any) -> Mapping[str, Any]:
    """Return `value` if it is a mapping, as a JSON object is."""
    if not isinstance(value, Mapping):
        raise ValueError(f"{name} must be a JSON object, got {value!r:.80}")
    return value


def _answers(ask: Callable[[], bool]) -> bool:
    try:
        return ask()
    except OSError as error:
        if error.errno != errno.ENAMETOOLONG:
            raise
        return False


def _reason(error: BaseException) -> str:
    if isinstance(error, KeyError):
        return f"it does not hold {error}"
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    if isinstance(error, (TypeError, ValueError)) and str(error):
        return str(error)
    return f"{type(error).__name__}: {error}"
