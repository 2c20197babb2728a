"""Codebooks of visual words, learned by k-means."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kernelcore._check import as_real_array, check_finite, check_integer, check_rng, no_overflow
from kernelcore._threads import check_stopped, one_blas_thread

# Points compared with the codewords at a time: products of 512 x 256 floats stay in cache.
_BLOCK = 512

_BATCH = 8192
_EPOCHS = 30


@dataclass(frozen=True, eq=False)
class Codebook:
    r"""Visual words: a point has the word of the nearest centre.

    .. math:: w(x) = \arg\min_k \lVert x - c_k \rVert^2
              = \arg\max_k \left( x^\top c_k - \tfrac{1}{2} \lVert c_k \rVert^2 \right)

    Attributes
    ----------
    centers : ndarray of float32, shape (n_words, n_dims)
        The codewords. Any array of finite real numbers is taken.

    Raises
    ------
    TypeError
        If `centers` does not hold real numbers.
    ValueError
        If `centers` is empty, not 2-D or not finite.

    See Also
    --------
    kernelcore.reference.images.nearest_word : The definition in NumPy.

    Examples
    --------
    >>> from kernelcore.images import Codebook
    >>> Codebook([[0.0, 0.0], [4.0, 4.0]]).assign([[1.0, 1.0], [3.0, 2.0]])
    array([0, 1])
    """

    centers: npt.NDArray[np.float32]

    def __post_init__(self) -> None:
        centers = _float32_copy("centers", self.centers)
        if centers.size == 0:
            raise ValueError(f"centers must not be empty, got shape {centers.shape}")
        centers.flags.writeable = False
        object.__setattr__(self, "centers", centers)

    @property
    def n_words(self) -> int:
        """Number of codewords."""
        return len(self.centers)

    @property
    def n_dims(self) -> int:
        """Number of dimensions of a point."""
        return int(self.centers.shape[1])

    def assign(self, points: npt.ArrayLike) -> npt.NDArray[np.intp]:
        """Find the nearest codeword of each point.

        Parameters
        ----------
        points : array_like of shape (n_points, n_dims)
            Finite real numbers, used as float32. A float32 array is used in place, whether
            rows or columns are contiguous.

        Returns
        -------
        ndarray of intp, shape (n_points,)
            Word of each point; the first of several at the same distance. Two words whose
            distances differ by less than float32 rounding, about ``n_dims * eps`` times the
            squared norms, may be taken for equal.

        Raises
        ------
        TypeError
            If `points` does not hold real numbers.
        ValueError
            If `points` is not 2-D, has another number of dimensions or is not finite.
        """
        if not (isinstance(points, np.ndarray) and points.dtype == np.float32):
            points = _float32_copy("points", points)
        if points.ndim != 2 or points.shape[1] != self.n_dims:
            raise ValueError(
                f"points must have shape (n_points, {self.n_dims}), got {points.shape}"
            )
        check_finite("points", points)
        with one_blas_thread():
            return nearest_word(points, self.centers)


def nearest_word(
    points: npt.NDArray[np.float32], centers: npt.NDArray[np.float32]
) -> npt.NDArray[np.intp]:
    """Index of the centre nearest to each point; call it within `one_blas_thread`."""
    # Shifting the origin changes no distance; about the centres' mean fewer digits are lost.
    origin = centers.mean(axis=0, dtype=np.float64)
    shifted = centers - origin
    directions = np.ascontiguousarray(shifted.T, dtype=np.float32)
    with no_overflow("centers", "have squared distances within float32"):
        thresholds = (shifted @ origin + (shifted**2).sum(axis=1) / 2).astype(np.float32)
    _check_reach(points, float(np.abs(directions).max()))
    words = np.empty(len(points), dtype=np.intp)
    scores = np.empty((_BLOCK, len(centers)), dtype=np.float32)
    for start in range(0, len(points), _BLOCK):
        check_stopped()
        block = points[start : start + _BLOCK]
        # BLAS may raise the flag for lanes beyond the block; all that it is given is finite.
        with np.errstate(invalid="ignore"):
            block_scores = np.matmul(block, directions, out=scores[: len(block)])
        block_scores -= thresholds
        words[start : start + _BLOCK] = block_scores.argmax(axis=1)
    return words


def learn_codebook(
    points: npt.ArrayLike, n_words: int, *, rng: np.random.Generator | int | None = None
) -> Codebook:
    """Learn a codebook by mini-batch k-means with k-means++ starts.

    Parameters
    ----------
    points : array_like of shape (n_points, n_dims)
        A sample of feature vectors, used as float32.
    n_words : int
        Number of codewords to learn; as many as there are different points if that is less.
    rng : Generator or int, optional
        Source of the starts and batches.

    Returns
    -------
    Codebook
        The same for the same points and `rng` on any number of threads or cores.

    Raises
    ------
    TypeError
        If `points` does not hold real numbers.
    ValueError
        If `points` is empty, not 2-D or not finite, or `n_words` is less than 1.

    References
    ----------
    .. [1] D. Sculley, "Web-scale k-means clustering", WWW 2010.
    .. [2] D. Arthur and S. Vassilvitskii, "k-means++: the advantages of careful seeding",
       SODA 2007.

    Examples
    --------
    >>> from kernelcore.images import learn_codebook
    >>> learn_codebook([[0.0], [0.2], [9.0], [9.2]], n_words=2, rng=0).n_words
    2
    """
    from sklearn.cluster import MiniBatchKMeans
    from threadpoolctl import threadpool_limits

    n_words = check_integer("n_words", n_words, minimum=1)
    sample = _float32_copy("points", points)
    if sample.size == 0:
        raise ValueError(f"points must not be empty, got shape {sample.shape}")
    _check_reach(sample, 2.0 * float(np.abs(sample).max()))
    n_words = min(n_words, len({point.tobytes() for point in sample}))
    seed = int(check_rng("rng", rng).integers(2**31))
    clustering = MiniBatchKMeans(
        n_words, batch_size=_BATCH, max_iter=_EPOCHS, n_init=1, random_state=seed
    )
    # The sums behind a centre are cut by threads, and rounded where they are cut.
    with one_blas_thread(), threadpool_limits(1, user_api="openmp"):
        clustering.fit(sample)
    return Codebook(clustering.cluster_centers_)


def _float32_copy(name: str, value: npt.ArrayLike) -> npt.NDArray[np.float32]:
    matrix = check_finite(name, as_real_array(name, value, ndim=2))
    with no_overflow(name, "fit into float32"):
        return matrix.astype(np.float32)


def _check_reach(points: npt.NDArray[np.float32], largest: float) -> None:
    """Refuse points whose products with vectors of such entries might overflow float32."""
    reach = max(float(points.max(initial=0.0)), -float(points.min(initial=0.0)))
    if 2.0 * points.shape[1] * reach * largest > float(np.finfo(np.float32).max):
        raise ValueError(
            f"points must have squared distances within float32, got an entry of {reach:.3g}"
        )
