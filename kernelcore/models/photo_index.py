"""Photos placed once in the space of a ranker, to be searched many times, and what is found."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kernelcore._files import load_tensors, save_tensors
from kernelcore._reading import check_tensor, reading
from kernelcore._validation import (
    Array,
    as_array,
    as_real_array,
    check_finite,
    check_integer,
    owned,
)
from kernelcore.models.photo_inputs import as_strings

_KIND = "photo index"


class Match(NamedTuple):
    """One entry of a ranked list.

    Attributes
    ----------
    item : int
        Position of the photo or sentence among those that were ranked.
    score : float
        Higher is better.
    name : str
        Name of the photo in its index, or the sentence itself.
    """

    item: int
    score: float
    name: str


class PhotoIndex:
    """Names and projections of photos: what a search needs instead of the photos themselves.

    Parameters
    ----------
    names : sequence of str
        Name of each photo, as searches will quote it.
    projections : array_like of shape (n_photos, n_components)
        Photos in the space of the ranker.
    model : str
        Fingerprint of the ranker, `PhotoRanker.fingerprint`: no other one can use the index.
    is_known : array_like of bool, shape (n_photos,), optional
        Whether the photo was in the training set; not saved.

    Raises
    ------
    TypeError, ValueError
        If there is not one name per photo or a projection is not a finite number.

    See Also
    --------
    kernelcore.models.PhotoRanker.index : Makes one.

    Examples
    --------
    >>> from kernelcore.models import PhotoIndex
    >>> PhotoIndex(["a.jpg", "b.jpg"], [[0.5, 0.1], [0.2, 0.3]], model="1f0e")
    PhotoIndex(2 photos)
    """

    def __init__(
        self,
        names: Sequence[str],
        projections: npt.ArrayLike,
        model: str,
        *,
        is_known: npt.ArrayLike | None = None,
    ) -> None:
        self.names = tuple(as_strings("names", names))
        if not isinstance(model, str):
            raise TypeError(f"model must be a fingerprint, got {model!r:.80}")
        self.projections: npt.NDArray[Any] = owned(
            check_finite("projections", as_real_array("projections", projections, ndim=2))
        )
        self.model = model
        self.is_known = (
            None if is_known is None else owned(as_array("is_known", is_known, ndim=1))
        )
        if len(self.names) != len(self.projections):
            raise ValueError(
                f"names must have one entry per photo ({len(self.projections)}), "
                f"got {len(self.names)}"
            )
        known = self.is_known
        if known is not None and (known.dtype != bool or known.shape != (len(self.names),)):
            raise ValueError(f"is_known must be one bool per photo, got {is_known!r:.80}")

    def __len__(self) -> int:
        return len(self.names)

    def __repr__(self) -> str:
        return f"PhotoIndex({len(self)} photos)"

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the index as a safetensors file, whole or not at all."""
        metadata = {"names": list(self.names), "model": self.model}
        save_tensors(path, _KIND, {"projections": self.projections}, metadata)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> PhotoIndex:
        """Read what `save` wrote; a damaged file is a ValueError."""
        with reading(path):
            tensors, metadata = load_tensors(path, _KIND)
            projections = tensors.exactly("projections")["projections"]
            check_tensor("projections", projections, (None, None))
            return cls(projections=projections, **metadata.exactly("names", "model"))


def best_matches(scores: Array, k: int, names: Sequence[str]) -> list[Match]:
    """Return the `k` candidates with the highest scores; equal ones in their own order."""
    k = check_integer("k", k, minimum=1)
    order = np.argsort(-scores, kind="stable")[:k]
    return [Match(int(i), float(scores[i]), names[i]) for i in order]
