"""The tag-rank kernel, by its definition, with dictionaries of ranks."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Caption: TypeAlias = Sequence[Hashable]
Images: TypeAlias = Sequence[Sequence[Caption]]
Ranks: TypeAlias = dict[Hashable, float]


def tag_rank(
    X: Images,
    Y: Images,
    training: Images,
    *,
    absolute_width: float | None = None,
    relative_width: float | None = None,
) -> npt.NDArray[np.float64]:
    """K[x, y] = mean over the captions s of x and t of y of the mean of two kernels.

    Each is exp(-chi2(u, v) / (2 * width)), of the absolute and of the relative ranks of the
    words; a width is the mean chi2 over all pairs of training captions unless it is given.

    Examples
    --------
    >>> captions = [[["dog", "run"]], [["run", "dog"]], [["cat"]]]
    >>> tag_rank(captions[:1], captions, captions).round(3)
    array([[1.   , 0.714, 0.585]])
    """
    texts = [caption for image in training for caption in image]
    positions = training_positions(texts)

    def ranks(caption: Caption) -> tuple[Ranks, Ranks]:
        return absolute_ranks(caption), relative_ranks(caption, positions)

    training_ranks = [ranks(text) for text in texts]
    widths = [
        mean_chi2([both[kind] for both in training_ranks]) if given is None else given
        for kind, given in enumerate((absolute_width, relative_width))
    ]

    def similarity(s: tuple[Ranks, Ranks], t: tuple[Ranks, Ranks]) -> float:
        return sum(math.exp(-chi2(s[k], t[k]) / (2 * widths[k])) / 2 for k in range(2))

    def mean(x: Sequence[tuple[Ranks, Ranks]], y: Sequence[tuple[Ranks, Ranks]]) -> float:
        pairs = [similarity(s, t) for s in x for t in y]
        return sum(pairs) / len(pairs) if pairs else 0.0

    ranked_X, ranked_Y = (
        [[ranks(caption) for caption in image] for image in images] for images in (X, Y)
    )
    K = np.array([mean(x, y) for x in ranked_X for y in ranked_Y], dtype=np.float64)
    return K.reshape(len(X), len(Y))


def mean_position(word: Hashable, caption: Caption) -> float:
    """Mean position of the word in the caption, counted from 1."""
    places = [place for place, other in enumerate(caption, 1) if other == word]
    return sum(places) / len(places)


def absolute_ranks(caption: Caption) -> Ranks:
    """Absolute rank 1 / log2(1 + p) of each word; p is its mean position."""
    return {word: 1 / math.log2(1 + mean_position(word, caption)) for word in set(caption)}


def training_positions(texts: Sequence[Caption]) -> dict[Hashable, list[int]]:
    """Positions of each word in the training captions."""
    positions: dict[Hashable, list[int]] = {}
    for text in texts:
        for place, word in enumerate(text, 1):
            positions.setdefault(word, []).append(place)
    return positions


def relative_ranks(caption: Caption, positions: Mapping[Hashable, list[int]]) -> Ranks:
    """Share of the word's training occurrences at later positions.

    A word without training occurrences is compared with all training words.
    """
    everywhere = [place for places in positions.values() for place in places]
    ranks: Ranks = {}
    for word in set(caption):
        places = positions.get(word, everywhere)
        before = sum(place <= mean_position(word, caption) for place in places)
        ranks[word] = 1 - before / len(places) if places else 1.0
    return ranks


def chi2(u: Ranks, v: Ranks) -> float:
    """Sum of (u - v)^2 / (u + v) over the words of both; 0 / 0 is 0."""
    total = 0.0
    for word in {**u, **v}:
        a, b = u.get(word, 0.0), v.get(word, 0.0)
        if a + b > 0:
            total += (a - b) ** 2 / (a + b)
    return total


def mean_chi2(ranks: Sequence[Ranks]) -> float:
    """Mean over all pairs of different captions."""
    pairs = [chi2(u, v) for i, u in enumerate(ranks) for v in ranks[:i]]
    return sum(pairs) / len(pairs)
