"""Estimator of spatial histograms of visual words."""

from __future__ import annotations

import numbers
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from kernelcore._check import check_choice, check_integer, check_real, check_rng
from kernelcore._estimator import Estimator
from kernelcore._store import check_mapping, check_tensor, load_tensors, reading, save_tensors
from kernelcore._threads import Progress, resolve_n_threads
from kernelcore.images._describe import OnError
from kernelcore.images.codebook import (
    Codebook,
    ImageFeatures,
    Recipe,
    extract_histograms,
    learn_codebooks,
    sample_features,
)
from kernelcore.images.dense import DEFAULT_SCALES, check_scales
from kernelcore.images.pyramid import MAX_LEVELS
from kernelcore.images.read import DEFAULT_MAX_PIXELS, ImageSources, check_sources

FEATURE_NAMES = ("colour", "texture", "sift")
DEFAULT_N_WORDS = {"colour": 128, "texture": 256, "sift": 256}

_KIND = "visual words"
_MAX_WORDS = 65536


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
        recipe = self._make_recipe()
        n_words = self._checked_n_words()
        n_images, n_points = self._checked_sample_size()
        check_sources("images", images)
        check_choice("on_error", on_error, ("raise", "skip"))
        rng = check_rng("rng", self.rng)
        samples = sample_features(
            images,
            tuple(n_words),
            recipe,
            n_images=n_images,
            n_points=n_points,
            rng=rng,
            on_error=on_error,
            n_threads=resolve_n_threads(n_threads),
            progress=progress,
        )
        self.codebooks_ = learn_codebooks(samples, n_words, rng=rng, progress=progress)
        self._recipe = recipe
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
        check_sources("images", images)
        check_choice("on_error", on_error, ("raise", "skip"))
        return extract_histograms(
            images,
            self.codebooks_,
            self._recipe,
            cache_dir=cache_dir,
            on_error=on_error,
            n_threads=resolve_n_threads(n_threads),
            progress=progress,
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write parameters and codebooks as a safetensors file, whole or not at all.

        Of `rng` only an integer is kept.
        """
        self._check_fitted("codebooks_")
        n_images, n_points = self._checked_sample_size()
        parameters = {
            **asdict(self._recipe),
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
            names = words._checked_n_words()
            widths = words._make_recipe().n_dims
            # Files list tensors in an order of their own.
            words.codebooks_ = {
                name: Codebook(check_tensor(name, array, (None, widths[name]), np.float32))
                for name, array in centers.exactly(*names).items()
            }
            words._recipe = words._make_recipe()
            return words

    def _check_params(self) -> None:
        self._checked_n_words()
        self._checked_sample_size()
        self._make_recipe()

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

    def _make_recipe(self) -> Recipe:
        return Recipe(
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
