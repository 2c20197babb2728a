"""How alike photos are: by visual words in cells, or by the features of a network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from kernelcore._blas import one_blas_thread
from kernelcore._progress import Progress
from kernelcore._validation import Array
from kernelcore.datasets import CaptionedImages
from kernelcore.experiments.hodosh2013.corpus import SPLITS
from kernelcore.experiments.hodosh2013.systems import System
from kernelcore.experiments.store import key_of
from kernelcore.images import SpatialHistograms
from kernelcore.kernels import average, spatial_pyramid
from kernelcore.models.feature_kernel import FeatureKernel


class PhotoKernels(Protocol):
    """Kernels of the photos of each split with those of training."""

    def key(self, split: str, system: System) -> str:
        """Digest of what the kernel depends on."""
        ...

    def kernel(self, split: str, system: System) -> Array:
        """Return the kernel, rows from the split and columns from training."""
        ...


class PyramidKernels:
    """Histogram intersections of cells, the mean over the features, as in the paper.

    Parameters
    ----------
    dataset : CaptionedImages
    photos : sequence of SpatialHistograms
        One for each feature, in the order of the data set.
    mirror : bool
        Compare with the mirror image too, where there are cells.
    n_threads : int or None
    progress : bool or callable
    """

    def __init__(
        self,
        dataset: CaptionedImages,
        photos: Sequence[SpatialHistograms],
        *,
        mirror: bool,
        n_threads: int | None,
        progress: Progress,
    ) -> None:
        self._mirror = mirror
        self._run: dict[str, Any] = {"n_threads": n_threads, "progress": progress}
        self._photos = {
            split: [histograms.select(dataset.split(split)) for histograms in photos]
            for split in SPLITS
        }
        self._keys = {
            split: key_of(*(array for p in parts for array in (p.counts, p.totals)))
            for split, parts in self._photos.items()
        }

    def key(self, split: str, system: System) -> str:
        """Digest of what the kernel depends on."""
        mirror = self._mirror and system.pyramid
        return key_of(
            "photos", [self._keys[split], self._keys["train"]], system.pyramid, mirror
        )

    def kernel(self, split: str, system: System) -> Array:
        """Return the kernel, of cells or of whole images as the system has it."""
        kernels = [
            spatial_pyramid(
                rows,
                None if split == "train" else train,
                level_weights=None if system.pyramid else np.eye(rows.n_levels)[0],
                mirror=self._mirror and system.pyramid,
                dtype=np.float32,
                **self._run,
            )
            for rows, train in zip(self._photos[split], self._photos["train"], strict=True)
        ]
        return average(kernels)


class FeatureKernels:
    r"""Kernels of features with one row per photo, of length 1 each.

    .. math:: k(x, y) = \exp(-\lVert x - y \rVert^2 / s) \quad\text{or}\quad (1 + x \cdot y) / 2

    with s the mean squared distance of training photos; see `FeatureKernel`. A power of the
    first one is the same with another width.

    Parameters
    ----------
    dataset : CaptionedImages
    features : ndarray of shape (n_images, n_features)
        In the order of the data set.
    form : {"rbf", "linear"}
    """

    def __init__(self, dataset: CaptionedImages, features: Array, *, form: str) -> None:
        rows = np.asarray(features, np.float32)
        rows = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
        self._form = form
        self._rows: Mapping[str, Array] = {
            split: rows[dataset.split(split)] for split in SPLITS
        }
        self._keys = {split: key_of(part) for split, part in self._rows.items()}

    def key(self, split: str, system: System) -> str:
        """Digest of what the kernel depends on, which is nothing of the system."""
        return key_of("features", [self._keys[split], self._keys["train"]], self._form)

    def kernel(self, split: str, system: System) -> Array:
        """Return the kernel."""
        train = self._rows["train"]
        if self._form == "rbf":
            return FeatureKernel(train).gram(self._rows[split])
        with one_blas_thread():
            cosines: Array = self._rows[split] @ train.T
        linear: Array = (np.float32(1.0) + cosines) / np.float32(2.0)
        return linear
