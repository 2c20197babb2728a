"""Word kernels from word vectors: the cosine of each pair, small ones set to zero."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
from scipy import sparse

from kernelcore.lexical.word_kernel import WordKernel, checked_words

_BLOCK_ROWS = 512


def cosine_kernel(
    words: Iterable[str],
    index: Mapping[str, int],
    vectors: sparse.csr_array,
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
    known = np.array([i for i, word in enumerate(wanted) if word in index], dtype=np.intp)
    rows = [index[wanted[i]] for i in known]
    unit = _unit_rows(vectors[rows, :])
    above = []
    for start in range(0, len(known), _BLOCK_ROWS):
        # only what stands right of the diagonal: its mirror image makes it symmetric
        block = sparse.coo_array(unit[start : start + _BLOCK_ROWS] @ unit.T)
        keep = (block.col > block.row + start) & (
            block.data >= max(threshold, np.finfo(float).tiny)
        )
        above.append((block.data[keep], known[block.row[keep] + start], known[block.col[keep]]))
    values, first, second = (np.concatenate(part) for part in zip(*above, strict=True))
    diagonal = np.arange(len(wanted))
    matrix = sparse.csr_array(
        (
            np.concatenate((values, values, np.ones(len(wanted)))).astype(np.float32),
            (
                np.concatenate((first, second, diagonal)),
                np.concatenate((second, first, diagonal)),
            ),
        ),
        shape=(len(wanted), len(wanted)),
    )
    is_dense = 2 * matrix.nnz > len(wanted) ** 2
    return WordKernel(wanted, matrix.toarray() if is_dense else matrix)


def _unit_rows(vectors: sparse.csr_array) -> sparse.csr_array:
    """Divide each row by its length; rows of zeros stay."""
    lengths = np.sqrt(vectors.power(2).sum(axis=1))
    scale = np.divide(1.0, lengths, out=np.zeros_like(lengths), where=lengths > 0)
    return sparse.csr_array(sparse.diags_array(scale) @ vectors)
