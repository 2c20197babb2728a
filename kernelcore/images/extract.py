"""Extraction of codebooks and histograms of visual words, with a cache on disk."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from kernelcore import _extras
from kernelcore._files import digest, load_tensors, remove_leftovers, save_tensors
from kernelcore._parallel import check_stopped
from kernelcore._progress import Progress, reporting
from kernelcore.images._describe import OnError, all_there, over_images, report_failures
from kernelcore.images.codebook import Codebook, learn_codebook, nearest_word
from kernelcore.images.decode import (
    ImageSource,
    Photo,
    RGBImage,
    UnreadableImageError,
    limit_side,
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

_KIND = "visual words of one image"


def _checksum(counts: Mapping[str, Counts]) -> str:
    parts = (f"{name} {array.dtype} {array.shape}" for name, array in sorted(counts.items()))
    return digest("; ".join(parts).encode(), *(a.tobytes() for _, a in sorted(counts.items())))


class FeatureCache:
    """Counts of visual words by the content of the image they were taken from.

    Files are named by content, not by path and date: a photo that is moved, copied or listed
    in another order is found again, and one that is changed is not.

    Parameters
    ----------
    folder : path
        Where to keep files; made if missing. Several processes may share it.
    recipe : str
        Digest of everything else that the counts depend on. Each recipe has a folder of its
        own within `folder`.
    """

    def __init__(self, folder: str | os.PathLike[str], recipe: str) -> None:
        self._folder = Path(folder) / recipe
        self._folder.mkdir(parents=True, exist_ok=True)
        for part in self._folder.iterdir():
            remove_leftovers(part)

    def load(self, image: str) -> dict[str, Counts] | None:
        """Read the counts of the image with this digest, None if they are absent or damaged."""
        try:
            counts, metadata = load_tensors(self._path(image), _KIND)
            return counts if metadata["checksum"] == _checksum(counts) else None
        except (OSError, ValueError):
            return None

    def save(self, image: str, counts: Mapping[str, Counts]) -> None:
        """Keep the counts of the image with this digest.

        Thousands of files are not forced to the disk one by one: an entry that a power cut
        has damaged does not match its checksum and is made again.
        """
        path = self._path(image)
        path.parent.mkdir(exist_ok=True)
        save_tensors(path, _KIND, counts, {"checksum": _checksum(counts)}, one_of_many=True)

    def _path(self, image: str) -> Path:
        # 256 folders, as many file systems grow slow with a hundred thousand files in one.
        return self._folder / image[:2] / f"{image}.safetensors"


# To be raised whenever the same settings and codebooks come to give other counts.
_CACHE_VERSION = 1


@dataclass(frozen=True)
class Recipe:
    """How an image is turned into visual words, the codebooks apart."""

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
        """Digest of all that the counts of an image depend on besides the image."""
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
        Position of each image that was skipped, and what was wrong with it.
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
    images: Sequence[ImageSource],
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
    images: Sequence[ImageSource],
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
    # Once the call is bound to fail, the other images are only tried, to name all that fail.
    doomed = threading.Event()

    def work(i: int) -> str | None:
        photo = Photo.of(images, i, recipe.max_pixels)
        try:
            if doomed.is_set():
                recipe.read(photo)
                return None
            key = "" if cache is None else digest(photo.content())
            found = None if cache is None else cache.load(key)
            if found is None:
                found = recipe.count(recipe.read(photo), codebooks)
                if cache is not None:
                    cache.save(key, found)
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
