"""Combination of word kernels, and a test of positive semi-definiteness."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import Any, Literal

import numpy as np
from scipy import linalg, sparse
from scipy.sparse.linalg import eigsh

from kernelcore._check import check_choice, check_real
from kernelcore.lexical.word_kernel import WordKernel

_LARGEST_DENSE = 4000


@dataclass(frozen=True)
class Definiteness:
    """Whether a word kernel is positive semi-definite.

    Attributes
    ----------
    smallest_eigenvalue : float
    tolerance : float
        Rounding error that the eigenvalue may have: float32's eps times the number of
        words times the largest row sum, which bounds the largest eigenvalue.
    """

    smallest_eigenvalue: float
    tolerance: float

    @property
    def is_positive_semidefinite(self) -> bool:
        """Whether no eigenvalue is negative beyond rounding."""
        return self.smallest_eigenvalue >= -self.tolerance

    def __str__(self) -> str:
        verdict = "" if self.is_positive_semidefinite else "not "
        return (
            f"{verdict}positive semi-definite: smallest eigenvalue "
            f"{self.smallest_eigenvalue:.3g} (tolerance {self.tolerance:.1g})"
        )


def combine(
    *kernels: WordKernel,
    how: Literal["max", "mean"] = "max",
    threshold: float = 0.0,
    repair: bool = False,
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
    repair : bool, default False
        Replace the result by the nearest positive semi-definite matrix, scaled back to a
        unit diagonal.

    Returns
    -------
    WordKernel
        Sparse if all kernels are sparse and nothing is repaired.

    Raises
    ------
    TypeError
        If a kernel is no WordKernel.
    ValueError
        If there is none, or they are not over the same words.

    See Also
    --------
    definiteness : Tells whether the result is positive semi-definite.

    Notes
    -----
    The mean of positive semi-definite kernels is one; the maximum and the threshold may
    spoil it. `repair` sets negative eigenvalues to zero, which gives the nearest positive
    semi-definite matrix in the Frobenius norm [1]_, in O(n_words^3) time.

    References
    ----------
    .. [1] N. J. Higham, "Computing a nearest symmetric positive semidefinite matrix",
       Linear Algebra and its Applications 103, 1988.

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
    words = _common_words(kernels)
    matrices: list[Any] = [kernel.matrix for kernel in kernels]
    if not all(map(sparse.issparse, matrices)):
        matrices = [kernel.to_dense() for kernel in kernels]
    if how == "mean":
        matrix = reduce(lambda a, b: a + b, matrices) / np.float32(len(matrices))
    elif sparse.issparse(matrices[0]):
        matrix = reduce(lambda a, b: a.maximum(b), matrices)
    else:
        matrix = reduce(np.maximum, matrices)
    kernel = WordKernel(words, _without_small(matrix, threshold))
    return WordKernel(words, _nearest_psd(kernel.to_dense())) if repair else kernel


def definiteness(kernel: WordKernel) -> Definiteness:
    """Tell whether a word kernel is positive semi-definite.

    Parameters
    ----------
    kernel : WordKernel

    Returns
    -------
    Definiteness
        With the smallest eigenvalue, computed in float64. Takes O(n_words^3) time for up to
        4,000 words; beyond that the Lanczos method finds that eigenvalue alone.

    Examples
    --------
    >>> from kernelcore.lexical import WordKernel, definiteness
    >>> chain = [[1, 0.9, 0], [0.9, 1, 0.9], [0, 0.9, 1]]
    >>> print(definiteness(WordKernel(["a", "b", "c"], chain)))
    not positive semi-definite: smallest eigenvalue -0.273 (tolerance 1e-06)
    """
    if len(kernel) == 0:
        raise ValueError("kernel must have words, got none")
    if len(kernel) <= _LARGEST_DENSE:
        dense = kernel.to_dense().astype(np.float64)
        smallest = linalg.eigvalsh(dense, subset_by_index=[0, 0])[0]
    else:
        matrix = kernel.matrix.astype(np.float64)
        start = np.ones(len(kernel))
        smallest = eigsh(matrix, k=1, which="SA", v0=start, return_eigenvectors=False)[0]
    magnitudes: Any = abs(kernel.matrix)
    largest = float(magnitudes.sum(axis=1).max())
    return Definiteness(
        smallest_eigenvalue=float(smallest),
        tolerance=float(np.finfo(np.float32).eps) * len(kernel) * largest,
    )


def _common_words(kernels: tuple[WordKernel, ...]) -> tuple[str, ...]:
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
    return kernels[0].words


def _without_small(matrix: Any, threshold: float) -> Any:
    result: Any = matrix.copy()
    values = result.data if sparse.issparse(matrix) else result
    values[values < threshold] = 0.0
    return result


def _nearest_psd(matrix: Any) -> Any:
    values, vectors = linalg.eigh(matrix.astype(np.float64))
    nearest = (vectors * np.maximum(values, 0.0)) @ vectors.T
    scale = 1.0 / np.sqrt(nearest.diagonal())
    return nearest * scale[:, None] * scale[None, :]
