"""Word vectors learned from a text: factors of pointwise mutual information."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.sparse.linalg import svds

from kernelcore._check import check_integer, check_real, check_rng
from kernelcore._threads import one_blas_thread
from kernelcore.lexical.word_vectors import WordVectors

_TINY = 1e-6  # share of the largest value below which rounding errors are all there is


def learn_word_vectors(
    sentences: Iterable[Sequence[str]],
    *,
    n_dimensions: int = 200,
    window: int = 5,
    min_count: int = 2,
    smoothing: float = 0.75,
    rng: np.random.Generator | int | None = 0,
) -> WordVectors:
    r"""Learn word vectors from the words that stand near each other [1]_.

    .. math::

        M_{wc} = \max\left(0, \log \frac{n_{wc} \, n}{n_w \, n_c}\right), \qquad
        M \approx U S V^T, \qquad \text{vectors} = U S^{1/2}

    :math:`n_{wc}` counts how often w and c stand at most `window` words apart in a sentence,
    :math:`n_w` and :math:`n_c` are its sums over contexts and over words, :math:`n_c` to the
    power `smoothing` and scaled to the sum :math:`n`. The factors are the leading singular
    vectors. Each vector is scaled to length 1.

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
    smoothing : float, default 0.75
        Exponent of the counts of contexts, in (0, 1]. Less than 1 lowers the weight of rare
        contexts.
    rng : Generator or int, optional, default 0
        Source of the start vector of the decomposition.

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
    smoothing = check_real("smoothing", smoothing, minimum=0, maximum=1, exclusive=True)
    generator = check_rng("rng", rng)
    words, ids, owners = _numbered(sentences, min_count)
    if len(words) <= n_dimensions:
        raise ValueError(
            f"n_dimensions must be less than the number of words, {len(words)} at least "
            f"{min_count} times in sentences, got {n_dimensions}"
        )
    information = _information(ids, owners, len(words), window, smoothing)
    start = generator.standard_normal(len(words))
    vectors = _factors(information, n_dimensions, start)
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
    if isinstance(words, str) or not isinstance(words, (Iterable, type(None))):
        raise TypeError(f"words must be a collection of strings, got {words!r}")
    listed = list(chain(*(part.words for part in parts)) if words is None else words)
    for word in listed:
        if not isinstance(word, str):
            raise TypeError(f"words must hold strings, got {word!r}")
    wanted = dict.fromkeys(listed)
    kept = [word for word in wanted if any(word in part for part in parts)]
    columns = []
    for part in parts:
        rows = np.zeros((len(kept), part.n_dimensions))
        known = [(i, part.index[word]) for i, word in enumerate(kept) if word in part]
        if known:
            to, of = np.transpose(known)
            rows[to] = _unit(part.vectors[of].astype(np.float64))
        columns.append(rows)
    return WordVectors(kept, np.hstack(columns))


def _numbered(
    sentences: Iterable[Sequence[str]], min_count: int
) -> tuple[list[str], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the frequent words, and the word (-1 if rare) and sentence of each position."""
    texts = []
    counts: dict[str, int] = {}
    if not isinstance(sentences, Iterable):
        raise TypeError(f"sentences must be sequences of words, got {sentences!r}")
    for i, sentence in enumerate(sentences):
        if isinstance(sentence, str) or not isinstance(sentence, Iterable):
            raise TypeError(f"sentences[{i}] must be a sequence of words, got {sentence!r}")
        text = list(sentence)
        texts.append(text)
        for word in text:
            if not isinstance(word, str):
                raise TypeError(f"sentences[{i}] must hold words, got {word!r}")
            counts[word] = counts.get(word, 0) + 1
    words = sorted((w for w in counts if counts[w] >= min_count), key=lambda w: (-counts[w], w))
    index = {word: i for i, word in enumerate(words)}
    ids = np.array([index.get(word, -1) for text in texts for word in text], np.int64)
    lengths = [len(text) for text in texts]
    return words, ids, np.repeat(np.arange(len(texts)), lengths)


def _information(
    ids: npt.NDArray[np.int64],
    owners: npt.NDArray[np.int64],
    n_words: int,
    window: int,
    smoothing: float,
) -> sparse.csr_array:
    """Positive pointwise mutual information of words and contexts."""
    lefts, rights = [], []
    for distance in range(1, min(window, len(ids) - 1) + 1):
        left, right = ids[:-distance], ids[distance:]
        is_pair = (owners[:-distance] == owners[distance:]) & (left >= 0) & (right >= 0)
        lefts.append(left[is_pair])
        rights.append(right[is_pair])
    pairs = np.concatenate(lefts), np.concatenate(rights)
    shape = n_words, n_words
    counts = sparse.csr_array((np.ones(len(pairs[0])), pairs), shape=shape)
    together = sparse.coo_array(counts + counts.T)
    rows, columns = together.coords
    of_words: npt.NDArray[np.float64] = np.asarray(together.sum(axis=1)).ravel()
    of_contexts = of_words**smoothing
    shares = of_contexts / max(of_contexts.sum(), 1.0)
    information = np.log(together.data / (of_words[rows] * shares[columns]))
    positive = information > 0
    return sparse.csr_array(
        (information[positive], (rows[positive], columns[positive])), shape=shape
    )


def _factors(
    matrix: sparse.csr_array, n_dimensions: int, start: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """Return the leading left singular vectors, times the roots of the singular values.

    Columns beyond the rank are 0. The largest entry of each other column is positive.
    """
    if not matrix.nnz:
        return np.zeros((len(start), n_dimensions))
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
