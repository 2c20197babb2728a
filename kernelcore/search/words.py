"""Words of a query: which are unknown, and how much each contributes to a score."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from kernelcore.captions import CaptionNormalizer
from kernelcore.models import PhotoRanker
from kernelcore.models.kcca_ranker import products
from kernelcore.models.training_items import WORD, TrainingCaptions

_N_NEAREST = 3
_MOST_COMPARED = 5  # unknown words of a sentence: each is compared with the whole vocabulary
_LEAST_ALIKE = 0.7  # ratio of difflib
_MOST_ENDING = 3  # letters of the endings of inflections, such as "ing"
_LEAST_STEM = 4


def unknown_words(known: TrainingCaptions, sentence: str) -> dict[str, tuple[str, ...]]:
    """Find the words of a sentence that no training caption has.

    Parameters
    ----------
    known : TrainingCaptions
        ``captions_`` of a `PhotoRanker`.
    sentence : str

    Returns
    -------
    dict of str to tuple of str
        Unknown words, as they stand in the sentence, with at most three words of the training
        captions: those that differ in the ending alone come first, then those that are spelled
        most like it.

    Examples
    --------
    >>> from kernelcore.captions import CaptionNormalizer
    >>> from kernelcore.models.training_items import TrainingCaptions
    >>> from kernelcore.search import unknown_words
    >>> captions = TrainingCaptions.learn(
    ...     [["A dog runs."]], CaptionNormalizer(), "bag_of_words", progress=False
    ... )
    >>> unknown_words(captions, "two dogss run")
    {'two': (), 'dogss': ('dog',)}
    """
    [words] = known.normalizer([sentence])
    unknown = dict.fromkeys(word for word in words if word not in known.vocabulary)
    written = _written(known.normalizer, sentence)
    found: dict[str, tuple[str, ...]] = {}
    for place, word in enumerate(unknown):
        nearest = _nearest_words(known, word) if place < _MOST_COMPARED else []
        found[written.get(word, word)] = tuple(nearest)
    return found


def _nearest_words(known: TrainingCaptions, word: str) -> list[str]:
    """Return the words of training captions that differ least from one in their spelling."""
    words, start = known.vocabulary.words, word[:_LEAST_STEM]
    inflected = [
        own for own in words if own.startswith(start) and _differ_in_endings(own, word)
    ]
    alike = spelled_alike(words, word)
    inflected.sort(key=lambda own: (own not in alike, len(own)))
    found = dict.fromkeys(known.written.get(own, own) for own in [*inflected, *alike])
    return list(found)[:_N_NEAREST]


def spelled_alike(words: Sequence[str], word: str) -> list[str]:
    """Return the nearest words by the ratio of difflib, most alike first.

    Words that share too few letters are left out first: comparing all took 8 ms of a search.

    Examples
    --------
    >>> from kernelcore.search.words import spelled_alike
    >>> spelled_alike(["cat", "dog", "dodge"], "dgog")
    ['dog']
    """
    letters = set(word)
    near = [
        own
        for own in words
        if 2 * sum(map(letters.__contains__, own)) / (len(own) + len(word)) >= _LEAST_ALIKE
    ]
    return difflib.get_close_matches(word, near, _N_NEAREST, _LEAST_ALIKE)


def _differ_in_endings(one: str, other: str) -> bool:
    stem = max(_LEAST_STEM, max(len(one), len(other)) - _MOST_ENDING)
    return one[:stem] == other[:stem]


def word_shares(
    ranker: PhotoRanker,
    sentence: str,
    photos: npt.NDArray[Any],
    *,
    n_threads: int | None = None,
) -> tuple[list[str], npt.NDArray[np.float64]]:
    r"""Divide scores of a sentence among its words, exactly.

    The kernel of captions is a sum over pairs of equal subsequences of words. A subsequence of
    l words gives each of them the l-th part of what it contributes,

    .. math:: k_w = \sum_l \frac{K_l(s) - K_l(s \setminus w)}{l}

    so that the shares of all words sum to the kernel. The space is linear in the kernel up to
    a constant, so the same holds for cosines in it.

    Parameters
    ----------
    ranker : PhotoRanker
        Fitted.
    sentence : str
    photos : ndarray of shape (n_photos, n_components)
        Vectors of photos from `PhotoRanker.embed_images`.
    n_threads : int, optional
        Threads to use; the default is every core this process may run on.

    Returns
    -------
    words : list of str
        Words of the sentence without stop words, as they stand in it.
    shares : ndarray of float64, shape (n_words + 1, n_photos)
        Share of each word in each cosine, and in the last row a constant that no word
        contributes, which comes from the centring of the kernel. Their sum is the cosine; a
        correction for hubs is not in it.

    Examples
    --------
    >>> from kernelcore.datasets import make_scenes
    >>> from kernelcore.images import VisualWords
    >>> from kernelcore.models import PhotoRanker
    >>> from kernelcore.search import word_shares
    >>> scenes = make_scenes(60)
    >>> features = VisualWords(n_words={"colour": 16, "sift": 16}, n_sample_images=10)
    >>> ranker = PhotoRanker(features).fit(scenes.images[:50], scenes.dataset.captions[:50])
    >>> photos = ranker.embed_images(scenes.images[50:])
    >>> words, shares = word_shares(ranker, "A dog chases a cat.", photos)
    >>> words, shares.shape
    (['dog', 'chases', 'cat'], (4, 10))
    """
    captions = ranker.captions_
    [words] = captions.normalizer([sentence])
    parts = captions.parts(words, n_threads=n_threads)
    kcca, weights = ranker.ranker_.kcca_, ranker.ranker_.weights
    whole = parts.sum(axis=0, dtype=np.float64)
    rows = np.vstack([whole, np.zeros_like(whole), parts])
    places = kcca.transform_y(rows).astype(np.float64) * weights
    length = np.linalg.norm(places[0]) or 1.0
    terms = np.vstack([places[2:] - places[1], places[1]]) / length
    shares = products(terms, ranker.directions(photos).astype(np.float64))
    written = _written(captions.normalizer, sentence)
    return [written.get(word, word) for word in words], shares


def _written(normalizer: CaptionNormalizer, sentence: str) -> dict[str, str]:
    """Return the word of the sentence that each base form comes from."""
    found = re.findall(WORD, sentence)
    bases: Sequence[Sequence[str]] = normalizer(found)
    return {own[0]: word for word, own in reversed(list(zip(found, bases, strict=True))) if own}
