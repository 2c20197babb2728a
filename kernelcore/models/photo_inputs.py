"""Photos in the forms that callers give them, and the features that describe them."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from typing import Any, Literal, Protocol, TypeAlias, runtime_checkable

import numpy as np
import numpy.typing as npt

from kernelcore._check import (
    Array,
    as_float32,
    as_ordered_list,
    as_real_array,
    check_finite,
)
from kernelcore.evaluation._inputs import as_rows
from kernelcore.images import CNN, CNNFeatures, SpatialHistograms, VisualWords
from kernelcore.images.read import ImageSources
from kernelcore.models.base import count


@runtime_checkable
class Extractor(Protocol):
    """Turns photos into vectors: ``transform(images)`` returns one row per photo."""

    def transform(self, images: Any) -> Any:
        """Return an array of shape (n_images, n_features)."""


class AbsentExtractor:
    """Placeholder for an extractor that was not saved with its model."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"<{self.name}, not saved>"

    def transform(self, images: Any) -> Any:
        """Raise: the extractor is missing."""
        raise self.error("features")

    def error(self, feature: str) -> ValueError:
        """Return the error to raise where `feature` is needed."""
        return ValueError(
            f"{feature} must be given again, because the model was saved without its extractor "
            f"{self.name}; pass it as load(..., features={self.name}(...)), or pass all "
            "features as set_params(features=...)"
        )


Feature: TypeAlias = VisualWords | CNN | Extractor | Literal["precomputed"]
"""How photos are described; "precomputed" where callers give the vectors themselves."""

PRECOMPUTED: Literal["precomputed"] = "precomputed"

Photos: TypeAlias = ImageSources | Mapping[str, SpatialHistograms] | CNNFeatures | npt.ArrayLike
"""Photos as files or pixels, or the output of an extractor."""

Rows: TypeAlias = npt.NDArray[np.intp]


def check_features(features: Any) -> tuple[Feature, ...]:
    """Return the features as a tuple, or raise."""
    if features is None:
        return (VisualWords(),)
    several = tuple(features) if isinstance(features, (list, tuple)) else (features,)
    for i, one in enumerate(several):
        if isinstance(one, AbsentExtractor):
            raise one.error(f"features[{i}]")
        is_extractor = isinstance(one, Extractor) and not isinstance(one, type)
        if not (is_extractor or (isinstance(one, str) and one == PRECOMPUTED)):
            raise TypeError(
                "features must be VisualWords(), CNN(), an object with transform, "
                f'"precomputed" or several of these, got {one!r:.80}'
            )
    if not several:
        raise ValueError("features must hold at least one description of photos, got none")
    if len(several) > 1 and PRECOMPUTED in [one for one in several if isinstance(one, str)]:
        raise ValueError('features must be "precomputed" alone, got it beside others')
    return several


def check_extractors(features: Any) -> tuple[Extractor, ...]:
    """Return the extractors for a loaded model as a tuple, or raise."""
    extractors = []
    for one in check_features(features):
        if isinstance(one, str):
            raise TypeError(f"features must be objects with transform, got {one!r}")
        extractors.append(one)
    return tuple(extractors)


def check_given(absent: Sequence[str], extractors: Sequence[Extractor] | None) -> None:
    """Raise unless the extractors for a loaded model are those it was saved without.

    Parameters
    ----------
    absent : sequence of str
        Classes of the extractors that were not saved.
    extractors : sequence of Extractor, optional
    """
    if extractors is None:
        return
    if not absent:
        raise ValueError("features must be omitted: this model was saved complete")
    if len(extractors) != len(absent):
        raise ValueError(
            f"features must hold the {len(absent)} that the model was saved without "
            f"({', '.join(absent)}), got {len(extractors)}"
        )
    for name, extractor in zip(absent, extractors, strict=True):
        if name not in {kind.__name__ for kind in type(extractor).__mro__}:
            raise TypeError(
                f"features must be of the class that the model was saved without, {name}, "
                f"got {extractor!r:.80}"
            )


def given_photos(name: str, photos: Any, features: Sequence[Feature]) -> Any:
    """Return photos unchanged, or as a matrix if they are given as vectors.

    Vectors are accepted if `features` is "precomputed" or a single network.
    """
    if len(features) == 1:
        is_given = isinstance(features[0], str)
        if is_given or (isinstance(features[0], CNN) and is_matrix(photos)):
            return as_vectors(name, photos)
    elif isinstance(photos, CNNFeatures):
        raise TypeError(
            f"{name} must be photos themselves where several features describe them, "
            f"got {photos!r}"
        )
    if isinstance(photos, Mapping):
        return check_histograms(name, photos)
    if isinstance(photos, (str, bytes, os.PathLike)):
        raise TypeError(f"{name} must be a sequence of photos, got {photos!r:.80}")
    n_dims = getattr(photos, "ndim", None)
    is_series = n_dims == 1 and not isinstance(photos, np.ndarray)
    if hasattr(photos, "__getitem__") and n_dims != 0 and not is_series:
        return photos
    return as_ordered_list(name, photos, "be a sequence of photos")


def check_histograms(name: str, photos: Mapping[Any, Any]) -> Mapping[str, SpatialHistograms]:
    """Return photos that are given as histograms by feature, as many of each."""
    for feature, histograms in photos.items():
        if not isinstance(histograms, SpatialHistograms):
            raise TypeError(
                f"{name} must be a sequence of photos, or SpatialHistograms by feature, got a "
                f"mapping with {type(histograms).__name__} for {feature!r:.80}"
            )
    lengths = {len(histograms) for histograms in photos.values()}
    if len(lengths) != 1:
        raise ValueError(
            f"{name} must have histograms of the same photos for each feature, "
            f"got {sorted(lengths) or 'no feature'}"
        )
    return photos


def is_matrix(photos: Any) -> bool:
    """Whether photos are given as vectors: in two dimensions, or by a network."""
    return isinstance(photos, CNNFeatures) or getattr(photos, "ndim", None) == 2


def as_vectors(name: str, value: Any) -> npt.NDArray[np.float32]:
    """Check vectors of photos: rows of finite real numbers that fit into float32."""
    rows = as_rows(name, value.features if isinstance(value, CNNFeatures) else value)
    whole = rows.take(np.arange(rows.shape[0]))
    return as_float32(name, check_finite(name, as_real_array(name, whole, ndim=2)))


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


def digests(rows: Array) -> list[bytes]:
    """Return a digest of the bits of each row."""
    return [hashlib.blake2b(row.tobytes(), digest_size=16).digest() for row in rows]


def as_strings(name: str, value: Any) -> list[str]:
    """Return a sequence of strings as a list."""
    rule = "be a sequence of strings"
    if isinstance(value, str):
        raise TypeError(f"{name} must {rule}, got {value!r:.80}")
    texts = as_ordered_list(name, value, rule)
    for i, text in enumerate(texts):
        if not isinstance(text, str):
            raise TypeError(f"{name} must {rule}, got {text!r:.80} at [{i}]")
    return texts
