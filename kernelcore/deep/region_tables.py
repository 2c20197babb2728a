"""Regions of images as rows that minibatches are taken from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from kernelcore._validation import Array, as_real_array, check_finite
from kernelcore.captions.encoded import offsets_of, take_ragged
from kernelcore.deep.fragment_losses import Offsets
from kernelcore.images import RegionFeatures, square_roots

Regions: TypeAlias = Literal["all", "first", "mean"]

REGIONS = ("all", "first", "mean")

_ROWS_AT_ONCE = 4096


@dataclass(frozen=True)
class RegionTable:
    """Rows that describe the regions of images, in memory or mapped from a file.

    Attributes
    ----------
    rows : ndarray of shape (n_regions, ...)
        Features of each region, or its pixels.
    offsets : ndarray of int64, shape (n_images + 1,)
        Start of the regions of each image.
    rooted : bool
        Whether `square_roots` of features are given out.
    """

    rows: Array
    offsets: Offsets
    rooted: bool = False

    @classmethod
    def of(cls, name: str, images: Any, regions: Regions) -> RegionTable:
        """Lay out what a caller gives: `RegionFeatures`, or an array of one row per image.

        Of the regions of an image all are kept, the first, or their mean.
        """
        if isinstance(images, RegionFeatures):
            table = cls(images.features, images.offsets)
        else:
            array = np.asarray(images)
            if array.ndim < 2 or array.dtype.kind not in "fiu":
                raise ValueError(
                    f"{name} must be RegionFeatures or an array of one row of numbers per "
                    f"image, got dtype {array.dtype} and shape {array.shape}"
                )
            if array.ndim == 2:
                array = check_finite(name, as_real_array(name, array, ndim=2))
            table = cls(array, np.arange(len(array) + 1))
        if not len(table) or (np.diff(table.offsets) < 1).any():
            raise ValueError(f"{name} must hold at least one image, each with a region")
        if regions == "first":
            return cls(table.rows[table.offsets[:-1]], np.arange(len(table) + 1))
        if regions == "mean":
            counts = np.diff(table.offsets)
            sums = np.add.reduceat(table.rows, table.offsets[:-1], axis=0)
            return cls((sums / counts[:, None]).astype(np.float32), np.arange(len(table) + 1))
        return table

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def take(
        self, images: npt.NDArray[np.intp], device: torch.device
    ) -> tuple[Tensor, Offsets]:
        """Return the rows of some images, and where those of each start."""
        rows, offsets = take_ragged(self.offsets, images)
        return self._at(rows, device), offsets

    def draw(
        self,
        images: npt.NDArray[np.intp],
        n_regions: int,
        device: torch.device,
        generator: torch.Generator,
    ) -> tuple[Tensor, Offsets]:
        """Return at most so many rows of each image: the first one, and others at random."""
        rows, offsets = take_ragged(self.offsets, images)
        keys = torch.rand(len(rows), generator=generator, device=generator.device).cpu().numpy()
        keys[offsets[:-1]] = -1
        owners = np.repeat(np.arange(len(images)), np.diff(offsets))
        places = np.arange(len(rows)) - offsets[owners]
        drawn = np.lexsort((keys, owners))[places < n_regions]
        counts = np.minimum(np.diff(offsets), n_regions)
        return self._at(rows[np.sort(drawn)], device), offsets_of(counts)

    def _at(self, rows: npt.NDArray[np.intp], device: torch.device) -> Tensor:
        return torch.from_numpy(self._values(rows)).to(device)

    def _values(self, rows: npt.NDArray[np.intp]) -> npt.NDArray[np.float32]:
        values = np.ascontiguousarray(self.rows[rows], dtype=np.float32)
        return square_roots(values) if self.rooted else values

    def select(self, images: npt.NDArray[np.intp]) -> RegionTable:
        """Return these images alone, in this order."""
        rows, offsets = take_ragged(self.offsets, images)
        return RegionTable(self.rows[rows], offsets, self.rooted)

    def moments(
        self, images: npt.NDArray[np.intp]
    ) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
        """Mean and spread of each feature over the regions of some images."""
        rows, _ = take_ragged(self.offsets, images)
        total, squares = (np.zeros(self.rows.shape[1]) for _ in range(2))
        for start in range(0, len(rows), _ROWS_AT_ONCE):
            part = self._values(rows[start : start + _ROWS_AT_ONCE]).astype(np.float64)
            total += part.sum(axis=0)
            squares += (part**2).sum(axis=0)
        mean = check_finite("features of images", total / len(rows))
        spread = np.sqrt(np.maximum(squares / len(rows) - mean**2, 0))
        return mean.astype(np.float32), np.where(spread > 1e-6, spread, 1).astype(np.float32)
