"""The part of kernel CCA that no setting changes: one factorisation for a whole grid."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from kernelcore._blas import one_blas_thread, one_blas_thread_each
from kernelcore._parallel import resolve_n_threads
from kernelcore._validation import Array, check_choice, check_integer, check_real
from kernelcore.kcca.decompositions import eigh, thin_svd
from kernelcore.kcca.gram_schmidt import as_symmetric_gram, orthogonalize
from kernelcore.kernels.gram import GramCenterer

Decomposition: TypeAlias = Literal["gram_schmidt", "eigen"]
Pair: TypeAlias = float | tuple[float, float]
"""One value for both views, or one for each: (x, y)."""


@dataclass(frozen=True, eq=False)
class KernelBasis:
    r"""Orthonormal basis of one view's centred training kernel.

    .. math:: H K H \approx U \Lambda U^\top

    Attributes
    ----------
    vectors : ndarray of shape (n_training, rank)
        U, with orthonormal columns that sum to zero.
    eigenvalues : ndarray of shape (rank,)
        Diagonal of :math:`\Lambda`, descending. A full eigen-decomposition keeps eigenvalues
        that are zero or negative too: a ridge may lift them.
    columns : ndarray of intp, shape (n_columns,)
        Training samples whose kernel values a new row is projected from: the pivots of
        partial Gram-Schmidt, or all.
    expansion : ndarray of shape (n_columns, rank)
        Turns a centred row of those kernel values into coordinates in U.
    centerer : GramCenterer
        Means of the training kernel.
    diagonal : float or None
        Value of the diagonal of the training kernel before centring if it is constant: then
        a ridge moves every eigenvalue alike.
    """

    vectors: npt.NDArray[Any]
    eigenvalues: npt.NDArray[Any]
    columns: npt.NDArray[np.intp]
    expansion: npt.NDArray[Any]
    centerer: GramCenterer
    diagonal: float | None

    def coordinates(self, K: npt.ArrayLike) -> npt.NDArray[Any]:
        """Product of the centred rows of kernel values with the basis.

        Parameters
        ----------
        K : array_like of shape (n_samples, n_training)
            Kernel of new or training samples with the training samples.

        Returns
        -------
        ndarray of shape (n_samples, rank)
            For the training kernel ``vectors * eigenvalues``, up to rounding.
        """
        return project(self.centerer, self.columns, self.expansion, K)

    def spectrum(self, ridge: float) -> npt.NDArray[Any]:
        """Positive eigenvalues once the kernel's diagonal is multiplied by `ridge`."""
        lifted = self.eigenvalues
        if ridge != 1.0:
            if self.diagonal is None:
                raise ValueError(
                    "ridge must be 1 unless the training kernel has a constant diagonal, "
                    f"got {ridge}"
                )
            lifted = lifted + lifted.dtype.type((ridge - 1.0) * self.diagonal)
        floor = len(self.vectors) * np.finfo(lifted.dtype).eps * lifted[:1].max(initial=0.0)
        positive: Array = lifted[lifted > floor]
        return positive


