"""Weights of kernels by their centred alignment with a target kernel."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from kernelcore._check import Array, as_list, no_overflow
from kernelcore.kernels.gram import GramCenterer, as_gram

_BLOCK_SIZE = 2**20  # elements that are multiplied in float64 at a time


def centred_alignment_weights(
    matrices: Sequence[npt.ArrayLike], target: npt.ArrayLike
) -> npt.NDArray[np.float64]:
    r"""Weights of kernels whose weighted mean agrees best with a target kernel.

    The weights maximise the centred alignment, the cosine of centred Gram matrices [1]_:

    .. math::

        \max_{w \ge 0} \frac{\langle \sum_m w_m K^{(m)}_c, T_c \rangle_F}
        {\lVert \sum_m w_m K^{(m)}_c \rVert_F \, \lVert T_c \rVert_F}

    With :math:`M_{ml} = \langle K^{(m)}_c, K^{(l)}_c \rangle_F` and
    :math:`a_m = \langle K^{(m)}_c, T_c \rangle_F` they solve
    :math:`\min_{w \ge 0} w^\top M w - 2 w^\top a`, a non-negative least squares problem of as
    many unknowns as there are kernels.

    Parameters
    ----------
    matrices : sequence of array_like of shape (n_samples, n_samples)
        Training Gram matrices, one per kernel, not centred.
    target : array_like of shape (n_samples, n_samples)
        Gram matrix of the same samples: of their labels, or of another view.

    Returns
    -------
    ndarray of float64, shape (n_matrices,)
        Non-negative, with sum 1: the argument `weights` of `average`. A kernel that is
        constant has weight 0.

    Raises
    ------
    TypeError
        If an input does not hold real numbers.
    ValueError
        If there is no matrix, one is not square or not finite, shapes differ, or no kernel
        agrees with the target better than chance: no inner product with it is positive.

    Notes
    -----
    Takes O(m^2 n^2) time. Several weights may be equally good, for example of equal kernels.

    References
    ----------
    .. [1] C. Cortes, M. Mohri and A. Rostamizadeh, "Algorithms for learning kernels based on
       centered alignment", Journal of Machine Learning Research 13, 2012 (algorithm alignf).

    Examples
    --------
    >>> import numpy as np
    >>> from kernelcore.kernels import centred_alignment_weights
    >>> x, y = np.array([[0.0, 1.0, 2.0], [1.0, 0.0, 1.0]])
    >>> target = np.outer(x, x)
    >>> centred_alignment_weights([np.outer(x, x), np.outer(y, y)], target)
    array([1., 0.])
    """
    from scipy.optimize import nnls

    given = as_list("matrices", matrices)
    if not given:
        raise ValueError("matrices must hold at least one Gram matrix, got none")
    T = as_gram("target", target, square=True)
    grams = [as_gram(f"matrices[{m}]", K, square=True) for m, K in enumerate(given)]
    for m, K in enumerate(grams):
        if K.shape != T.shape:
            raise ValueError(
                f"matrices[{m}] must have the shape of target {T.shape}, got {K.shape}"
            )
    scaled = [*(_unit("matrices", K) for K in grams), _unit("target", T)]
    n = len(grams)
    products = np.eye(n + 1)
    for i in range(n + 1):
        for j in range(i):
            products[i, j] = products[j, i] = _product(scaled[i][0], scaled[j][0])
    lengths = np.array([length for _, length in scaled[:n]])
    M, a = products[:n, :n], np.where(lengths > 0, products[:n, n], 0.0)
    # M = R'R up to directions without length, so that the problem is min |R w - R^-T a|.
    values, vectors = np.linalg.eigh(M)
    kept = values > n * np.finfo(np.float64).eps * values[-1]
    R = np.sqrt(values[kept])[:, np.newaxis] * vectors[:, kept].T
    weights = nnls(R, (vectors[:, kept].T @ a) / np.sqrt(values[kept]))[0]
    weights = np.where(lengths > 0, weights / np.where(lengths > 0, lengths, 1.0), 0.0)
    if not weights.any():
        raise ValueError("matrices must hold a kernel that agrees with target, got none")
    found: npt.NDArray[np.float64] = weights / weights.sum()
    return found


def _unit(name: str, K: Array) -> tuple[Array, float]:
    """Centre a Gram matrix and scale it to length 1; also return its length."""
    largest = float(np.abs(K).max())
    if largest == 0.0:
        return K, 0.0
    small = K / largest
    centred = GramCenterer().fit_transform(small)
    length = np.sqrt(_product(centred, centred))
    if length <= 4 * len(K) * np.finfo(K.dtype).eps:  # a constant kernel, but for rounding
        return np.zeros_like(K), 0.0
    with no_overflow(name, "be small enough for its length to be a float64"):
        return centred / centred.dtype.type(length), float(np.float64(length) * largest)


def _product(A: Array, B: Array) -> float:
    """Sum of the products of elements, in float64."""
    n_rows = max(1, _BLOCK_SIZE // A.shape[1])
    return sum(
        float(np.einsum("ij,ij->", A[i : i + n_rows], B[i : i + n_rows], dtype=np.float64))
        for i in range(0, len(A), n_rows)
    )
