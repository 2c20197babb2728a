"""Conformal p-values of search scores, and the training items they are estimated from."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kernelcore._check import Array, as_real_array, check_finite, check_real
from kernelcore._ragged import take
from kernelcore._store import check_tensor, load_tensors, reading, save_tensors
from kernelcore.captions import EncodedCaptions
from kernelcore.models.kcca_ranker import KCCARanker, spread
from kernelcore.models.photo_features import PhotoFeature
from kernelcore.models.training_items import TrainingCaptions

_KIND = "foreign items"
_MOST = 2000  # items, so that a share of 5 % by chance has a standard error of 0.5 %
_ENOUGH = 500


class ChanceLine:
    r"""Scores of a query with foreign candidates, and a line drawn by them.

    Foreign candidates are photos that a sentence was not written about, or captions of other
    photos. Let :math:`b_1, \dots, b_B` be the scores of B of them with the query. A candidate
    with the score s is then as good by chance with

    .. math:: p(s) = \frac{1 + |\{i : b_i \ge s\}|}{1 + B}

    This is the p-value of conformal prediction [1]_: a candidate that the query is not about,
    drawn as the foreign ones are, has :math:`p \le \alpha` with probability at most
    :math:`\alpha`, whatever the scores are distributed like. So of such candidates in a
    collection a share of :math:`\alpha` stands above the line, on average.

    Parameters
    ----------
    foreign : array_like of shape (n_foreign,)
        Scores of the query with foreign candidates.

    Raises
    ------
    TypeError, ValueError
        If there is no score or one is not a finite number.

    References
    ----------
    .. [1] V. Vovk, A. Gammerman and G. Shafer, "Algorithmic learning in a random world",
       Springer, 2005.

    Examples
    --------
    >>> from kernelcore.models import ChanceLine
    >>> line = ChanceLine([0.1, 0.2, 0.3, 0.4])
    >>> line.by_chance([0.5, 0.35, 0.0])
    array([0.2, 0.4, 1. ])
    >>> line.score_at(0.4)
    0.3
    """

    def __init__(self, foreign: npt.ArrayLike) -> None:
        found = check_finite("foreign", as_real_array("foreign", foreign, ndim=1))
        if not found.size:
            raise ValueError("foreign must hold the score of a candidate, got none")
        self.foreign: Array = np.sort(found)

    def by_chance(self, scores: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Return the share of foreign candidates with a score as high, as p above.

        Parameters
        ----------
        scores : array_like of any shape

        Returns
        -------
        ndarray of float64, of the same shape
            Values in (0, 1].

        Raises
        ------
        TypeError, ValueError
            If a score is not a finite number.
        """
        asked: Array = np.asarray(scores)
        if asked.dtype.kind not in "fiu":
            raise TypeError(f"scores must be real numbers, got dtype {asked.dtype}")
        check_finite("scores", asked)
        n_higher = len(self.foreign) - np.searchsorted(self.foreign, asked, side="left")
        share: npt.NDArray[np.float64] = (n_higher + 1) / np.float64(len(self.foreign) + 1)
        return share

    def score_at(self, false_rate: float) -> float:
        """Return the score that a candidate must exceed to stand above the line.

        Parameters
        ----------
        false_rate : float
            Probability in (0, 1) that a foreign candidate stands above the line.

        Returns
        -------
        float
            Infinity where there are fewer than 1 / false_rate - 1 foreign candidates: then
            none can stand above the line.
        """
        rate = check_real("false_rate", false_rate, minimum=0.0, exclusive=True)
        if rate >= 1:
            raise ValueError(f"false_rate must be less than 1, got {false_rate}")
        n_above = math.floor(rate * (1 + len(self.foreign)) * (1 + 1e-12)) - 1
        return math.inf if n_above < 0 else float(self.foreign[-1 - n_above])

    def __repr__(self) -> str:
        return f"ChanceLine({len(self.foreign)} foreign candidates)"


class Foreign(NamedTuple):
    """Leave-one-out embeddings of training items: the null distribution of scores.

    Attributes
    ----------
    captions : ndarray of shape (n_items, n_components)
        A caption of each, embedded as if its photo had not been in the training set.
    photos : ndarray of shape (n_items, n_components)
        The photo of each, embedded as if its captions had not been in the training set.
    """

    captions: Array
    photos: Array

    @classmethod
    def of(
        cls,
        photos: PhotoFeature,
        captions: TrainingCaptions,
        ranker: KCCARanker,
        photo_gram: Callable[..., Array],
        *,
        n_threads: int | None = None,
    ) -> Foreign:
        """Draw training items evenly, and embed them without their own similarity.

        A kernel of an item with itself is replaced by its mean kernel with the others, which
        centring turns to about 0. So the space is nearly as if the item had not been in it.
        `photo_gram` compares photos with the training photos.
        """
        drawn = _drawn(ranker)
        numbers = photos.numbers()
        is_own = numbers[drawn, np.newaxis] == numbers
        single = _single_captions(captions.encoded, drawn)
        of_captions = captions.gram(single, n_threads=n_threads)
        of_photos = photo_gram(take(photos.photos, drawn), n_threads=n_threads)
        return cls(
            ranker.embed_captions(_without_own(of_captions, is_own)),
            ranker.embed_images(_without_own(of_photos, is_own)),
        )

    def save(self, path: Path, model: str) -> None:
        """Write the vectors as one file; `model` is the fingerprint of the space."""
        save_tensors(path, _KIND, self._asdict(), {"model": model})

    @classmethod
    def load(cls, path: Path, model: str, ranker: KCCARanker) -> Foreign:
        """Read the output of `save`; a damaged file raises ValueError."""
        with reading(path):
            tensors, about = load_tensors(path, _KIND)
            if about.exactly("model")["model"] != model:
                raise ValueError("it must be of this model, and it is of another one")
            found = tensors.exactly(*cls._fields)
            n_components = ranker.kcca_.x_scores_.shape[1] + (2 if ranker.hub_neighbors else 0)
            for name, vectors in found.items():
                check_tensor(name, vectors, (len(_drawn(ranker)), n_components))
        return cls(**found)


def _drawn(ranker: KCCARanker) -> npt.NDArray[np.intp]:
    """Return items spread evenly over those that the hub correction does not know.

    New items are not among those that hubs are estimated from, so these should not be either;
    but a small training set has no others.
    """
    items = np.arange(len(ranker.kcca_.x_scores_))
    others = np.delete(items, ranker.bank_items)
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
