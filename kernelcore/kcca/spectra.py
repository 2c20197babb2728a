"""The two ways of factorising a centred Gram matrix, and where each is cut."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.linalg import solve_triangular

from kernelcore._validation import Array
from kernelcore.kcca.decompositions import eigh, thin_svd
from kernelcore.kcca.gram_schmidt import orthogonalize
from kernelcore.kcca.rounding import feature_rounding, gram_rounding
from kernelcore.kernels.gram import GramCenterer


class WholeSpectrum(NamedTuple):
    """An eigen-decomposition before a tolerance cuts it.

    Attributes
    ----------
    vectors : ndarray of shape (n_training, n_vectors)
        Eigenvectors of the centred kernel: all n_training - 1, or `max_rank` of them.
    eigenvalues : ndarray of shape (n_training - 1,)
        All of them, descending.
    """

    vectors: npt.NDArray[Any]
    eigenvalues: npt.NDArray[Any]


class Parts(NamedTuple):
    """What `KernelBasis` keeps of a decomposition."""

    vectors: Array
    eigenvalues: Array
    columns: npt.NDArray[np.intp]
    expansion: Array
    rounding: float
    whole: WholeSpectrum | None


def by_gram_schmidt(
    K: Array, centerer: GramCenterer, tolerance: float, max_rank: int | None, n_threads: int
) -> Parts:
    """Factorise by pivots, and those features by a thin singular value decomposition."""
    result = orthogonalize(K, tolerance, max_rank, centerer, n_threads)
    if not result.rank:
        none = np.empty(0, K.dtype)
        return Parts(result.features, none, result.pivots, result.features, 0.0, None)
    vectors, lengths, rotation = thin_svd(result.features)
    # A row of kernel values k has the features phi = L^-1 k at the pivots, R = U S V' and
    # hence the coordinates k_c U = phi R' U = phi V S.
    triangle = result.features[result.pivots]
    expansion = solve_triangular(triangle, rotation.T * lengths, lower=True, trans="T")
    rounding = feature_rounding(lengths, np.zeros(1), len(K))
    return Parts(vectors, lengths**2, result.pivots, expansion, rounding, None)


def by_eigenvectors(
    K: Array, centerer: GramCenterer, tolerance: float, max_rank: int | None, keep_all: bool
) -> Parts:
    """Factorise by eigenvectors; `keep_all` holds those that the tolerance leaves out."""
    n = len(K)
    centred = centerer.centred(K)
    # The constant vector belongs to the eigenvalue 0. Where others do too, the solver mixes
    # them; moved below all others, it comes out alone and last, and is left out.
    centred -= 2.0 * np.linalg.norm(centred) / n
    eigenvalues, vectors = (part[..., : n - 1] for part in eigh(centred))
    rank = kept_rank(eigenvalues, tolerance, max_rank)
    most = rank
    if keep_all:
        most = n - 1 if max_rank is None else min(max_rank, n - 1)
    held = np.ascontiguousarray(vectors[:, :most])
    kept = held if rank == most else held[:, :rank]
    return Parts(
        kept,
        eigenvalues[:rank],
        np.arange(n),
        kept,
        gram_rounding(K, eigenvalues),
        None if rank == most else WholeSpectrum(held, eigenvalues),
    )


def kept_rank(eigenvalues: Array, tolerance: float, max_rank: int | None) -> int:
    """Count the first eigenvalues that leave no more than the tolerance."""
    positive = np.maximum(eigenvalues, 0.0, dtype=np.float64)
    left_out = positive.sum() - np.cumsum(positive)
    rank = len(eigenvalues)
    if tolerance > 0.0:
        rank = min(rank, np.count_nonzero(left_out > tolerance * positive.sum()) + 1)
    return rank if max_rank is None else min(rank, max_rank)


def constant_diagonal(K: Array) -> float | None:
    """Return the value of the diagonal if it is one value up to rounding."""
    diagonal = K.diagonal()
    if not diagonal.size:
        return None
    value = float(diagonal.mean(dtype=np.float64))
    slack = 10 * float(np.finfo(K.dtype).eps) * abs(value)
    return value if float(np.abs(diagonal - value).max()) <= slack else None
