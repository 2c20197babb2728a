"""Word kernels: matrices of word similarities, dense or sparse, and their combination."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any, Literal, TypeAlias, cast

import numpy as np
import numpy.typing as npt
import scipy

from kernelcore._check import (
    as_csr,
    as_list,
    as_real_array,
    as_strings,
    check_choice,
    check_finite,
    check_integer,
    check_real,
)
from kernelcore._store import load_tensors, reading, save_tensors

Matrix: TypeAlias = "npt.NDArray[np.float32] | scipy.sparse.csr_array"

_KIND = "word kernel"
_ROUNDING = 1e-5
_CSR_PARTS = ("data", "indices", "indptr")
_BLOCK_ROWS = 512  # of cosines that are computed at once


class WordKernel:
    r"""Similarity of each pair of words of a vocabulary.

    Symmetric, with ones on the diagonal. A word outside the vocabulary is similar to itself
    alone. Nothing makes the matrix positive semi-definite: the maximum of two kernels, or a
    kernel whose small entries were set to zero, often is not.

    Parameters
    ----------
    words : iterable of str
        The vocabulary; a word's position is its row.
    matrix : array_like or sparse array of shape (n_words, n_words)
        Similarities in [-1, 1]. A matrix that is symmetric with a unit diagonal up to rounding
        (1e-5) is made exactly symmetric, with an exact unit diagonal.

    Attributes
    ----------
    words : tuple of str
    index : dict of str to int
        Row of each word.
    matrix : ndarray or csr_array of float32, shape (n_words, n_words)
        Sparse if it was given so; then only similarities other than 0 are stored.

    Raises
    ------
    TypeError
        If a word is not a string or the matrix does not hold real numbers.
    ValueError
        If words repeat, or the matrix is not square, finite, symmetric, in [-1, 1] and one
        on the diagonal.

    Examples
    --------
    >>> from kernelcore.lexical import WordKernel
    >>> kernel = WordKernel(["bike", "cycle", "dog"], [[1, 0.5, 0], [0.5, 1, 0], [0, 0, 1]])
    >>> kernel.similarity("cycle", "bike")
    0.5
    >>> kernel.most_similar("bike", 1)
    [('cycle', 0.5)]
    """

    def __init__(self, words: Iterable[str], matrix: Any) -> None:
        self.words = checked_words(words)
        self.index = {word: i for i, word in enumerate(self.words)}
        values: Any
        if hasattr(matrix, "tocsr"):
            values = as_csr("matrix", matrix)
            check_finite("matrix", values.data)
        else:
            values = check_finite("matrix", as_real_array("matrix", matrix, ndim=2))
        if values.shape != (len(self), len(self)):
            raise ValueError(
                f"matrix must have shape {(len(self), len(self))}, got {values.shape}"
            )
        self.matrix: Matrix = _exact(values)

    def __len__(self) -> int:
        return len(self.words)

    def __repr__(self) -> str:
        n_pairs = len(self) * (len(self) - 1)
        share = (self.to_sparse().nnz - len(self)) / max(n_pairs, 1)
        return f"WordKernel({len(self)} words, {share:.1%} of their pairs similar)"

    def similarity(self, first: str, second: str) -> float:
        """Similarity of two words; words outside the vocabulary match only themselves."""
        if first not in self.index or second not in self.index:
            return float(first == second)
        return float(self.matrix[self.index[first], self.index[second]])

    def most_similar(self, word: str, k: int = 5) -> list[tuple[str, float]]:
        """Return the `k` other words most similar to `word`, the most similar first.

        Words of similarity 0 or less are left out; equals stand in the order of `words`.
        """
        k = check_integer("k", k, minimum=1)
        if word not in self.index:
            raise ValueError(f"word must be one of the {len(self)} of the kernel, got {word!r}")
        row = _dense(self.matrix[[self.index[word]], :])[0].copy()
        row[self.index[word]] = 0.0
        best = np.argsort(-row, kind="stable")[:k]
        return [(self.words[i], float(row[i])) for i in best.tolist() if row[i] > 0]

    def to_dense(self) -> npt.NDArray[np.float32]:
        """Return the matrix as an ordinary array."""
        return _dense(self.matrix)

    def to_sparse(self) -> scipy.sparse.csr_array:
        """Return the matrix as a sparse array."""
        return scipy.sparse.csr_array(self.matrix)

    def over(self, words: Iterable[str]) -> WordKernel:
        """Return the kernel over other words; unknown ones match only themselves."""
        wanted = checked_words(words)
        rows = np.array([self.index.get(word, -1) for word in wanted], dtype=np.intp)
        known, unknown = np.flatnonzero(rows >= 0), np.flatnonzero(rows < 0)
        chosen = _ones(known, rows[known], (len(wanted), len(self)))
        alone = _ones(unknown, unknown, (len(wanted), len(wanted)))
        return WordKernel(wanted, chosen @ self.matrix @ chosen.T + alone)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write words and matrix as one safetensors file, whole or not at all."""
        if scipy.sparse.issparse(self.matrix):
            arrays = {name: getattr(self.matrix, name) for name in _CSR_PARTS}
        else:
            arrays = {"matrix": self.matrix}
        save_tensors(path, _KIND, arrays, {"words": self.words})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> WordKernel:
        """Load the output of `save`; a damaged file raises ValueError."""
        with reading(path):
            arrays, metadata = load_tensors(path, _KIND)
            words = checked_words(metadata.exactly("words")["words"])
            if "matrix" in arrays:
                return cls(words, arrays.exactly("matrix")["matrix"])
            parts = tuple(arrays.exactly(*_CSR_PARTS).values())
            return cls(words, scipy.sparse.csr_array(parts, shape=(len(words), len(words))))


