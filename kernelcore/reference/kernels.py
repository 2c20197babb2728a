"""Kernels and scans of their input by their definitions, in plain NumPy and Python."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Hashable, Mapping, Sequence
from itertools import combinations
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.optimize import linear_sum_assignment

Array: TypeAlias = npt.NDArray[Any]
Bag: TypeAlias = Mapping[int, float]
Caption: TypeAlias = Sequence[Any]
Images: TypeAlias = Sequence[Sequence[Caption]]
Ranks: TypeAlias = dict[Hashable, float]


def histogram_intersection(
    X: npt.ArrayLike, Y: npt.ArrayLike, similarity: str = "sum"
) -> Array:
    """K[i, j] = sum over bins b of min(X[i, b], Y[j, b]); counts are summed as integers.

    "jaccard" divides by the sum of max(X[i, b], Y[j, b]), "bray_curtis" by the mean of the sums
    of both rows; 0 / 0 = 0.

    Examples
    --------
    >>> histogram_intersection([[3, 1, 0]], [[1, 1, 2]])
    array([[2]])
    >>> histogram_intersection([[3, 1, 0]], [[1, 1, 2]], "jaccard")
    array([[0.33333333]])
    """
    left, right = np.asarray(X), np.asarray(Y)
    total = np.uint64 if left.dtype.kind == "u" else None

    def divisor(x: Array, y: Array) -> Any:
        if similarity == "jaccard":
            return float(np.maximum(x, y).sum(dtype=total))
        return (float(x.sum(dtype=total)) + float(y.sum(dtype=total))) / 2

    rows = [[np.minimum(x, y).sum(dtype=total) for y in right] for x in left]
    K = np.array(rows).reshape(len(left), len(right))
    if similarity == "sum":
        return K
    by = np.array([[divisor(x, y) for y in right] for x in left]).reshape(K.shape)
    ratios: Array = np.divide(K, by, out=np.zeros(K.shape), where=by > 0)
    return ratios


def spatial_pyramid(
    X: npt.ArrayLike,
    Y: npt.ArrayLike,
    totals_X: npt.ArrayLike,
    totals_Y: npt.ArrayLike,
    n_levels: int,
) -> Array:
    """K = I^L + sum over l < L of 2^-(L-l) (I^l - I^(l+1)), cells in whole-image fractions.

    `X` and `Y` hold counts, shape (n_images, n_cells, n_words), level after level.

    Examples
    --------
    >>> spatial_pyramid([[[3, 1]]], [[[2, 2]]], [4], [4], n_levels=1)
    array([[0.75]])
    """
    left = np.asarray(X, np.float64) / np.asarray(totals_X, np.float64)[:, None, None]
    right = np.asarray(Y, np.float64) / np.asarray(totals_Y, np.float64)[:, None, None]
    finest = n_levels - 1
    gram = np.zeros((len(left), len(right)))
    for i, x in enumerate(left):
        for j, y in enumerate(right):
            intersection, cell = [], 0
            for level in range(n_levels):
                cells = slice(cell, cell + 4**level)
                intersection.append(np.minimum(x[cells], y[cells]).sum())
                cell += 4**level
            gram[i, j] = intersection[finest]
            for level in range(finest):
                weight = 2.0 ** -(finest - level)
                gram[i, j] += weight * (intersection[level] - intersection[level + 1])
    return gram


def bag_of_words(X: Sequence[Bag], Y: Sequence[Bag], weights: Mapping[int, float]) -> Array:
    """Cosine of the weighted counts of words; 0 for a bag without weight.

    Examples
    --------
    >>> bag_of_words([{0: 1, 1: 1}], [{1: 2}], {0: 1.0, 1: 1.0})
    array([[0.70710678]])
    """

    def product(x: Bag, y: Bag) -> float:
        return sum(weights[word] ** 2 * x[word] * y.get(word, 0) for word in sorted(x))

    def cosine(x: Bag, y: Bag) -> float:
        length = math.sqrt(product(x, x) * product(y, y))
        return product(x, y) / length if length else 0.0

    return np.array([[cosine(x, y) for y in Y] for x in X]).reshape(len(X), len(Y))


def bag_of_words_f1(X: Sequence[Bag], Y: Sequence[Bag], weights: Mapping[int, float]) -> Array:
    """Twice the shared weight of two bags over their total weight; 0 if no word is shared.

    Examples
    --------
    >>> bag_of_words_f1([{0: 1, 1: 1}], [{1: 2}], {0: 1.0, 1: 1.0})
    array([[0.5]])
    """

    def f1(x: Bag, y: Bag) -> float:
        shared = sum(weights[word] * min(x[word], y.get(word, 0)) for word in x)
        mass = sum(weights[w] * n for w, n in x.items())
        mass += sum(weights[w] * n for w, n in y.items())
        return 2 * shared / mass if mass else 0.0

    return np.array([[f1(x, y) for y in Y] for x in X]).reshape(len(X), len(Y))


def word_sequence(
    X: Images,
    Y: Images,
    similarity: Callable[[Any, Any], float] = operator.eq,
    *,
    normalize: bool = False,
    **options: Any,
) -> Array:
    """K[x, y] = sum of `caption_kernel` over the captions of image x and of image y.

    The `options` are those of `caption_kernel`.

    Examples
    --------
    >>> word_sequence([[["a", "b"]]], [[["a", "b"]], [["b", "a"]]], match_decay=1.0)
    array([[3., 2.]])
    """

    def gram(left: Any, right: Any) -> float:
        return sum(caption_kernel(s, t, similarity, **options) for s in left for t in right)

    K = np.array([gram(x, y) for x in X for y in Y], dtype=np.float64)
    K = K.reshape(len(X), len(Y))
    if not normalize:
        return K
    squares = np.outer([gram(x, x) for x in X], [gram(y, y) for y in Y])
    return np.asarray(np.where(squares > 0, K / np.sqrt(np.where(squares > 0, squares, 1)), 0))


def caption_kernel(
    s: Caption,
    t: Caption,
    similarity: Callable[[Any, Any], float] = operator.eq,
    *,
    max_length: int = 3,
    match_decay: float = 0.5,
    gap_decay: float = 1.0,
) -> float:
    """Sum over all index tuples i_1 < .. < i_l in s, j_1 < .. < j_l in t of their weight.

    Examples
    --------
    >>> caption_kernel("ab", "axb", max_length=2, match_decay=1.0, gap_decay=0.5)
    2.5
    """
    matches = np.array([[similarity(a, b) for b in t] for a in s], dtype=float)
    total = 0.0
    for length in range(1, min(max_length, len(s), len(t)) + 1):
        in_s = np.array(list(combinations(range(len(s)), length)))
        in_t = np.array(list(combinations(range(len(t)), length)))
        products = np.ones((len(in_s), len(in_t)))
        for k in range(length):
            products *= matches[np.ix_(in_s[:, k], in_t[:, k])]
        gaps_s, gaps_t = (rows[:, -1] - rows[:, 0] + 1 - length for rows in (in_s, in_t))
        weights = np.outer(gap_decay**gaps_s, gap_decay**gaps_t)
        total += match_decay ** (2 * length) * float((products * weights).sum())
    return total


def word_assignment(
    X: Images,
    Y: Images,
    *,
    kappa: Callable[[Any, Any], float],
    normalize: bool = True,
) -> Array:
    """Sum over pairs of captions of the maximum assignment between their words.

    Examples
    --------
    >>> images = [[["dog", "chase", "cat"]], [["cat", "dog", "dog"]]]
    >>> word_assignment(images, images, kappa=lambda a, b: a == b, normalize=False)
    array([[3., 2.],
           [2., 3.]])
    """

    def similarity(x: Sequence[Caption], y: Sequence[Caption]) -> float:
        return float(sum(_link(s, t, kappa) for s in x for t in y))

    K = np.array([[similarity(x, y) for y in Y] for x in X]).reshape(len(X), len(Y))
    if normalize:
        self_X, self_Y = ([similarity(x, x) for x in side] for side in (X, Y))
        length = np.sqrt(np.outer(self_X, self_Y))
        K = np.divide(K, length, out=np.zeros_like(K), where=length > 0)
    return K


def _link(s: Sequence[Any], t: Sequence[Any], kappa: Callable[[Any, Any], float]) -> float:
    gains = np.array([[max(0.0, kappa(a, b)) for b in t] for a in s]).reshape(len(s), len(t))
    return float(gains[linear_sum_assignment(gains, maximize=True)].sum())


def tag_rank(
    X: Images,
    Y: Images,
    training: Images,
    *,
    absolute_width: float | None = None,
    relative_width: float | None = None,
) -> Array:
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


def custom(
    fn: Callable[[Any, Any], float], X: Sequence[Sequence[Any]], Y: Sequence[Sequence[Any]]
) -> Array:
    """K[x, y] = mean of `fn` over the items of x and of y, 0 if one of them has no item.

    Examples
    --------
    >>> custom(max, [[1], [2, 4]], [[3], []])
    array([[3. , 0. ],
           [3.5, 0. ]])
    """
    values = [[fn(s, t) for s in x for t in y] for x in X for y in Y]
    means = [sum(pairs) / len(pairs) if pairs else 0.0 for pairs in values]
    return np.array(means, dtype=np.float64).reshape(len(X), len(Y))


def scan_values(values: Array) -> tuple[float, float, bool]:
    """Return the smallest and the largest value (0 if empty), and whether all are finite.

    Examples
    --------
    >>> import numpy as np
    >>> scan_values(np.array([2.0, -1.0]))
    (-1.0, 2.0, True)
    """
    if not values.size:
        return 0.0, 0.0, True
    return float(values.min()), float(values.max()), bool(np.isfinite(values).all())


def scan_gram(K: Array) -> tuple[float, float, bool, float]:
    """Return the result of `scan_values`, and the largest difference from the transpose.

    Examples
    --------
    >>> import numpy as np
    >>> scan_gram(np.array([[1.0, 0.5], [0.25, 1.0]]))
    (0.25, 1.0, True, 0.25)
    """
    return (*scan_values(K), float(np.abs(K - K.T).max(initial=0.0)))
