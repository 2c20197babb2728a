"""Similarities of captions as bags of words: cosine of the word counts, and F1 overlap."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from kernelcore._validation import (
    Array,
    as_real_array,
    check_float_dtype,
    check_non_negative,
    check_out,
    check_real,
)
from kernelcore.captions.encoded import EncodedCaptions
from kernelcore.kernels.gram import normalize

if TYPE_CHECKING:
    from scipy.sparse import csr_array

_BLOCK_SIZE = 2**20  # elements of the result computed at once
_SMALLEST_SHARE = 1e-290  # of a weight in the largest


def bag_of_words(
    X: EncodedCaptions,
    Y: EncodedCaptions | None = None,
    *,
    weights: npt.ArrayLike | None = None,
    unknown_weight: float = 1.0,
    dtype: npt.DTypeLike = np.float64,
    out: Array | None = None,
) -> npt.NDArray[Any]:
    r"""Gram matrix of the cosine of weighted word counts.

    .. math::

        K_{ij} = \frac{\sum_w g_w^2 \, c_i(w) \, c_j(w)}
        {\sqrt{\sum_w g_w^2 c_i(w)^2} \sqrt{\sum_w g_w^2 c_j(w)^2}}

    where c_i(w) counts word w in all captions of image i together.

    Parameters
    ----------
    X : EncodedCaptions
        Captions of n_samples_X images. For single captions pass
        ``captions.caption_as_image()`` or ``captions.with_caption(number)``.
    Y : EncodedCaptions, optional
        Captions of n_samples_Y images over the same vocabulary; the default is `X`.
    weights : array_like of shape (n_words,), optional
        Non-negative weight g of each word of the vocabulary, which multiplies its count:
        ``vocabulary.idf()`` or its square root. The default weighs all words alike.
    unknown_weight : float, default 1.0
        Weight of every word outside the vocabulary, for weights by idf
        ``vocabulary.unknown_idf``. Such a word matches itself alone.
    dtype : {float32, float64}, default float64
        Dtype of the result.
    out : ndarray of shape (n_samples_X, n_samples_Y), optional
        Where to put the result: C-contiguous, of dtype `dtype`.

    Returns
    -------
    ndarray of shape (n_samples_X, n_samples_Y)
        Values in [0, 1]. An image without words, or with words of weight 0 only, has
        similarity 0 with every image, itself included; all others have exactly 1 with
        themselves.

    Raises
    ------
    TypeError
        If `X` or `Y` is not EncodedCaptions or `dtype` is not a float dtype.
    ValueError
        If the vocabularies of `X` and `Y` differ in size, there is not one weight per word,
        a weight is negative, NaN, infinite or below 1e-290 of the largest, or `out` has the
        wrong shape or layout or overlaps an input.

    See Also
    --------
    bag_of_words_f1 : The overlap that the nearest-neighbour baselines use.

    Notes
    -----
    Sums run in float64 over the shared words by ascending id, rounded once to `dtype`; the
    result is exactly symmetric for one input. Only shared words cost anything.

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
    counts_X, counts_Y, word_weights = _count_words(X, Y, weights, unknown_weight)
    bags_X, bags_Y = (
        _scale_rows(_weigh(counts, word_weights)) for counts in (counts_X, counts_Y)
    )
    squares_X, squares_Y = (_row_sums(bags.power(2)) for bags in (bags_X, bags_Y))

    def cosine(products: Array, rows: slice) -> Array:
        return normalize(products, squares_X[rows], squares_Y, out=products)

    return _product_by_blocks(bags_X, bags_Y, cosine, dtype, out, weights=weights)


