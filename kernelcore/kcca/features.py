"""Basis of a view that is given by features, without an n x n kernel matrix."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kernelcore._validation import Array, check_integer, check_real
from kernelcore.kcca._centering import FeatureCenterer
from kernelcore.kcca.basis import KernelBasis
from kernelcore.kcca.decompositions import thin_svd
from kernelcore.kcca.rounding import check_size, feature_rounding
from kernelcore.kernels.gram import as_gram

_ROWS = 8192  # of the features that are summed at once


def feature_basis(
    features: npt.ArrayLike, *, tolerance: float = 1e-6, max_rank: int | None = None
) -> KernelBasis:
    r"""Centre and factorise the training features of one view.

    .. math:: H F F^\top H = U \Lambda U^\top

    with H the centring of n samples: what `kernel_basis` gives for the kernel
    :math:`F F^\top`, in time and memory linear in n.

    Parameters
    ----------
    features : array_like of shape (n_training, n_features)
        F, one row per training sample: those of `LandmarkFeatures`, say.
    tolerance : float, default 1e-6
        Share of the trace of the centred kernel that may be left out.
    max_rank : int, optional
        Largest rank.

    Returns
    -------
    KernelBasis
        New rows are given to it, and to a `KCCA` fitted with it, as features too.

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
    one thread. Ctrl-C is heard at once but for the one LAPACK call (gesdd), which ends first.
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
    eigenvalues = lengths**2
    rounding = feature_rounding(lengths, centerer.means, len(matrix))
    if float(eigenvalues[0]) <= rounding:
        raise ValueError("features must not be constant: nothing is left once they are centred")
    spectrum = eigenvalues.astype(np.float64)
    left_out = spectrum.sum() - np.cumsum(spectrum)
    rank = min(
        np.count_nonzero(left_out > eta * spectrum.sum()) + 1,
        np.count_nonzero(eigenvalues > rounding),
        len(eigenvalues) if max_rank is None else max_rank,
    )
    return KernelBasis(
        np.ascontiguousarray(vectors[:, :rank]),
        eigenvalues[:rank],
        np.arange(matrix.shape[1]),
        rotation[:rank].T * lengths[:rank],
        centerer,
        None,
        tolerance=tolerance,
        max_rank=max_rank,
        rounding=rounding,
    )


def _means(matrix: Array) -> npt.NDArray[np.float64]:
    """Means of the columns, to the rounding of their spread and not of their size.

    What a sum over many rows loses would come back as a direction, the same for all rows.
    """
    means: npt.NDArray[np.float64] = matrix.mean(axis=0, dtype=np.float64)
    for _ in range(2):
        rests = [
            (matrix[start : start + _ROWS] - means).sum(axis=0)
            for start in range(0, len(matrix), _ROWS)
        ]
        means = means + np.sum(rests, axis=0) / len(matrix)
    return means
