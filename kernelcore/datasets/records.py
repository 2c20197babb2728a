"""The types in which captioned pictures and their splits travel through the package."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True)
class CaptionedImages:
    """Pictures with their captions and the splits they belong to.

    Attributes
    ----------
    name : str
        Name of the collection, as results will quote it.
    image_ids : tuple of str
        One unique id per image, in the order of the source.
    paths : tuple of Path or None
        Image file of each image; None where the collection came without pictures.
    captions : tuple of tuple of str
        Raw captions of each image. An image may have any number of them.
    caption_ids : tuple of tuple of str
        The source's id of each caption, parallel to `captions`.
    caption_numbers : tuple of tuple of int
        Number of each caption within its image as the source gives it, parallel to
        `captions`: the ``2`` of ``photo.jpg#2``, or the position where the source has none.
    splits : mapping of str to ndarray of intp
        Indices of the images of each split, in the order of the split file.
    """

    name: str
    image_ids: tuple[str, ...]
    paths: tuple[Path | None, ...]
    captions: tuple[tuple[str, ...], ...]
    caption_ids: tuple[tuple[str, ...], ...]
    caption_numbers: tuple[tuple[int, ...], ...]
    splits: Mapping[str, npt.NDArray[np.intp]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        n_images = len(self.image_ids)
        for part in ("paths", "captions", "caption_ids", "caption_numbers"):
            if len(getattr(self, part)) != n_images:
                raise ValueError(
                    f"{part} must have one entry per image ({n_images}), "
                    f"got {len(getattr(self, part))}"
                )
        if len(set(self.image_ids)) != n_images:
            raise ValueError("image_ids must be unique, got duplicates")
        for texts, ids, numbers in zip(
            self.captions, self.caption_ids, self.caption_numbers, strict=True
        ):
            if not len(texts) == len(ids) == len(numbers):
                raise ValueError("caption_ids and caption_numbers must be parallel to captions")

    def __len__(self) -> int:
        return len(self.image_ids)

    @property
    def n_captions(self) -> int:
        """Number of captions of all images together."""
        return sum(map(len, self.captions))

    def split(self, name: str) -> npt.NDArray[np.intp]:
        """Return the image indices of split `name`; the error names the splits there are."""
        if name not in self.splits:
            known = ", ".join(map(repr, self.splits)) or "none"
            raise ValueError(f"split must be one of those of {self.name} ({known}), got {name!r}")
        return self.splits[name]

    def subset(self, indices: npt.ArrayLike) -> CaptionedImages:
        """Return the images at `indices`, in that order, with splits that still hold images."""
        chosen = np.asarray(indices, dtype=np.intp)
        position = {int(old): new for new, old in enumerate(chosen)}
        splits = {
            name: np.array([position[i] for i in members.tolist() if i in position], np.intp)
            for name, members in self.splits.items()
        }

        def take(values: tuple) -> tuple:  # type: ignore[type-arg]
            return tuple(values[i] for i in chosen)

        return CaptionedImages(
            name=self.name,
            image_ids=take(self.image_ids),
            paths=take(self.paths),
            captions=take(self.captions),
            caption_ids=take(self.caption_ids),
            caption_numbers=take(self.caption_numbers),
            splits={name: members for name, members in splits.items() if members.size},
        )
