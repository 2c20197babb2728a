"""Orthonormal basis of a view's centred training kernel, and its eigenvalues."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.linalg import solve_triangular

from kernelcore._check import Array, check_choice, check_integer, check_real
from kernelcore._estimator import params_to_json
from kernelcore._store import check_tensor, load_tensors, reading, save_tensors
from kernelcore._threads import one_blas_thread, resolve_n_threads
from kernelcore.kcca._centering import (
    Centerer,
    FeatureCenterer,
    centerer_from,
    centering_tensors,
    columns_from,
    width_of,
)
from kernelcore.kcca.decompositions import (
    check_size,
    eigh,
    feature_rounding,
    gram_rounding,
    thin_svd,
)
from kernelcore.kcca.gram_schmidt import as_symmetric_gram, orthogonalize
from kernelcore.kernels.gram import GramCenterer


class WholeSpectrum(NamedTuple):
    """An eigen-decomposition before a tolerance cuts it.

    Attributes
    ----------
    vectors : ndarray of shape (n_training, n_vectors)
        Eigenvectors of the centred kernel: all n_training - 1, or `max_rank` of them.
    eigenvalues : ndarray of shape (n_training - 1,)
        All of them, descending.
    """

    vectors: npt.NDArray[Any]
    eigenvalues: npt.NDArray[Any]


class Parts(NamedTuple):
    """Fields of `KernelBasis` that a decomposition computes."""

    vectors: Array
    eigenvalues: Array
    columns: npt.NDArray[np.intp]
    expansion: Array
    rounding: float
    whole: WholeSpectrum | None


def by_gram_schmidt(
    K: Array, centerer: GramCenterer, tolerance: float, max_rank: int | None, n_threads: int
) -> Parts:
    """Factorise by partial Gram-Schmidt, then by a thin SVD of its features."""
    result = orthogonalize(K, tolerance, max_rank, centerer, n_threads)
    if not result.rank:
        none = np.empty(0, K.dtype)
        return Parts(result.features, none, result.pivots, result.features, 0.0, None)
    vectors, lengths, rotation = thin_svd(result.features)
    # A row of kernel values k has the features phi = L^-1 k at the pivots, R = U S V' and
    # hence the coordinates k_c U = phi R' U = phi V S.
    triangle = result.features[result.pivots]
    expansion = solve_triangular(triangle, rotation.T * lengths, lower=True, trans="T")
    rounding = feature_rounding(lengths, np.zeros(1), len(K))
    return Parts(vectors, lengths**2, result.pivots, expansion, rounding, None)


def by_eigenvectors(
    K: Array, centerer: GramCenterer, tolerance: float, max_rank: int | None, keep_all: bool
) -> Parts:
    """Factorise by eigenvectors; `keep_all` also keeps those beyond the tolerance."""
    n = len(K)
    centred = centerer.centred(K)
    # The constant vector belongs to the eigenvalue 0. Where others do too, the solver mixes
    # them; moved below all others, it comes out alone and last, and is left out.
    centred -= 2.0 * np.linalg.norm(centred) / n
    eigenvalues, vectors = (part[..., : n - 1] for part in eigh(centred))
    rank = kept_rank(eigenvalues, tolerance, max_rank)
    most = rank
    if keep_all:
        most = n - 1 if max_rank is None else min(max_rank, n - 1)
    held = np.ascontiguousarray(vectors[:, :most])
    kept = held if rank == most else held[:, :rank]
    return Parts(
        kept,
        eigenvalues[:rank],
        np.arange(n),
        kept,
        gram_rounding(K, eigenvalues),
        None if rank == most else WholeSpectrum(held, eigenvalues),
    )


def kept_rank(eigenvalues: Array, tolerance: float, max_rank: int | None) -> int:
    """Count the first eigenvalues that leave no more than the tolerance."""
    positive = np.maximum(eigenvalues, 0.0, dtype=np.float64)
    left_out = positive.sum() - np.cumsum(positive)
    rank = len(eigenvalues)
    if tolerance > 0.0:
        rank = min(rank, int(np.count_nonzero(left_out > tolerance * positive.sum())) + 1)
    return rank if max_rank is None else min(rank, max_rank)


def constant_diagonal(K: Array) -> float | None:
    """Return the value of the diagonal if it is one value up to rounding."""
    diagonal = K.diagonal()
    if not diagonal.size:
        return None
    value = float(diagonal.mean(dtype=np.float64))
    slack = 10 * float(np.finfo(K.dtype).eps) * abs(value)
    return value if float(np.abs(diagonal - value).max()) <= slack else None


Decomposition: TypeAlias = Literal["gram_schmidt", "eigen"]

_KIND = "kernel basis"
_TENSORS, _OPTIONAL = ("vectors", "eigenvalues", "columns"), {"expansion"}
_OPTIONS = ("decomposition", "tolerance", "max_rank")


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
        Bound of the rounding of eigenvalues: smaller ones cannot be told from 0.
    whole : WholeSpectrum or None
        The eigen-decomposition before the tolerance cut it, where the diagonal is constant: a
        ridge lifts the directions beyond the tolerance too.
    """

    vectors: npt.NDArray[Any]
    eigenvalues: npt.NDArray[Any]
    columns: npt.NDArray[np.intp]
    expansion: npt.NDArray[Any]
    centerer: Centerer
    diagonal: float | None
    decomposition: Decomposition = "gram_schmidt"
    tolerance: float = 1e-6
    max_rank: int | None = None
    rounding: float = 0.0
    whole: WholeSpectrum | None = None

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

    def spectrum(self, ridge: float = 1.0) -> npt.NDArray[Any]:
        """Positive eigenvalues once the kernel's diagonal is multiplied by `ridge`."""
        basis = self.lifted(ridge)
        positive: Array = basis.eigenvalues[basis.eigenvalues > basis.rounding]
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
        The directions of a null space have one eigenvalue in common then, and any basis of it
        is as good as another. A tolerance keeps or leaves it whole here, so nothing depends on
        the one that the solver gave. Only `max_rank` may cut through it: the result is then
        that of an arbitrary choice, the same one for a grid and for a single fit. A
        decomposition of ``kernels.ridge(K, d)`` may choose otherwise there, and its tolerance
        cuts through the null space where it happens to.
        """
        if ridge == 1.0:
            return self
        if self.diagonal is None or not self._holds_all():
            raise ValueError(
                'ridge must be 1 unless the decomposition is "eigen" (of this version, where '
                "it was loaded) and the training kernel has a constant diagonal, "
                f"got {ridge}"
            )
        shift = (ridge - 1.0) * self.diagonal
        eigenvalues = self.eigenvalues if self.whole is None else self.whole.eigenvalues
        limit = float(np.finfo(eigenvalues.dtype).max)
        if abs(shift) + float(np.abs(eigenvalues).max()) > limit:
            raise ValueError(
                f"ridge must keep eigenvalues within the range of {eigenvalues.dtype}, "
                f"got {ridge} for a diagonal of {self.diagonal}"
            )
        eigenvalues = eigenvalues + eigenvalues.dtype.type(shift)
        vectors, expansion, whole = self.vectors, self.expansion, None
        if self.whole is not None:
            whole = WholeSpectrum(self.whole.vectors, eigenvalues)
            rank = kept_rank(eigenvalues, self.tolerance, self.max_rank)
            is_null = np.abs(self.whole.eigenvalues) <= self.rounding
            if is_null[rank - 1]:
                rank = min(int(np.flatnonzero(is_null)[-1]) + 1, whole.vectors.shape[1])
            if rank > vectors.shape[1]:
                vectors = expansion = whole.vectors[:, :rank]
            eigenvalues = eigenvalues[:rank]
        return replace(
            self,
            vectors=vectors,
            eigenvalues=eigenvalues,
            expansion=expansion,
            diagonal=ridge * self.diagonal,
            whole=whole,
        )

    def _holds_all(self) -> bool:
        """Whether no direction is missing that the options would keep once a ridge lifts it."""
        n_directions = len(self.vectors) - 1
        if len(self.eigenvalues) == n_directions or self.whole is not None:
            return True
        # A lift flattens the spectrum: where the largest rank cut it, it does so again.
        return self.decomposition == "eigen" and len(self.eigenvalues) == self.max_rank

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the basis as one safetensors file, whole or not at all."""
        vectors, eigenvalues = self.whole or (self.vectors, self.eigenvalues)
        tensors = {"vectors": vectors, "eigenvalues": eigenvalues, "columns": self.columns}
        tensors |= centering_tensors(self.centerer)
        if self.expansion is not self.vectors:
            tensors["expansion"] = self.expansion
        metadata = {
            "diagonal": self.diagonal,
            "rounding": self.rounding,
            "rank": len(self.eigenvalues),
            **params_to_json(self.options),
        }
        save_tensors(path, _KIND, tensors, metadata)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> KernelBasis:
        """Load the output of `save`; a damaged file raises ValueError."""
        with reading(path):
            tensors, metadata = load_tensors(path, _KIND)
            options = {name: metadata[name] for name in _OPTIONS}
            check_options(**options)
            vectors = check_tensor("vectors", tensors["vectors"], (None, None))
            n_directions, dtype = vectors.shape[1], vectors.dtype
            eigenvalues = check_tensor("eigenvalues", tensors["eigenvalues"], (None,), dtype)
            if not n_directions <= len(eigenvalues) <= len(vectors):
                raise ValueError(
                    f"eigenvalues must be as many as vectors ({n_directions}) or more, up to "
                    f"the number of samples ({len(vectors)}), got {len(eigenvalues)}"
                )
            rank = check_integer("rank", metadata["rank"], minimum=0, maximum=n_directions)
            kept = vectors[:, :rank]
            rounding = check_real("rounding", metadata["rounding"], minimum=0)
            centerer = centerer_from(tensors)
            columns = columns_from(tensors, centerer)
            if not isinstance(centerer, FeatureCenterer) and width_of(centerer) != len(vectors):
                raise ValueError(
                    f"column_means must have one entry per row of vectors ({len(vectors)}), "
                    f"got {width_of(centerer)}"
                )
            tensors.exactly(
                *_TENSORS, *centering_tensors(centerer), *_OPTIONAL & tensors.keys()
            )
            diagonal = metadata["diagonal"]
            return cls(
                kept,
                eigenvalues[:rank],
                columns,
                check_tensor(
                    "expansion", tensors.get("expansion", kept), (len(columns), rank), dtype
                ),
                centerer,
                None if diagonal is None else check_real("diagonal", diagonal),
                rounding=rounding,
                whole=WholeSpectrum(vectors, eigenvalues) if rank < len(eigenvalues) else None,
                **options,
            )


