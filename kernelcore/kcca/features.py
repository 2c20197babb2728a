"""Kernel CCA on features, without n x n matrices: landmark features, and bases of features."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from kernelcore._check import Array, check_choice, check_integer, check_real, check_rng
from kernelcore._estimator import Transformer, as_samples
from kernelcore._threads import resolve_n_threads
from kernelcore.kcca._centering import FeatureCenterer
from kernelcore.kcca.basis import KernelBasis
from kernelcore.kcca.decompositions import check_size, feature_rounding, thin_svd
from kernelcore.kcca.gram_schmidt import KernelColumns, features_of, partial_gram_schmidt
from kernelcore.kernels.gram import as_gram, check_square
from kernelcore.kernels.prepared import Prepared, as_items, n_items, take

Kernel: TypeAlias = Callable[..., npt.ArrayLike] | Literal["precomputed"]
"""A function of (X, Y) that returns the matrix (n_X, n_Y), or "precomputed"."""

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
    kernel : callable or "precomputed", default "precomputed"
        ``kernel(X, Y)`` returns the matrix of kernel values of the items X, one row each, with
        the items Y. With "precomputed", `fit` is given the Gram matrix of the training samples
        and `transform` the kernel of new ones with all of them.
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
        Threads for the choice of pivots, beside those of the kernel itself; the default is
        every core this process may run on. The result is the same, bit for bit.

    Attributes
    ----------
    landmarks_ : ndarray of intp, shape (n_features,)
        Positions of the landmarks among the training samples. Samples that others describe
        up to rounding serve for nothing and are left out.
    triangle_ : ndarray of shape (n_features, n_features)
        L.
    n_features_in_ : int
        Number of columns of the training samples, where they are rows of a matrix.
    feature_names_in_ : ndarray of str
        Names of these columns, where `fit` was given a data frame that has them.

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
    at the end of the triangular system of 8,192 samples (trtrs) or of a kernel that ignores
    it.

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
            If the kernel is neither a function nor "precomputed", or a parameter is not of
            its kind.
        ValueError
            If a matrix of kernel values is not finite and of the right shape (and symmetric,
            where it is precomputed), the kernel is zero, or a parameter is out of range.
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
        self._check_names(X)
        return self._transform(X)

    def _n_features_out(self) -> int:
        self._check_fitted("triangle_")
        return len(self.triangle_)

    def _transform(self, X: Any) -> npt.NDArray[Any]:
        threads = resolve_n_threads(self.n_threads)
        if self.kernel == "precomputed":
            K = as_samples("X", X)
            self._check_columns("X", K, "one column per training sample")
            return features_of(self.triangle_, K[:, self.landmarks_], n_threads=threads)
        items = as_items(X)
        self._check_columns("X", items, "as many columns as in training")
        n = n_items(items)
        features = np.empty((n, len(self.landmarks_)), dtype=self.triangle_.dtype)
        for start in range(0, n, _BLOCK):
            block = slice(start, min(start + _BLOCK, n))
            values = as_gram(
                "kernel(X, Y)", self.kernel(take(items, block), self._items), n_threads=threads
            )
            part = features[block]
            if values.shape != part.shape:
                raise ValueError(
                    f"kernel(X, Y) must have shape {part.shape}, got {values.shape}"
                )
            features_of(self.triangle_, values, out=part, n_threads=threads)
        return features

    def _fit(self, X: Any) -> Array | None:
        """Choose landmarks; return the features of the training samples if they are known."""
        n_landmarks = check_integer("n_landmarks", self.n_landmarks, minimum=1)
        check_choice("choice", self.choice, ("pivoted", "random"))
        check_real("tolerance", self.tolerance, minimum=0.0, maximum=1.0)
        if self.kernel == "precomputed" and isinstance(X, Prepared):
            items = as_gram("X", X, square=True)
        elif self.kernel == "precomputed":
            items = check_square("X", as_samples("X", X))
        elif callable(self.kernel):
            items = as_items(X)
        else:
            raise TypeError(f'kernel must be a function or "precomputed", got {self.kernel!r}')
        if self.choice == "pivoted":
            result = partial_gram_schmidt(
                (X if isinstance(X, Prepared) else items)
                if self.kernel == "precomputed"
                else KernelColumns.of(self.kernel, items),
                tolerance=self.tolerance,
                max_rank=n_landmarks,
                n_threads=self.n_threads,
            )
            chosen = result.pivots
        else:
            n = n_items(items)
            drawn = check_rng("rng", self.rng).permutation(n)[:n_landmarks]
            if self.kernel == "precomputed":
                own = items[np.ix_(drawn, drawn)]
            else:
                landmarks = take(items, drawn)
                own = as_gram("kernel(X, Y)", self.kernel(landmarks, landmarks))
            result = partial_gram_schmidt(
                own, tolerance=self.tolerance, n_threads=self.n_threads
            )
            chosen = drawn[result.pivots]
        if not len(chosen):
            raise ValueError("the kernel must not be zero on all training samples")
        self.landmarks_ = chosen
        self.triangle_ = result.features[result.pivots]
        self._take_columns(X, items)
        self._items = None if self.kernel == "precomputed" else take(items, chosen)
        return result.features if self.choice == "pivoted" else None


_SUMMED_ROWS = 8192  # of the features that are summed at once


def feature_basis(
    features: npt.ArrayLike, *, tolerance: float = 1e-6, max_rank: int | None = None
) -> KernelBasis:
    r"""Centre and factorise the training features of one view.

    .. math:: H F F^\top H = U \Lambda U^\top

    with H the centring of n samples: the `kernel_basis` of the kernel :math:`F F^\top`, in
    time and memory linear in n.

    Parameters
    ----------
    features : array_like of shape (n_training, n_features)
        F, one row per training sample, for example of `LandmarkFeatures`.
    tolerance : float, default 1e-6
        Share of the trace of the centred kernel that may be left out.
    max_rank : int, optional
        Largest rank.

    Returns
    -------
    KernelBasis
        New rows for it, and for a `KCCA` fitted with it, are features too.

    Raises
    ------
    TypeError
        If the input does not hold real numbers or an option is not of its kind.
    ValueError
        If the features are empty or not finite, all rows are equal, or an option is out of
        range.

    See Also
    --------
    LandmarkFeatures : Features of any kernel.

    Notes
    -----
    Takes O(n_training n_features^2) time and about four times the memory of the features, on
    one thread. Ctrl-C stops the call at once, or at the end of the one LAPACK call (gesdd).
    float32 stays float32; the smallest eigenvalues are then exact to
    ``eps sqrt(largest * smallest)`` only. Directions are left out as rounding where their
    eigenvalue is below :math:`\epsilon^2 (100 \lVert HF \rVert_F^2 + n \lVert \bar f
    \rVert^2)`, with :math:`\bar f` the mean of the features: singular values are wrong by a few
    :math:`\epsilon` of the largest, whatever the number of samples, and eigenvalues are their
    squares.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelcore.kcca import KCCA, feature_basis
    >>> X = np.random.default_rng(0).normal(size=(1000, 3))
    >>> Y = X[:, :2] + 3.0
    >>> kcca = KCCA(2, regularization=0.0).fit(feature_basis(X), feature_basis(Y))
    >>> kcca.correlations_.round(6)
    array([1., 1.])
    >>> kcca.transform_x(X[:5]).shape
    (5, 2)
    """
    matrix = as_gram("features", features)
    eta = check_real("tolerance", tolerance, minimum=0.0, maximum=1.0)
    if max_rank is not None:
        check_integer("max_rank", max_rank, minimum=1)
    if not matrix.size:
        raise ValueError(f"features must not be empty, got shape {matrix.shape}")
    check_size(
        "features", matrix, (float(np.finfo(matrix.dtype).max) / matrix.size) ** 0.5 / 4.0
    )
    centerer = FeatureCenterer(_means(matrix))
    vectors, lengths, rotation = thin_svd(centerer.centred(matrix))
    return basis_of(
        (vectors, lengths, rotation), centerer, len(matrix), tolerance=eta, max_rank=max_rank
    )


def basis_of(
    svd: tuple[Array, Array, Array],
    centerer: FeatureCenterer,
    n_samples: int,
    *,
    tolerance: float,
    max_rank: int | None,
    given_as: npt.DTypeLike | None = None,
) -> KernelBasis:
    """Return the basis of centred features, given their thin SVD and the number of samples.

    `given_as` is the type that the features were rounded to, if it is not that of the SVD.
    """
    vectors, lengths, rotation = svd
    eigenvalues = lengths**2
    rounded = lengths if given_as is None else lengths.astype(given_as)
    rounding = feature_rounding(rounded, centerer.means, n_samples)
    if float(eigenvalues[0]) <= rounding:
        raise ValueError("features must not be constant: nothing is left once they are centred")
    spectrum = eigenvalues.astype(np.float64)
    left_out = spectrum.sum() - np.cumsum(spectrum)
    rank = min(
        np.count_nonzero(left_out > tolerance * spectrum.sum()) + 1,
        np.count_nonzero(eigenvalues > rounding),
        len(eigenvalues) if max_rank is None else max_rank,
    )
    return KernelBasis(
        np.ascontiguousarray(vectors[:, :rank]),
        eigenvalues[:rank],
        np.arange(rotation.shape[1]),
        rotation[:rank].T * lengths[:rank],
        centerer,
        None,
        tolerance=tolerance,
        max_rank=max_rank,
        rounding=rounding,
    )


def _means(matrix: Array) -> npt.NDArray[np.float64]:
    """Means of the columns, with rounding relative to their spread, not to their size.

    Otherwise the rounding of a sum over many rows would appear as a direction.
    """
    means: npt.NDArray[np.float64] = matrix.mean(axis=0, dtype=np.float64)
    for _ in range(2):
        rests = [
            (matrix[start : start + _SUMMED_ROWS] - means).sum(axis=0)
            for start in range(0, len(matrix), _SUMMED_ROWS)
        ]
        means = means + np.sum(rests, axis=0) / len(matrix)
    return means
