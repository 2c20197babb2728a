"""Training items placed as new ones would be, to estimate what is found by chance."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kernelcore._check import Array
from kernelcore._store import check_tensor, load_tensors, reading, save_tensors
from kernelcore.captions import EncodedCaptions
from kernelcore.kernels import power
from kernelcore.models.photo_space import PhotoSpace, spread
from kernelcore.models.training_items import TrainingItems
from kernelcore.models.vector_view import Scaling

_KIND = "foreign items"
_MOST = 2000  # items, so that a share of 5 % by chance has a standard error of 0.5 %
_ENOUGH = 500
_PARTS = ("captions", "photos")


class Foreign(NamedTuple):
    """Training items by which chance is estimated, as vectors.

    Attributes
    ----------
    captions : ndarray of shape (n_items, n_components)
        A caption of each, placed as if its photo had not been in the training set.
    photos : ndarray of shape (n_items, n_components)
        The photo of each, placed as if its captions had not been in the training set.
    """

    captions: Array
    photos: Array

    @classmethod
    def of(
        cls,
        training: TrainingItems,
        space: PhotoSpace,
        *,
        image_power: float,
        scaling: Scaling | None,
        n_threads: int | None = None,
    ) -> Foreign:
        """Draw training items evenly, and place them without their own similarity.

        A kernel of an item with itself is replaced by its mean kernel with the others, which
        centring turns to about 0. So the space is nearly as if the item had not been in it.
        """
        run: dict[str, Any] = {"n_threads": n_threads}
        drawn = _drawn(space, len(training))
        numbers = training.photo_numbers()
        is_own = numbers[drawn, np.newaxis] == numbers
        captions = _single_captions(training.captions.encoded, drawn)
        of_captions = np.concatenate(list(training.captions.rows(captions, **run)))
        known = training.known(drawn)
        of_photos = [
            power(K, image_power) for K in training.photo_rows(known, scaling=scaling, **run)
        ]
        photos = np.concatenate(of_photos)
        return cls(
            space.captions(_without_own(of_captions, is_own)),
            space.photos(_without_own(photos, is_own)),
        )

    def save(self, path: Path, model: str) -> None:
        """Write the vectors as one file; `model` is the fingerprint of the space."""
        tensors = {name: getattr(self, name) for name in _PARTS}
        save_tensors(path, _KIND, tensors, {"model": model})

    @classmethod
    def load(cls, path: Path, training: TrainingItems, space: PhotoSpace) -> Foreign:
        """Read the output of `save`; a damaged file raises ValueError."""
        with reading(path):
            tensors, about = load_tensors(path, _KIND)
            if about.exactly("model")["model"] != space.fingerprint:
                raise ValueError("it must be of this model, and it is of another one")
            found = tensors.exactly(*_PARTS)
            drawn = _drawn(space, len(training))
            for name in _PARTS:
                check_tensor(name, found[name], (len(drawn), space.n_components))
        return cls(**found)


def _drawn(space: PhotoSpace, n_items: int) -> npt.NDArray[np.intp]:
    """Return items spread evenly over those that the hub correction does not know.

    New items are not among those that hubs are estimated from, so these should not be either;
    but a small training set has no others.
    """
    items = np.arange(n_items)
    others = np.setdiff1d(items, space.bank_items)
    if len(others) >= _ENOUGH:
        items = others
    return items[spread(len(items), _MOST)]


def _single_captions(encoded: EncodedCaptions, items: npt.NDArray[np.intp]) -> EncodedCaptions:
    """Return one caption of each item, the first, the second and so on in turn."""
    starts, counts = encoded.image_offsets[:-1], np.diff(encoded.image_offsets)
    number = np.arange(len(items)) % np.maximum(counts[items], 1)
    return encoded.caption_as_image().select(starts[items] + number)


def _without_own(K: Array, is_own: npt.NDArray[np.bool_]) -> Array:
    """Replace kernel values of items with themselves by the mean of their other values."""
    others = np.where(is_own, 0, K)
    n_others = np.maximum(K.shape[1] - is_own.sum(axis=1), 1)
    means = others.sum(axis=1, dtype=np.float64) / n_others
    filled: Array = np.where(is_own, means[:, np.newaxis].astype(K.dtype), K)
    return filled
