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
    known = [word for word in wanted if word in index]
    rows = np.array([index[word] for word in known], dtype=np.intp)
    unit = _unit_rows(vectors[rows, :])
    blocks = []
    for start in range(0, max(len(known), 1), _BLOCK_ROWS):
        block = unit[start : start + _BLOCK_ROWS] @ unit.T
        block.data[block.data < threshold] = 0.0
        # what stands right of the diagonal: its mirror image makes the whole symmetric
        blocks.append(sparse.triu(block, k=start + 1, format="csr"))
    above = sparse.vstack(blocks, format="csr")
    cosines = above + above.T + sparse.csr_array(sparse.identity(len(known)))
    kernel = WordKernel(known, cosines).over(wanted)
    if 2 * kernel.to_sparse().nnz > len(wanted) ** 2:
        return WordKernel(wanted, kernel.to_dense())
    return kernel


def _unit_rows(vectors: sparse.csr_array) -> sparse.csr_array:
    """Divide each row by its length; rows of zeros stay."""
    lengths = np.sqrt(vectors.power(2).sum(axis=1))
    scale = np.divide(1.0, lengths, out=np.zeros_like(lengths), where=lengths > 0)
    return sparse.csr_array(vectors.multiply(scale[:, None]))
