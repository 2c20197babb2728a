"""Training photos as visual words, and their spatial pyramid kernel with other photos."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, cast

import numpy as np

from kernelcore._check import Array
from kernelcore._store import reading
from kernelcore._threads import Progress
from kernelcore.images import SpatialHistograms, VisualWords
from kernelcore.images._describe import OnError
from kernelcore.kernels import average, spatial_pyramid
from kernelcore.models.base import count, take_images
from kernelcore.models.photo_inputs import Photos, Rows, digests
from kernelcore.models.vector_view import Scaling

KIND = "visual words"
_VISUAL_WORDS = "visual_words.safetensors"


@dataclass(frozen=True, eq=False)
class PyramidView:
    """Photos as visual words in the cells of a pyramid, compared feature by feature.

    Attributes
    ----------
    extractor : VisualWords
        Fitted.
    histograms : dict of str to SpatialHistograms
        Training photos by feature.
    """

    scalings: ClassVar[tuple[Scaling | None, ...]] = (None,)

    extractor: VisualWords
    histograms: Mapping[str, SpatialHistograms]

    def __post_init__(self) -> None:
        lengths = {len(own) for own in self.histograms.values()}
        if len(lengths) > 1:
            raise ValueError(f"histograms must be of the same photos, got {sorted(lengths)}")

    def __len__(self) -> int:
        return count(self.histograms)

    @property
    def feature(self) -> VisualWords:
        """Visual words with the same parameters, without codebooks."""
        return VisualWords(**self.extractor.get_params())

    def fit(
        self,
        photos: Photos,
        *,
        on_error: OnError,
        n_threads: int | None,
        progress: Progress,
        cache_dir: str | os.PathLike[str] | None = None,  # unused: codebooks are not cached
    ) -> PyramidView:
        """Learn codebooks, unless the extractor has some."""
        if hasattr(self.extractor, "codebooks_"):
            return self
        if isinstance(photos, Mapping):
            raise ValueError(
                "features must be a fitted VisualWords if images are given as histograms"
            )
        fitted = self.feature.fit(
            cast(Any, photos),  # checked there
            on_error=on_error,
            n_threads=n_threads,
            progress=progress,
        )
        return PyramidView(fitted, self.histograms)

    def describe(
        self,
        photos: Photos,
        *,
        cache_dir: str | os.PathLike[str] | None = None,
        on_error: OnError = "raise",
        n_threads: int | None = None,
        progress: Progress = False,
    ) -> tuple[Mapping[str, SpatialHistograms], Rows]:
        """Count visual words; histograms are returned unchanged."""
        if isinstance(photos, Mapping):
            names = list(self.extractor.codebooks_)
            if set(photos) != set(names):
                raise ValueError(
                    f"images must have the histograms of {', '.join(names)}, "
                    f"got {', '.join(map(str, photos)) or 'none'}"
                )
            for name, codebook in self.extractor.codebooks_.items():
                expected = codebook.n_words, self.extractor.n_levels
                sizes = photos[name].n_words, photos[name].n_levels
                if sizes != expected:
                    raise ValueError(
                        f"images must have the words and levels of the codebook {name!r}, "
                        f"{expected}, got {sizes}"
                    )
            return {name: photos[name] for name in names}, np.arange(count(photos))
        found = self.extractor.transform(
            cast(Any, photos),  # checked there
            cache_dir=cache_dir,
            on_error=on_error,
            n_threads=n_threads,
            progress=progress,
        )
        return dict(found), found.rows

    def of(self, description: Mapping[str, SpatialHistograms]) -> PyramidView:
        """Return the view of other training photos."""
        return PyramidView(self.extractor, description)

    def known(self, items: Rows) -> Mapping[str, SpatialHistograms]:
        """Return the histograms of some training photos."""
        known: Mapping[str, SpatialHistograms] = take_images(self.histograms, items)
        return known

    def digests(
        self, description: Mapping[str, SpatialHistograms] | None = None
    ) -> list[bytes]:
        """Digests of the histograms of photos, by default of the training photos."""
        histograms = self.histograms if description is None else description
        own = [digests(histograms[name].counts) for name in self.histograms]
        return [b"".join(parts) for parts in zip(*own, strict=True)]

    def gram(
        self,
        description: Mapping[str, SpatialHistograms] | None = None,
        *,
        scaling: Scaling | None = None,
        n_threads: int | None = None,
        progress: Progress = False,
    ) -> Array:
        """Spatial pyramid kernel, mean over the features."""
        return average(
            [
                spatial_pyramid(
                    training if description is None else description[name],
                    None if description is None else training,
                    dtype=np.float32,
                    n_threads=n_threads,
                    progress=progress,
                )
                for name, training in self.histograms.items()
            ]
        )

    def about(self) -> dict[str, Any]:
        """Return the kind; everything else is in files."""
        return {"kind": KIND}

    def save(self, folder: Path) -> None:
        """Write the codebooks, and a file of histograms for each feature."""
        self.extractor.save(folder / _VISUAL_WORDS)
        for name, histograms in self.histograms.items():
            histograms.save(folder / _photos_file(name))

    @classmethod
    def load(cls, folder: Path) -> PyramidView:
        """Load the output of `save`; a damaged file raises ValueError."""
        extractor = VisualWords.load(folder / _VISUAL_WORDS)
        histograms = {}
        for name, codebook in extractor.codebooks_.items():
            with reading(folder / _photos_file(name)):
                own = SpatialHistograms.load(folder / _photos_file(name))
                sizes = codebook.n_words, extractor.n_levels
                if (own.n_words, own.n_levels) != sizes:
                    raise ValueError(
                        f"it must have the words and levels of its codebook, {sizes}, "
                        f"got {own.n_words} and {own.n_levels}"
                    )
            histograms[name] = own
        with reading(folder):
            return cls(extractor, histograms)


def _photos_file(feature: str) -> str:
    return f"photos-{feature}.safetensors"
