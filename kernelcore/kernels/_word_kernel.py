"""Checks of word kernels, and their compressed form for the compiled core."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from kernelcore._validation import Array, as_array, as_csr, as_real_array, check_finite

Csr: TypeAlias = tuple[npt.NDArray[np.int64], npt.NDArray[np.int32], npt.NDArray[np.float32]]
"""Row offsets, columns and values of a sparse matrix."""

# A sparse word kernel with a larger share of entries is faster as a dense one.
_DENSE_SHARE = 1 / 16
_LARGEST_DENSE = 2**25  # entries
_ASYMMETRY = 1e-6  # of the largest entry
_BLOCK_ROWS = 512
_SMALLEST = 2.0**-60  # similarities


def as_word_kernel(
    word_kernel: Any, n_words: int
) -> tuple[npt.NDArray[np.float32] | None, Csr | None, float]:
    """Return the word kernel, dense or as CSR arrays or neither, and its largest magnitude."""
    if word_kernel is None:
        return None, None, 1.0
    if hasattr(word_kernel, "words") and hasattr(word_kernel, "matrix"):  # a WordKernel
        word_kernel = word_kernel.matrix
    if not hasattr(word_kernel, "tocsr"):
        given = as_array("word_kernel", word_kernel, ndim=2)
        _check_shape(given.shape, n_words)
        dense = as_real_array("word_kernel", given, ndim=2)
        return _checked_dense(dense), None, _largest_similarity(dense)
    csr = as_csr("word_kernel", word_kernel)
    _check_shape(csr.shape, n_words)
    largest = _largest_similarity(csr.data)
    csr = csr.astype(np.float32, copy=False)
    if csr.nnz > _DENSE_SHARE * n_words**2 and n_words**2 <= _LARGEST_DENSE:
        return _checked_dense(csr.toarray(order="C")), None, largest
    _check_symmetric(float(abs(csr - csr.T).max()) if csr.nnz else 0.0, largest)
    parts = (csr.indptr.astype(np.int64), csr.indices.astype(np.int32), csr.data)
    return None, parts, largest


def _check_shape(shape: tuple[int, ...], n_words: int) -> None:
    if shape != (n_words, n_words):
        raise ValueError(
            f"word_kernel must have shape {(n_words, n_words)}, one row per word of the "
            f"vocabulary, got {shape}"
        )


def _checked_dense(matrix: Array) -> npt.NDArray[np.float32]:
    """Return a symmetric matrix as float32, compared with its transpose block by block."""
    largest = _largest_similarity(matrix)
    rows = (slice(start, start + _BLOCK_ROWS) for start in range(0, len(matrix), _BLOCK_ROWS))
    with np.errstate(over="ignore"):  # an infinite difference is one too
        blocks = (abs(matrix[block] - matrix.T[block]) for block in rows)
        difference = max((float(block.max()) for block in blocks), default=0.0)
    _check_symmetric(difference, largest)
    return matrix.astype(np.float32, copy=False)


def _largest_similarity(values: Array) -> float:
    check_finite("word_kernel", values)
    largest = max(float(values.max(initial=0.0)), -float(values.min(initial=0.0)))
    if largest > float(np.finfo(np.float32).max):
        raise ValueError(f"word_kernel must fit into float32, got a value of {largest:.3g}")
    if 0.0 < largest < _SMALLEST:
        raise ValueError(
            f"word_kernel must be 0 or reach {_SMALLEST:.3g}, of which float32 holds products, "
            f"got {largest:.3g} at most"
        )
    return largest


def _check_symmetric(difference: float, largest: float) -> None:
    if difference > _ASYMMETRY * largest:
        raise ValueError(
            f"word_kernel must be symmetric, got entries that differ by {difference:.3g}"
        )