class Directions(NamedTuple):
    """Canonical directions of both views in the coordinates of their bases.

    Attributes
    ----------
    correlations : ndarray of shape (n_components,)
        Regularised canonical correlations, descending.
    x_weights : ndarray of shape (rank_x, n_components)
        Turns coordinates of the first view into its projections.
    y_weights : ndarray of shape (rank_y, n_components)
        The same for the second view.
    """

    correlations: npt.NDArray[Any]
    x_weights: npt.NDArray[Any]
    y_weights: npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class KCCAFactorization:
    """Both views' bases and their product, from which any setting's solution is one small SVD.

    Attributes
    ----------
    x, y : KernelBasis
        Bases of the first and the second view over the same training samples.

    See Also
    --------
    factorize : Makes one.
    kernelcore.kcca.KCCA.from_factorization : A fitted estimator for one setting.
    """

    x: KernelBasis
    y: KernelBasis

    @cached_property
    def cross(self) -> npt.NDArray[Any]:
        """Product of the bases, shape (rank_x, rank_y): it depends on no setting."""
        with one_blas_thread():
            product: Array = self.x.vectors.T @ self.y.vectors
        return product

    def directions(
        self,
        *,
        regularization: Pair,
        n_components: int | None = None,
        ridge: Pair = 1.0,
    ) -> Directions:
        r"""Solve for one setting.

        With :math:`D_v = \mathrm{diag}(\sqrt{\lambda / (\lambda + \kappa_v)})` for each view,
        the singular value decomposition

        .. math:: D_x \, U_x^\top U_y \, D_y = P \, \mathrm{diag}(\rho) \, Q^\top

        holds the correlations :math:`\rho` and, in P and Q, the directions.

        Parameters
        ----------
        regularization : float or (float, float)
            :math:`\kappa \ge 0` of both views or of each, in units of the kernel.
        n_components : int, optional
            Number of components; the default is all that the ranks allow.
        ridge : float or (float, float), default 1.0
            Factor of the diagonal of the training kernels, as if `factorize` had been given
            ``kernels.ridge(K, factor)``; directions that it left out stay left out. Other
            values than 1 need a kernel with a constant diagonal.

        Returns
        -------
        Directions

        Raises
        ------
        TypeError
            If an option is not of its kind.
        ValueError
            If an option is out of range, more components are asked for than there are, or
            `ridge` is not 1 and the kernel's diagonal is not constant.
        """
        kappa_x, kappa_y = as_pair("regularization", regularization, minimum=0.0)
        ridge_x, ridge_y = as_pair("ridge", ridge, minimum=1.0)
        lambda_x, lambda_y = self.x.spectrum(ridge_x), self.y.spectrum(ridge_y)
        most = min(len(lambda_x), len(lambda_y))
        if n_components is None:
            n_components = most
        elif check_integer("n_components", n_components, minimum=1) > most:
            raise ValueError(
                f"n_components must be at most the smaller rank ({most}), got {n_components}"
            )
        shrink_x, shrink_y = (
            np.sqrt(values / (values + values.dtype.type(kappa)))
            for values, kappa in ((lambda_x, kappa_x), (lambda_y, kappa_y))
        )
        cross = self.cross[: len(lambda_x), : len(lambda_y)]
        P, correlations, Qt = thin_svd(shrink_x[:, np.newaxis] * cross * shrink_y)
        return Directions(
            # Rounding lifts a perfect correlation a little above 1.
            np.minimum(correlations[:n_components], 1.0),
            (shrink_x / lambda_x)[:, np.newaxis] * P[:, :n_components],
            (shrink_y / lambda_y)[:, np.newaxis] * Qt[:n_components].T,
        )


def factorize(
    Kx: npt.ArrayLike,
    Ky: npt.ArrayLike,
    *,
    decomposition: Decomposition = "gram_schmidt",
    tolerance: float = 1e-6,
    max_rank: int | None = None,
    n_threads: int | None = None,
) -> KCCAFactorization:
    """Centre and factorise the training kernels of two views.

    Parameters
    ----------
    Kx, Ky : array_like of shape (n_training, n_training)
        Symmetric Gram matrices of the two views of the same samples, not centred.
    decomposition : {"gram_schmidt", "eigen"}, default "gram_schmidt"
        Partial Gram-Schmidt followed by a thin singular value decomposition, which never
        looks at most of the kernel; or the whole eigen-decomposition, the better choice for
        kernels whose eigenvalues fall slowly and for grids with a ridge.
    tolerance : float, default 1e-6
        Share of the kernel's trace that may be left out; see `partial_gram_schmidt`. With
        "eigen" 0 keeps every eigenvector, those of negative eigenvalues too.
    max_rank : int, optional
        Largest rank of each view.
    n_threads : int, optional
        The two views are factorised side by side unless this is 1; the default is as many
        as there are cores. The result is the same, bit for bit.

    Returns
    -------
    KCCAFactorization

    Raises
    ------
    TypeError
        If an input does not hold real numbers or an option is not of its kind.
    ValueError
        If the matrices are not square, symmetric, finite and of one shape, a centred kernel
        is zero, there are fewer than two samples, or an option is out of range.

    Notes
    -----
    float32 stays float32. BLAS runs on one thread within each view.

    Examples
    --------
    >>> from kernelcore.kcca import factorize
    >>> K = [[1.0, 0.8, 0.0], [0.8, 1.0, 0.0], [0.0, 0.0, 1.0]]
    >>> factorization = factorize(K, K)
    >>> for kappa in (0.0, 1.0):
    ...     print(factorization.directions(regularization=kappa).correlations.round(3))
    [1. 1.]
    [0.559 0.167]
    """
    check_choice("decomposition", decomposition, ("gram_schmidt", "eigen"))
    eta = check_real("tolerance", tolerance, minimum=0.0, maximum=1.0)
    if max_rank is not None:
        check_integer("max_rank", max_rank, minimum=1)
    kernels = (as_symmetric_gram("Kx", Kx), as_symmetric_gram("Ky", Ky))
    n = len(kernels[0])
    if len(kernels[1]) != n or n < 2:
        raise ValueError(
            "Kx and Ky must have one shape and at least two samples, "
            f"got {kernels[0].shape} and {kernels[1].shape}"
        )
    decompose = _by_gram_schmidt if decomposition == "gram_schmidt" else _by_eigenvectors

    def basis_of(name: str, K: Array) -> KernelBasis:
        centerer = GramCenterer().fit(K)
        vectors, eigenvalues, columns, expansion = decompose(K, centerer, eta, max_rank)
        noise = n * np.finfo(K.dtype).eps * np.abs(K.diagonal()).max()
        if not eigenvalues.size or eigenvalues[0] <= noise:
            raise ValueError(f"{name} must not be constant: nothing is left once it is centred")
        return KernelBasis(
            vectors, eigenvalues, columns, expansion, centerer, _constant_diagonal(K)
        )

    with one_blas_thread_each(min(2, resolve_n_threads(n_threads))) as pool:
        return KCCAFactorization(*pool.map(basis_of, ("Kx", "Ky"), kernels))


