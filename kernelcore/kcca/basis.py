"""Orthonormal basis of a view's centred training kernel, and its eigenvalues."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from kernelcore._check import Array, check_choice, check_indices, check_integer, check_real
from kernelcore._estimator import params_to_json
from kernelcore._store import check_tensor, load_tensors, reading, save_tensors
from kernelcore._threads import one_blas_thread, resolve_n_threads
from kernelcore.kcca.decompositions import (
    check_size,
    eigh,
    feature_rounding,
    gram_rounding,
    thin_svd,
)
from kernelcore.kcca.gram_schmidt import orthogonalize
from kernelcore.kernels.gram import (
    Centerer,
    FeatureCenterer,
    GramCenterer,
    as_gram,
    as_symmetric_gram,
    project,
)

Decomposition: TypeAlias = Literal["gram_schmidt", "eigen"]

_KIND = "kernel basis"
_OPTIONS = ("decomposition", "tolerance", "max_rank")
_SUMMED_ROWS = 8192  # of the features that are summed at once


def centring_tensors(
    centerer: Centerer, columns: npt.NDArray[np.intp], prefix: str = ""
) -> dict[str, Array]:
    """Means and columns, named by whether they are of features or of kernel values."""
    if isinstance(centerer, FeatureCenterer):
        means = {f"{prefix}feature_means": centerer.means}
    else:
        means = {f"{prefix}column_means": centerer.column_means_}
    return {**means, f"{prefix}columns": columns}


def centring_from(
    tensors: Mapping[str, Array], n_training: int, prefix: str = ""
) -> tuple[Centerer, npt.NDArray[np.intp]]:
    """Centerer and columns of the output of `centring_tensors`, checked."""
    of_features = f"{prefix}feature_means" in tensors
    name = f"{prefix}feature_means" if of_features else f"{prefix}column_means"
    shape = (None if of_features else n_training,)
    means = check_tensor(name, tensors[name], shape, np.float64)
    if not len(means):
        raise ValueError(f"{name} must not be empty")
    name = f"{prefix}columns"
    columns = check_tensor(name, tensors[name], (None,), np.intp)
    check_indices(name, columns, len(means))
    if len({*columns.tolist()}) != len(columns):
        raise ValueError(f"{name} must name a column once")
    return FeatureCenterer(means) if of_features else GramCenterer.from_means(means), columns


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
        partial Gram-Schmidt, or all; all features where it was made by `feature_basis`.
    expansion : ndarray of shape (n_columns, rank)
        Turns a centred row of those kernel values into coordinates in U.
    centerer : GramCenterer or FeatureCenterer
        Means of the training kernel, or of the training features.
    diagonal : float or None
        Value of the diagonal of the training kernel before centring, if it is constant: then
        a ridge shifts all eigenvalues by the same amount.
    decomposition, tolerance, max_rank
        The options of `kernel_basis` that it was made with.
    rounding : float
        Bound of the rounding of eigenvalues: smaller ones cannot be distinguished from 0.
    all_vectors, all_eigenvalues, all_expansion : ndarray
        The decomposition before the tolerance cut it to `rank` directions, where the diagonal
        is constant: a ridge lifts the directions beyond the tolerance too.
    rank : int
        Number of directions that the tolerance kept.
    """

    all_vectors: npt.NDArray[Any]
    all_eigenvalues: npt.NDArray[Any]
    rank: int
    columns: npt.NDArray[np.intp]
    all_expansion: npt.NDArray[Any]  # the vectors themselves where all samples are columns
    centerer: Centerer
    diagonal: float | None
    decomposition: Decomposition = "gram_schmidt"
    tolerance: float = 1e-6
    max_rank: int | None = None
    rounding: float = 0.0

    @property
    def vectors(self) -> npt.NDArray[Any]:
        """U, with orthonormal columns that sum to zero."""
        return self.all_vectors[:, : self.rank]

    @property
    def eigenvalues(self) -> npt.NDArray[Any]:
        """Eigenvalues of the directions that the tolerance kept, descending."""
        return self.all_eigenvalues[: self.rank]

    @property
    def expansion(self) -> npt.NDArray[Any]:
        """Matrix that turns a centred row of kernel values into coordinates in U."""
        return self.all_expansion[:, : self.rank]

    @property
    def options(self) -> dict[str, Any]:
        """The options of `kernel_basis`, by name."""
        return {name: getattr(self, name) for name in _OPTIONS}

    def coordinates(self, K: npt.ArrayLike) -> npt.NDArray[Any]:
        """Product of the centred rows of kernel values with the basis.

        Parameters
        ----------
        K : array_like of shape (n_samples, n_training)
            Kernel of new or training samples with the training samples.

        Returns
        -------
        ndarray of shape (n_samples, rank)
            For the training samples ``vectors * eigenvalues``, up to rounding.
        """
        return project(self.centerer, self.columns, self.expansion, K)

    def spectrum(self) -> npt.NDArray[Any]:
        """Eigenvalues above the bound of their rounding."""
        eigenvalues = self.all_eigenvalues[: self.rank]
        positive: Array = eigenvalues[eigenvalues > self.rounding]
        return positive

    def lifted(self, ridge: float) -> KernelBasis:
        r"""Return the basis of the same kernel with its diagonal multiplied by `ridge`.

        A constant diagonal c multiplied by d adds c (d - 1) to all n_training - 1 eigenvalues
        of the centred kernel and leaves its eigenvectors alone. The tolerance and the largest
        rank then choose among all directions anew, as they would for ``kernels.ridge(K, d)``.

        Parameters
        ----------
        ridge : float
            Factor d >= 1; 1 returns this very basis.

        Returns
        -------
        KernelBasis

        Raises
        ------
        ValueError
            If the basis lacks directions that a ridge lifts: unless it is of decomposition
            "eigen" and the diagonal of the kernel constant, or holds n_training - 1 directions.
            Or if an eigenvalue would be beyond the range of its dtype.

        Notes
        -----
        The directions of a null space then share one eigenvalue, and any basis of it serves.
        The tolerance keeps or drops the null space as a whole, whatever basis the solver
        chose. Only `max_rank` may cut through it: that choice is arbitrary, but the same for a
        grid and for a single fit. A decomposition of ``kernels.ridge(K, d)`` may choose
        another basis, and its tolerance may cut through the null space.
        """
        if ridge == 1.0:
            return self
        if self.diagonal is None or not self._holds_all():
            raise ValueError(
                'ridge must be 1 unless the decomposition is "eigen" and the training kernel '
                f"has a constant diagonal, got {ridge}"
            )
        shift = (ridge - 1.0) * self.diagonal
        eigenvalues = self.all_eigenvalues
        limit = float(np.finfo(eigenvalues.dtype).max)
        if abs(shift) + float(np.abs(self.all_eigenvalues).max()) > limit:
            raise ValueError(
                f"ridge must keep eigenvalues within the range of {eigenvalues.dtype}, "
                f"got {ridge} for a diagonal of {self.diagonal}"
            )
        eigenvalues = eigenvalues + eigenvalues.dtype.type(shift)
        rank = self.rank
        if len(eigenvalues) > rank:
            rank = _kept_rank(eigenvalues, self.tolerance, self.max_rank)
            is_null = np.abs(self.all_eigenvalues) <= self.rounding
            if is_null[rank - 1]:
                rank = min(int(np.flatnonzero(is_null)[-1]) + 1, self.all_vectors.shape[1])
        return replace(
            self, all_eigenvalues=eigenvalues, rank=rank, diagonal=ridge * self.diagonal
        )

    def _holds_all(self) -> bool:
        """Whether no direction is missing that the options would keep once a ridge lifts it."""
        n_known = len(self.all_eigenvalues)
        if n_known > self.rank or n_known == len(self.all_vectors) - 1:
            return True
        # A lift flattens the spectrum: where the largest rank cut it, it does so again.
        return self.decomposition == "eigen" and self.rank == self.max_rank

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the basis as one safetensors file, whole or not at all."""
        tensors = {"vectors": self.all_vectors, "eigenvalues": self.all_eigenvalues}
        if self.all_expansion is not self.all_vectors:
            tensors["expansion"] = self.all_expansion
        tensors |= centring_tensors(self.centerer, self.columns)
        numbers = {"rank": self.rank, "rounding": self.rounding, "diagonal": self.diagonal}
        save_tensors(path, _KIND, tensors, numbers | params_to_json(self.options))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> KernelBasis:
        """Load the output of `save`; a damaged file raises ValueError."""
        with reading(path):
            tensors, metadata = load_tensors(path, _KIND)
            options = {name: metadata[name] for name in _OPTIONS}
            check_options(**options)
            vectors = check_tensor("vectors", tensors["vectors"], (None, None))
            n_samples, n_directions = vectors.shape
            eigenvalues = check_tensor(
                "eigenvalues", tensors["eigenvalues"], (None,), vectors.dtype
            )
            if not n_directions <= len(eigenvalues) <= n_samples:
                raise ValueError(
                    f"eigenvalues must be from {n_directions} to {n_samples}, "
                    f"got {len(eigenvalues)}"
                )
            centerer, columns = centring_from(tensors, n_samples)
            shape = (len(columns), n_directions)
            expansion = tensors.get("expansion", vectors)
            names = ("vectors", "eigenvalues", *centring_tensors(centerer, columns))
            tensors.exactly(*names, *{"expansion"} & tensors.keys())
            diagonal = metadata["diagonal"]
            return cls(
                vectors,
                eigenvalues,
                check_integer("rank", metadata["rank"], minimum=0, maximum=n_directions),
                columns,
                check_tensor("expansion", expansion, shape, vectors.dtype),
                centerer,
                None if diagonal is None else check_real("diagonal", diagonal),
                rounding=check_real("rounding", metadata["rounding"], minimum=0),
                **options,
            )


def kernel_basis(
    K: npt.ArrayLike,
    *,
    decomposition: Decomposition = "gram_schmidt",
    tolerance: float = 1e-6,
    max_rank: int | None = None,
    n_threads: int | None = None,
    name: str = "K",
) -> KernelBasis:
    """Centre and factorise the training kernel of one view.

    `factorize` does this for two views; a basis made here serves again with every kernel of
    the other view.

    Parameters
    ----------
    K : array_like of shape (n_training, n_training)
        Symmetric Gram matrix, not centred.
    decomposition : {"gram_schmidt", "eigen"}, default "gram_schmidt"
        Partial Gram-Schmidt and a thin singular value decomposition, which read only some
        columns of the kernel; or the whole eigen-decomposition, which is better for kernels
        whose eigenvalues fall slowly and for grids with a ridge.
    tolerance : float, default 1e-6
        Share of the kernel's trace that may be left out; see `partial_gram_schmidt`. With
        "eigen" 0 keeps every eigenvector, also of negative eigenvalues.
    max_rank : int, optional
        Largest rank.
    n_threads : int, optional
        Threads for partial Gram-Schmidt; the default is every core this process may run on.
        An eigen-decomposition takes one. The result is the same, bit for bit.
    name : str, default "K"
        Name of the kernel in errors.

    Returns
    -------
    KernelBasis

    Raises
    ------
    TypeError
        If the input does not hold real numbers or an option is not of its kind.
    ValueError
        If the matrix is not square, symmetric and finite, the centred kernel is zero, or an
        option is out of range.

    Notes
    -----
    Ctrl-C stops the call at once, or at the end of a LAPACK call: syevd of the whole matrix
    for "eigen", gesdd of the features for "gram_schmidt".

    Examples
    --------
    >>> from kernelcore.kcca import kernel_basis
    >>> kernel_basis([[1.0, 0.8, 0.0], [0.8, 1.0, 0.0], [0.0, 0.0, 1.0]]).eigenvalues.round(3)
    array([1.267, 0.2  ])
    """
    check_options(decomposition, tolerance, max_rank)
    threads = resolve_n_threads(n_threads)
    matrix = as_symmetric_gram(name, K, n_threads=threads)
    # Squares of elements are summed over the whole matrix.
    check_size(name, matrix, float(np.finfo(matrix.dtype).max) ** 0.5 / (4.0 * len(matrix)))
    centerer = GramCenterer.from_means(matrix.mean(axis=0, dtype=np.float64))
    diagonal = constant_diagonal(matrix)
    options: Any = dict(zip(_OPTIONS, (decomposition, tolerance, max_rank), strict=True))
    with one_blas_thread():
        if decomposition == "gram_schmidt":
            basis = _by_gram_schmidt(matrix, centerer, diagonal, options, threads)
        else:
            basis = _by_eigenvectors(matrix, centerer, diagonal, options)
    if basis is None or basis.all_eigenvalues[0] <= basis.rounding:
        raise ValueError(f"{name} must not be constant: nothing is left once it is centred")
    return basis


def _by_gram_schmidt(
    K: Array, centerer: GramCenterer, diagonal: float | None, options: Any, n_threads: int
) -> KernelBasis | None:
    """Basis by partial Gram-Schmidt and a thin SVD of its features; None of no feature."""
    from scipy.linalg import solve_triangular

    result = orthogonalize(
        K, float(options["tolerance"]), options["max_rank"], centerer, n_threads
    )
    if not len(result.pivots):
        return None
    vectors, lengths, rotation = thin_svd(result.features)
    # A row of kernel values k has the features phi = L^-1 k at the pivots, R = U S V' and
    # hence the coordinates k_c U = phi R' U = phi V S.
    triangle = result.features[result.pivots]
    expansion = solve_triangular(triangle, rotation.T * lengths, lower=True, trans="T")
    rounding = feature_rounding(lengths, np.zeros(1), len(K))
    return KernelBasis(
        vectors,
        lengths**2,
        len(lengths),
        result.pivots,
        expansion,
        centerer,
        diagonal,
        rounding=rounding,
        **options,
    )


def _by_eigenvectors(
    K: Array, centerer: GramCenterer, diagonal: float | None, options: Any
) -> KernelBasis | None:
    """Basis of eigenvectors; a constant diagonal keeps those beyond the tolerance too."""
    n = len(K)
    if n == 1:
        return None
    centred = centerer.transform(K)
    # The constant vector belongs to the eigenvalue 0. Where others do too, the solver mixes
    # them; moved below all others, it comes out alone and last, and is left out.
    centred -= 2.0 * np.linalg.norm(centred) / n
    eigenvalues, vectors = (part[..., : n - 1] for part in eigh(centred))
    rank = most = _kept_rank(eigenvalues, float(options["tolerance"]), options["max_rank"])
    if diagonal is not None:
        most = n - 1 if options["max_rank"] is None else min(options["max_rank"], n - 1)
    vectors = np.ascontiguousarray(vectors[:, :most])
    return KernelBasis(
        vectors,
        eigenvalues[:rank] if rank == most else eigenvalues,
        rank,
        np.arange(n),
        vectors,
        centerer,
        diagonal,
        rounding=gram_rounding(K, eigenvalues),
        **options,
    )


def _kept_rank(eigenvalues: Array, tolerance: float, max_rank: int | None) -> int:
    """Count the eigenvalues to keep; a tolerance of 0 keeps negative ones, too."""
    rank = len(eigenvalues) if max_rank is None else min(len(eigenvalues), max_rank)
    return min(rank, _n_within(eigenvalues, tolerance)) if tolerance > 0.0 else rank


def _n_within(eigenvalues: Array, tolerance: float) -> int:
    """Count the first eigenvalues that leave no more than this share of the positive ones."""
    positive = np.maximum(eigenvalues, 0.0, dtype=np.float64)
    left_out = positive.sum() - np.cumsum(positive)
    return int(np.count_nonzero(left_out > tolerance * positive.sum())) + 1


def constant_diagonal(K: Array) -> float | None:
    """Return the value of the diagonal if it is one value up to rounding."""
    diagonal = K.diagonal()
    value = float(diagonal.mean(dtype=np.float64))
    slack = 10 * float(np.finfo(K.dtype).eps) * abs(value)
    return value if float(np.abs(diagonal - value).max()) <= slack else None


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
    check_options("gram_schmidt", tolerance, max_rank)
    if not matrix.size:
        raise ValueError(f"features must not be empty, got shape {matrix.shape}")
    check_size(
        "features", matrix, (float(np.finfo(matrix.dtype).max) / matrix.size) ** 0.5 / 4.0
    )
    centerer = FeatureCenterer(_means(matrix))
    svd = thin_svd(centerer.transform(matrix))
    return basis_of(svd, centerer, len(matrix), tolerance=float(tolerance), max_rank=max_rank)


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
    rank = min(
        _n_within(eigenvalues, tolerance),
        int(np.count_nonzero(eigenvalues > rounding)),
        len(eigenvalues) if max_rank is None else max_rank,
    )
    return KernelBasis(
        np.ascontiguousarray(vectors[:, :rank]),
        eigenvalues[:rank],
        rank,
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


def check_options(decomposition: str, tolerance: float, max_rank: int | None) -> None:
    """Raise unless a kernel can be factorised with these options."""
    check_choice("decomposition", decomposition, ("gram_schmidt", "eigen"))
    check_real("tolerance", tolerance, minimum=0.0, maximum=1.0)
    if max_rank is not None:
        check_integer("max_rank", max_rank, minimum=1)
