"""Scores of a system for joined and for single captions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from kernelcore._check import Array
from kernelcore.deep import Captioner, join_captions
from kernelcore.experiments.corpus import Pool
from kernelcore.experiments.khojasteh2019.ordering import Ordering
from kernelcore.experiments.scores import Scores
from kernelcore.experiments.steps import Source


@dataclass(frozen=True, eq=False)
class OrderScores(Scores):
    """Scores of single captions, scores of joined captions, and the orders of both.

    Attributes
    ----------
    joined : Scores
        Scores of photos and joined captions; text i belongs to photo i.
    orderings : mapping of str to Ordering
        Order of joined and of single captions; empty for a language model.
    """

    joined: Scores = field(kw_only=True)
    orderings: Mapping[str, Ordering] = field(default_factory=dict)


def joined_pool(pool: Pool) -> Pool:
    """Return a pool with the captions of each photo joined into one text."""
    texts, photos = join_captions(pool.texts, pool.photos)
    return Pool(tuple(texts), np.zeros(len(texts), np.int64), photos)


def summed_by_photo(scores: Array, pool: Pool) -> Array:
    """Add up the scores of the captions of each photo, shape (n_images, n_photos)."""
    photos = np.unique(pool.photos)
    is_own = (pool.photos[:, np.newaxis] == photos).astype(scores.dtype)
    sums: Array = scores @ is_own
    return sums


def likelihoods(
    captioner: Source[Captioner],
    images: Array,
    captions: Sequence[str],
    *,
    n_threads: int | None,
) -> npt.NDArray[np.float32]:
    """Return log P(S | I) of all pairs."""
    ranker = captioner.value().set_params(score="likelihood")
    return ranker.scores(images, captions, n_threads=n_threads)


def likelihood_ratios(
    captioner: Captioner,
    images: Array,
    captions: Sequence[str],
    scores: npt.NDArray[np.float32],
    *,
    n_threads: int | None,
) -> npt.NDArray[np.float32]:
    """Return log P(S | I) - log P(S) of all pairs, from the `likelihoods` of all pairs.

    The first image is scored once more: its two scores differ by log P(S), which is the same
    for all images.
    """
    ratio = captioner.set_params(score="ratio")
    first = ratio.scores(images[:1], captions, n_threads=n_threads)
    return scores - (scores[:1] - first)
