"""Training photos and captions, and how new ones are compared with them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from kernelcore._progress import Progress
from kernelcore._reading import reading
from kernelcore._validation import Array
from kernelcore.captions import CaptionNormalizer
from kernelcore.kernels import average
from kernelcore.models.feature_kernel import Scaling
from kernelcore.models.model_folder import DESCRIPTION
from kernelcore.models.pairs import count, take_images
from kernelcore.models.photo_inputs import (
    AbsentExtractor,
    Extractor,
    Feature,
    Photos,
    Rows,
    check_features,
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
    """

    photos: tuple[PhotoView, ...]
    captions: TrainingCaptions

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
        views = [view_of(feature).fit(photos, **describing) for feature in features]
        found = [view.describe(photos, **describing) for view in views]
        descriptions, rows = _of_common_photos(found)
        texts = [captions[i] for i in rows]
        return cls(
            tuple(view.of(said) for view, said in zip(views, descriptions, strict=True)),
            TrainingCaptions.learn(texts, normalizer, caption_kernel, progress=progress),
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
        return _of_common_photos([view.describe(photos, **options) for view in self.photos])

    def given(self, name: str, photos: Any) -> Any:
        """Return photos as they are, or their vectors where these stand for them."""
        if len(self.photos) > 1:
            check_features(self.features())
        view = self.photos[0]
        if isinstance(view, VectorView) and view.extractor is None and len(self.photos) == 1:
            return view.given(photos)
        return given_photos(name, photos, [view.feature for view in self.photos])

    def know(self, descriptions: Sequence[Any]) -> npt.NDArray[np.bool_]:
        """Find the photos whose descriptions are, bit for bit, those of training photos."""
        known = [view.know(said) for view, said in zip(self.photos, descriptions, strict=True)]
        both: npt.NDArray[np.bool_] = np.logical_and.reduce(known)
        return both

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
            One for each view whose own no file could hold.
        """
        captions = TrainingCaptions.load(folder, caption_kernel)
        if views is None and extractors is not None:
            raise ValueError("features must be omitted: the model was saved with all it needs")
        if views is None:
            view = PyramidView.load(folder)
            with reading(folder):
                return cls((view,), captions)
        with reading(folder / DESCRIPTION):
            about = [
                check_about(f"photos[{i}]", _folder_of(folder, i), one)
                for i, one in enumerate(views)
            ]
            absent = [i for i, one in enumerate(about) if one.get("absent")]
        given: dict[int, Extractor] = {}
        if extractors is not None:
            if len(extractors) != len(absent):
                raise ValueError(
                    f"features must hold the {len(absent)} that the model was saved without, "
                    f"got {len(extractors)}"
                )
            given = dict(zip(absent, extractors, strict=True))
        photos = tuple(
            load_view(_folder_of(folder, i), one, given.get(i)) for i, one in enumerate(about)
        )
        with reading(folder):
            return cls(photos, captions)


def names_of(photos: Photos) -> list[str]:
    """Path of each photo, or its number where it has none."""
    sources: Any = photos if isinstance(photos, (list, tuple)) else range(count(photos))
    return [
        os.fspath(photo) if isinstance(photo, (str, os.PathLike)) else f"photo {i}"
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
