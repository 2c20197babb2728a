"""Operations on Gram matrices: centre, normalise, raise to a power, add a ridge, average.

Rows are the samples asked about, columns the samples they are compared with. Every function
returns a new matrix.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from kernelcore._check import (
    Array,
    as_list,
    as_real_array,
    check_finite,
    check_non_negative,
    check_real,
    no_overflow,
    owned,
)
from kernelcore._estimator import Transformer, as_samples
from kernelcore.kernels.prepared import Prepared

LARGEST_EXPONENT = 1000.0
_CENTRE_RULE = "be small enough to be centred within its dtype"
_BLOCK_SIZE = 2**18  # elements worked on at once, so that temporaries stay in the cache


class GramCenterer(Transformer):
    r"""Centring of the kernel's feature vectors at the mean of the training samples.

    .. math::

        \tilde K_{ij} = K_{ij} - \frac1n \sum_{m} K_{im} - \frac1n \sum_{m} K^{tr}_{mj}
        + \frac1{n^2} \sum_{l,m} K^{tr}_{lm}

    The sums run over the n training samples, for new rows as for training rows: a new row
    is centred with the statistics of training.

    Attributes
    ----------
    column_means_ : ndarray of float64, shape (n_training,)
        Mean of each column of the training Gram matrix.
    grand_mean_ : float
        Mean of the whole training Gram matrix.
    n_features_in_ : int
        Number of training samples.

    Raises
    ------
    TypeError
        If a matrix does not hold real numbers.
    ValueError
        If the training matrix is not square or empty, a new one has another number of
        columns, or an element is NaN or infinite.

    Notes
    -----
    Means are taken in float64, the result has the dtype of the matrix. Passes scikit-learn's
    `check_estimator`, as a transformer of pairwise input: cross-validation takes the rows and
    the columns of a fold.

    Examples
    --------
    >>> from kernelcore.kernels import GramCenterer
    >>> GramCenterer().fit_transform([[4.0, 2.0], [2.0, 4.0]])
    array([[ 1., -1.],
           [-1.,  1.]])
    """

    column_means_: npt.NDArray[np.float64]
    grand_mean_: float

    def __sklearn_tags__(self) -> Any:
        """Tell scikit-learn that the columns are samples like the rows."""
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = True
        return tags

    def fit(self, K: npt.ArrayLike, y: Any = None) -> GramCenterer:
        """Take the means of the training Gram matrix `K` of shape (n_training, n_training)."""
        matrix = check_square("K", as_samples("K", K))
        with no_overflow("K", _CENTRE_RULE):
            fitted = self.from_means(matrix.mean(axis=0, dtype=np.float64))
        self.column_means_, self.grand_mean_ = fitted.column_means_, fitted.grand_mean_
        self._take_columns(matrix)
        return self

    @classmethod
    def from_means(cls, column_means: npt.ArrayLike) -> GramCenterer:
        """Return a centerer fitted to a training Gram matrix with these column means."""
        means = owned(as_real_array("column_means", column_means, ndim=1))
        with np.errstate(over="ignore", invalid="ignore"):
            mean = float(means.sum() / means.dtype.type(means.size))
        if not np.isfinite(mean):
            raise ValueError(f"column_means must be finite and have a finite mean, got {mean}")
        centerer = cls()
        centerer.column_means_, centerer.grand_mean_ = means, mean
        centerer.n_features_in_ = len(means)
        return centerer

    def transform(self, K: npt.ArrayLike) -> npt.NDArray[Any]:
        """Centre rows of kernel values against the training samples.

        Parameters
        ----------
        K : array_like of shape (n_samples, n_training)
            Kernel of new or training samples with the training samples.

        Returns
        -------
        ndarray of shape (n_samples, n_training)
        """
        self._check_fitted("column_means_")
        matrix = as_samples("K", K)
        self._check_columns("K", matrix, "one column per training sample")
        with no_overflow("K", _CENTRE_RULE):
            row_means = matrix.mean(axis=1, dtype=np.float64) - self.grand_mean_
            result: Array = matrix - self.column_means_.astype(matrix.dtype)
            result -= row_means.astype(matrix.dtype)[:, np.newaxis]
        return result

    def fit_transform(self, K: npt.ArrayLike, y: Any = None) -> npt.NDArray[Any]:
        """Take the means of `K` and centre it."""
        return self.fit(K).transform(K)


def normalize(
    K: npt.ArrayLike,
    diagonal_X: npt.ArrayLike | None = None,
    diagonal_Y: npt.ArrayLike | None = None,
) -> npt.NDArray[Any]:
    r"""Kernel of the samples scaled to length one in feature space.

    .. math:: \hat K_{ij} = \frac{K(x_i, y_j)}{\sqrt{K(x_i, x_i) \, K(y_j, y_j)}}

    Parameters
    ----------
    K : array_like of shape (n_samples_X, n_samples_Y)
        Gram matrix.
    diagonal_X : array_like of shape (n_samples_X,), optional
        K(x, x) of each row. The diagonals are taken from `K` if neither is given, and `K`
        must be square then.
    diagonal_Y : array_like of shape (n_samples_Y,), optional
        K(y, y) of each column.

    Returns
    -------
    ndarray of shape (n_samples_X, n_samples_Y)
        float32 for float32 input, float64 otherwise. A sample of length 0 (an image without
        words) has similarity 0 with everything, itself included.

    Raises
    ------
    TypeError
        If an input does not hold real numbers.
    ValueError
        If only one diagonal is given, a length does not fit, an element is NaN or infinite
        or a diagonal negative.

    Examples
    --------
    >>> from kernelcore.kernels import normalize
    >>> normalize([[4.0, 3.0], [3.0, 9.0]])
    array([[1. , 0.5],
           [0.5, 1. ]])
    """
    if (diagonal_X is None) != (diagonal_Y is None):
        raise ValueError("diagonal_X and diagonal_Y must be given both or neither")
    matrix = as_gram("K", K, square=diagonal_X is None)
    if diagonal_X is None:
        rows = columns = check_non_negative("the diagonal of K", matrix.diagonal().copy())
    else:
        rows = as_diagonal("diagonal_X", diagonal_X, matrix.shape[0])
        columns = as_diagonal("diagonal_Y", diagonal_Y, matrix.shape[1])
    if matrix[rows == 0].any() or matrix[:, columns == 0].any():
        raise ValueError("K must be 0 wherever the sample of its row or column has length 0")
    result = np.empty_like(matrix)
    row_parts, row_powers = split_squares(rows)
    column_parts, column_powers = split_squares(columns)
    for block in _row_blocks(matrix.shape):
        # One root of the product, not two roots: the diagonal becomes exactly 1.
        scale = np.sqrt(row_parts[block, np.newaxis] * column_parts)
        scale *= row_powers[block, np.newaxis]
        scale *= column_powers
        with no_overflow("K", "be small enough beside its diagonal"):
            np.divide(matrix[block], scale, out=result[block], casting="same_kind")
    return result


def power(K: npt.ArrayLike, exponent: float) -> npt.NDArray[Any]:
    """Elementwise power of a Gram matrix, which is a kernel for integer exponents.

    Parameters
    ----------
    K : array_like of shape (n_samples_X, n_samples_Y)
        Gram matrix; without negative elements if `exponent` is not a whole number.
    exponent : float
        Positive exponent p.

    Returns
    -------
    ndarray of shape (n_samples_X, n_samples_Y)
        float32 for float32 input, float64 otherwise.

    Raises
    ------
    TypeError
        If `K` does not hold real numbers or `exponent` is not a real number.
    ValueError
        If `exponent` is not positive or above 1,000, an element is NaN or infinite, or negative
        under an exponent that is not whole.

    Notes
    -----
    Whole exponents multiply, which is positive semi-definite by Schur's product theorem and
    rounds alike on every processor.

    Examples
    --------
    >>> from kernelcore.kernels import power
    >>> power([[1.0, 0.5], [0.5, 1.0]], 2)
    array([[1.  , 0.25],
           [0.25, 1.  ]])
    """
    p = check_real("exponent", exponent, minimum=0.0, maximum=LARGEST_EXPONENT, exclusive=True)
    matrix = as_gram("K", K)
    if not p.is_integer():
        check_non_negative("K", matrix)
    result = np.empty_like(matrix)
    for block in _row_blocks(matrix.shape):
        base = matrix[block]
        with no_overflow("exponent", "be small enough for powers within the dtype of K"):
            if p.is_integer():
                product = base.copy()
                for _ in range(int(p) - 1):
                    product *= base
                result[block] = product
            else:
                np.power(base, p, out=result[block])
    return result


def ridge(K: npt.ArrayLike, factor: float) -> npt.NDArray[Any]:
    """Gram matrix of the training samples with its diagonal multiplied by `factor`.

    Parameters
    ----------
    K : array_like of shape (n_samples, n_samples)
        Training Gram matrix.
    factor : float
        Factor d >= 1 of the diagonal; 1 changes nothing.

    Returns
    -------
    ndarray of shape (n_samples, n_samples)
        float32 for float32 input, float64 otherwise.

    Raises
    ------
    TypeError
        If `K` does not hold real numbers or `factor` is not a real number.
    ValueError
        If `K` is not square, an element is NaN or infinite, or `factor` is below 1.

    Examples
    --------
    >>> from kernelcore.kernels import ridge
    >>> ridge([[1.0, 0.5], [0.5, 1.0]], 3)
    array([[3. , 0.5],
           [0.5, 3. ]])
    """
    d = check_real("factor", factor, minimum=1.0)
    matrix = as_gram("K", K, square=True)
    result = matrix.copy()
    with no_overflow("factor", "leave the diagonal of K within its dtype"):
        np.einsum("ii->i", result)[...] *= d
    return result


def average(
    matrices: Sequence[npt.ArrayLike],
    *,
    weights: npt.ArrayLike | None = None,
) -> npt.NDArray[Any]:
    r"""Weighted mean of Gram matrices of the same samples.

    .. math:: K_{ij} = \frac{\sum_m w_m K^{(m)}_{ij}}{\sum_m w_m}

    Parameters
    ----------
    matrices : sequence of array_like of shape (n_samples_X, n_samples_Y)
        Gram matrices, one per kernel.
    weights : array_like of shape (n_matrices,), optional
        Non-negative weights; the default is equal ones.

    Returns
    -------
    ndarray of shape (n_samples_X, n_samples_Y)
        float32 if every matrix is float32, float64 otherwise.

    Raises
    ------
    TypeError
        If an input does not hold real numbers.
    ValueError
        If there is no matrix, shapes differ, an element is NaN or infinite, or the weights
        are negative, all zero or not one per matrix.

    Examples
    --------
    >>> from kernelcore.kernels import average
    >>> average([[[1.0, 0.0]], [[1.0, 1.0]]], weights=[3, 1])
    array([[1.  , 0.25]])
    """
    given = enumerate(as_list("matrices", matrices))
    grams = [as_gram(f"matrices[{m}]", matrix) for m, matrix in given]
    if not grams:
        raise ValueError("matrices must hold at least one Gram matrix, got none")
    for m, gram in enumerate(grams):
        if gram.shape != grams[0].shape:
            raise ValueError(
                f"matrices must have one shape, got {grams[0].shape} and "
                f"{gram.shape} for matrices[{m}]"
            )
    shares = as_shares(weights, len(grams))
    grams[0] = grams[0].astype(np.result_type(*grams), copy=False)
    result = np.empty_like(grams[0])
    for block in _row_blocks(result.shape):
        with no_overflow("matrices", "be small enough for their mean to stay within its dtype"):
            mean = shares[0] * grams[0][block]
            for share, gram in zip(shares[1:], grams[1:], strict=True):
                mean += share * gram[block]
        result[block] = mean
    return result


def as_gram(
    name: str, value: npt.ArrayLike | Prepared, *, square: bool = False, n_threads: int = 1
) -> Array:
    """Return `value` as a finite float matrix, for the functions that take Gram matrices."""
    samples = value.samples if isinstance(value, Prepared) else None
    if isinstance(samples, np.ndarray) and samples.dtype.kind == "f":
        matrix: Array = samples
    else:
        matrix = check_finite(name, as_real_array(name, value, ndim=2), n_threads=n_threads)
    return check_square(name, matrix) if square else matrix


def check_square(name: str, matrix: Array) -> Array:
    """Return `matrix`; raise unless it is square and not empty."""
    if matrix.shape[0] != matrix.shape[1] or not matrix.size:
        raise ValueError(f"{name} must be square and not empty, got shape {matrix.shape}")
    return matrix


def _row_blocks(shape: tuple[int, ...]) -> Iterator[slice]:
    n_rows = max(1, _BLOCK_SIZE // max(1, shape[1]))
    return (slice(start, start + n_rows) for start in range(0, shape[0], n_rows))


def as_diagonal(name: str, value: Any, length: int) -> Array:
    """Return the checked diagonal of a kernel."""
    diagonal = check_non_negative(name, as_real_array(name, value, ndim=1))
    if len(diagonal) != length:
        raise ValueError(f"{name} must have length {length}, got {len(diagonal)}")
    return diagonal


def split_squares(squares: Array) -> tuple[Array, Array]:
    """Squares as ``part * power**2`` with parts in [1/4, 1), whose products stay in range.

    Zeros become ones, which leaves the zeros of such a sample in the Gram matrix as they are.
    """
    lengths = np.where(squares > 0, squares.astype(np.float64), 1.0)
    halves = (np.frexp(lengths)[1] + 1) // 2
    return np.ldexp(lengths, -2 * halves), np.ldexp(1.0, halves)


def as_shares(weights: npt.ArrayLike | None, n_matrices: int) -> list[float]:
    """Return weights of an average that sum to 1; equal ones by default."""
    if weights is None:
        return [1.0 / n_matrices] * n_matrices
    values = check_non_negative("weights", as_real_array("weights", weights, ndim=1))
    if len(values) != n_matrices:
        raise ValueError(
            f"weights must have one entry per matrix ({n_matrices}), got {len(values)}"
        )
    if not values.any():
        raise ValueError("weights must not all be zero")
    # A power of two changes no share, and the sum stays in range.
    values = np.ldexp(values.astype(np.float64), -math.frexp(values.max())[1])
    total = math.fsum(values)
    return [float(value) / total for value in values]
