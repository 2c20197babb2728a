"""Captions and their images, as training and evaluation take them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from kernelcore._validation import check_indices
from kernelcore.deep.fragment_space import Captions, as_captions
from kernelcore.deep.region_tables import Regions, RegionTable


@dataclass(frozen=True)
class Pairs:
    """Captions and the images that they belong to.

    Attributes
    ----------
    table : RegionTable
    captions : Captions
    caption_image : ndarray of intp, shape (n_captions,)
        Position in the table of each caption's image.
    """

    table: RegionTable
    captions: Captions
    caption_image: npt.NDArray[np.intp]

    @classmethod
    def of(
        cls,
        name: str,
        images: Any,
        captions: Any,
        caption_image: npt.ArrayLike | None = None,
        *,
        regions: Regions,
        sentence: str,
    ) -> Pairs:
        """Check what a caller gives, called `name` in errors, and lay it out."""
        table = RegionTable.of(name, images, regions)
        own = as_captions("captions", captions, sentence)
        if caption_image is None:
            if len(own) != len(table):
                raise ValueError(
                    f"captions must be one per image ({len(table)}) where caption_image is "
                    f"omitted, got {len(own)}"
                )
            return cls(table, own, np.arange(len(own)))
        owners = check_indices("caption_image", caption_image, len(table))
        if len(owners) != len(own) or not len(own):
            raise ValueError(
                f"caption_image must have one entry for each of at least one caption, "
                f"got {len(owners)} for {len(own)}"
            )
        return cls(table, own, owners)

    def __len__(self) -> int:
        return len(self.captions)

    def compact(self) -> Pairs:
        """Return the same without the images that have no caption."""
        images, owners = np.unique(self.caption_image, return_inverse=True)
        return Pairs(self.table.select(images), self.captions, owners)