def checked_words(words: Iterable[str]) -> tuple[str, ...]:
    """Return the words as a tuple if they are different strings."""
    listed = list(words) if isinstance(words, Mapping) else as_list("words", words)
    return tuple(as_strings("words", listed, unique=True))


def _exact(matrix: Any) -> Matrix:
    """Convert to float32; make the matrix exactly symmetric in [-1, 1] with a unit diagonal."""
    if matrix.shape == (0, 0):
        return cast(Matrix, matrix.astype(np.float32))
    largest = abs(matrix).max()
    if largest > 1 + _ROUNDING:
        raise ValueError(f"matrix must lie in [-1, 1], got an entry of magnitude {largest:.3g}")
    asymmetry = abs(matrix - matrix.T).max()
    if asymmetry > _ROUNDING:
        raise ValueError(
            f"matrix must be symmetric, got entries that differ by {asymmetry:.3g}"
        )
    if asymmetry > 0:
        matrix = (matrix + matrix.T) / 2
    off_one = np.abs(matrix.diagonal() - 1).max()
    if off_one > _ROUNDING:
        raise ValueError(f"matrix must have ones on its diagonal, got one off by {off_one:.3g}")
    result: Any
    if scipy.sparse.issparse(matrix):
        result = scipy.sparse.csr_array(cast(Any, matrix), dtype=np.float32)
        np.clip(result.data, -1, 1, out=result.data)
        result.setdiag(1.0)
        result.eliminate_zeros()
        result.sort_indices()
        for places in (result.indices, result.indptr):  # SciPy's compiled code trusts them
            places.flags.writeable = False
    else:
        result = np.clip(matrix, -1, 1).astype(np.float32)
        np.fill_diagonal(result, 1.0)
    return cast(Matrix, result)


def _ones(rows: Any, columns: Any, shape: tuple[int, int]) -> scipy.sparse.csr_array:
    return scipy.sparse.csr_array(
        (np.ones(len(rows), np.float32), (rows, columns)), shape=shape
    )


def _dense(matrix: Matrix) -> npt.NDArray[np.float32]:
    return matrix.toarray() if scipy.sparse.issparse(matrix) else matrix


