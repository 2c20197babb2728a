"""Partial Gram-Schmidt: low-rank features of a kernel from some of its columns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kernelcore._check import (
    Array,
    as_real_array,
    check_callable,
    check_finite,
    check_indices,
    check_integer,
    check_non_negative,
    check_real,
    owned,
)
from kernelcore._ragged import n_items, take
from kernelcore._threads import (
    check_stopped,
    in_threads,
    one_blas_thread,
    resolve_n_threads,
    stop_flag,
)
from kernelcore.kcca.decompositions import check_size, residual_rounding
from kernelcore.kernels.gram import GramCenterer, as_gram, as_symmetric_gram
from kernelcore.kernels.prepared import Prepared, as_items

_DIAGONAL_BLOCK = 64  # rows whose kernel with one another is computed to read its diagonal
_LARGEST_BLOCK = 64  # kernel columns taken at once
# Samples whose share of a product is computed at once: a multiple of the widths that BLAS goes
# in, so that every element has the bits that it has in the whole product.
_PANEL = 3 * 2**12
_STRIP = 96  # columns of a triangle that are solved at once
_SOLVED = 1024  # samples whose features are solved at once


class KernelColumns:
    """Kernel matrix on demand: its diagonal, and a function that computes columns.

    Parameters
    ----------
    columns : callable
        ``columns(indices)`` returns the kernel of all training samples with those at
        `indices`, an array of intp, as an array of shape (n_training, len(indices)).
    diagonal : array_like of shape (n_training,)
        Kernel of every training sample with itself. The matrix is float32 if this is, and
        float64 otherwise.

    Raises
    ------
    TypeError
        If `columns` is not callable or `diagonal` does not hold real numbers.
    ValueError
        If `diagonal` is not 1-D, is empty, or an element is negative, NaN or infinite.

    See Also
    --------
    partial_gram_schmidt : Takes one in place of a Gram matrix.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelcore.kcca import KernelColumns, partial_gram_schmidt
    >>> X = np.array([[2.0], [1.0], [3.0]])
    >>> K = KernelColumns(lambda indices: X @ X[indices].T, (X**2).sum(axis=1))
    >>> partial_gram_schmidt(K, max_rank=2).features
    array([[2.],
           [1.],
           [3.]])
    """

    def __init__(
        self, columns: Callable[[npt.NDArray[np.intp]], npt.ArrayLike], diagonal: npt.ArrayLike
    ) -> None:
        own = owned(as_real_array("diagonal", diagonal, ndim=1))
        self.diagonal = check_non_negative("diagonal", own)
        if not self.diagonal.size:
            raise ValueError("diagonal must have at least one element, got none")
        self._columns = check_callable("columns", columns)

    @classmethod
    def of(cls, kernel: Callable[..., npt.ArrayLike], items: Any) -> KernelColumns:
        """Return the kernel matrix of items, on demand.

        Parameters
        ----------
        kernel : callable
            ``kernel(X, Y)`` returns the matrix of kernel values of the items X, one row each,
            with the items Y: `kernelcore.kernels.histogram_intersection`, say.
        items : array_like, SpatialHistograms, EncodedCaptions, sparse matrix or Prepared
            The training samples: indexed by an array of positions, or with a method `select`.
            Pass the output of `kernelcore.kernels.prepare` to kernels of this package: they
            check every call's samples otherwise. Do not change `items` while the result is in
            use.

        Returns
        -------
        KernelColumns

        Examples
        --------
        >>> from kernelcore.kcca import KernelColumns
        >>> from kernelcore.kernels import histogram_intersection
        >>> K = KernelColumns.of(histogram_intersection, [[3, 1, 0], [1, 1, 2]])
        >>> K.diagonal, K.columns([1])
        (array([4., 4.]), array([[2.],
               [4.]]))
        """
        held = as_items(items, "items")
        n = n_items(held)
        diagonals = []
        for k in range(0, n, _DIAGONAL_BLOCK):
            part = take(held, np.arange(k, min(k + _DIAGONAL_BLOCK, n)))
            diagonals.append(as_gram("kernel(X, Y)", kernel(part, part)).diagonal())
        diagonal: npt.ArrayLike = np.concatenate(diagonals) if n else []
        return cls(lambda indices: kernel(held, take(held, indices)), diagonal)

    def __len__(self) -> int:
        """Return the number of training samples."""
        return len(self.diagonal)

    def columns(self, indices: npt.ArrayLike) -> npt.NDArray[Any]:
        """Kernel of all training samples with those at `indices`, one a column."""
        where = check_indices("indices", indices, len(self))
        values = check_finite(
            "columns(indices)", as_real_array("columns(indices)", self._columns(where), ndim=2)
        )
        if values.shape != (len(self), len(where)):
            raise ValueError(
                f"columns(indices) must have shape {(len(self), len(where))} for "
                f"{len(where)} indices, got {values.shape}"
            )
        return values.astype(self.diagonal.dtype, copy=False)


class GramSchmidtFeatures(NamedTuple):
    """Features R with K ~ R R'.

    Attributes
    ----------
    features : ndarray of shape (n_training, rank)
        R. The rows at `pivots`, in that order, are a lower triangular matrix.
    pivots : ndarray of intp, shape (rank,)
        Training rows whose feature vectors were orthogonalised, in order.
    residual : ndarray of float64, shape (n_training,)
        Diagonal of K - R R': squared distance of each row from the span of the pivots.
    """

    features: npt.NDArray[Any]
    pivots: npt.NDArray[np.intp]
    residual: npt.NDArray[np.float64]


def partial_gram_schmidt(
    K: npt.ArrayLike | Prepared | KernelColumns,
    *,
    tolerance: float = 1e-6,
    max_rank: int | None = None,
    n_threads: int | None = None,
) -> GramSchmidtFeatures:
    r"""Low-rank features of a positive semi-definite kernel.

    .. math:: K \approx R R^\top, \qquad R \in \mathbb{R}^{n \times m}

    The feature vectors of the training rows are orthogonalised one after the other, always
    the one farthest from the span of those before, until little remains: the pivoted
    Cholesky decomposition, stopped early.

    Parameters
    ----------
    K : array_like of shape (n_training, n_training), Prepared, or KernelColumns
        Symmetric Gram matrix; or the output of `kernelcore.kernels.prepare`, which is not
        checked again; or a matrix whose columns are computed on demand.
    tolerance : float, default 1e-6
        Precision :math:`\eta`, relative: it stops once
        :math:`\mathrm{tr}(K - R R^\top) \le \eta \, \mathrm{tr}(K)`.
    max_rank : int, optional
        Largest number m of features; the default is n_training for a matrix. Columns on
        demand need one.
    n_threads : int, optional
        Threads for the products with earlier features; the default is every core this process
        may run on. The result is the same, bit for bit, for every value.

    Returns
    -------
    GramSchmidtFeatures

    Raises
    ------
    TypeError
        If `K` does not hold real numbers.
    ValueError
        If `K` is not square or not symmetric, an element is NaN or infinite, columns have the
        wrong shape, or an option is missing or out of range.

    See Also
    --------
    KernelColumns : Kernels whose matrix would be too large.
    LandmarkFeatures : The same as an estimator over items.
    kernelcore.reference.matching.partial_gram_schmidt : The definition in NumPy.

    Notes
    -----
    float32 stays float32; the residual is kept in float64 in both cases. After r features it
    also stops where the largest residual is no more than rounding, ``(r + 10) eps max K_ii``
    before centring, and so finds the numerical rank for ``tolerance=0``. Each feature adds the
    rounding of one square to a residual, for any number of samples. Of equal residuals the
    first row is taken. A kernel with negative eigenvalues is approximated by its positive part.

    Columns are read in blocks, for the rows with the largest residuals, so that one matrix
    product subtracts their part in earlier features. The pivots equal those of the plain
    algorithm: if a pivot lies outside the block, the next block begins, at most twice as wide
    as the number of pivots in this one. So at most about 2 m columns of `K` are read. Takes
    O(n m^2) time and, beyond the result, O(n) memory for each of at most 64 columns. BLAS runs
    on one thread within pieces of 12,288 samples, so the result does not depend on its number
    of threads. Ctrl-C stops the call between two columns or pieces, unless a function that
    computes columns on demand ignores it.

    References
    ----------
    .. [1] D. R. Hardoon, S. Szedmak and J. Shawe-Taylor, "Canonical correlation analysis:
       an overview with application to learning methods", Neural Computation 16, 2004.
    .. [2] F. R. Bach and M. I. Jordan, "Kernel independent component analysis", Journal of
       Machine Learning Research 3, 2002.

    Examples
    --------
    >>> from kernelcore.kcca import partial_gram_schmidt
    >>> result = partial_gram_schmidt([[4.0, 2.0], [2.0, 1.0]])
    >>> result.features
    array([[2.],
           [1.]])
    >>> result.pivots
    array([0])
    """
    eta = check_real("tolerance", tolerance, minimum=0.0, maximum=1.0)
    threads = resolve_n_threads(n_threads)
    if max_rank is not None:
        check_integer("max_rank", max_rank, minimum=1)
    elif isinstance(K, KernelColumns):
        raise ValueError("max_rank must be given for columns on demand, got None")
    matrix = K if isinstance(K, KernelColumns) else as_symmetric_gram("K", K, n_threads=threads)
    return orthogonalize(matrix, eta, max_rank, None, threads)


def orthogonalize(
    K: Array | KernelColumns,
    tolerance: float,
    max_rank: int | None,
    centerer: GramCenterer | None,
    n_threads: int,
) -> GramSchmidtFeatures:
    """Compute `partial_gram_schmidt` of checked input, centred if there is a centerer."""
    from kernelcore.kcca import _partial_gram_schmidt

    n = len(K)
    most = n if max_rank is None else min(max_rank, n)
    diagonal = K.diagonal if isinstance(K, KernelColumns) else K.diagonal()
    check_size("the diagonal of K", diagonal, float(np.finfo(diagonal.dtype).max) / (4.0 * n))
    if centerer is None:
        means, residual = None, np.maximum(diagonal, 0.0, dtype=np.float64)
    else:  # half the grand mean comes back with either of two means
        means = centerer.column_means_ - centerer.grand_mean_ / 2.0
        residual = np.maximum(diagonal - 2.0 * means, 0.0, dtype=np.float64)
    transposed = np.empty((most, n), dtype=diagonal.dtype)
    pivots = np.empty(most, dtype=np.intp)
    target = tolerance * float(residual.sum())
    unit, slack = residual_rounding(diagonal, centred=centerer is not None)
    stop = stop_flag().view(np.uint8)
    rank, width = 0, 1
    with one_blas_thread():
        while rank < most:
            if _partial_gram_schmidt.next_pivot(residual, rank, target, unit, slack) < 0:
                break
            check_stopped()
            candidates = _largest(residual, min(width, most - rank))
            block = _columns(K, candidates, means)
            _subtract_product(block, transposed[:rank], candidates, n_threads)
            before = rank
            rank = _partial_gram_schmidt.orthogonalize_block(
                block, candidates, transposed, pivots, rank, residual, target, unit, slack, stop
            )
            width = min(2 * (rank - before), _LARGEST_BLOCK)
        check_stopped()
    return GramSchmidtFeatures(transposed[:rank].T, pivots[:rank], residual)


def _largest(residual: npt.NDArray[np.float64], count: int) -> npt.NDArray[np.intp]:
    """Places of the largest residuals, descending; of equal ones the first."""
    least = np.partition(residual, len(residual) - count)[len(residual) - count]
    places = np.flatnonzero(residual >= least)
    return places[np.argsort(-residual[places], kind="stable")[:count]]


def _columns(
    K: Array | KernelColumns,
    indices: npt.NDArray[np.intp],
    means: npt.NDArray[np.float64] | None,
) -> Array:
    """Return columns of the kernel as rows, minus the means if there are any."""
    columns = K.columns(indices).T if isinstance(K, KernelColumns) else K[indices]
    if means is None:
        return np.array(columns, order="C")
    block = np.empty(columns.shape, dtype=columns.dtype)
    for row, own, mean in zip(block, columns, means[indices], strict=True):
        np.subtract(own, mean + means, out=row, casting="same_kind")
    return block


def _subtract_product(
    block: Array, features: Array, candidates: npt.NDArray[np.intp], n_threads: int
) -> None:
    """Subtract the block's part in earlier features, by pieces of the samples."""
    weights = features[:, candidates].T
    n = block.shape[1]
    n_pieces = max(1, n // _PANEL)  # none is narrower: BLAS may sum small products otherwise

    def subtract(k: int) -> None:
        check_stopped()
        piece = slice(k * _PANEL, n if k == n_pieces - 1 else (k + 1) * _PANEL)
        block[:, piece] -= weights @ features[:, piece]

    if len(features):
        _in_pieces(subtract, range(n_pieces), n_threads)


def solve_features(triangle: Array, values: Array, n_threads: int) -> None:
    """Replace kernel values with the pivots, whose own are in `triangle`, by features."""
    from scipy.linalg import solve_triangular

    # The triangle is cut into strips: most of the work becomes products, which BLAS does faster
    # than it solves, and only squares on the diagonal are inverted.
    strips = [slice(k, k + _STRIP) for k in range(0, len(triangle), _STRIP)]
    with one_blas_thread():  # or SciPy's BLAS has a second thread, which waits on a core
        inverses = [
            solve_triangular(square, np.eye(len(square), dtype=square.dtype), lower=True)
            for square in (triangle[strip, strip] for strip in strips)
        ]

    def solve(start: int) -> None:
        check_stopped()
        rows = slice(start, start + _SOLVED)
        found = values[rows]
        for strip, inverse in zip(strips, inverses, strict=True):
            before = found[:, : strip.start]
            left = found[:, strip] - before @ triangle[strip, : strip.start].T
            np.matmul(left, inverse.T, out=found[:, strip])

    _in_pieces(solve, range(0, len(values), _SOLVED), n_threads)


def _in_pieces(work: Callable[[int], None], pieces: range, n_threads: int) -> None:
    """Call `work` for each piece, where BLAS runs on one thread."""
    if min(n_threads, len(pieces)) > 1:
        in_threads(work, pieces, n_threads, setting=one_blas_thread)
        return
    with one_blas_thread():
        for piece in pieces:
            work(piece)
