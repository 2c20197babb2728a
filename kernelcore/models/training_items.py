"""Training photos and captions of a photo ranker, and their kernels with new ones."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from kernelcore._check import Array, check_choice
from kernelcore._store import check_mapping, reading
from kernelcore._threads import Progress, cached_property
from kernelcore.captions import CaptionNormalizer, EncodedCaptions
from kernelcore.errors import DatasetWarning
from kernelcore.images import VisualWords
from kernelcore.images._describe import warning_once
from kernelcore.kernels import average
from kernelcore.models import pyramid_view, vector_view
from kernelcore.models.base import about_dev, count, held_out, take_images
from kernelcore.models.photo_inputs import (
    PRECOMPUTED,
    AbsentExtractor,
    Extractor,
    Feature,
    Photos,
    Rows,
    check_features,
    check_given,
    given_photos,
    names_of,
)
from kernelcore.models.pyramid_view import PyramidView
from kernelcore.models.saving import DESCRIPTION
from kernelcore.models.training_captions import CaptionKernel, Nested, TrainingCaptions, blocks
from kernelcore.models.vector_view import Scaling, VectorView, network_of

PhotoView: TypeAlias = PyramidView | VectorView
"""Training photos described by one feature; describes and compares other photos too."""


@dataclass(frozen=True, eq=False)
class TrainingItems:
    """Training photos and captions, with which new ones are compared.

    Attributes
    ----------
    photos : tuple of PhotoView
        Training photos, once for each feature.
    captions : TrainingCaptions
        Their captions; photo i has captions i.
    sources : tuple of str
        Path or number of each photo; not saved.
    """

    photos: tuple[PhotoView, ...]
    captions: TrainingCaptions
    sources: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.photos:
            raise ValueError("photos must be described in at least one way, got none")
        lengths = {len(self.captions), *map(len, self.photos)}
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
        describing: dict[str, Any] = {
            "cache_dir": cache_dir,
            "on_error": on_error,
            "n_threads": n_threads,
            "progress": progress,
        }
        with warning_once(count(photos)):
            views = [_view_of(feature).fit(photos, **describing) for feature in features]
            found = [view.describe(photos, **describing) for view in views]
        descriptions, rows = _of_common_photos(found)
        texts = [captions[i] for i in rows]
        names = names_of(photos)
        return cls(
            tuple(view.of(own) for view, own in zip(views, descriptions, strict=True)),
            TrainingCaptions.learn(texts, normalizer, caption_kernel, progress=progress),
            tuple(names[i] for i in rows),
        )

    @property
    def scalings(self) -> tuple[Scaling | None, ...]:
        """Scalings of vectors to try; (None,) if no feature gives vectors."""
        tried = dict.fromkeys(scaling for view in self.photos for scaling in view.scalings)
        return tuple(how for how in tried if how is not None) or (None,)

    def describe(self, photos: Photos, **options: Any) -> tuple[list[Any], Rows]:
        """Describe photos by every feature; return that, and the photo behind each row.

        Parameters
        ----------
        photos : see `PhotoRanker.index`
        **options
            Those of `PhotoView.describe`.
        """
        with warning_once(count(photos)):
            found = [view.describe(photos, **options) for view in self.photos]
        return _of_common_photos(found)

    def describe_dev(
        self, photos: Photos, captions: Nested, **options: Any
    ) -> tuple[list[Any], EncodedCaptions]:
        """Describe development photos and encode their captions; warn of training photos."""
        with about_dev():
            descriptions, rows = self.describe(photos, **options)
        n_known = int(self.know(descriptions).sum())
        if n_known:
            warnings.warn(
                f"dev holds {n_known} photos that are in images too: settings that are "
                "chosen by them fit these photos, and dev_recalls_ are too high",
                DatasetWarning,
                stacklevel=3,
            )
        return descriptions, self.captions.encode([captions[i] for i in rows])

    def given(self, photos: Any) -> Any:
        """Return photos unchanged, or as a matrix if they are given as vectors."""
        if len(self.photos) > 1:
            check_features(self.features())
        view = self.photos[0]
        if isinstance(view, VectorView) and view.extractor is None and len(self.photos) == 1:
            return view.given(photos)
        return given_photos("images", photos, [view.feature for view in self.photos])

    def known(self, items: Rows) -> list[Any]:
        """Return the descriptions of some training photos, one for each feature."""
        return [view.known(items) for view in self.photos]

    def know(self, descriptions: Sequence[Any]) -> npt.NDArray[np.bool_]:
        """Find the photos whose descriptions equal, bit for bit, those of training photos."""
        views = zip(self.photos, descriptions, strict=True)
        found = zip(*(view.digests(own) for view, own in views), strict=True)
        return np.array([one in self._digests for one in found], dtype=bool)

    def photo_numbers(self) -> Rows:
        """Return a number for the photo of each item.

        Photos with the same path or the same description have the same number.
        """
        number_of: dict[Any, int] = {}
        numbers: Rows = np.empty(len(self), np.intp)
        n_photos = 0
        sources: Sequence[Any] = self.sources or range(len(self))
        for i, keys in enumerate(zip(sources, self._all_digests(), strict=True)):
            number = min((number_of[k] for k in keys if k in number_of), default=n_photos)
            number_of.update(dict.fromkeys(keys, number))
            numbers[i] = number
            n_photos = max(n_photos, number + 1)
        return numbers

    def _all_digests(self) -> list[tuple[bytes, ...]]:
        return list(zip(*(view.digests() for view in self.photos), strict=True))

    @cached_property
    def _digests(self) -> frozenset[tuple[bytes, ...]]:
        return frozenset(self._all_digests())

    def photo_kernel(
        self,
        descriptions: Sequence[Any] | None = None,
        *,
        scaling: Scaling | None = None,
        n_threads: int | None = None,
        progress: Progress = False,
    ) -> Array:
        """Compare photos with the training photos; the mean of the features' kernels.

        Without `descriptions` the symmetric kernel of the training photos themselves.
        """
        grams = [
            view.gram(
                None if descriptions is None else descriptions[i],
                scaling=scaling,
                n_threads=n_threads,
                progress=progress,
            )
            for i, view in enumerate(self.photos)
        ]
        return grams[0] if len(grams) == 1 else average(grams)

    def photo_rows(self, descriptions: Sequence[Any], **options: Any) -> Iterator[Array]:
        """Yield the rows of `photo_kernel`, `BLOCK` at a time."""
        for part in blocks(count(descriptions[0])):
            yield self.photo_kernel([take_images(one, part) for one in descriptions], **options)

    def features(self) -> Feature | tuple[Feature, ...]:
        """Return the features in the form of the parameter of `PhotoRanker`."""
        if len(self.photos) == 1:
            return self.photos[0].feature
        absent = [getattr(view, "absent", "") for view in self.photos]
        return tuple(
            AbsentExtractor(name) if name else view.feature
            for view, name in zip(self.photos, absent, strict=True)
        )

    def about(self) -> dict[str, Any]:
        """Return the JSON entries that `load` needs beside the files."""
        return {
            "photos": [view.about() for view in self.photos],
            "caption_kernel": self.captions.kernel,
        }

    def save(self, folder: Path) -> None:
        """Write the captions, and each view into a folder of its own."""
        self.captions.save(folder)
        for number, view in enumerate(self.photos):
            own = _folder_of(folder, number)
            own.mkdir()
            view.save(own)

    @classmethod
    def load(
        cls,
        folder: Path,
        description: Mapping[str, Any],
        extractors: Sequence[Extractor] | None,
    ) -> TrainingItems:
        """Read the files of `save`; a damaged file is a ValueError.

        Parameters
        ----------
        folder : path
        description : mapping
            Contains the entries of `about`.
        extractors : sequence of Extractor, optional
            One for each view whose extractor was not saved.
        """
        with reading(folder.parent / DESCRIPTION):
            caption_kernel = description["caption_kernel"]
            check_choice("caption_kernel", caption_kernel, get_args(CaptionKernel))
            about = [
                _checked_view(f"photos[{i}]", _folder_of(folder, i), one)
                for i, one in enumerate(description["photos"])
            ]
            absent = {i: str(one["absent"]) for i, one in enumerate(about) if one.get("absent")}
        captions = TrainingCaptions.load(folder, caption_kernel)
        check_given(tuple(absent.values()), extractors)
        given = dict(zip(absent, extractors or (), strict=False))
        photos = tuple(
            _load_view(_folder_of(folder, i), one, given.get(i)) for i, one in enumerate(about)
        )
        with reading(folder):
            return cls(photos, captions)


class HeldOut(NamedTuple):
    """Training items divided by their photos.

    Attributes
    ----------
    learned_from : ndarray of intp
        Items of the photos that are kept.
    photos : ndarray of intp
        One item of each photo that is held out.
    items : ndarray of intp
        All items of these photos.
    image : ndarray of intp
        Place in `photos` of the photo of each of `items`.
    """

    learned_from: Rows
    photos: Rows
    items: Rows
    image: Rows

    @classmethod
    def of(cls, numbers: Rows, share: float, rng: np.random.Generator | int | None) -> HeldOut:
        """Hold out a share of the photos; `numbers` are those of each item's photo."""
        first = np.unique(numbers, return_index=True)[1]
        if len(first) == 1 < len(numbers):
            raise ValueError("images must differ: all are one photo, or described alike")
        kept, left = held_out(len(first), share, rng)
        items = np.flatnonzero(np.isin(numbers, left))
        return cls(
            np.flatnonzero(np.isin(numbers, kept)),
            first[left],
            items,
            np.searchsorted(left, numbers[items]),
        )


