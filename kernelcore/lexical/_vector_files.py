"""The lines and bytes of files of word vectors, which are checked as they come."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np
import numpy.typing as npt

Vectors = npt.NDArray[np.float32]

_NUMBER_BYTES = 4  # float32, little-endian

# What a file may ask for: beyond that it is damaged, or made to fill the memory.
_MAX_DIMENSIONS = 2**16
_MAX_LINE = 2**21
_MAX_WORD = 2**12
_MAX_DIGITS = 64
_MAX_EXPANSION = 100  # bytes that a byte of a packed file may stand for
_SLACK = 2**20
_COUNT = re.compile(b"[0-9]{1,18}")


class _Header(NamedTuple):
    n_words: int
    n_dimensions: int


class Stream:
    """Bytes of a file, packed or not, that take no more memory than its length allows."""

    def __init__(self, stream: BinaryIO, source: Path) -> None:
        self._stream = stream
        self._limit = _SLACK + _MAX_EXPANSION * source.stat().st_size
        self._given = 0

    def __iter__(self) -> Iterator[bytes]:
        return iter(self.readline, b"")

    def readline(self) -> bytes:
        """Read a line."""
        line = self._stream.readline(_MAX_LINE + 1)
        if len(line) > _MAX_LINE:
            raise ValueError(f"must have lines of at most {_MAX_LINE} bytes, got a longer one")
        return self._counted(line)

    def read(self, n_bytes: int) -> bytes:
        """Read some bytes."""
        return self._counted(self._stream.read(n_bytes))

    def read_until_space(self) -> bytes | None:
        """Read on behind the next space and return what stands before it, None at the end."""
        name = bytearray()
        while (byte := self._stream.read(1)) != b" ":
            if not byte:
                return None
            name += byte
            if len(name) > _MAX_WORD:
                raise ValueError(f"must have words of at most {_MAX_WORD} bytes")
        return self._counted(bytes(name))

    def rewind(self) -> None:
        """Go back to the start."""
        self._stream.seek(0)
        self._given = 0

    def _counted(self, content: bytes) -> bytes:
        self._given += len(content)
        if self._given > self._limit:
            raise ValueError(f"must unpack to at most {self._limit} bytes, got more")
        return content


def read_entries(
    file: Stream, wanted: frozenset[str] | None, file_format: str
) -> dict[str, Vectors]:
    """Return the vector of each word, or of each that is wanted; the first of several."""
    kind = _sniff(file) if file_format == "auto" else file_format
    if kind == "word2vec-binary":
        entries = _binary_entries(file, wanted)
    else:
        entries = _text_entries(file, wanted, has_header=kind == "word2vec")
    found: dict[str, Vectors] = {}
    for word, vector in entries:
        found.setdefault(word, vector)
    return found


def _sniff(file: Stream) -> str:
    """Tell the format by the first line and what follows it; go back to the start."""
    first, second = file.readline(), file.readline()
    file.rewind()
    try:
        header = _as_header(first)
    except ValueError:
        return "glove"
    try:
        _as_entry(second, header.n_dimensions, None)
    except ValueError:
        if len(second.split()) == header.n_dimensions + 1 and _is_text(second):
            return "word2vec"  # and a number that is none, which the reader will name
        return "word2vec-binary"
    return "word2vec"


def _is_text(line: bytes) -> bool:
    return all(byte in b"\t\r\n" or byte >= ord(" ") for byte in line)


def _as_header(line: bytes) -> _Header:
    fields = line.split()
    if len(fields) != 2 or not all(_COUNT.fullmatch(field) for field in fields):
        raise ValueError(
            f"must begin with the numbers of words and dimensions, got {line[:40]!r}"
        )
    header = _Header(int(fields[0]), int(fields[1]))
    if header.n_dimensions > _MAX_DIMENSIONS:
        raise ValueError(
            f"must have at most {_MAX_DIMENSIONS} dimensions, got {header.n_dimensions}"
        )
    return header


def _text_entries(
    file: Stream, wanted: frozenset[str] | None, *, has_header: bool
) -> Iterator[tuple[str, Vectors]]:
    header = _as_header(file.readline()) if has_header else None
    n_dimensions = header.n_dimensions if header else None
    n_read = 0
    for number, line in enumerate(file, 2 if has_header else 1):
        if not line.strip():
            continue
        n_read += 1
        if n_dimensions is None:
            n_dimensions = min(len(line.split()) - 1, _MAX_DIMENSIONS)
        try:
            entry = _as_entry(line, n_dimensions, wanted)
        except ValueError as error:
            raise ValueError(f"is damaged or truncated: line {number} {error}") from None
        if entry is not None:
            yield entry
    if header and n_read != header.n_words:
        raise ValueError(
            f"is damaged or truncated: it must hold {header.n_words} words, got {n_read}"
        )


def _as_entry(
    line: bytes, n_dimensions: int, wanted: frozenset[str] | None
) -> tuple[str, Vectors] | None:
    """Word and vector of a line, None for a word that is not wanted."""
    # From the right: some published files have words with spaces in them.
    fields = line.rstrip().rsplit(b" ", n_dimensions)
    if len(fields) != n_dimensions + 1 or n_dimensions < 1:
        raise ValueError(f"must hold a word and {n_dimensions} numbers, got {line[:40]!r}")
    word = _as_word(fields[0])
    if wanted is not None and word not in wanted:
        return None
    longest = max(map(len, fields[1:]))
    if longest > _MAX_DIGITS:  # NumPy would give as much room to all
        raise ValueError(f"must hold numbers of at most {_MAX_DIGITS} digits, got {longest}")
    with np.errstate(over="ignore"):  # infinity is refused by its word
        return word, _checked(word, np.array(fields[1:]).astype(np.float32))


def _binary_entries(
    file: Stream, wanted: frozenset[str] | None
) -> Iterator[tuple[str, Vectors]]:
    header = _as_header(file.readline())
    n_bytes = header.n_dimensions * _NUMBER_BYTES
    for i in range(header.n_words):
        name = file.read_until_space()
        if name is None:
            raise ValueError(
                f"is damaged or truncated: it must hold {header.n_words} words, got {i}"
            )
        content = file.read(n_bytes)
        word = _as_word(name.lstrip(b"\n"))  # which some writers put after a vector
        if len(content) != n_bytes:
            raise ValueError(f"is damaged or truncated: the vector of {word!r} is cut short")
        if wanted is None or word in wanted:
            yield word, _checked(word, np.frombuffer(content, "<f4").astype(np.float32))


def _as_word(name: bytes) -> str:
    try:
        return name.decode("utf-8")
    except UnicodeDecodeError:
        raise ValueError(f"must hold UTF-8 words, got {name[:40]!r}") from None


def _checked(word: str, vector: Vectors) -> Vectors:
    if not np.isfinite(vector).all():
        raise ValueError(
            f"must hold finite numbers, got {vector[~np.isfinite(vector)][0]} for {word!r}"
        )
    return vector
