"""Photos as callers give them, and what may describe them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Protocol, TypeAlias, runtime_checkable

import numpy as np
import numpy.typing as npt

from kernelcore._validation import Array, as_real_array, check_finite, no_overflow
from kernelcore.evaluation._rows import as_rows
from kernelcore.images import CNN, CNNFeatures, SpatialHistograms, VisualWords
from kernelcore.images.decode import ImageSource


@runtime_checkable
class Extractor(Protocol):
    """Whatever turns photos into one vector each: ``transform(images)`` gives their rows."""

    def transform(self, images: Any) -> Any:
        """Return an array of shape (n_images, n_features)."""


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
    for one in several:
        if not (isinstance(one, Extractor) or (isinstance(one, str) and one == PRECOMPUTED)):
            raise TypeError(
                "features must be VisualWords(), CNN(), an object with transform, "
                f'"precomputed" or several of these, got {one!r:.80}'
            )
    if not several:
        raise ValueError("features must hold at least one description of photos, got none")
    if len(several) > 1 and PRECOMPUTED in [one for one in several if isinstance(one, str)]:
        raise ValueError('features must be "precomputed" alone, got it beside others')
    return several


def is_matrix(photos: Any) -> bool:
    """Whether photos are given as vectors: an array or a tensor in two dimensions."""
    return getattr(photos, "ndim", None) == 2


def as_vectors(name: str, value: Any) -> npt.NDArray[np.float32]:
    """Check vectors of photos: rows of finite real numbers that fit into float32."""
    rows = as_rows(name, value)
    whole = rows.take(np.arange(rows.shape[0]))
    checked = check_finite(name, as_real_array(name, whole, ndim=2))
    with no_overflow(name, "fit into float32"):
        return checked.astype(np.float32, copy=False)


def among(rows: Array, others: Array) -> npt.NDArray[np.bool_]:
    """Find the rows that are equal to one of the others."""
    known = {row.tobytes() for row in others}
    return np.array([row.tobytes() in known for row in rows], dtype=bool)