def bag_of_words_f1(
    X: EncodedCaptions,
    Y: EncodedCaptions | None = None,
    *,
    weights: npt.ArrayLike | None = None,
    unknown_weight: float = 1.0,
    dtype: npt.DTypeLike = np.float64,
    out: Array | None = None,
) -> npt.NDArray[Any]:
    r"""F1 of two bags of words: harmonic mean of weighted precision and recall.

    .. math::

        F_{ij} = \frac{2 P R}{P + R}
        = \frac{2 \sum_w g_w \min(c_i(w), c_j(w))}{\sum_w g_w c_i(w) + \sum_w g_w c_j(w)}

    where c_i(w) counts word w in all captions of image i together, precision P divides the
    overlap by the mass of i and recall R by the mass of j.

    Parameters
    ----------
    X : EncodedCaptions
        Captions of n_samples_X images.
    Y : EncodedCaptions, optional
        Captions of n_samples_Y images over the same vocabulary; the default is `X`.
    weights : array_like of shape (n_words,), optional
        Non-negative weight g of each word of the vocabulary, ``vocabulary.idf()`` in the
        nearest-neighbour baseline of [1]_. The default weighs all words alike.
    unknown_weight : float, default 1.0
        Weight of every word outside the vocabulary, for weights by idf
        ``vocabulary.unknown_idf``. Such a word matches itself alone.
    dtype : {float32, float64}, default float64
        Dtype of the result.
    out : ndarray of shape (n_samples_X, n_samples_Y), optional
        Where to put the result: C-contiguous, of dtype `dtype`.

    Returns
    -------
    ndarray of shape (n_samples_X, n_samples_Y)
        Values in [0, 1], 1 for equal bags, 0 where no word of positive weight is shared.

    Raises
    ------
    TypeError
        If `X` or `Y` is not EncodedCaptions or `dtype` is not a float dtype.
    ValueError
        If the vocabularies of `X` and `Y` differ in size, there is not one weight per word,
        a weight is negative, NaN, infinite or below 1e-290 of the largest, or `out` has the
        wrong shape or layout or overlaps an input.

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
    counts_X, counts_Y, word_weights = _count_words(X, Y, weights, unknown_weight)
    # min(a, b) counts the t >= 1 with a >= t and b >= t: one column for every (word, t).
    most = int(max(counts.data.max(initial=1.0) for counts in (counts_X, counts_Y)))
    bags_X, bags_Y = (_repeat_columns(counts, most) for counts in (counts_X, counts_Y))
    weighed_X, weighed_Y = (
        _weigh(bags, np.repeat(word_weights, most)) for bags in (bags_X, bags_Y)
    )
    masses_X, masses_Y = _row_sums(weighed_X), _row_sums(weighed_Y)

    def f1(overlaps: Array, rows: slice) -> Array:
        masses = masses_X[rows, np.newaxis] + masses_Y
        np.divide(2.0 * overlaps, masses, out=overlaps, where=masses > 0)
        return overlaps

    return _product_by_blocks(weighed_X, bags_Y, f1, dtype, out, weights=weights)


def _count_words(
    X: EncodedCaptions,
    Y: EncodedCaptions | None,
    weights: npt.ArrayLike | None,
    unknown_weight: float,
) -> tuple[csr_array, csr_array, npt.NDArray[np.float64]]:
    """Word counts of the images of both inputs over common columns, and the columns' weights.

    Words outside the vocabulary get columns behind it.
    """
    Y = X if Y is None else Y
    for name, captions in (("X", X), ("Y", Y)):
        if not isinstance(captions, EncodedCaptions):
            raise TypeError(f"{name} must be EncodedCaptions, got {type(captions).__name__}")
    if X.n_words != Y.n_words:
        raise ValueError(
            "X and Y must be encoded with the same vocabulary, "
            f"got n_words {X.n_words} and {Y.n_words}"
        )
    known = np.ones(X.n_words)
    if weights is not None:
        known = check_non_negative("weights", as_real_array("weights", weights, ndim=1))
        if len(known) != X.n_words:
            raise ValueError(
                f"weights must have one entry per word ({X.n_words}), got {len(known)}"
            )
    unknown = check_real("unknown_weight", unknown_weight, minimum=0.0)
    unknown_ids = np.unique(
        np.concatenate([captions.word_ids[captions.word_ids < 0] for captions in (X, Y)])
    )
    column_weights = np.concatenate([known, np.full(len(unknown_ids), unknown)])
    # Only the ratios of weights matter: the largest becomes 1, so that no sum overflows.
    largest = float(column_weights.max(initial=0.0))
    if largest > 0.0:
        smallest = column_weights.min(initial=largest, where=column_weights > 0)
        if smallest < _SMALLEST_SHARE * largest:
            name = "weights" if weights is not None else "unknown_weight"
            raise ValueError(
                f"{name} must be 0 or at least {_SMALLEST_SHARE:g} of the largest weight of a "
                f"word, got weights from {smallest:.3g} to {largest:.3g}"
            )
        column_weights /= largest
    counts_X = _count_columns(X, unknown_ids)
    counts_Y = counts_X if Y is X else _count_columns(Y, unknown_ids)
    return counts_X, counts_Y, column_weights


def _count_columns(captions: EncodedCaptions, unknown_ids: npt.NDArray[np.int32]) -> csr_array:
    from scipy.sparse import csr_array

    ids = captions.word_ids
    columns = np.where(ids < 0, captions.n_words + np.searchsorted(unknown_ids, ids), ids)
    starts = captions.caption_offsets[captions.image_offsets]
    shape = (len(captions), captions.n_words + len(unknown_ids))
    counts = csr_array((np.ones(len(ids)), columns, starts), shape=shape)
    counts.sum_duplicates()
    return counts


def _repeat_columns(counts: csr_array, most: int) -> csr_array:
    """Ones in the first c of the `most` columns that each count c is spread over."""
    from scipy.sparse import csr_array

    repeats = counts.data.astype(np.intp)
    starts = np.cumsum(repeats) - repeats
    within = np.arange(repeats.sum()) - np.repeat(starts, repeats)
    columns = np.repeat(counts.indices.astype(np.int64) * most, repeats) + within
    offsets = np.concatenate(([0], np.cumsum(repeats)))[counts.indptr]
    shape = (counts.shape[0], counts.shape[1] * most)
    return csr_array((np.ones(len(columns)), columns, offsets), shape=shape)


def _weigh(counts: csr_array, column_weights: Array) -> csr_array:
    weighed: csr_array = counts.copy()
    weighed.data *= column_weights[weighed.indices]
    return weighed


def _scale_rows(bags: csr_array) -> csr_array:
    """Bring the largest entry of each row into [1/2, 1): its square is in range then.

    By a power of two, so that no bit of a cosine changes.
    """
    largest = bags.max(axis=1).toarray().ravel() if bags.nnz else np.zeros(bags.shape[0])
    powers = -np.frexp(largest)[1]
    bags.data = np.ldexp(bags.data, np.repeat(powers, np.diff(bags.indptr)))
    return bags


def _row_sums(matrix: csr_array) -> Array:
    # By a product, which adds in the order of `_product_by_blocks`: equal sums stay equal.
    return np.asarray(matrix @ np.ones(matrix.shape[1]))


def _product_by_blocks(
    bags_X: csr_array,
    bags_Y: csr_array,
    finish: Callable[[Array, slice], Array],
    dtype: npt.DTypeLike,
    out: Array | None,
    *,
    weights: Any,
) -> Array:
    """Dense product of the bags, `finish`-ed and rounded to `dtype` block by block."""
    kind = check_float_dtype("dtype", dtype)
    shape = (bags_X.shape[0], bags_Y.shape[0])
    inputs = [weights] if isinstance(weights, np.ndarray) else []
    result = (
        np.empty(shape, kind) if out is None else check_out("out", out, shape, kind, inputs)
    )
    by_word = bags_Y.T.tocsr()
    n_rows = max(1, _BLOCK_SIZE // max(1, shape[1]))
    for start in range(0, shape[0], n_rows):
        rows = slice(start, start + n_rows)
        result[rows] = finish((bags_X[rows] @ by_word).toarray(), rows)
    return result
