"""Visual words: codebooks, learned by k-means, and the histograms of their words in photos.

`VisualWords` is the estimator on top. A `Recipe` has the settings from a photo to its dense
features; with codebooks it counts the words of a photo.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from kernelcore import _extras
from kernelcore._check import (
    as_real_array,
    check_finite,
    check_integer,
    check_rng,
    no_overflow,
)
from kernelcore._store import digest
from kernelcore._threads import Progress, check_stopped, one_blas_thread, reporting
from kernelcore.errors import (
    UnreadableImageError,
)
from kernelcore.images._describe import (
    FeatureCache,
    OnError,
    all_there,
    over_images,
    report_failures,
)
from kernelcore.images.dense import (
    SIFT_LENGTH,
    DenseFeatures,
    cielab,
    dense_sift,
    oriented_energy,
)
from kernelcore.images.pyramid import (
    Counts,
    CountsType,
    SpatialHistograms,
    count_words,
    counts_dtype,
    grid_cells,
)
from kernelcore.images.read import (
    ImageSources,
    Photo,
    RGBImage,
    limit_side,
)

# Points compared with the codewords at a time: products of 512 x 256 floats stay in cache.
_BLOCK = 512

_BATCH = 8192
_EPOCHS = 30

# To be raised when the same settings and codebooks give other counts.
_CACHE_VERSION = 1


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
        centers = check_finite("centers", as_real_array("centers", self.centers, ndim=2))
        if centers.size == 0:
            raise ValueError(f"centers must not be empty, got shape {centers.shape}")
        with no_overflow("centers", "fit into float32"):
            centers = np.array(centers, dtype=np.float32)
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
            points = check_finite("points", as_real_array("points", points, ndim=2))
            with no_overflow("points", "fit into float32"):
                points = points.astype(np.float32)
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
    given = check_finite("points", as_real_array("points", points, ndim=2))
    with no_overflow("points", "fit into float32"):
        sample = given.astype(np.float32)
    if sample.size == 0:
        raise ValueError(f"points must not be empty, got shape {sample.shape}")
    _check_reach(sample, 2.0 * float(np.abs(sample).max()))
    n_words = min(n_words, _count_distinct(sample, enough=n_words))
    seed = int(check_rng("rng", rng).integers(2**31))
    clustering = MiniBatchKMeans(
        n_words, batch_size=_BATCH, max_iter=_EPOCHS, n_init=1, random_state=seed
    )
    # The sums behind a centre are cut by threads, and rounded where they are cut.
    with one_blas_thread(), threadpool_limits(1, user_api="openmp"):
        clustering.fit(sample)
    return Codebook(clustering.cluster_centers_)


def _check_reach(points: npt.NDArray[np.float32], largest: float) -> None:
    """Refuse points whose products with vectors of such entries might overflow float32."""
    reach = max(float(points.max(initial=0.0)), -float(points.min(initial=0.0)))
    if 2.0 * points.shape[1] * reach * largest > float(np.finfo(np.float32).max):
        raise ValueError(
            f"points must have squared distances within float32, got an entry of {reach:.3g}"
        )


def _count_distinct(points: npt.NDArray[np.float32], enough: int) -> int:
    """Count the different points, or give some number >= `enough`."""
    distinct: set[bytes] = set()
    for point in points:
        distinct.add(point.tobytes())
        if len(distinct) >= enough:
            break
    return len(distinct)


@dataclass(frozen=True)
class Recipe:
    """Settings from an image to its visual words, without the codebooks."""

    n_levels: int
    max_side: int
    n_orientations: int
    texture_scales: tuple[float, ...]
    sift_step: int
    sift_bin_size: float
    max_pixels: int

    @property
    def counts_dtype(self) -> CountsType:
        """Type of the counts: a grid has at most as many points as the image has pixels."""
        return counts_dtype(self.max_side**2)

    @property
    def n_dims(self) -> dict[str, int]:
        """Length of the vectors of each feature."""
        n_filters = self.n_orientations * len(self.texture_scales)
        return {"colour": 3, "texture": n_filters, "sift": SIFT_LENGTH}

    def read(self, photo: Photo) -> RGBImage:
        """Decode a photo and shrink it to the size that is described."""
        return limit_side(photo.pixels(), self.max_side)

    def features(self, name: str, image: RGBImage) -> DenseFeatures:
        """Compute the feature of this name on its grid of points."""
        check_stopped()
        if name == "colour":
            return cielab(image)
        if name == "texture":
            return oriented_energy(
                image, n_orientations=self.n_orientations, scales=self.texture_scales
            )
        return dense_sift(image, step=self.sift_step, bin_size=self.sift_bin_size)

    def describe(self, photo: Photo, codebooks: Mapping[str, Codebook]) -> dict[str, Counts]:
        """Decode a photo and count its visual words."""
        return self.count(self.read(photo), codebooks)

    def count(self, image: RGBImage, codebooks: Mapping[str, Codebook]) -> dict[str, Counts]:
        """Count the visual words of each feature in the cells of the finest level."""
        counts: dict[str, Counts] = {}
        for name, codebook in codebooks.items():
            features = self.features(name, image)
            words = nearest_word(features.points, codebook.centers)
            cells = grid_cells(features.y, features.x, image.shape[:2], self.n_levels)
            counts[name] = count_words(
                words, cells.ravel(), n_words=codebook.n_words, n_levels=self.n_levels
            ).astype(self.counts_dtype)
        return counts

    def cache_key(self, codebooks: Mapping[str, Codebook]) -> str:
        """Digest of everything but the image that its counts depend on."""
        settings = {
            **asdict(self),
            "max_pixels": None,  # refuses images, but changes no count
            "version": _CACHE_VERSION,
            "opencv": _extras.require("cv2").__version__,
            "words": {name: codebook.n_words for name, codebook in codebooks.items()},
        }
        centers = (codebook.centers.tobytes() for codebook in codebooks.values())
        return digest(json.dumps(settings).encode(), *centers)


class ImageFeatures(dict[str, SpatialHistograms]):
    """Histograms by the name of the feature, and which images their rows stand for.

    Attributes
    ----------
    rows : ndarray of intp, shape (n_rows,)
        Position in the input of the image behind each row: all of them, in order, unless
        unreadable images were skipped.
    failures : dict of int to str
        Position of each image that was skipped, and the reason.
    """

    def __init__(
        self,
        histograms: Mapping[str, SpatialHistograms],
        rows: npt.NDArray[np.intp],
        failures: Mapping[int, str],
    ) -> None:
        super().__init__(histograms)
        self.rows = rows
        self.failures = dict(failures)


def sample_features(
    images: ImageSources,
    names: Sequence[str],
    recipe: Recipe,
    *,
    n_images: int,
    n_points: int,
    rng: np.random.Generator,
    on_error: OnError,
    n_threads: int,
    progress: Progress,
) -> dict[str, npt.NDArray[np.float32]]:
    """Draw `n_points` feature vectors of each kind from each of `n_images` images.

    An image that has fewer points gives all of them.
    """
    chosen = np.sort(rng.choice(len(images), min(n_images, len(images)), replace=False))
    seeds = rng.integers(2**63, size=len(chosen))  # one per image, whichever thread takes it

    def work(k: int) -> dict[str, npt.NDArray[np.float32]] | str:
        photo = Photo.of(images, int(chosen[k]), recipe.max_pixels)
        generator = np.random.default_rng(seeds[k])
        sample = {}
        try:
            image = recipe.read(photo)
        except UnreadableImageError as error:
            return str(error)
        for name in names:
            points = recipe.features(name, image).points
            size = min(n_points, len(points))
            sample[name] = points[generator.choice(len(points), size, replace=False)]
        return sample

    results = over_images(work, len(chosen), n_threads, progress, "Sampling images")
    failures = {int(chosen[k]): r for k, r in enumerate(results) if isinstance(r, str)}
    samples = [r for r in results if not isinstance(r, str)]
    report_failures(failures, len(chosen), on_error)
    return {name: np.concatenate([sample[name] for sample in samples]) for name in names}


def learn_codebooks(
    samples: Mapping[str, npt.NDArray[np.float32]],
    n_words: Mapping[str, int],
    *,
    rng: np.random.Generator,
    progress: Progress,
) -> dict[str, Codebook]:
    """Learn a codebook from each sample of feature vectors."""
    codebooks = {}
    with reporting(progress, "Learning codebooks") as report:
        for name, sample in samples.items():
            codebooks[name] = learn_codebook(sample, n_words[name], rng=rng)
            if report is not None:
                report(len(codebooks), len(samples))
    return codebooks


def extract_histograms(
    images: ImageSources,
    codebooks: Mapping[str, Codebook],
    recipe: Recipe,
    *,
    cache_dir: str | os.PathLike[str] | None,
    on_error: OnError,
    n_threads: int,
    progress: Progress,
) -> ImageFeatures:
    """Describe images by the visual words of `codebooks`; see `VisualWords.transform`."""
    cache = None if cache_dir is None else FeatureCache(cache_dir, recipe.cache_key(codebooks))
    n_cells = 4 ** (recipe.n_levels - 1)
    counts = {
        name: np.zeros((len(images), n_cells, codebook.n_words), recipe.counts_dtype)
        for name, codebook in codebooks.items()
    }
    # Once the call must fail, other images are only decoded: the error names all failures.
    doomed = threading.Event()

    def work(i: int) -> str | None:
        photo = Photo.of(images, i, recipe.max_pixels)
        try:
            if doomed.is_set():
                recipe.read(photo)
                return None
            make = partial(recipe.describe, photo, codebooks)
            found = make() if cache is None else cache.value(digest(photo.content()), make)
        except UnreadableImageError as error:
            if on_error == "raise":
                doomed.set()
            return str(error)
        for name, rows in counts.items():
            rows[i] = found[name]
        return None

    if on_error == "raise" and not all_there(images, recipe.max_pixels):
        doomed.set()
    results = over_images(work, len(images), n_threads, progress, "Describing images")
    failures = {i: reason for i, reason in enumerate(results) if reason is not None}
    report_failures(failures, len(images), on_error)
    rows = np.flatnonzero([reason is None for reason in results])
    return ImageFeatures(
        {
            name: SpatialHistograms.from_finest(
                finest if not failures else finest[rows], recipe.n_levels
            )
            for name, finest in counts.items()
        },
        rows,
        failures,
    )
