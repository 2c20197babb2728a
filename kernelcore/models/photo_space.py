"""The space that a photo ranker learns from two kernels."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kernelcore._check import Array
from kernelcore._threads import cached_property
from kernelcore.models.hubs import mean_of_largest
from kernelcore.models.kcca_ranker import KCCARanker, products, unit_rows

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
    def n_directions(self) -> int:
        """Length of the vectors without what corrects for hubs."""
        return int(self.ranker.kcca_.x_scores_.shape[1])

    @property
    def n_components(self) -> int:
        """Length of the vectors."""
        return self.n_directions + (2 if self.hub_neighbors else 0)

    @cached_property
    def fingerprint(self) -> str:
        """Digest of the learned space."""
        space = self.ranker.kcca_.x_scores_ * self.ranker.weights
        about = f"hubs {self.hub_neighbors}" if self.hub_neighbors else ""
        return hashlib.blake2b(space.tobytes() + about.encode(), digest_size=16).hexdigest()

    @property
    def bank_items(self) -> npt.NDArray[np.intp]:
        """Training items that hubs are estimated from."""
        return spread(len(self.ranker.kcca_.x_scores_), _MAX_BANK)

    @cached_property
    def _bank(self) -> tuple[Array, Array]:
        """Vectors of training photos and of the captions of each, spread evenly."""
        kcca, weights = self.ranker.kcca_, self.ranker.weights
        photos, captions = (
            unit_rows(scores[self.bank_items] * weights)
            for scores in (kcca.x_scores_, kcca.y_scores_)
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


def spread(n_items: int, most: int) -> npt.NDArray[np.intp]:
    """Return the places of at most `most` items that are spread evenly."""
    return np.linspace(0, n_items - 1, min(n_items, most)).astype(np.intp)
