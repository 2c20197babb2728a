"""Visual words: codebooks and the histograms of their words in photos."""

from __future__ import annotations

import json
import numbers
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from kernelcore import _extras
from kernelcore._check import Array, check_choice, check_integer, check_real, check_rng
from kernelcore._estimator import Estimator
from kernelcore._store import (
    check_mapping,
    check_tensor,
    digest,
    load_tensors,
    reading,
    save_tensors,
)
from kernelcore._threads import Progress, check_stopped, reporting
from kernelcore.images._describe import DecodedPhoto, OnError, describe
from kernelcore.images.codebook import Codebook, learn_codebook, nearest_word
from kernelcore.images.dense import (
    DEFAULT_SCALES,
    SIFT_LENGTH,
    DenseFeatures,
    check_scales,
    cielab,
    dense_sift,
    oriented_energy,
)
from kernelcore.images.pyramid import (
    MAX_LEVELS,
    Counts,
    SpatialHistograms,
    count_words,
    counts_dtype,
    grid_cells,
)
from kernelcore.images.read import (
    DEFAULT_MAX_PIXELS,
    ImageSources,
    RGBImage,
    check_sources,
    limit_side,
)

FEATURE_NAMES = ("colour", "texture", "sift")
DEFAULT_N_WORDS = {"colour": 128, "texture": 256, "sift": 256}

_KIND = "visual words"
_MAX_WORDS = 65536
# To be raised when the same settings and codebooks give other counts.
_CACHE_VERSION = 1


@dataclass(frozen=True)
class Settings:
    """Checked parameters of the way from a photo to its dense features."""

    n_levels: int
    max_side: int
    n_orientations: int
    texture_scales: tuple[float, ...]
    sift_step: int
    sift_bin_size: float
    max_pixels: int

    @property
    def n_dims(self) -> dict[str, int]:
        """Length of the vectors of each feature."""
        n_filters = self.n_orientations * len(self.texture_scales)
        return {"colour": 3, "texture": n_filters, "sift": SIFT_LENGTH}

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


