"""Training photos and captions, and how new ones are compared with them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from kernelcore._progress import Progress
from kernelcore._reading import reading
from kernelcore._validation import Array
from kernelcore.captions import CaptionNormalizer
from kernelcore.images._describe import warning_once
from kernelcore.kernels import average
from kernelcore.models.feature_kernel import Scaling
from kernelcore.models.model_folder import DESCRIPTION
from kernelcore.models.pairs import blocks, count, take_images
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
)
from kernelcore.models.photo_views import PhotoView, check_about, load_view, view_of
from kernelcore.models.pyramid_view import PyramidView
from kernelcore.models.training_captions import CaptionKernel, Nested, TrainingCaptions
from kernelcore.models.vector_view import VectorView


@dataclass(frozen=True, eq=False)
class TrainingItems:
    """What kernel values of new photos and captions are computed from.

    Attributes
    ----------
    photos : tuple of PhotoView
        Training photos, once for each way to describe them.
    captions : TrainingCaptions
        Their captions; photo i has captions i.
    sources : tuple of str
        Path or number of each photo; no file keeps this.
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
            views = [view_of(feature).fit(photos, **describing) for feature in features]
            found = [view.describe(photos, **describing) for view in views]
        descriptions, rows = _of_common_photos(found)
        texts = [captions[i] for i in rows]
        names = names_of(photos)
        return cls(
            tuple(view.of(said) for view, said in zip(views, descriptions, strict=True)),
            TrainingCaptions.learn(texts, normalizer, caption_kernel, progress=progress),
            tuple(names[i] for i in rows),
        )

    @property
    def scalings(self) -> tuple[Scaling | None, ...]:
        """What may be done to the vectors of photos, if some are described by any."""
        tried = dict.fromkeys(scaling for view in self.photos for scaling in view.scalings)
        return tuple(how for how in tried if how is not None) or (None,)

    def describe(self, photos: Photos, **options: Any) -> tuple[list[Any], Rows]:
        """Describe photos in every way; return that, and the photo behind each row.

        Parameters
        ----------
        photos : see `PhotoRanker.index`
        **options
            Those of `PhotoView.describe`.
        """
        with warning_once(count(photos)):
            found = [view.describe(photos, **options) for view in self.photos]
        return _of_common_photos(found)

    def given(self, photos: Any) -> Any:
        """Return photos as they are, or their vectors where these stand for them."""
        if len(self.photos) > 1:
            check_features(self.features())
        view = self.photos[0]
        if isinstance(view, VectorView) and view.extractor is None and len(self.photos) == 1:
            return view.given(photos)
        return given_photos("images", photos, [view.feature for view in self.photos])

    def know(self, descriptions: Sequence[Any]) -> npt.NDArray[np.bool_]:
        """Find the photos whose descriptions are, bit for bit, those of training photos."""
        views = zip(self.photos, descriptions, strict=True)
        found = zip(*(view.digests(said) for view, said in views), strict=True)
        return np.array([one in self._digests for one in found], dtype=bool)

    def photo_numbers(self) -> Rows:
        """Return a number for the photo of each item, the same where the photo is the same.

        It is if it has the same path, or is described by the same bits.
        """
        number_of: dict[Any, int] = {}
        numbers: Rows = np.empty(len(self), np.intp)
        n_photos = 0
        for i, keys in enumerate(zip(self.sources, self._all_digests(), strict=True)):
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
        """Compare photos with the training photos, mean over the ways to describe them.

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
        """Give the rows of `photo_kernel`, some thousand at a time."""
        for part in blocks(count(descriptions[0])):
            yield self.photo_kernel([take_images(one, part) for one in descriptions], **options)

    def features(self) -> Feature | tuple[Feature, ...]:
        """Return what describes photos, as `PhotoRanker` takes it."""
        if len(self.photos) == 1:
            return self.photos[0].feature
        absent = [getattr(view, "absent", "") for view in self.photos]
        return tuple(
            AbsentExtractor(name) if name else view.feature
            for view, name in zip(self.photos, absent, strict=True)
        )

    def about(self) -> dict[str, Any]:
        """Return what `load` needs beside the files, as JSON."""
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
        caption_kernel: CaptionKernel,
        views: Any,
        extractors: Sequence[Extractor] | None,
    ) -> TrainingItems:
        """Read what was saved; a damaged file is a ValueError.

        Parameters
        ----------
        folder : path
        caption_kernel : {"bag_of_words", "word_sequence", "similar_words"}
        views : list of mapping, or None
            What `about` said of the photos; None for a folder of version 0.1, which knew
            visual words alone.
        extractors : sequence of Extractor, optional
            One for each view whose extractor was not saved.
        """
        captions = TrainingCaptions.load(folder, caption_kernel)
        if views is None:
            check_given((), extractors)
            view = PyramidView.load(folder)
            with reading(folder):
                return cls((view,), captions)
        with reading(folder / DESCRIPTION):
            about = [
                check_about(f"photos[{i}]", _folder_of(folder, i), one)
                for i, one in enumerate(views)
            ]
            absent = {i: str(one["absent"]) for i, one in enumerate(about) if one.get("absent")}
        check_given(tuple(absent.values()), extractors)
        given = dict(zip(absent, extractors or (), strict=False))
        photos = tuple(
            load_view(_folder_of(folder, i), one, given.get(i)) for i, one in enumerate(about)
        )
        with reading(folder):
            return cls(photos, captions)


def given_again(known: TrainingItems | None, images: Any, features: tuple[Feature, ...]) -> Any:
    """Return photos or vectors to fit on; a model without its extractor names it in errors."""
    if known is not None and features == (PRECOMPUTED,) and known.features() == PRECOMPUTED:
        return known.given(images)
    return given_photos("images", images, features)


def names_of(photos: Photos) -> list[str]:
    """Path of each photo, or its number where it has none."""
    has_paths = (
        isinstance(photos, np.ndarray) and photos.ndim == 1 and photos.dtype.kind in "OU"
    )
    is_list = isinstance(photos, (list, tuple)) or has_paths
    sources: Any = photos if is_list else range(count(photos))
    return [
        str(os.fspath(photo)) if isinstance(photo, (str, os.PathLike)) else f"photo {i}"
        for i, photo in enumerate(sources)
    ]


def _of_common_photos(found: Sequence[tuple[Any, Rows]]) -> tuple[list[Any], Rows]:
    """Keep the photos that every view could read."""
    rows: Rows = reduce(np.intersect1d, [own for _, own in found])
    kept = [
        said if len(own) == len(rows) else take_images(said, np.flatnonzero(np.isin(own, rows)))
        for said, own in found
    ]
    return kept, rows


def _folder_of(folder: Path, number: int) -> Path:
    return folder / f"photos-{number}"