def project(
    centerer: GramCenterer, columns: npt.NDArray[np.intp], expansion: Array, K: npt.ArrayLike
) -> Array:
    """Centre rows of kernel values and multiply the columns asked for by `expansion`."""
    centred = centerer.transform(K)
    if len(columns) < centred.shape[1]:
        centred = centred[:, columns]
    with one_blas_thread():
        product: Array = centred @ expansion
    return product


def as_pair(name: str, value: Any, *, minimum: float) -> tuple[float, float]:
    """Return one number for both views, or a pair of numbers, as a pair of floats."""
    if isinstance(value, Sequence) and not isinstance(value, str):
        if len(value) != 2:
            raise ValueError(f"{name} must be a number or a pair of numbers, got {value!r}")
        x, y = (check_real(f"{name}[{i}]", v, minimum=minimum) for i, v in enumerate(value))
        return x, y
    both = check_real(name, value, minimum=minimum)
    return both, both


_Parts: TypeAlias = tuple[Array, Array, npt.NDArray[np.intp], Array]


def _by_gram_schmidt(
    K: Array, centerer: GramCenterer, tolerance: float, max_rank: int | None
) -> _Parts:
    from scipy.linalg import solve_triangular

    result = orthogonalize(K, tolerance, max_rank, centerer)
    if not result.rank:
        return result.features, np.empty(0, K.dtype), result.pivots, result.features
    vectors, lengths, rotation = thin_svd(result.features)
    # A row of kernel values k has the features phi = L^-1 k at the pivots, R = U S V' and
    # hence the coordinates k_c U = phi R' U = phi V S.
    triangle = result.features[result.pivots]
    expansion = solve_triangular(triangle, rotation.T * lengths, lower=True, trans="T")
    return vectors, lengths**2, result.pivots, expansion


def _by_eigenvectors(
    K: Array, centerer: GramCenterer, tolerance: float, max_rank: int | None
) -> _Parts:
    n = len(K)
    centred = centerer.transform(K)
    # The constant vector belongs to the eigenvalue 0. Where others do too, the solver mixes
    # them; moved below all others, it comes out alone and last, and is left out.
    centred -= np.linalg.norm(centred) / n
    eigenvalues, vectors = (part[..., : n - 1] for part in eigh(centred))
    positive = np.maximum(eigenvalues, 0.0, dtype=np.float64)
    left_out = positive.sum() - np.cumsum(positive)
    rank = n - 1
    if tolerance > 0.0:
        rank = min(rank, int(np.argmax(left_out <= tolerance * positive.sum())) + 1)
    if max_rank is not None:
        rank = min(rank, max_rank)
    vectors = np.ascontiguousarray(vectors[:, :rank])
    return vectors, eigenvalues[:rank], np.arange(n), vectors


def _constant_diagonal(K: Array) -> float | None:
    diagonal = K.diagonal()
    value = float(diagonal.mean(dtype=np.float64))
    slack = 10 * float(np.finfo(K.dtype).eps) * abs(value)
    return value if float(np.abs(diagonal - value).max()) <= slack else None