class VisualWords(Estimator):
    """Turn photos into spatial histograms of visual words.

    Three features are taken from every photo: the CIELAB colour and the oriented energy of
    every pixel, and SIFT descriptors on a dense grid. `fit` learns a codebook for each by
    k-means on a sample of photos; `transform` gives each point the nearest word of its
    codebook and counts the words in the cells of a spatial pyramid.

    Parameters
    ----------
    n_words : mapping of str to int, optional
        Size of the codebook of each feature to use. The default is 128 for "colour", 256 for
        "texture" and 256 for "sift" [1]_. A codebook has fewer words if the sample has fewer
        different points.
    n_levels : int, default 3
        Levels of the spatial pyramid: 1, 4, 16, ... cells.
    max_side : int, default 255
        Photos whose longer side has more pixels are shrunk to it. At up to 255 all counts
        fit 16 bits, which kernels compare twice as fast as 32.
    n_orientations : int, default 6
        Orientations of the texture filters.
    texture_scales : sequence of float, default (1, 2, 4)
        Standard deviations of the texture filters in pixels.
    sift_step : int, default 2
        Distance of SIFT descriptors in pixels.
    sift_bin_size : float, default 3.0
        Side of the spatial bins of a SIFT descriptor in pixels.
    n_sample_images : int, default 200
        Photos to learn the codebooks from, drawn at random from those given to `fit`.
    n_sample_points : int, default 1000
        Points to draw from each of them.
    max_pixels : int, default 2**26
        Files that declare more pixels are refused before they are decoded.
    rng : Generator or int, optional, default 0
        Source of the sample and of the k-means starts; None draws afresh in every `fit`.

    Attributes
    ----------
    codebooks_ : dict of str to Codebook
        The codebook of each feature.

    See Also
    --------
    kernelcore.kernels.spatial_pyramid : Compares the histograms.
    kernelcore.images.cielab, kernelcore.images.oriented_energy, kernelcore.images.dense_sift :
        The three features.

    Notes
    -----
    The result for an image depends on the image, the parameters, the codebooks and the
    version of OpenCV; not on the number of threads or the other images. On another kind of
    processor BLAS may round otherwise, and a point that is as near to two words as float32
    can tell may get the other one.

    References
    ----------
    .. [1] M. Hodosh, P. Young and J. Hockenmaier, "Framing image description as a ranking
       task: data, models and evaluation metrics", Journal of Artificial Intelligence
       Research 47, 2013.
    .. [2] S. Lazebnik, C. Schmid and J. Ponce, "Beyond bags of features: spatial pyramid
       matching for recognizing natural scene categories", CVPR 2006.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelcore.images import VisualWords
    >>> photos = np.random.default_rng(0).integers(0, 256, (4, 32, 48, 3), np.uint8)
    >>> words = VisualWords(n_words={"colour": 8, "sift": 16}).fit(photos)
    >>> features = words.transform(photos)
    >>> features["colour"]
    SpatialHistograms(4 images, 21 cells, 8 words, uint16)
    >>> features["colour"].totals, features["sift"].totals
    (array([1536, 1536, 1536, 1536]), array([180, 180, 180, 180]))
    """

    codebooks_: dict[str, Codebook]

    def __init__(
        self,
        *,
        n_words: Mapping[str, int] | None = None,
        n_levels: int = 3,
        max_side: int = 255,
        n_orientations: int = 6,
        texture_scales: Sequence[float] = DEFAULT_SCALES,
        sift_step: int = 2,
        sift_bin_size: float = 3.0,
        n_sample_images: int = 200,
        n_sample_points: int = 1000,
        max_pixels: int = DEFAULT_MAX_PIXELS,
        rng: np.random.Generator | int | None = 0,
    ) -> None:
        self.n_words = n_words
        self.n_levels = n_levels
        self.max_side = max_side
        self.n_orientations = n_orientations
        self.texture_scales = texture_scales
        self.sift_step = sift_step
        self.sift_bin_size = sift_bin_size
        self.n_sample_images = n_sample_images
        self.n_sample_points = n_sample_points
        self.max_pixels = max_pixels
        self.rng = rng

    def fit(
        self,
        images: ImageSources,
        y: None = None,
        *,
        on_error: OnError = "raise",
        n_threads: int | None = None,
        progress: Progress = False,
    ) -> VisualWords:
        """Learn the codebooks from a sample of `images`.

        Parameters
        ----------
        images : sequence of paths, bytes, uint8 arrays or images of Pillow
            Training photos; see `read_image` for what each may be. Only those of the sample
            are read.
        y : None
            Ignored; present by convention.
        on_error : {"raise", "skip"}, default "raise"
            Whether sampled files that cannot be read raise an error or give a warning, which
            lists them all.
        n_threads : int, optional
            Threads to use; the default is every core this process may run on. The result
            is the same, bit for bit, for every value.
        progress : bool or callable, default False
            True shows a bar; a callable is called with the steps done and in all.

        Returns
        -------
        VisualWords
            The estimator itself.

        Raises
        ------
        TypeError
            If an image or a parameter is of the wrong type.
        ValueError
            If there are no images or a parameter has a wrong value.
        UnreadableImagesError
            If files cannot be read and `on_error` is "raise", or if none can.
        """
        settings = self._checked_settings()
        n_words = self._checked_n_words()
        n_images, n_points = self._checked_sample_size()
        check_sources("images", images)
        rng = check_rng("rng", self.rng)
        chosen = np.sort(rng.choice(len(images), min(n_images, len(images)), replace=False))
        seeds = rng.integers(2**63, size=len(chosen))  # one per image, whichever thread
        seed_of = dict(zip(chosen.tolist(), seeds, strict=True))

        def sample(photos: Sequence[DecodedPhoto]) -> Iterator[dict[str, Array]]:
            for photo in photos:
                image = limit_side(photo.pixels, settings.max_side)
                generator = np.random.default_rng(seed_of[photo.position])
                row = {}
                for name in n_words:
                    points = settings.features(name, image).points
                    n = min(n_points, len(points))
                    row[name] = points[generator.choice(len(points), n, replace=False)]
                yield row

        samples = describe(
            images,
            sample,
            positions=chosen.tolist(),
            max_pixels=settings.max_pixels,
            on_error=on_error,
            n_threads=n_threads,
            progress=progress,
            description="Sampling images",
        ).rows
        codebooks: dict[str, Codebook] = {}
        with reporting(progress, "Learning codebooks") as report:
            for name, n in n_words.items():
                points = np.concatenate([row[name] for row in samples])
                codebooks[name] = learn_codebook(points, n, rng=rng)
                if report is not None:
                    report(len(codebooks), len(n_words))
        self.codebooks_, self._settings = codebooks, settings
        return self

    def transform(
        self,
        images: ImageSources,
        *,
        cache_dir: str | os.PathLike[str] | None = None,
        on_error: OnError = "raise",
        n_threads: int | None = None,
        progress: Progress = False,
    ) -> ImageFeatures:
        """Count the visual words of each image.

        Parameters
        ----------
        images : sequence of paths, bytes, uint8 arrays or images of Pillow
            Photos; see `read_image` for what each may be.
        cache_dir : path, optional
            Folder that keeps the counts of every image as soon as they are computed. Images of
            the same content, settings and codebooks are not described again, so that a call
            that was interrupted or killed goes on where it was. Processes may share it.
        on_error : {"raise", "skip"}, default "raise"
            "raise" raises one error that lists every file that cannot be read. "skip" leaves
            these files out and gives one warning that lists them.
        n_threads : int, optional
            Threads to use, each on an image of its own; the default is every core this
            process may run on. The result is the same, bit for bit, for every value.
        progress : bool or callable, default False
            True shows a bar; a callable is called with the images done and in all.

        Returns
        -------
        ImageFeatures
            A dict of `SpatialHistograms` by feature. Its ``rows`` tell which image each row
            stands for, its ``failures`` why images were skipped.

        Raises
        ------
        NotFittedError
            If `fit` has not been called.
        TypeError
            If an image is none of the kinds that `read_image` takes.
        ValueError
            If there are no images, or `read_image` refuses an array or an image of Pillow.
        UnreadableImagesError
            If files cannot be read and `on_error` is "raise", or if none can.
        """
        self._check_fitted("codebooks_")
        settings = self._settings
        described = describe(
            images,
            self._count,
            key=self._cache_key(),
            max_pixels=settings.max_pixels,
            cache_dir=cache_dir,
            on_error=on_error,
            n_threads=n_threads,
            progress=progress,
            description="Describing images",
        )
        histograms = {
            name: SpatialHistograms.from_finest(described.stacked(name), settings.n_levels)
            for name in self.codebooks_
        }
        return ImageFeatures(histograms, described.positions, described.failures)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write parameters and codebooks as a safetensors file, whole or not at all.

        Of `rng` only an integer is kept.
        """
        self._check_fitted("codebooks_")
        n_images, n_points = self._checked_sample_size()
        parameters = {
            **asdict(self._settings),
            "n_words": self._checked_n_words(),
            "n_sample_images": n_images,
            "n_sample_points": n_points,
            "rng": int(self.rng) if isinstance(self.rng, numbers.Integral) else None,
        }
        centers = {name: codebook.centers for name, codebook in self.codebooks_.items()}
        save_tensors(path, _KIND, centers, {"parameters": parameters})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> VisualWords:
        """Read a file of `save`, ready to transform; raise ValueError if it is damaged."""
        with reading(path):
            centers, metadata = load_tensors(path, _KIND)
            parameters = metadata.exactly("parameters")["parameters"]
            words = cls().set_params(**check_mapping("parameters", parameters))
            words._check_params()
            words._settings = words._checked_settings()
            widths = words._settings.n_dims
            # Files list tensors in an order of their own.
            words.codebooks_ = {
                name: Codebook(check_tensor(name, array, (None, widths[name]), np.float32))
                for name, array in centers.exactly(*words._checked_n_words()).items()
            }
            return words

    def _count(self, photos: Sequence[DecodedPhoto]) -> Iterator[dict[str, Counts]]:
        """Count the words of each feature in the cells of the finest level."""
        settings = self._settings
        dtype = counts_dtype(settings.max_side**2)  # a grid has no more points than pixels
        for photo in photos:
            image = limit_side(photo.pixels, settings.max_side)
            counts: dict[str, Counts] = {}
            for name, codebook in self.codebooks_.items():
                features = settings.features(name, image)
                words = nearest_word(features.points, codebook.centers)
                cells = grid_cells(features.y, features.x, image.shape[:2], settings.n_levels)
                counts[name] = count_words(
                    words, cells.ravel(), n_words=codebook.n_words, n_levels=settings.n_levels
                ).astype(dtype)
            yield counts

    def _cache_key(self) -> str:
        """Digest of everything but the image that its counts depend on."""
        settings = {
            **asdict(self._settings),
            "max_pixels": None,  # refuses images, but changes no count
            "version": _CACHE_VERSION,
            "opencv": _extras.require("cv2").__version__,
            "words": {name: codebook.n_words for name, codebook in self.codebooks_.items()},
        }
        centers = (codebook.centers.tobytes() for codebook in self.codebooks_.values())
        return digest(json.dumps(settings).encode(), *centers)

    def _check_params(self) -> None:
        self._checked_n_words()
        self._checked_sample_size()
        self._checked_settings()

    def _checked_n_words(self) -> dict[str, int]:
        n_words: Any = DEFAULT_N_WORDS if self.n_words is None else self.n_words
        if not isinstance(n_words, Mapping):
            raise TypeError(
                f"n_words must map features to numbers of words, got {type(n_words).__name__}"
            )
        for name in n_words:
            check_choice("a feature in n_words", name, FEATURE_NAMES)
        if not n_words:
            raise ValueError("n_words must name at least one feature, got none")
        return {
            name: check_integer(
                f"n_words[{name!r}]", n_words[name], minimum=1, maximum=_MAX_WORDS
            )
            for name in FEATURE_NAMES
            if name in n_words
        }

    def _checked_sample_size(self) -> tuple[int, int]:
        return (
            check_integer("n_sample_images", self.n_sample_images, minimum=1),
            check_integer("n_sample_points", self.n_sample_points, minimum=1),
        )

    def _checked_settings(self) -> Settings:
        return Settings(
            n_levels=check_integer("n_levels", self.n_levels, minimum=1, maximum=MAX_LEVELS),
            max_side=check_integer("max_side", self.max_side, minimum=1, maximum=2**15),
            n_orientations=check_integer(
                "n_orientations", self.n_orientations, minimum=1, maximum=180
            ),
            texture_scales=check_scales(self.texture_scales),
            sift_step=check_integer("sift_step", self.sift_step, minimum=1),
            sift_bin_size=check_real("sift_bin_size", self.sift_bin_size, minimum=0.5),
            max_pixels=check_integer("max_pixels", self.max_pixels, minimum=1),
        )
