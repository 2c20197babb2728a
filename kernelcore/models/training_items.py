"""Training photos and captions of a photo ranker, with which new ones are compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import numpy as np
import numpy.typing as npt

from kernelcore._check import check_choice
from kernelcore._store import reading
from kernelcore._threads import Progress, cached_property
from kernelcore.captions import CaptionNormalizer
from kernelcore.models.base import held_out, take_images
from kernelcore.models.photo_features import (
    Described,
    Feature,
    PhotoFeature,
    PhotoKernel,
    Photos,
    Rows,
    Scaling,
    check_photos,
    checked_about,
    checked_names,
    digests_of,
)
from kernelcore.models.saving import MODEL
from kernelcore.models.training_captions import CaptionKernel, Nested, TrainingCaptions


@dataclass(frozen=True, eq=False)
class TrainingItems:
    """Training photos and captions, with which new ones are compared.

    Attributes
    ----------
    photos : PhotoFeature
        Training photos, with the feature that describes them.
    captions : TrainingCaptions
        Their captions; photo i has captions i.
    sources : tuple of str
        Path or number of each photo; not saved.
    """

    photos: PhotoFeature
    captions: TrainingCaptions
    sources: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        own = self.photos.photos
        parts = own.values() if isinstance(own, Mapping) else [own]
        lengths = {len(self.captions), *map(len, parts)}
        if len(lengths) != 1:
            raise ValueError(
                f"features and captions must be of the same photos, got {sorted(lengths)}"
            )

    def __len__(self) -> int:
        return len(self.captions)

    @classmethod
    def collect(
        cls,
        photos: Photos,
        captions: Nested,
        feature: Feature,
        normalizer: CaptionNormalizer,
        *,
        caption_kernel: CaptionKernel | None,
        progress: Progress,
        **options: Any,
    ) -> TrainingItems:
        """Learn codebooks and words from the items, and describe them.

        The `options` are those of `PhotoFeature.describe`.
        """
        own, rows = PhotoFeature.fit(feature, photos, progress=progress, **options)
        texts, names = [captions[i] for i in rows], checked_names(photos, None)
        return cls(
            own,
            TrainingCaptions.learn(texts, normalizer, caption_kernel, progress=progress),
            tuple(names[i] for i in rows),
        )

    def kernel(self, scaling: Scaling | None) -> PhotoKernel:
        """Return the kernel of photos with the training photos."""
        return PhotoKernel(self.photos.photos, scaling)

    def checked(self, name: str, photos: Any) -> Any:
        """Return photos as `PhotoFeature.describe` takes them."""
        return check_photos(name, photos, self.photos.feature)

    def contains(self, described: Described) -> npt.NDArray[np.bool_]:
        """Find the photos whose descriptions equal, bit for bit, those of training photos."""
        known = set(self._digests)
        return np.array([one in known for one in digests_of(described)], dtype=bool)

    def photo_numbers(self) -> Rows:
        """Return a number for the photo of each item.

        Photos with the same path or the same description have the same number.
        """
        number_of: dict[Any, int] = {}
        numbers: Rows = np.empty(len(self), np.intp)
        n_photos = 0
        sources: Sequence[Any] = self.sources or range(len(self))
        for i, keys in enumerate(zip(sources, self._digests, strict=True)):
            number = min((number_of[k] for k in keys if k in number_of), default=n_photos)
            number_of.update(dict.fromkeys(keys, number))
            numbers[i] = number
            n_photos = max(n_photos, number + 1)
        return numbers

    @cached_property
    def _digests(self) -> list[bytes]:
        return digests_of(self.photos.photos)

    def known(self, items: Rows) -> Described:
        """Return the descriptions of some training photos."""
        described: Described = take_images(self.photos.photos, items)
        return described

    @classmethod
    def load(cls, folder: Path, description: Mapping[str, Any]) -> TrainingItems:
        """Read the files of a saved ranker; a damaged file is a ValueError.

        `description` contains the manifest.
        """
        with reading(folder.parent / MODEL):
            caption_kernel = description["caption_kernel"]
            check_choice("caption_kernel", caption_kernel, get_args(CaptionKernel))
            about = checked_about("photos", folder, description["photos"])
        captions = TrainingCaptions.load(folder, caption_kernel)
        photos = PhotoFeature.load(folder, about)
        with reading(folder):
            return cls(photos, captions)


def divided(
    numbers: Rows, share: float, rng: np.random.Generator | int | None
) -> tuple[Rows, Rows, Rows, Rows]:
    """Hold out a share of the photos; `numbers` are those of each training item's photo.

    Returns
    -------
    kept : ndarray of intp
        Items of the photos that are kept.
    photos : ndarray of intp
        One item of each photo that is held out.
    items : ndarray of intp
        All items of these photos.
    image : ndarray of intp
        Place in `photos` of the photo of each of `items`.
    """
    first = np.unique(numbers, return_index=True)[1]
    if len(first) == 1 < len(numbers):
        raise ValueError("images must differ: all are one photo, or described alike")
    kept, left = held_out(len(first), share, rng)
    items = np.flatnonzero(np.isin(numbers, left))
    return (
        np.flatnonzero(np.isin(numbers, kept)),
        first[left],
        items,
        np.searchsorted(left, numbers[items]),
    )
