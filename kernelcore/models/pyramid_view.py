"""Training photos as visual words, and how others are compared with them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, cast

import numpy as np
import numpy.typing as npt

from kernelcore._progress import Progress
from kernelcore._reading import reading
from kernelcore._validation import Array
from kernelcore.images import SpatialHistograms, VisualWords
from kernelcore.images._describe import OnError
from kernelcore.kernels import average, spatial_pyramid
from kernelcore.models.feature_kernel import Scaling
from kernelcore.models.pairs import count
from kernelcore.models.photo_inputs import Photos, Rows, among

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
        cache_dir: str | os.PathLike[str] | None = None,  # codebooks are kept nowhere
    ) -> PyramidView:
        """Learn codebooks, unless they were learned before."""
        if hasattr(self.extractor, "codebooks_"):
            return self
        if isinstance(photos, Mapping):
            raise ValueError("features must be fitted where photos are given as histograms")
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
        """Count visual words; histograms are taken as they are."""
        if isinstance(photos, Mapping):
            names = list(self.extractor.codebooks_)
            if set(photos) != set(names):
                raise ValueError(
                    f"photos must have the histograms of {', '.join(names)}, "
                    f"got {', '.join(map(str, photos)) or 'none'}"
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

    def know(self, description: Mapping[str, SpatialHistograms]) -> npt.NDArray[np.bool_]:
        """Find the photos that have the histograms of a training photo."""
        known: npt.NDArray[np.bool_] = np.logical_and.reduce(
            [
                among(description[name].counts, own.counts)
                for name, own in self.histograms.items()
            ]
        )
        return known

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
        """Return the kind: all else is in files."""
        return {"kind": KIND}

    def save(self, folder: Path) -> None:
        """Write the codebooks, and a file of histograms for each feature."""
        self.extractor.save(folder / _VISUAL_WORDS)
        for name, histograms in self.histograms.items():
            histograms.save(folder / _photos_file(name))

    @classmethod
    def load(cls, folder: Path) -> PyramidView:
        """Read what `save` wrote; a damaged file is a ValueError."""
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
