"""Images and the sentences that belong to them, as training and evaluation take them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from kernelcore._validation import check_indices
from kernelcore.deep.region_tables import RegionTable
from kernelcore.deep.sentences import Sentences

Owners = npt.NDArray[np.intp]


@dataclass(frozen=True)
class CaptionTable:
    """Sentences and the images that they belong to.

    Attributes
    ----------
    images : RegionTable
    sentences : Sentences
    caption_image : ndarray of intp, shape (n_sentences,)
        Position in the table of each sentence's image.
    """

    images: RegionTable
    sentences: Sentences
    caption_image: Owners

    def __len__(self) -> int:
        return len(self.caption_image)

    def compact(self) -> CaptionTable:
        """Return the same without the images that have no sentence."""
        images, owners = np.unique(self.caption_image, return_inverse=True)
        return CaptionTable(self.images.select(images), self.sentences, owners)


def owners_of(n_images: int, n_captions: int, caption_image: Any) -> Owners:
    """Check what says which image a caption belongs to; None stands for one each in order."""
    if caption_image is None:
        if n_captions != n_images:
            raise ValueError(
                f"captions must be one per image ({n_images}) where caption_image is "
                f"omitted, got {n_captions}"
            )
        return np.arange(n_captions)
    owners = check_indices("caption_image", caption_image, n_images)
    if len(owners) != n_captions or not n_captions:
        raise ValueError(
            f"caption_image must have one entry for each of at least one caption, "
            f"got {len(owners)} for {n_captions}"
        )
    return owners
