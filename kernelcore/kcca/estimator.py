"""Kernel canonical correlation analysis as an estimator."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from kernelcore._check import Array, check_integer
from kernelcore._estimator import Estimator, params_to_json
from kernelcore._store import check_tensor, load_tensors, reading, save_tensors
from kernelcore._threads import one_blas_thread
from kernelcore.kcca._centering import (
    Centerer,
    FeatureCenterer,
    centerer_from,
    centering_tensors,
    columns_from,
    width_of,
)
from kernelcore.kcca.basis import Decomposition, KernelBasis, check_options, project
from kernelcore.kcca.factorization import KCCAFactorization, Pair, as_pair, factorize

_KIND = "kernel CCA"


@dataclass(frozen=True, eq=False)
class _View:
    """Projects new rows of one view."""

    centerer: Centerer
    columns: npt.NDArray[np.intp]
    coefficients: npt.NDArray[Any]

    def transform(self, K: npt.ArrayLike) -> npt.NDArray[Any]:
        return project(self.centerer, self.columns, self.coefficients, K)

    def tensors(self, name: str) -> dict[str, Array]:
        return {
            **centering_tensors(self.centerer, f"{name}_"),
            f"{name}_columns": self.columns,
            f"{name}_coefficients": self.coefficients,
        }

    @classmethod
    def from_tensors(cls, name: str, tensors: Mapping[str, Array], scores: Array) -> _View:
        """Return the view of the output of `tensors`; check it against the training scores."""
        centerer = centerer_from(tensors, f"{name}_")
        if not isinstance(centerer, FeatureCenterer) and width_of(centerer) != len(scores):
            raise ValueError(
                f"{name}_column_means must have one entry per training sample "
                f"({len(scores)}), got {width_of(centerer)}"
            )
        columns = columns_from(tensors, centerer, f"{name}_")
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
        with one_blas_thread():
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
        return self._x.transform(K)

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
        return self._y.transform(K)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted estimator as one safetensors file, whole or not at all."""
        self._check_fitted("correlations_")
        save_tensors(path, _KIND, self.tensors(), {"params": params_to_json(self.get_params())})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> KCCA:
        """Read what `save` wrote.

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
        lifted = factorization.lifted(ridge)
        correlations, x_weights, y_weights = lifted.directions(
            regularization=self.regularization, n_components=self.n_components
        )
        x_scores = _training_scores(lifted.x, x_weights)
        signs = _signs(x_scores)
        self.correlations_ = correlations
        self.x_scores_ = x_scores * signs
        self.y_scores_ = _training_scores(lifted.y, y_weights) * signs
        self._x = _view(lifted.x, x_weights * signs)
        self._y = _view(lifted.y, y_weights * signs)
        return self


def _training_scores(basis: KernelBasis, weights: Array) -> Array:
    eigenvalues = basis.spectrum()
    with one_blas_thread():
        scores: Array = basis.vectors[:, : len(eigenvalues)] @ (
            eigenvalues[:, np.newaxis] * weights
        )
    return scores


def _view(basis: KernelBasis, weights: Array) -> _View:
    with one_blas_thread():
        coefficients = basis.expansion[:, : len(weights)] @ weights
    return _View(basis.centerer, basis.columns, coefficients)


def _signs(scores: Array) -> Array:
    """Factors of +-1 that make the largest element of each column positive."""
    sizes = np.abs(scores)
    nearly_largest = sizes >= sizes.max(axis=0) * (1.0 - np.sqrt(np.finfo(scores.dtype).eps))
    deciding = scores[nearly_largest.argmax(axis=0), np.arange(scores.shape[1])]
    return np.where(deciding < 0, -1, 1).astype(scores.dtype)
