"""Kernel canonical correlation analysis: one factorisation for many settings, and KCCA."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from kernelcore._check import Array, check_integer, check_real
from kernelcore._estimator import Estimator, params_to_json
from kernelcore._store import check_tensor, load_tensors, reading, save_tensors
from kernelcore._threads import (
    cached_property,
    in_threads,
    one_blas_thread,
    threads_for,
)
from kernelcore.kcca.basis import (
    Centerer,
    Decomposition,
    KernelBasis,
    centring_from,
    centring_tensors,
    check_options,
    kernel_basis,
    project,
)
from kernelcore.kcca.decompositions import leading_svd

_KIND = "kernel CCA"

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
        n_x, n_y = len(self.x.all_vectors), len(self.y.all_vectors)
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

    @property
    def rank(self) -> int:
        """Largest number of components."""
        return min(len(self.x.spectrum()), len(self.y.spectrum()))

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
        if ridge_x == ridge_y == 1.0:
            return self
        lifted = KCCAFactorization(self.x.lifted(ridge_x), self.y.lifted(ridge_y))
        rank_x, rank_y = lifted.x.rank, lifted.y.rank
        cross = self.cross
        if rank_x > self.x.rank or rank_y > self.y.rank:
            cross = self._all_cross[:rank_x, :rank_y]
        vars(lifted)["cross"] = cross
        return lifted

    @cached_property
    def _all_cross(self) -> npt.NDArray[Any]:
        """Product of the bases with the directions that ridges may lift."""
        with one_blas_thread():
            product: Array = self.x.all_vectors.T @ self.y.all_vectors
        return product

    def directions(
        self, *, regularization: Pair, n_components: int | None = None
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

        Returns
        -------
        Directions

        Raises
        ------
        TypeError
            If an option is not of its kind.
        ValueError
            If an option is out of range or more components are asked for than there are.
        """
        kappa_x, kappa_y = as_pair("regularization", regularization, minimum=0.0)
        lambda_x, lambda_y = self.x.spectrum(), self.y.spectrum()
        most = min(len(lambda_x), len(lambda_y))
        if n_components is None:
            n_components = most
        elif check_integer("n_components", n_components, minimum=1) > most:
            raise ValueError(
                f"n_components must be at most the smaller rank ({most}), got {n_components}"
            )
        shrink_x = np.sqrt(lambda_x / (lambda_x + lambda_x.dtype.type(kappa_x)))
        shrink_y = np.sqrt(lambda_y / (lambda_y + lambda_y.dtype.type(kappa_y)))
        cross = self.cross[: len(lambda_x), : len(lambda_y)]
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
    names: tuple[str, str] = ("Kx", "Ky"),
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
    names : (str, str), default ("Kx", "Ky")
        Names of the kernels in errors.

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
    check_options(decomposition, tolerance, max_rank)
    work = 0.0  # nanoseconds of one thread, roughly
    for K in (Kx, Ky):
        shape = (len(K),) if isinstance(K, Sequence) else getattr(K, "shape", ())
        if shape:
            n = float(shape[0])
            rank = n if max_rank is None else min(max_rank, n)
            work += n * rank * rank
    threads = threads_for(n_threads, work)

    def basis_of(view: tuple[str, npt.ArrayLike | KernelBasis]) -> KernelBasis:
        name, K = view
        if isinstance(K, KernelBasis):
            return K
        return kernel_basis(
            K,
            decomposition=decomposition,
            tolerance=tolerance,
            max_rank=max_rank,
            n_threads=max(1, threads // 2),
            name=name,
        )

    views = list(zip(names, (Kx, Ky), strict=True))
    if threads == 1:
        return KCCAFactorization(*map(basis_of, views))
    with one_blas_thread():
        return KCCAFactorization(*in_threads(basis_of, views, 2))


def as_pair(name: str, value: Any, *, minimum: float) -> tuple[float, float]:
    """Return one number for both views, or a pair of numbers, as a pair of floats."""
    if isinstance(value, Sequence) and not isinstance(value, str):
        if len(value) != 2:
            raise ValueError(f"{name} must be a number or a pair of numbers, got {value!r}")
        x, y = (check_real(f"{name}[{i}]", v, minimum=minimum) for i, v in enumerate(value))
        return x, y
    both = check_real(name, value, minimum=minimum)
    return both, both


class _View(NamedTuple):
    """Projection of new rows of one view."""

    centerer: Centerer
    columns: npt.NDArray[np.intp]
    coefficients: npt.NDArray[Any]

    def tensors(self, name: str) -> dict[str, Array]:
        return {
            **centring_tensors(self.centerer, self.columns, f"{name}_"),
            f"{name}_coefficients": self.coefficients,
        }

    @classmethod
    def from_tensors(cls, name: str, tensors: Mapping[str, Array], scores: Array) -> _View:
        """Return the view of the output of `tensors`; check it against the training scores."""
        centerer, columns = centring_from(tensors, len(scores), f"{name}_")
        coefficients = tensors[f"{name}_coefficients"]
        shape = (len(columns), scores.shape[1])
        check_tensor(f"{name}_coefficients", coefficients, shape, scores.dtype)
        return cls(centerer, columns, coefficients)


class KCCA(Estimator):
    r"""Kernel canonical correlation analysis of two views of the same samples.

    .. math::

        \max_{a, b} \frac{a^\top K_x K_y \, b}
        {\sqrt{a^\top (K_x^2 + \kappa_x K_x) a \;\; b^\top (K_y^2 + \kappa_y K_y) b}}

    over centred kernels, component after component, each uncorrelated with those before.

    Parameters
    ----------
    n_components : int, optional
        Number of components; the default is all that the ranks of the kernels allow.
    regularization : float or (float, float), default 0.1
        :math:`\kappa \ge 0` of both views, or of each, in units of the kernel. The
        convention :math:`(1 - k) K^2 + k K` has :math:`\kappa = k / (1 - k)`.
    decomposition : {"gram_schmidt", "eigen"}, default "gram_schmidt"
        How the kernels are factorised; see `factorize`.
    tolerance : float, default 1e-6
        Share of each kernel's trace that may be left out.
    max_rank : int, optional
        Largest rank of each factorised kernel.
    n_threads : int, optional
        The two views are factorised side by side unless this is 1 or they are small; the
        default is every core this process may run on. See `factorize`.

    Attributes
    ----------
    correlations_ : ndarray of shape (n_components,)
        Regularised canonical correlations (values of the quotient above), descending.
    x_scores_, y_scores_ : ndarray of shape (n_training, n_components)
        Projections of the training samples. `transform_x` and `transform_y` of the training
        kernels give them again, up to rounding.

    See Also
    --------
    factorize : One factorisation for many settings.
    kernelcore.reference.matching.kcca : The generalised eigenvalue problem, solved densely.

    Notes
    -----
    Scores have :math:`a^\top (K_x^2 + \kappa_x K_x) a = 1`. The sign of a component makes
    the largest training score of the first view positive; of several that are equal but for
    rounding the first counts. Components of equal correlation are determined only up to a
    rotation among themselves. float32 stays float32, and BLAS runs on one thread: results
    are the same bits for every number of threads, for one BLAS on one kind of processor.

    References
    ----------
    .. [1] D. R. Hardoon, S. Szedmak and J. Shawe-Taylor, "Canonical correlation analysis:
       an overview with application to learning methods", Neural Computation 16, 2004.
    .. [2] F. R. Bach and M. I. Jordan, "Kernel independent component analysis", Journal of
       Machine Learning Research 3, 2002.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelcore.kcca import KCCA
    >>> X = np.array([[0.0], [1.0], [2.0], [5.0]])
    >>> Y = np.array([[1.0], [3.0], [5.0], [11.0]])
    >>> kcca = KCCA(regularization=0.0).fit(X @ X.T, Y @ Y.T)
    >>> kcca.correlations_.round(6)
    array([1.])
    >>> kcca.transform_x(np.array([[4.0]]) @ X.T).shape
    (1, 1)
    """

    correlations_: npt.NDArray[Any]
    x_scores_: npt.NDArray[Any]
    y_scores_: npt.NDArray[Any]

    def __init__(
        self,
        n_components: int | None = None,
        *,
        regularization: Pair = 0.1,
        decomposition: Decomposition = "gram_schmidt",
        tolerance: float = 1e-6,
        max_rank: int | None = None,
        n_threads: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.regularization = regularization
        self.decomposition = decomposition
        self.tolerance = tolerance
        self.max_rank = max_rank
        self.n_threads = n_threads

    def fit(self, Kx: npt.ArrayLike | KernelBasis, Ky: npt.ArrayLike | KernelBasis) -> KCCA:
        """Learn from the training kernels of both views.

        Parameters
        ----------
        Kx, Ky : array_like of shape (n_training, n_training), or KernelBasis
            Symmetric Gram matrices of the two views of the same samples, not centred; or what
            `kernel_basis` made of them, or `feature_basis` of features.

        Returns
        -------
        KCCA
            This estimator.

        Raises
        ------
        TypeError
            If an input does not hold real numbers or a parameter is not of its kind.
        ValueError
            If the matrices are not square, symmetric, finite and of one shape, or a
            parameter is out of range.

        Notes
        -----
        Ctrl-C stops the call at once, or at the end of a LAPACK call: one of `factorize`, or
        the singular value decomposition (gesdd or syevr) of rank_x x rank_y values.
        """
        factorization = factorize(
            Kx,
            Ky,
            decomposition=self.decomposition,
            tolerance=self.tolerance,
            max_rank=self.max_rank,
            n_threads=self.n_threads,
        )
        return self.solve(factorization)

    @classmethod
    def from_factorization(
        cls,
        factorization: KCCAFactorization,
        n_components: int | None = None,
        *,
        regularization: Pair = 0.1,
        ridge: Pair = 1.0,
    ) -> KCCA:
        """Return the estimator of one setting, fitted without factorising anew.

        Parameters
        ----------
        factorization : KCCAFactorization
            What `factorize` returned for the training kernels.
        n_components, regularization, ridge
            See `KCCAFactorization.directions`.

        Returns
        -------
        KCCA
            With the `decomposition`, `tolerance` and `max_rank` of the factorisation, or of
            its first view where the two differ.
        """
        kcca = cls(n_components, regularization=regularization, **factorization.x.options)
        return kcca.solve(factorization, ridge)

    def transform_x(self, K: npt.ArrayLike) -> npt.NDArray[Any]:
        """Project samples of the first view.

        Parameters
        ----------
        K : array_like of shape (n_samples, n_training)
            Their kernel with the training samples, or their features where `fit` was given
            those; they are centred with training statistics.

        Returns
        -------
        ndarray of shape (n_samples, n_components)
        """
        self._check_fitted("correlations_")
        return project(*self._x, K)

    def transform_y(self, K: npt.ArrayLike) -> npt.NDArray[Any]:
        """Project samples of the second view.

        Parameters
        ----------
        K : array_like of shape (n_samples, n_training)
            Their kernel with the training samples, or their features where `fit` was given
            those; they are centred with training statistics.

        Returns
        -------
        ndarray of shape (n_samples, n_components)
        """
        self._check_fitted("correlations_")
        return project(*self._y, K)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted estimator as one safetensors file, whole or not at all."""
        self._check_fitted("correlations_")
        save_tensors(path, _KIND, self.tensors(), {"params": params_to_json(self.get_params())})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> KCCA:
        """Load the output of `save`.

        Raises
        ------
        FileNotFoundError
            If there is no such file.
        ValueError
            If the file is damaged, truncated or holds something else.
        """
        with reading(path):
            tensors, metadata = load_tensors(path, _KIND)
            return cls.from_json(metadata.exactly("params")["params"]).restore(tensors)

    def tensors(self) -> dict[str, Array]:
        """Return the fitted state as arrays by name."""
        return {
            "correlations": self.correlations_,
            "x_scores": self.x_scores_,
            "y_scores": self.y_scores_,
            **self._x.tensors("x"),
            **self._y.tensors("y"),
        }

    def restore(self, tensors: Mapping[str, Array]) -> KCCA:
        """Restore the fitted state from the output of `tensors`; check that its parts fit."""
        correlations = check_tensor("correlations", tensors["correlations"], (None,))
        if not len(correlations) or not correlations.min() >= 0:
            raise ValueError("correlations must be at least one number, and none below 0")
        shape = (None, len(correlations))
        x_scores = check_tensor("x_scores", tensors["x_scores"], shape, correlations.dtype)
        y_scores = check_tensor("y_scores", tensors["y_scores"], x_scores.shape, x_scores.dtype)
        self._x = _View.from_tensors("x", tensors, x_scores)
        self._y = _View.from_tensors("y", tensors, y_scores)
        self.correlations_, self.x_scores_, self.y_scores_ = correlations, x_scores, y_scores
        others = tensors.keys() - self.tensors().keys()
        if others:
            raise ValueError(f"it must hold no other tensors, got {min(others)!r:.80}")
        return self

    def _check_params(self) -> None:
        if self.n_components is not None:
            check_integer("n_components", self.n_components, minimum=1)
        as_pair("regularization", self.regularization, minimum=0.0)
        check_options(self.decomposition, self.tolerance, self.max_rank)

    def solve(self, factorization: KCCAFactorization, ridge: Pair = 1.0) -> KCCA:
        """Solve for this estimator's setting; see `from_factorization`."""
        if ridge != 1.0:
            factorization = factorization.lifted(ridge)
        x, y = factorization.x, factorization.y
        with one_blas_thread():
            self.correlations_, x_weights, y_weights = factorization.directions(
                regularization=self.regularization, n_components=self.n_components
            )
            n_x, n_y = len(x_weights), len(y_weights)
            x_scores = x.all_vectors[:, :n_x] @ (x.spectrum()[:, None] * x_weights)
            y_scores = y.all_vectors[:, :n_y] @ (y.spectrum()[:, None] * y_weights)
            signs = _signs(x_scores)
            x_coefficients = x.all_expansion[:, :n_x] @ (x_weights * signs)
            y_coefficients = y.all_expansion[:, :n_y] @ (y_weights * signs)
        self.x_scores_, self.y_scores_ = x_scores * signs, y_scores * signs
        self._x = _View(x.centerer, x.columns, x_coefficients)
        self._y = _View(y.centerer, y.columns, y_coefficients)
        return self


def _signs(scores: Array) -> Array:
    """Factors of +-1 that make the largest element of each column positive."""
    sizes = np.abs(scores)
    nearly_largest = sizes >= sizes.max(axis=0) * (1.0 - np.sqrt(np.finfo(scores.dtype).eps))
    deciding = scores[nearly_largest.argmax(axis=0), np.arange(scores.shape[1])]
    return np.where(deciding < 0, -1, 1).astype(scores.dtype)
