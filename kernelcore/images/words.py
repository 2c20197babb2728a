"""Visual words: codebooks and the histograms of their words in photos."""

from __future__ import annotations

import json
import numbers
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from kernelcore import _extras
from kernelcore._check import Array, check_choice, check_integer, check_real, check_rng
from kernelcore._estimator import Estimator, params_to_json
from kernelcore._store import check_tensor, digest, load_tensors, reading, save_tensors
from kernelcore._threads import Progress, check_stopped, reporting
from kernelcore.images._describe import DecodedPhoto, Described, OnError, describe
from kernelcore.images.codebook import Codebook, learn_codebook, nearest_word
from kernelcore.images.dense import (
    SIFT_LENGTH,
    TEXTURE_LENGTH,
    DenseFeatures,
    cielab,
    dense_sift,
    oriented_energy,
)
from kernelcore.images.pyramid import MAX_LEVELS, SpatialHistograms, count_words, grid_cells
from kernelcore.images.read import (
    DEFAULT_MAX_PIXELS,
    ImageSources,
    RGBImage,
    check_sources,
    limit_side,
)

DEFAULT_N_WORDS = {"colour": 128, "texture": 256, "sift": 256}

_N_DIMS = {"colour": 3, "texture": TEXTURE_LENGTH, "sift": SIFT_LENGTH}
_MAX_SIDE = 255  # the largest of which every count fits 16 bits, which kernels compare faster
_CACHED = ("n_levels", "sift_step", "sift_bin_size")  # parameters that counts depend on
_KIND = "visual words"
_MAX_WORDS = 65536
# To be raised when the same settings and codebooks give other counts.
_CACHE_VERSION = 1


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

    Photos whose longer side exceeds 255 pixels are shrunk to it, so that all counts fit 16
    bits. Three features are taken from every photo: the CIELAB colour and the oriented energy
    of every pixel, and SIFT descriptors on a dense grid. `fit` learns a codebook for each by
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
        sift_step: int = 2,
        sift_bin_size: float = 3.0,
        n_sample_images: int = 200,
        n_sample_points: int = 1000,
        max_pixels: int = DEFAULT_MAX_PIXELS,
        rng: np.random.Generator | int | None = 0,
    ) -> None:
        self.n_words = n_words
        self.n_levels = n_levels
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
        self._learn(images, on_error=on_error, n_threads=n_threads, progress=progress).warn()
        return self

    def _learn(self, images: ImageSources, *, progress: Progress, **options: Any) -> Described:
        """Learn the codebooks without a warning about files that cannot be read."""
        self._check_params()
        n_words = self._checked_n_words()
        check_sources("images", images)
        rng = check_rng("rng", self.rng)
        n_images = min(self.n_sample_images, len(images))
        chosen = np.sort(rng.choice(len(images), n_images, replace=False))
        seeds = rng.integers(2**63, size=len(chosen))  # one per image, whichever thread
        seed_of = dict(zip(chosen.tolist(), seeds, strict=True))

        def sample(photos: Sequence[DecodedPhoto]) -> Iterator[dict[str, Array]]:
            for photo in photos:
                image = limit_side(photo.pixels, _MAX_SIDE)
                generator = np.random.default_rng(seed_of[photo.position])
                row = {}
                for name in n_words:
                    points = self._features(name, image).points
                    n = min(self.n_sample_points, len(points))
                    row[name] = points[generator.choice(len(points), n, replace=False)]
                yield row

        described = describe(
            images,
            sample,
            positions=chosen.tolist(),
            max_pixels=self.max_pixels,
            progress=progress,
            description="Sampling images",
            **options,
        )
        codebooks = {}
        with reporting(progress, "Learning codebooks") as report:
            for name, n in n_words.items():
                codebooks[name] = learn_codebook(described.concatenated(name), n, rng=rng)
                if report is not None:
                    report(len(codebooks), len(n_words))
        self.codebooks_ = codebooks
        return described

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
        self._check_params()
        described = describe(
            images,
            self._count,
            key=self._cache_key(),
            max_pixels=self.max_pixels,
            cache_dir=cache_dir,
            on_error=on_error,
            n_threads=n_threads,
            progress=progress,
            description="Describing images",
        )
        described.warn()
        histograms = {
            name: SpatialHistograms.from_finest(described.stacked(name), self.n_levels)
            for name in self.codebooks_
        }
        return ImageFeatures(histograms, described.positions, described.failures)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write parameters and codebooks as a safetensors file, whole or not at all.

        Of `rng` only an integer is kept.
        """
        self._check_fitted("codebooks_")
        parameters = params_to_json(self.get_params()) | {
            "n_words": self._checked_n_words(),
            "rng": int(self.rng) if isinstance(self.rng, numbers.Integral) else None,
        }
        centers = {name: codebook.centers for name, codebook in self.codebooks_.items()}
        save_tensors(path, _KIND, centers, {"parameters": parameters})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> VisualWords:
        """Read a file of `save`, ready to transform; raise ValueError if it is damaged."""
        with reading(path):
            centers, metadata = load_tensors(path, _KIND)
            words = cls.from_json(metadata.exactly("parameters")["parameters"])
            # Files list tensors in an order of their own.
            words.codebooks_ = {
                name: Codebook(check_tensor(name, array, (None, _N_DIMS[name]), np.float32))
                for name, array in centers.exactly(*words._checked_n_words()).items()
            }
            return words

    def _features(self, name: str, image: RGBImage) -> DenseFeatures:
        """Compute the feature of this name on its grid of points."""
        check_stopped()
        if name == "colour":
            return cielab(image)
        if name == "texture":
            return oriented_energy(image)
        return dense_sift(image, step=self.sift_step, bin_size=self.sift_bin_size)

    def _count(self, photos: Sequence[DecodedPhoto]) -> Iterator[dict[str, Array]]:
        """Count the words of each feature in the cells of the finest level."""
        n_levels = int(self.n_levels)
        for photo in photos:
            image = limit_side(photo.pixels, _MAX_SIDE)
            counts: dict[str, Array] = {}
            for name, codebook in self.codebooks_.items():
                features = self._features(name, image)
                words = nearest_word(features.points, codebook.centers)
                cells = grid_cells(features.y, features.x, image.shape[:2], n_levels)
                counts[name] = count_words(
                    words, cells.ravel(), n_words=codebook.n_words, n_levels=n_levels
                ).astype(np.uint16)
            yield counts

    def _cache_key(self) -> str:
        """Digest of everything but the image that its counts depend on."""
        settings = {
            **params_to_json({name: getattr(self, name) for name in _CACHED}),
            "version": _CACHE_VERSION,
            "opencv": _extras.require("cv2").__version__,
            "words": {name: codebook.n_words for name, codebook in self.codebooks_.items()},
        }
        centers = (codebook.centers.tobytes() for codebook in self.codebooks_.values())
        return digest(json.dumps(settings).encode(), *centers)

    def _check_params(self) -> None:
        self._checked_n_words()
        check_integer("n_levels", self.n_levels, minimum=1, maximum=MAX_LEVELS)
        for name in ("sift_step", "n_sample_images", "n_sample_points", "max_pixels"):
            check_integer(name, getattr(self, name), minimum=1)
        check_real("sift_bin_size", self.sift_bin_size, minimum=0.5)

    def _checked_n_words(self) -> dict[str, int]:
        n_words = DEFAULT_N_WORDS if self.n_words is None else self.n_words
        if not isinstance(n_words, Mapping):
            raise TypeError(
                f"n_words must map features to numbers of words, got {type(n_words).__name__}"
            )
        for name in n_words:
            check_choice("a feature in n_words", name, tuple(DEFAULT_N_WORDS))
        if not n_words:
            raise ValueError("n_words must name at least one feature, got none")
        return {
            name: check_integer(
                f"n_words[{name!r}]", n_words[name], minimum=1, maximum=_MAX_WORDS
            )
            for name in DEFAULT_N_WORDS
            if name in n_words
        }
