"""Photos as callers give them, and what may describe them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, Literal, Protocol, TypeAlias, runtime_checkable

import numpy as np
import numpy.typing as npt

from kernelcore._validation import (
    Array,
    as_list,
    as_real_array,
    check_finite,
    no_overflow,
)
from kernelcore.evaluation._rows import as_rows
from kernelcore.images import CNN, CNNFeatures, SpatialHistograms, VisualWords
from kernelcore.images.decode import ImageSource


@runtime_checkable
class Extractor(Protocol):
    """Whatever turns photos into one vector each: ``transform(images)`` gives their rows."""

    def transform(self, images: Any) -> Any:
        """Return an array of shape (n_images, n_features)."""


class AbsentExtractor:
    """Stands, beside other features of a loaded model, for one that no file could hold."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"<the {self.name} that no file could hold>"

    def transform(self, images: Any) -> Any:
        """Raise: there is nothing to describe photos with."""
        raise self.error("features")

    def error(self, feature: str) -> ValueError:
        """Return what to raise where the feature of this name is needed."""
        return ValueError(
            f"{feature} must be given again: no file could hold the {self.name} that described "
            "photos; give it to load as features, or all of them by set_params(features=...)"
        )


Feature: TypeAlias = VisualWords | CNN | Extractor | Literal["precomputed"]
"""How photos are described; "precomputed" where callers give the vectors themselves."""

PRECOMPUTED: Literal["precomputed"] = "precomputed"

Photos: TypeAlias = (
    Sequence[ImageSource] | Mapping[str, SpatialHistograms] | CNNFeatures | npt.ArrayLike
)
"""Photos as files or pixels, or what an extractor made of them."""

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
    """Return what is given to a loaded model as a tuple, or raise."""
    extractors = []
    for one in check_features(features):
        if isinstance(one, str):
            raise TypeError(f"features must be objects with transform, got {one!r}")
        extractors.append(one)
    return tuple(extractors)


def given_photos(name: str, photos: Any, features: Sequence[Feature]) -> Any:
    """Return photos as they are, or their vectors where these stand for them.

    Vectors may stand for photos where they are all that `features` take, or where a network
    alone describes photos, which takes no matrix itself.
    """
    if len(features) == 1:
        is_given = isinstance(features[0], str)
        if is_given or (isinstance(features[0], CNN) and is_matrix(photos)):
            return as_vectors(name, photos)
    if isinstance(photos, (str, bytes, os.PathLike)):
        raise TypeError(f"{name} must be a sequence of photos, got {photos!r:.80}")
    if hasattr(photos, "__len__") and hasattr(photos, "__getitem__"):
        return photos
    return as_list(name, photos)


def is_matrix(photos: Any) -> bool:
    """Whether photos are given as vectors: in two dimensions, or by a network."""
    return isinstance(photos, CNNFeatures) or getattr(photos, "ndim", None) == 2


def as_vectors(name: str, value: Any) -> npt.NDArray[np.float32]:
    """Check vectors of photos: rows of finite real numbers that fit into float32."""
    rows = as_rows(name, value.features if isinstance(value, CNNFeatures) else value)
    whole = rows.take(np.arange(rows.shape[0]))
    checked = check_finite(name, as_real_array(name, whole, ndim=2))
    with no_overflow(name, "fit into float32"):
        return checked.astype(np.float32, copy=False)


def among(rows: Array, others: Array) -> npt.NDArray[np.bool_]:
    """Find the rows that are equal to one of the others."""
    known = {row.tobytes() for row in others}
    return np.array([row.tobytes() in known for row in rows], dtype=bool)
