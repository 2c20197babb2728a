"""The factorisation that all settings of kernel CCA share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from kernelcore._check import Array, check_integer, check_real
from kernelcore._threads import in_threads, one_blas_thread, resolve_n_threads, threads_for
from kernelcore.kcca.basis import Decomposition, KernelBasis, check_options, named_kernel_basis
from kernelcore.kcca.decompositions import leading_svd

Pair: TypeAlias = float | tuple[float, float]
"""One value for both views, or one for each: (x, y)."""


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
    """Bases of both views and their product; each setting then costs one small SVD.

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

    def __post_init__(self) -> None:
        n_x, n_y = len(self.x.vectors), len(self.y.vectors)
        if n_x != n_y:
            raise ValueError(
                f"both views must have the same training samples, got {n_x} and {n_y}"
            )

    @cached_property
    def cross(self) -> npt.NDArray[Any]:
        """Product of the bases, shape (rank_x, rank_y), shared by all settings."""
        with one_blas_thread():
            product: Array = self.x.vectors.T @ self.y.vectors
        return product

    def rank(self, ridge: Pair = 1.0) -> int:
        """Return the largest number of components, under this ridge; see `directions`."""
        lifted = self.lifted(ridge)
        return min(len(lifted.x.spectrum()), len(lifted.y.spectrum()))

    def lifted(self, ridge: Pair) -> KCCAFactorization:
        """Return the factorisation of kernels with their diagonals multiplied.

        Parameters
        ----------
        ridge : float or (float, float)
            Factors d >= 1 of both diagonals or of each; see `KernelBasis.lifted`.

        Returns
        -------
        KCCAFactorization
            It shares the product of the bases with this one.
        """
        ridge_x, ridge_y = as_pair("ridge", ridge, minimum=1.0)
        x, y = self.x.lifted(ridge_x), self.y.lifted(ridge_y)
        if x is self.x and y is self.y:
            return self
        lifted = KCCAFactorization(x, y)
        same = x.vectors is self.x.vectors and y.vectors is self.y.vectors
        ranks = slice(x.vectors.shape[1]), slice(y.vectors.shape[1])
        vars(lifted)["cross"] = self.cross if same else self._whole_cross[ranks]
        return lifted

    @cached_property
    def _whole_cross(self) -> npt.NDArray[Any]:
        """Product of the bases with the directions that ridges may lift."""
        x, y = (
            view.vectors if view.whole is None else view.whole.vectors
            for view in (self.x, self.y)
        )
        with one_blas_thread():
            product: Array = x.T @ y
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
            Factor of the diagonal of the training kernels: the solution is that of a
            `factorize` that was given ``kernels.ridge(K, factor)``, with the same tolerance
            and largest rank. Other values than 1 need a kernel with a constant diagonal and
            the decomposition "eigen"; see `KernelBasis.lifted`.

        Returns
        -------
        Directions

        Raises
        ------
        TypeError
            If an option is not of its kind.
        ValueError
            If an option is out of range, more components are asked for than there are, or
            `ridge` is not 1 and the factorisation cannot be lifted.
        """
        kappa_x, kappa_y = as_pair("regularization", regularization, minimum=0.0)
        lifted = self.lifted(ridge)
        lambda_x, lambda_y = lifted.x.spectrum(), lifted.y.spectrum()
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
        cross = lifted.cross[: len(lambda_x), : len(lambda_y)]
        P, correlations, Qt = leading_svd(
            shrink_x[:, np.newaxis] * cross * shrink_y, n_components
        )
        return Directions(
            # Rounding lifts a perfect correlation a little above 1.
            np.minimum(correlations, 1.0),
            (shrink_x / lambda_x)[:, np.newaxis] * P,
            (shrink_y / lambda_y)[:, np.newaxis] * Qt.T,
        )


def factorize(
    Kx: npt.ArrayLike | KernelBasis,
    Ky: npt.ArrayLike | KernelBasis,
    *,
    decomposition: Decomposition = "gram_schmidt",
    tolerance: float = 1e-6,
    max_rank: int | None = None,
    n_threads: int | None = None,
) -> KCCAFactorization:
    """Centre and factorise the training kernels of two views.

    Parameters
    ----------
    Kx, Ky : array_like of shape (n_training, n_training), or KernelBasis
        Symmetric Gram matrices of the two views of the same samples, not centred; or the
        outputs of `kernel_basis` or `feature_basis`.
    decomposition, tolerance, max_rank
        See `kernel_basis`.
    n_threads : int, optional
        The two views are factorised side by side unless this is 1 or they are small, each on
        half of the threads; the default is every core this process may run on. The result is
        the same, bit for bit, for every value.

    Returns
    -------
    KCCAFactorization

    Raises
    ------
    TypeError
        If an input does not hold real numbers or an option is not of its kind.
    ValueError
        If the matrices are not square, symmetric, finite and of one shape, a centred kernel
        is zero, or an option is out of range.

    Notes
    -----
    float32 stays float32. BLAS runs on one thread within each view. Ctrl-C stops the call at
    once, or at the end of a LAPACK call of each view; see `kernel_basis`.

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
    threads = resolve_n_threads(n_threads)
    check_options(decomposition, tolerance, max_rank)

    def basis_of(view: tuple[str, npt.ArrayLike | KernelBasis]) -> KernelBasis:
        name, K = view
        if isinstance(K, KernelBasis):
            return K
        share = max(1, threads // 2)
        return named_kernel_basis(name, K, decomposition, tolerance, max_rank, n_threads=share)

    with one_blas_thread():
        views = [("Kx", Kx), ("Ky", Ky)]
        side_by_side = min(2, threads_for(n_threads, sum(_work(K, max_rank) for _, K in views)))
        return KCCAFactorization(
            *in_threads(basis_of, views, side_by_side, setting=one_blas_thread)
        )


def _work(K: npt.ArrayLike | KernelBasis, max_rank: int | None) -> float:
    """Rough number of nanoseconds that one thread takes to factorise an unchecked kernel."""
    shape = (len(K),) if isinstance(K, Sequence) else getattr(K, "shape", ())
    if isinstance(K, KernelBasis) or not shape:
        return 0.0
    n = float(shape[0])
    rank = n if max_rank is None else min(max_rank, n)
    return n * rank * rank


def as_pair(name: str, value: Any, *, minimum: float) -> tuple[float, float]:
    """Return one number for both views, or a pair of numbers, as a pair of floats."""
    if isinstance(value, Sequence) and not isinstance(value, str):
        if len(value) != 2:
            raise ValueError(f"{name} must be a number or a pair of numbers, got {value!r}")
        x, y = (check_real(f"{name}[{i}]", v, minimum=minimum) for i, v in enumerate(value))
        return x, y
    both = check_real(name, value, minimum=minimum)
    return both, both
