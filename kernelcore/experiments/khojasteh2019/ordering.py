"""Which pairs of images and texts are in order, and which are not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kernelcore.deep import OrderRanker

Penalties = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Ordering:
    """Penalties of pairs by the order that a system was trained for.

    Attributes
    ----------
    below : {"texts", "images"}
        The side that should lie below.
    true, reverse : ndarray of float32, shape (n_texts,)
        Penalty of each text with its own image, and that of the same pair by the reverse of
        the order.
    mismatched : ndarray of float32, shape (n_images - 1, n_texts)
        Penalties of each text with all other images.
    """

    below: str
    true: Penalties
    reverse: Penalties
    mismatched: Penalties

    @classmethod
    def of(
        cls,
        ranker: OrderRanker,
        images: npt.ArrayLike,
        texts: Sequence[str],
        owners: npt.ArrayLike,
        *,
        n_threads: int | None,
    ) -> Ordering:
        """Ask a ranker for the penalties of all pairs; `owners` is each text's image."""
        is_reverse = ranker.similarity == "images below"
        along, against = (
            ranker.penalties(images, texts, reverse=way, n_threads=n_threads)
            for way in (is_reverse, not is_reverse)
        )
        own = np.asarray(owners), np.arange(len(texts))
        others = np.ones(along.shape, bool)
        others[own] = False
        mismatched = along.T[others.T].reshape(len(texts), len(along) - 1).T
        return cls("images" if is_reverse else "texts", along[own], against[own], mismatched)

    @property
    def less_than_reverse(self) -> float:
        """Share of true pairs with a lower penalty than by the reverse of the order."""
        return float((self.true < self.reverse).mean())

    @property
    def less_than_mismatched(self) -> float:
        """Share of pairs of a text with another image that have a higher penalty than its own.

        Equal penalties count half.
        """
        more, same = self.mismatched > self.true, self.mismatched == self.true
        return float(more.mean() + same.mean() / 2)