def cosine_kernel(
    words: Iterable[str],
    index: Mapping[str, int],
    vectors: scipy.sparse.csr_array,
    threshold: float,
) -> WordKernel:
    """Cosines of the vectors of `words`; those below `threshold` become 0.

    Parameters
    ----------
    words : iterable of str
        Words of the kernel. A word without a vector, or with one of zeros, is similar to
        itself alone.
    index : mapping of str to int
        Row of each word that has a vector.
    vectors : csr_array of float64, shape (n_vectors, n_dimensions)
    threshold : float

    Returns
    -------
    WordKernel
        Dense where that takes less memory than sparse.
    """
    wanted = checked_words(words)
    known = [word for word in wanted if word in index]
    rows = np.array([index[word] for word in known], dtype=np.intp)
    known_rows = vectors[rows, :]
    lengths = np.sqrt(known_rows.power(2).sum(axis=1))  # rows of zeros stay zero
    scale = np.divide(1.0, lengths, out=np.zeros_like(lengths), where=lengths > 0)
    unit = scipy.sparse.csr_array(known_rows.multiply(scale[:, None]))
    blocks = []
    for start in range(0, max(len(known), 1), _BLOCK_ROWS):
        block = unit[start : start + _BLOCK_ROWS] @ unit.T
        block.data[block.data < threshold] = 0.0
        # the part above the diagonal: with its mirror image the whole is symmetric
        blocks.append(scipy.sparse.triu(block, k=start + 1, format="csr"))
    above = scipy.sparse.vstack(blocks, format="csr")
    cosines = above + above.T + scipy.sparse.csr_array(scipy.sparse.identity(len(known)))
    kernel = WordKernel(known, cosines).over(wanted)
    if 2 * kernel.to_sparse().nnz > len(wanted) ** 2:
        return WordKernel(wanted, kernel.to_dense())
    return kernel


def combine(
    *kernels: WordKernel,
    how: Literal["max", "mean"] = "max",
    threshold: float = 0.0,
) -> WordKernel:
    r"""Combine word kernels over the same words entry by entry.

    Parameters
    ----------
    *kernels : WordKernel
        One or more, over the same words in the same order; see `WordKernel.over`.
    how : {"max", "mean"}, default "max"
        Take the greatest or the mean similarity of each pair of words.
    threshold : float, default 0
        Similarities of the result below it become 0.

    Returns
    -------
    WordKernel
        Sparse if all kernels are sparse.

    Raises
    ------
    TypeError
        If a kernel is no WordKernel.
    ValueError
        If there is none, or they are not over the same words.

    Notes
    -----
    The mean of positive semi-definite kernels is positive semi-definite. The maximum and the
    threshold may produce a kernel that is not: `numpy.linalg.eigvalsh` of its `to_dense` tells.

    Examples
    --------
    >>> from kernelcore.lexical import WordKernel, combine
    >>> words = ["bike", "cycle"]
    >>> first = WordKernel(words, [[1, 0.5], [0.5, 1]])
    >>> second = WordKernel(words, [[1, 0.25], [0.25, 1]])
    >>> combine(first, second).similarity("bike", "cycle")
    0.5
    >>> combine(first, second, how="mean").similarity("bike", "cycle")
    0.375
    """
    check_choice("how", how, ("max", "mean"))
    threshold = check_real("threshold", threshold, minimum=0, maximum=1)
    if not kernels:
        raise ValueError("kernels must hold at least one WordKernel, got none")
    for kernel in kernels:
        if not isinstance(kernel, WordKernel):
            raise TypeError(f"kernels must be WordKernels, got {type(kernel).__name__}")
        if kernel.words != kernels[0].words:
            raise ValueError(
                "kernels must be over the same words in the same order: "
                "bring them there with WordKernel.over"
            )
    all_sparse = all(scipy.sparse.issparse(kernel.matrix) for kernel in kernels)
    matrices: list[Any] = [k.matrix if all_sparse else k.to_dense() for k in kernels]
    matrix = matrices[0].copy()
    for other in matrices[1:]:
        if how == "mean":
            matrix = matrix + other
        else:
            matrix = matrix.maximum(other) if all_sparse else np.maximum(matrix, other)
    if how == "mean":
        matrix = matrix / np.float32(len(kernels))
    values: Any = matrix.data if hasattr(matrix, "tocsr") else matrix
    values[values < threshold] = 0.0
    return WordKernel(kernels[0].words, matrix)
