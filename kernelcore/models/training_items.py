"""Training photos and captions of a photo ranker, with which new ones are compared."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Any, get_args

import numpy as np
import numpy.typing as npt

from kernelcore._check import check_choice
from kernelcore._store import reading
from kernelcore._threads import Progress, cached_property
from kernelcore.captions import CaptionNormalizer
from kernelcore.images._describe import warning_once
from kernelcore.models.base import count, held_out, take_images
from kernelcore.models.photo_features import (
    AbsentExtractor,
    Described,
    Feature,
    PhotoFeature,
    PhotoKernel,
    Photos,
    Rows,
    Scaling,
    check_features,
    check_given,
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
    photos : tuple of PhotoFeature
        Training photos, once for each feature.
    captions : TrainingCaptions
        Their captions; photo i has captions i.
    sources : tuple of str
        Path or number of each photo; not saved.
    """

    photos: tuple[PhotoFeature, ...]
    captions: TrainingCaptions
    sources: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.photos:
            raise ValueError("photos must be described in at least one way, got none")
        parts = [
            part
            for one in self.photos
            for part in (
                one.photos.values() if isinstance(one.photos, Mapping) else [one.photos]
            )
        ]
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
        features: Sequence[Feature],
        normalizer: CaptionNormalizer,
        caption_kernel: CaptionKernel | None,
        *,
        cache_dir: str | os.PathLike[str] | None,
        on_error: Any,
        n_threads: int | None,
        progress: Progress,
    ) -> TrainingItems:
        """Learn codebooks and words from the items, and describe them."""
        options: dict[str, Any] = {"on_error": on_error, "n_threads": n_threads}
        options |= {"cache_dir": cache_dir, "progress": progress}
        with warning_once(count(photos)):
            fitted = [PhotoFeature.fit(feature, photos, **options) for feature in features]
            found = [one.describe("images", photos, **options) for one in fitted]
        descriptions, rows = _of_common_photos(found)
        texts, names = [captions[i] for i in rows], checked_names(photos, None)
        return cls(
            tuple(one.with_photos(own) for one, own in zip(fitted, descriptions, strict=True)),
            TrainingCaptions.learn(texts, normalizer, caption_kernel, progress=progress),
            tuple(names[i] for i in rows),
        )

    @property
    def scalings(self) -> list[Scaling]:
        """Scalings of vectors to try; none if no feature gives vectors."""
        return list(dict.fromkeys(how for one in self.photos for how in one.scalings))

    def kernel(self, scaling: Scaling | None) -> PhotoKernel:
        """Return the kernel of photos with the training photos."""
        return PhotoKernel([one.photos for one in self.photos], scaling)

    def describe(self, name: str, photos: Any, **options: Any) -> tuple[list[Described], Rows]:
        """Describe photos by every feature, and return the photo behind each row.

        Parameters
        ----------
        name : str
            Name of the photos in errors.
        photos : see `PhotoRanker.index`
            Checked by `check_photos`.
        **options
            Those of `PhotoFeature.describe`.
        """
        if len(self.photos) == 1:
            own, rows = self.photos[0].describe(name, photos, **options)
            return [own], rows
        with warning_once(count(photos)):
            found = [one.describe(name, photos, **options) for one in self.photos]
        return _of_common_photos(found)

    def checked(self, name: str, photos: Any) -> Any:
        """Return photos as `describe` takes them."""
        features = [one.feature for one in self.photos]
        if len(features) > 1:
            check_features(self.features())
        return check_photos(name, photos, features, absent=self.photos[0].absent)

    def contains(self, descriptions: Sequence[Described]) -> npt.NDArray[np.bool_]:
        """Find the photos whose descriptions equal, bit for bit, those of training photos."""
        known = set(self._digests)
        found = zip(*map(digests_of, descriptions), strict=True)
        return np.array([one in known for one in found], dtype=bool)

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
    def _digests(self) -> list[tuple[bytes, ...]]:
        return list(zip(*(digests_of(one.photos) for one in self.photos), strict=True))

    def known(self, items: Rows) -> list[Described]:
        """Return the descriptions of some training photos, one for each feature."""
        return [take_images(one.photos, items) for one in self.photos]

    def features(self) -> Feature | tuple[Feature, ...]:
        """Return the features in the form of the parameter of `PhotoRanker`."""
        if len(self.photos) == 1:
            return self.photos[0].feature
        return tuple(
            AbsentExtractor(one.absent) if one.absent else one.feature for one in self.photos
        )

    def about(self) -> dict[str, Any]:
        """Return the JSON entries that `load` needs beside the files."""
        return {
            "photos": [one.about() for one in self.photos],
            "caption_kernel": self.captions.kernel,
        }

    def save(self, folder: Path) -> None:
        """Write the captions, and each feature into a folder of its own."""
        self.captions.save(folder)
        for number, one in enumerate(self.photos):
            own = folder / f"photos-{number}"
            own.mkdir()
            one.save(own)

    @classmethod
    def load(
        cls,
        folder: Path,
        description: Mapping[str, Any],
        features: Any,
    ) -> TrainingItems:
        """Read the files of `save`; a damaged file is a ValueError.

        Parameters
        ----------
        folder : path
        description : mapping
            Contains the entries of `about`.
        features : Extractor or sequence of Extractor, optional
            Those that were not saved.
        """
        with reading(folder.parent / MODEL):
            caption_kernel = description["caption_kernel"]
            check_choice("caption_kernel", caption_kernel, get_args(CaptionKernel))
            about = [
                checked_about(f"photos[{i}]", folder / f"photos-{i}", one)
                for i, one in enumerate(description["photos"])
            ]
            absent = {i: str(one["absent"]) for i, one in enumerate(about) if one.get("absent")}
        captions = TrainingCaptions.load(folder, caption_kernel)
        extractors = check_given(tuple(absent.values()), features)
        given = dict(zip(absent, extractors, strict=True))
        photos = tuple(
            PhotoFeature.load(folder / f"photos-{i}", one, given.get(i))
            for i, one in enumerate(about)
        )
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


def _of_common_photos(
    found: Sequence[tuple[Described, Rows]],
) -> tuple[list[Described], Rows]:
    """Keep the photos that every feature could read."""
    rows: Rows = reduce(np.intersect1d, [own for _, own in found])
    kept = [
        one if len(own) == len(rows) else take_images(one, np.flatnonzero(np.isin(own, rows)))
        for one, own in found
    ]
    return kept, rows
