"""Landmark (Nystroem) features of any kernel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from kernelcore._check import Array, check_choice, check_integer, check_rng
from kernelcore._estimator import Transformer, as_samples
from kernelcore._ragged import n_items, take
from kernelcore._threads import resolve_n_threads
from kernelcore.kcca.gram_schmidt import KernelColumns, partial_gram_schmidt, solve_features
from kernelcore.kernels.gram import as_gram, as_symmetric_gram, check_square
from kernelcore.kernels.prepared import as_items

Kernel: TypeAlias = Callable[..., npt.ArrayLike] | str
"""A function of (X, Y) that returns the matrix (n_X, n_Y), scikit-learn's name of one, or
"precomputed"."""

_BLOCK = 8192  # items whose kernel with the landmarks is computed at once


class LandmarkFeatures(Transformer):
    r"""Low-dimensional features of any kernel, from its values with a few landmarks.

    .. math:: \phi(x) = L^{-1} \big(k(x, z_1), \dots, k(x, z_m)\big)^\top, \qquad
        \langle \phi(x), \phi(y) \rangle \approx k(x, y)

    for landmarks :math:`z_1, \dots, z_m` among the training samples, whose own kernel matrix
    is :math:`L L^\top` with L lower triangular. The approximation is that of Nystroem [1]_: it
    is exact wherever x or y is a landmark.

    Parameters
    ----------
    kernel : callable or str, default "precomputed"
        ``kernel(X, Y)`` returns the matrix of kernel values of the items X, one row each, with
        the items Y. A name such as "rbf" is one of `sklearn.metrics.pairwise.kernel_metrics`,
        with its defaults. With "precomputed", `fit` is given the Gram matrix of the training
        samples and `transform` the kernel of new ones with all of them.
    n_landmarks : int, default 1000
        Largest number m of landmarks, and of features.
    choice : {"pivoted", "random"}, default "pivoted"
        "pivoted": each landmark is the training sample farthest from the span of the earlier
        landmarks (partial Gram-Schmidt [2]_), so no sample is far from all of them. "random":
        landmarks are drawn without replacement, which may describe typical samples better.
    tolerance : float, default 0.0
        Stop choosing pivots once no more than this share of the kernel's trace is left out.
    rng : numpy.random.Generator, int or None
        Source of the random draw; an int is a seed.
    n_threads : int, optional
        Threads for the pivots and the features, beside those of the kernel; the default is
        every core this process may run on. The result is the same, bit for bit.

    Attributes
    ----------
    landmarks_ : ndarray of intp, shape (n_features,)
        Positions of the landmarks among the training samples. Samples in the span of earlier
        landmarks, up to rounding, are skipped.
    triangle_ : ndarray of shape (n_features, n_features)
        L.
    n_features_in_ : int
        Number of columns of the training samples, where they are rows of a matrix.

    See Also
    --------
    kernelcore.kcca.feature_basis : Kernel CCA over such features.
    partial_gram_schmidt : The choice of pivots as a function.

    Notes
    -----
    Takes O(n m^2) time beside n m kernel values (about 2 n m to fit with "pivoted"), and O(n m)
    memory; a matrix of n x n values exists only where "precomputed" asks for it. A Gram matrix
    in a file needs no more: ``kernel=lambda X, Y: K[np.ix_(X, Y)]`` over the items
    ``np.arange(n)``. float32 kernels have float32 features. Ctrl-C stops the call at once, or
    at the end of the products for 1,024 samples or of a kernel that ignores it.

    Passes scikit-learn's `check_estimator` with a kernel that takes what scikit-learn's own
    kernels take, and with "precomputed", where cross-validation takes the rows and the columns
    of a fold.

    References
    ----------
    .. [1] C. K. I. Williams and M. Seeger, "Using the Nystroem method to speed up kernel
       machines", NIPS 2000.
    .. [2] D. R. Hardoon, S. Szedmak and J. Shawe-Taylor, "Canonical correlation analysis:
       an overview with application to learning methods", Neural Computation 16, 2004.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelcore.kcca import LandmarkFeatures
    >>> from kernelcore.kernels import histogram_intersection
    >>> X = np.random.default_rng(0).random((200, 5))
    >>> landmarks = LandmarkFeatures(histogram_intersection, n_landmarks=150)
    >>> features = landmarks.fit_transform(X)
    >>> features.shape
    (200, 150)
    >>> error = features @ features.T - histogram_intersection(X)
    >>> bool(np.abs(error).max() < 0.1)
    True
    """

    landmarks_: npt.NDArray[np.intp]
    triangle_: npt.NDArray[Any]
    _items: Any = None  # the landmarks themselves, where a kernel needs them

    def __init__(
        self,
        kernel: Kernel = "precomputed",
        *,
        n_landmarks: int = 1000,
        choice: Literal["pivoted", "random"] = "pivoted",
        tolerance: float = 0.0,
        rng: np.random.Generator | int | None = None,
        n_threads: int | None = None,
    ) -> None:
        self.kernel = kernel
        self.n_landmarks = n_landmarks
        self.choice = choice
        self.tolerance = tolerance
        self.rng = rng
        self.n_threads = n_threads

    def __sklearn_tags__(self) -> Any:
        """Tell scikit-learn whether the columns are samples like the rows."""
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.kernel == "precomputed"
        tags.input_tags.sparse = not tags.input_tags.pairwise  # the kernel decides
        return tags

    def fit(self, X: Any, y: Any = None) -> LandmarkFeatures:
        """Choose landmarks among training samples.

        Parameters
        ----------
        X : collection of length n_training
            Arguments of the kernel; the Gram matrix of shape (n_training, n_training) where it
            is precomputed.
        y : ignored
            For scikit-learn's pipelines.

        Returns
        -------
        LandmarkFeatures
            This estimator.

        Raises
        ------
        TypeError
            If a parameter is not of its kind.
        ValueError
            If a matrix of kernel values is not finite and of the right shape (and symmetric,
            where it is precomputed), the kernel is zero or unknown, or a parameter is out of
            range.
        """
        self._fit(X)
        return self

    def fit_transform(self, X: Any, y: Any = None) -> npt.NDArray[Any]:
        """Choose landmarks and return the features of the training samples.

        Pivots are found with these features, so it costs no more than `fit`.
        """
        features = self._fit(X)
        return self.transform(X) if features is None else features

    def transform(self, X: Any) -> npt.NDArray[Any]:
        """Compute the features of samples.

        Parameters
        ----------
        X : collection of length n_samples
            Arguments of the kernel; the kernel of the samples with the training samples, shape
            (n_samples, n_training), where it is precomputed.

        Returns
        -------
        ndarray of shape (n_samples, n_features)

        Raises
        ------
        ValueError
            If a matrix of kernel values is not finite and of the right shape.
        """
        self._check_fitted("triangle_")
        threads = resolve_n_threads(self.n_threads)
        kernel = self._function()
        is_gram = kernel is None
        items = as_samples("X", X) if is_gram else as_items(X)
        rule = "one column per training sample" if is_gram else "as many columns as in training"
        self._check_columns("X", items, rule)
        n = n_items(items)
        features = np.empty((n, len(self.landmarks_)), dtype=self.triangle_.dtype)
        for start in range(0, n, _BLOCK):
            block = slice(start, min(start + _BLOCK, n))
            if kernel is not None:
                values: Any = kernel(take(items, block), self._items)
                values = as_gram("kernel(X, Y)", values, n_threads=threads)
            else:
                values = items[block, self.landmarks_]
            expected = features[block].shape
            if values.shape != expected:
                raise ValueError(f"kernel(X, Y) must have shape {expected}, got {values.shape}")
            features[block] = values
        solve_features(self.triangle_, features, threads)
        return features

    def _fit(self, X: Any) -> Array | None:
        """Choose landmarks; return the training features, or None where they are random."""
        n_landmarks = check_integer("n_landmarks", self.n_landmarks, minimum=1)
        check_choice("choice", self.choice, ("pivoted", "random"))
        kernel = self._function()
        if kernel is not None:
            items = as_items(X)
        else:
            items = as_samples("X", X)
            if items.shape[0] != items.shape[1]:
                shape = f"got shape {items.shape}"
                raise ValueError(
                    f"X must be a square Gram matrix unless kernel= is given, {shape}"
                )
            check_square("X", items)
        if self.choice == "pivoted":
            places = np.arange(n_items(items))
            if kernel is not None:
                K: Any = KernelColumns.of(kernel, items)
            else:
                K = as_symmetric_gram("X", items, n_threads=resolve_n_threads(self.n_threads))
        else:
            places = check_rng("rng", self.rng).permutation(n_items(items))[:n_landmarks]
            if kernel is not None:
                own = take(items, places)
                K = as_gram("kernel(X, Y)", kernel(own, own))
            else:
                K = items[np.ix_(places, places)]
        result = partial_gram_schmidt(
            K, tolerance=self.tolerance, max_rank=n_landmarks, n_threads=self.n_threads
        )
        chosen = places[result.pivots]
        if not len(chosen):
            raise ValueError("the kernel must not be zero on all training samples")
        self.landmarks_ = chosen
        self.triangle_ = result.features[result.pivots]
        self._take_columns(items)
        self._items = None if kernel is None else take(items, chosen)
        return result.features if self.choice == "pivoted" else None

    def _function(self) -> Callable[..., npt.ArrayLike] | None:
        """Return the kernel, None where it is precomputed."""
        if callable(self.kernel):
            return self.kernel
        if self.kernel == "precomputed":
            return None
        from sklearn.metrics.pairwise import kernel_metrics

        named: dict[str, Callable[..., npt.ArrayLike]] = kernel_metrics()
        return named[check_choice("kernel", self.kernel, ("precomputed", *named))]