def kernel_basis(
    K: npt.ArrayLike,
    *,
    decomposition: Decomposition = "gram_schmidt",
    tolerance: float = 1e-6,
    max_rank: int | None = None,
    n_threads: int | None = None,
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
    threads = resolve_n_threads(n_threads)
    return named_kernel_basis("K", K, decomposition, tolerance, max_rank, n_threads=threads)


def named_kernel_basis(
    name: str,
    value: npt.ArrayLike,
    decomposition: Decomposition,
    tolerance: float,
    max_rank: int | None,
    *,
    n_threads: int,
) -> KernelBasis:
    """Compute `kernel_basis`; errors call the argument `name`."""
    check_options(decomposition, tolerance, max_rank)
    eta = float(tolerance)
    K = as_symmetric_gram(name, value, n_threads=n_threads)
    # Squares of elements are summed over the whole matrix.
    check_size(name, K, float(np.finfo(K.dtype).max) ** 0.5 / (4.0 * len(K)))
    centerer = GramCenterer().fit(K)
    diagonal = constant_diagonal(K)
    with one_blas_thread():
        if decomposition == "gram_schmidt":
            parts = by_gram_schmidt(K, centerer, eta, max_rank, n_threads)
        else:
            parts = by_eigenvectors(K, centerer, eta, max_rank, diagonal is not None)
    if not parts.eigenvalues.size or parts.eigenvalues[0] <= parts.rounding:
        raise ValueError(f"{name} must not be constant: nothing is left once it is centred")
    return KernelBasis(
        parts.vectors,
        parts.eigenvalues,
        parts.columns,
        parts.expansion,
        centerer,
        diagonal,
        decomposition,
        tolerance,
        max_rank,
        parts.rounding,
        parts.whole,
    )


def check_options(decomposition: str, tolerance: float, max_rank: int | None) -> None:
    """Raise unless a kernel can be factorised with these options."""
    check_choice("decomposition", decomposition, ("gram_schmidt", "eigen"))
    check_real("tolerance", tolerance, minimum=0.0, maximum=1.0)
    if max_rank is not None:
        check_integer("max_rank", max_rank, minimum=1)


def project(
    centerer: Centerer, columns: npt.NDArray[np.intp], expansion: Array, K: npt.ArrayLike
) -> Array:
    """Centre rows of kernel values and multiply the selected columns by `expansion`."""
    with one_blas_thread(), np.errstate(over="ignore", invalid="ignore"):
        centred = centerer.centred(K)
        if len(columns) < centred.shape[1]:
            centred = centred[:, columns]
        product: Array = centred @ expansion
    if not np.isfinite(product).all():
        raise ValueError(
            f"K must be small enough for its projection to be a {product.dtype}, "
            f"got an element of {np.abs(np.asarray(K)).max()}"
        )
    return product
