"""The space that a photo ranker learns, and an index of photos in it."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
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
from kernelcore.models.hubs import mean_of_largest
from kernelcore.models.kcca_ranker import KCCARanker, products, unit_rows
from kernelcore.models.photo_inputs import as_strings

_MAX_BANK = 2000  # training items that hubs are estimated from; more hardly change them


@dataclass(frozen=True, eq=False)
class PhotoSpace:
    r"""Photos and captions as vectors whose products are scores.

    Without a correction they are cosines of the projections of kernel CCA. With it

    .. math:: s'(x, y) = x \cdot y - \frac{r(x) + r(y)}{2}

    where r is the mean of the largest cosines of an item with the training items of the other
    kind. That is half of `hub_corrected`, for both tasks at once, because a term of the query
    alone changes no ranking. Two more components, (-r(x) / 2, 1) of a photo and
    (1, -r(y) / 2) of a caption, turn it into a product.

    Attributes
    ----------
    ranker : KCCARanker
        Fitted to precomputed kernels.
    hub_neighbors : int
        Number of nearest training items; 0 for no correction.
    """

    ranker: KCCARanker
    hub_neighbors: int = 0

    def photos(self, K: Array) -> npt.NDArray[np.float32]:
        """Place photos, given as rows of kernel values with the training photos."""
        rows = self.ranker.embed_images(K)
        return self._with_hubs(rows, self._bank[1], (0, 1)) if self.hub_neighbors else rows

    def captions(self, K: Array) -> npt.NDArray[np.float32]:
        """Place captions, given as rows of kernel values with the training captions."""
        rows = self.ranker.embed_captions(K)
        return self._with_hubs(rows, self._bank[0], (1, 0)) if self.hub_neighbors else rows

    @property
    def n_components(self) -> int:
        """Length of the vectors."""
        n_components = self.ranker.kcca_.x_scores_.shape[1]
        return int(n_components) + (2 if self.hub_neighbors else 0)

    @cached_property
    def fingerprint(self) -> str:
        """Digest of the learned space."""
        space = self.ranker.kcca_.x_scores_ * self.ranker.weights
        about = f"hubs {self.hub_neighbors}" if self.hub_neighbors else ""
        return hashlib.blake2b(space.tobytes() + about.encode(), digest_size=16).hexdigest()

    @cached_property
    def _bank(self) -> tuple[Array, Array]:
        """Vectors of training photos and of the captions of each, spread evenly."""
        kcca, weights = self.ranker.kcca_, self.ranker.weights
        n = len(kcca.x_scores_)
        drawn = np.linspace(0, n - 1, min(n, _MAX_BANK)).astype(np.intp)
        photos, captions = (
            unit_rows(scores[drawn] * weights) for scores in (kcca.x_scores_, kcca.y_scores_)
        )
        return photos, captions

    def _with_hubs(
        self, rows: Array, bank: Array, order: tuple[int, int]
    ) -> npt.NDArray[np.float32]:
        """Append minus half of the nearness to the bank, and 1, in this order."""
        nearness = mean_of_largest(products(rows, bank), self.hub_neighbors)
        ends = np.stack([-nearness / 2, np.ones_like(nearness)], axis=1)
        whole: npt.NDArray[np.float32] = np.hstack([rows, ends[:, order].astype(rows.dtype)])
        return whole


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
    """Names and projections of photos, to be searched many times without the photos.

    Parameters
    ----------
    names : sequence of str
        Name of each photo, as searches will quote it.
    projections : array_like of shape (n_photos, n_components)
        Photos in the space of the ranker.
    model : str
        `PhotoRanker.fingerprint` of the ranker; no other ranker can use the index.
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
        """Load the output of `save`; a damaged file raises ValueError."""
        with reading(path):
            tensors, metadata = load_tensors(path, _KIND)
            projections = tensors.exactly("projections")["projections"]
            check_tensor("projections", projections, (None, None))
            return cls(projections=projections, **metadata.exactly("names", "model"))


def best_matches(scores: Array, k: int, names: Sequence[str]) -> list[Match]:
    """Return the `k` candidates with the highest scores; ties keep their order."""
    k = check_integer("k", k, minimum=1)
    order = np.argsort(-scores, kind="stable")[:k]
    return [Match(int(i), float(scores[i]), names[i]) for i in order]
