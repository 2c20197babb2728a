"""Bag-of-words kernels: cosine of word counts, and F1 overlap."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from kernelcore import _core
from kernelcore._check import Array, check_float_dtype, result_for
from kernelcore._threads import Progress, reporting, threads_for
from kernelcore.captions.encoded import WordCounts, count_words
from kernelcore.kernels._texts import Ragged, Texts, as_captions, as_symbol_weights, as_symbols
from kernelcore.kernels.prepared import Prepared

_SMALLEST_SHARE = 1e-290  # of a weight in the largest


def bag_of_words(
    X: Texts,
    Y: Texts | None = None,
    *,
    word_weights: npt.ArrayLike | None = None,
    unknown_weight: float = 1.0,
    dtype: npt.DTypeLike = np.float64,
    out: Array | None = None,
    n_threads: int | None = None,
    progress: Progress = False,
) -> npt.NDArray[Any]:
    r"""Gram matrix of the cosine of weighted word counts.

    .. math::

        K_{ij} = \frac{\sum_w g_w^2 \, c_i(w) \, c_j(w)}
        {\sqrt{\sum_w g_w^2 c_i(w)^2} \sqrt{\sum_w g_w^2 c_j(w)^2}}

    where c_i(w) counts word w in all captions of image i together.

    Parameters
    ----------
    X : EncodedCaptions, Prepared or sequence of texts
        Captions of n_samples_X images; or texts, strings split at white space or lists of
        tokens, one or several for each image. For single captions pass
        ``captions.caption_as_image()`` or ``captions.with_caption(number)``.
    Y : EncodedCaptions, Prepared or sequence of texts, optional
        Captions of n_samples_Y images over the same vocabulary; the default is `X`.
    word_weights : array_like of shape (n_words,), optional
        Non-negative weight g of each word of the vocabulary, which multiplies its count:
        ``vocabulary.idf()`` or its square root. The default is 1 for all words.
    unknown_weight : float, default 1.0
        Weight of every word outside the vocabulary: ``vocabulary.unknown_idf`` if
        `word_weights` are ``vocabulary.idf()``. Such a word matches itself alone.
    dtype : {float32, float64}, default float64
        Dtype of the result.
    out : ndarray of shape (n_samples_X, n_samples_Y), optional
        Where to put the result: C-contiguous, of dtype `dtype`. A call that is interrupted
        leaves it unusable.
    n_threads : int, optional
        Threads to use; the default is every core this process may run on. The result is the
        same, bit for bit, for every value.
    progress : bool or callable, default False
        True draws a bar (extra ``cli``); a callable is called with (tiles done, tiles).

    Returns
    -------
    ndarray of shape (n_samples_X, n_samples_Y)
        Values in [0, 1]. An image without words, or with words of weight 0 only, has
        similarity 0 with every image, itself included; all others have exactly 1 with
        themselves.

    Raises
    ------
    TypeError
        If an input holds neither EncodedCaptions nor texts, or `dtype` is not a float dtype.
    ValueError
        If the vocabularies of `X` and `Y` differ in size, there is not one weight per word,
        a weight is negative, NaN, infinite or below 1e-290 of the largest, or `out` has the
        wrong shape or layout or overlaps an input.

    See Also
    --------
    bag_of_words_f1 : The overlap that the nearest-neighbour baselines use.
    kernelcore.reference.kernels.bag_of_words : The definition in Python.

    Notes
    -----
    Sums run in float64 over the shared words by ascending id, rounded once to `dtype`; the
    result is exactly symmetric for one input, of which half is computed. Only shared words
    cost anything.

    Examples
    --------
    >>> from kernelcore.captions import EncodedCaptions
    >>> from kernelcore.kernels import bag_of_words
    >>> captions = EncodedCaptions.from_lists([[[0, 1]], [[1], [2]], [[2, 2]]])
    >>> bag_of_words(captions)
    array([[1.        , 0.5       , 0.        ],
           [0.5       , 1.        , 0.70710678],
           [0.        , 0.70710678, 1.        ]])
    """
    counts_X, counts_Y, weights = _count_words(X, Y, word_weights, unknown_weight)
    bags_X = bags_Y = _weighed(counts_X, weights)
    if counts_Y is not counts_X:
        bags_Y = _weighed(counts_Y, weights)
    result = result_for(
        out,
        (len(bags_X.offsets) - 1, len(bags_Y.offsets) - 1),
        check_float_dtype("dtype", dtype),
        (word_weights,),
    )
    return _compare(bags_X, bags_Y, None, result, n_threads=n_threads, progress=progress)


def bag_of_words_f1(
    X: Texts,
    Y: Texts | None = None,
    *,
    word_weights: npt.ArrayLike | None = None,
    unknown_weight: float = 1.0,
    dtype: npt.DTypeLike = np.float64,
    out: Array | None = None,
    n_threads: int | None = None,
    progress: Progress = False,
) -> npt.NDArray[Any]:
    r"""F1 of two bags of words: harmonic mean of weighted precision and recall.

    .. math::

        F_{ij} = \frac{2 P R}{P + R}
        = \frac{2 \sum_w g_w \min(c_i(w), c_j(w))}{\sum_w g_w c_i(w) + \sum_w g_w c_j(w)}

    where c_i(w) counts word w in all captions of image i together, precision P divides the
    overlap by the mass of i and recall R by the mass of j.

    Parameters
    ----------
    X : EncodedCaptions, Prepared or sequence of texts
        Captions of n_samples_X images; or texts, strings split at white space or lists of
        tokens, one or several for each image.
    Y : EncodedCaptions, Prepared or sequence of texts, optional
        Captions of n_samples_Y images over the same vocabulary; the default is `X`.
    word_weights : array_like of shape (n_words,), optional
        Non-negative weight g of each word of the vocabulary, ``vocabulary.idf()`` in the
        nearest-neighbour baseline of [1]_. The default is 1 for all words.
    unknown_weight : float, default 1.0
        Weight of every word outside the vocabulary: ``vocabulary.unknown_idf`` if
        `word_weights` are ``vocabulary.idf()``. Such a word matches itself alone.
    dtype : {float32, float64}, default float64
        Dtype of the result.
    out : ndarray of shape (n_samples_X, n_samples_Y), optional
        Where to put the result: C-contiguous, of dtype `dtype`. A call that is interrupted
        leaves it unusable.
    n_threads : int, optional
        Threads to use; the default is every core this process may run on. The result is the
        same, bit for bit, for every value.
    progress : bool or callable, default False
        True draws a bar (extra ``cli``); a callable is called with (tiles done, tiles).

    Returns
    -------
    ndarray of shape (n_samples_X, n_samples_Y)
        Values in [0, 1], 1 for equal bags, 0 where no word of positive weight is shared.

    Raises
    ------
    TypeError
        If an input holds neither EncodedCaptions nor texts, or `dtype` is not a float dtype.
    ValueError
        If the vocabularies of `X` and `Y` differ in size, there is not one weight per word,
        a weight is negative, NaN, infinite or below 1e-290 of the largest, or `out` has the
        wrong shape or layout or overlaps an input.

    See Also
    --------
    kernelcore.reference.kernels.bag_of_words_f1 : The definition in Python.

    References
    ----------
    .. [1] M. Hodosh, P. Young and J. Hockenmaier, "Framing image description as a ranking
       task", Journal of Artificial Intelligence Research 47, 2013.

    Examples
    --------
    >>> from kernelcore.captions import EncodedCaptions
    >>> from kernelcore.kernels import bag_of_words_f1
    >>> captions = EncodedCaptions.from_lists([[[0, 1, 2]], [[1]]])
    >>> bag_of_words_f1(captions)
    array([[1. , 0.5],
           [0.5, 1. ]])
    """
    counts_X, counts_Y, weights = _count_words(X, Y, word_weights, unknown_weight)
    result = result_for(
        out,
        (len(counts_X.offsets) - 1, len(counts_Y.offsets) - 1),
        check_float_dtype("dtype", dtype),
        (word_weights,),
    )
    return _compare(counts_X, counts_Y, weights, result, n_threads=n_threads, progress=progress)


def _compare(
    X: WordCounts,
    Y: WordCounts,
    f1_weights: Array | None,
    K: Array,
    *,
    n_threads: int | None,
    progress: Progress,
) -> Array:
    """Compute the cosine of rows, or their F1 with these weights."""
    work = 10.0 * K.size + float(len(X.words)) * len(Y.words) / max(1, X.n_words)
    threads = threads_for(n_threads, work)
    left = X[:3]
    right = left if Y is X else Y[:3]
    with reporting(progress, "bag of words") as report:
        _core.bag_of_words(left, right, X.n_words, f1_weights, K, threads, report)
    return K


def _count_words(
    X: Any, Y: Any, word_weights: npt.ArrayLike | None, unknown_weight: float
) -> tuple[WordCounts, WordCounts, npt.NDArray[np.float64]]:
    """Word counts of the images of both inputs over common columns, and the columns' weights.

    Words outside the vocabulary get columns behind it.
    """
    captions_X, captions_Y = as_captions(X, Y)
    symbols_X, symbols_Y, n_symbols = as_symbols(captions_X, captions_Y)
    weights = as_symbol_weights(word_weights, unknown_weight, captions_X.n_words, n_symbols)
    # Only the ratios of weights matter. The largest becomes 1, so that no sum overflows.
    largest = float(weights.max(initial=0.0))
    if largest > 0.0:
        smallest = weights.min(initial=largest, where=weights > 0)
        if smallest < _SMALLEST_SHARE * largest:
            raise ValueError(
                f"word_weights and unknown_weight must be 0 or at least {_SMALLEST_SHARE:g} of "
                f"the largest weight, got weights from {smallest:.3g} to {largest:.3g}"
            )
        weights /= largest
    counts_X = counts_Y = _counts(X, symbols_X, n_symbols)
    if symbols_Y is not symbols_X:
        counts_Y = _counts(Y, symbols_Y, n_symbols)
    return counts_X, counts_Y, weights


def _counts(given: Any, captions: Ragged, n_symbols: int) -> WordCounts:
    """Count the words of all captions of each image together."""
    if isinstance(given, Prepared) and n_symbols == given.word_counts.n_words:
        return given.word_counts
    words, caption_offsets, image_offsets = captions
    return count_words(words, caption_offsets[image_offsets], n_symbols)


def _weighed(bags: WordCounts, weights: Array) -> WordCounts:
    """Weigh the counts; scale the largest of each row into [1/2, 1), so that squares fit.

    The scale is a power of two, which changes no bit of a cosine.
    """
    weighed = bags.counts * weights[bags.words]
    lengths = np.diff(bags.offsets)
    largest = np.maximum.reduceat(weighed, bags.offsets[:-1][lengths > 0])
    powers = -np.frexp(largest)[1]
    return bags._replace(counts=np.ldexp(weighed, np.repeat(powers, lengths[lengths > 0])))