def _view_of(feature: Feature) -> PhotoView:
    """Return a view without photos."""
    if isinstance(feature, VisualWords):
        return PyramidView(feature, {})
    extractor = None if isinstance(feature, str) else feature
    return VectorView(extractor, np.empty((0, 0), np.float32))


def _checked_view(name: str, folder: Path, value: Any) -> Mapping[str, Any]:
    """Return the checked description of a view, with its network if it has one."""
    about = dict(check_mapping(name, value))
    kinds = (pyramid_view.KIND, vector_view.NETWORK, PRECOMPUTED)
    check_choice("kind", about.get("kind"), kinds)
    if about["kind"] == vector_view.NETWORK:
        about["network"] = network_of(folder, check_mapping("params", about["params"]))
    return about


def _load_view(folder: Path, about: Mapping[str, Any], given: Extractor | None) -> PhotoView:
    """Read a view; `given` replaces an extractor that was not saved."""
    if about["kind"] == pyramid_view.KIND:
        return PyramidView.load(folder)
    absent = "" if given is not None else str(about.get("absent", ""))
    own_digest = str(about.get("digest", ""))
    return VectorView.load(folder, about.get("network", given), absent, own_digest)


def given_again(known: TrainingItems | None, images: Any, features: tuple[Feature, ...]) -> Any:
    """Return photos or vectors to fit on; a model without its extractor names it in errors."""
    if known is not None and features == (PRECOMPUTED,) and known.features() == PRECOMPUTED:
        return known.given(images)
    return given_photos("images", images, features)


def _of_common_photos(found: Sequence[tuple[Any, Rows]]) -> tuple[list[Any], Rows]:
    """Keep the photos that every view could read."""
    rows: Rows = reduce(np.intersect1d, [own for _, own in found])
    kept = [
        one if len(own) == len(rows) else take_images(one, np.flatnonzero(np.isin(own, rows)))
        for one, own in found
    ]
    return kept, rows


def _folder_of(folder: Path, number: int) -> Path:
    return folder / f"photos-{number}"
