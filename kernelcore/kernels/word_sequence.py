"""The word-sequence kernel: common subsequences of words, with exact or soft matches."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from kernelcore import _core
from kernelcore._check import (
    Array,
    check_flag,
    check_float_dtype,
    check_integer,
    check_real,
    result_for,
    scan_values,
)
from kernelcore._threads import Progress, reporting, threads_for
from kernelcore.kernels._texts import (
    CheckedWordKernel,
    Ragged,
    Texts,
    as_captions,
    as_symbol_weights,
    as_symbols,
    as_word_kernel,
    longest_caption,
    match_scale,
)


def word_sequence(
    X: Texts,
    Y: Texts | None = None,
    *,
    word_kernel: Any = None,
    word_weights: npt.ArrayLike | None = None,
    unknown_weight: float = 1.0,
    max_length: int = 3,
    match_decay: float = 0.5,
    gap_decay: float = 1.0,
    normalize: bool = True,
    dtype: npt.DTypeLike = np.float64,
    out: Array | None = None,
    n_threads: int | None = None,
    progress: Progress = False,
) -> npt.NDArray[Any]:
    r"""Gram matrix of the word-sequence kernel with exact or soft matches.

    .. math::

        K(s, t) = \sum_{l=1}^{L} \lambda_m^{2l}
        \sum_{\substack{i_1 < \dots < i_l \\ j_1 < \dots < j_l}}
        \prod_{k=1}^{l} \sqrt{g(s_{i_k}) g(t_{j_k})} \, \kappa(s_{i_k}, t_{j_k}) \;
        \lambda_g^{i_l - i_1 + 1 - l} \, \lambda_g^{j_l - j_1 + 1 - l}

    sums over all pairs of equally long subsequences of two captions. The kernel of two
    images sums K(s, t) over the cross product of their captions and is then normalised,
    :math:`K(x, y) / \sqrt{K(x, x) K(y, y)}`.

    Parameters
    ----------
    X : EncodedCaptions, Prepared or sequence of texts
        Captions of n_samples_X images; or texts, strings split at white space or lists of
        tokens, one or several for each image.
    Y : EncodedCaptions, Prepared or sequence of texts, optional
        Captions of n_samples_Y images over the same vocabulary, or texts. Omit it for the
        symmetric Gram matrix of `X`, which does half the work.
    word_kernel : WordKernel, array_like or sparse array, shape (n_words, n_words), optional
        Symmetric similarity kappa of the words of the vocabulary, in the order of their ids
        (``WordKernel.over(vocabulary.words)``); used as float32. A word outside the vocabulary
        has similarity 1 with itself and 0 with all others. By default this holds for every
        word (exact matches).
    word_weights : array_like of shape (n_words,), optional
        Non-negative weight g of each word: ``vocabulary.idf()`` or its square root. A match
        of words a and b counts sqrt(g(a) g(b)). The default is 1 for all.
    unknown_weight : float, default 1.0
        Weight of every word outside the vocabulary: ``vocabulary.unknown_idf`` if
        `word_weights` are ``vocabulary.idf()``.
    max_length : int, default 3
        Longest subsequence L that counts.
    match_decay : float, default 0.5
        Factor lambda_m of each matched word, on either side.
    gap_decay : float, default 1.0
        Factor lambda_g in [0, 1] of each word left out between matches, on either side; 0
        counts unbroken sequences alone, 1 ignores gaps and is the fastest.
    normalize : bool, default True
        Scale every image to similarity 1 with itself. An image without words has similarity
        0 with all.
    dtype : {float32, float64}, default float64
        Dtype of the result.
    out : ndarray of shape (n_samples_X, n_samples_Y), optional
        Where to put the result (a memory map, say): C-contiguous, of dtype `dtype`. A call
        that is interrupted leaves it unusable.
    n_threads : int, optional
        Threads to use; the default is every core this process may run on. The result is the
        same, bit for bit, for every value.
    progress : bool or callable, default False
        True draws a bar (extra ``cli``); a callable is called with (tasks done, tasks).

    Returns
    -------
    ndarray of shape (n_samples_X, n_samples_Y)

    Raises
    ------
    TypeError
        If an input holds neither EncodedCaptions nor texts, both are not of one kind, or a
        number, the word kernel or `dtype` is of the wrong kind.
    ValueError
        If the vocabularies differ in size, the word kernel is not symmetric, finite and of
        the vocabulary's size, a weight or decay is out of range, matches or their sums may
        exceed what float32 (or for exact matches float64) holds, `out` has the wrong shape or
        layout or overlaps an input, or, with `normalize`, an indefinite word kernel gives an
        image a negative similarity with itself.

    See Also
    --------
    word_sequence_components : The sums of each length by themselves.
    kernelcore.lexical.WordKernel : Similarities of words.
    kernelcore.reference.kernels.word_sequence : The definition.

    Notes
    -----
    Soft matches, and exact ones of long texts, are summed in float32 within a pair of
    captions and over the captions of a column, in float64 over those of a row. For
    :math:`\kappa \ge 0` the relative error is below
    ``max_length * (n_words_s + n_words_t + n_captions + 4) * 2**-23``, and the same share of
    the kernel of \|kappa\| otherwise. Exact matches of texts whose subsequences are few
    enough to be listed, captions above all, are float64 throughout and several times faster.

    Positive semi-definite if `word_kernel` is. Subsequences are tuples of positions: where a
    word repeats, each way to pick it counts, as in [1]_ and [2]_.

    Memory beyond the result is that of one block of rows per thread.

    References
    ----------
    .. [1] H. Lodhi, C. Saunders, J. Shawe-Taylor, N. Cristianini and C. Watkins, "Text
       classification using string kernels", Journal of Machine Learning Research 2, 2002.
    .. [2] N. Cancedda, E. Gaussier, C. Goutte and J.-M. Renders, "Word-sequence kernels",
       Journal of Machine Learning Research 3, 2003.
    .. [3] M. Hodosh, P. Young and J. Hockenmaier, "Framing image description as a ranking
       task", Journal of Artificial Intelligence Research 47, 2013.

    Examples
    --------
    The words are the same, their order is not:

    >>> from kernelcore.kernels import word_sequence
    >>> texts = ["dog chase cat", "cat chase dog"]
    >>> word_sequence(texts, normalize=False, match_decay=1)
    array([[7., 3.],
           [3., 7.]])

    A bike resembles a cycle by 0.8, and "ride bike" so resembles "ride cycle":

    >>> import numpy as np
    >>> from kernelcore.captions import EncodedCaptions
    >>> ride, bike, cycle = range(3)
    >>> captions = EncodedCaptions.from_lists([[[ride, bike]], [[ride, cycle]]])
    >>> kappa = np.array([[1, 0, 0], [0, 1, 0.8], [0, 0.8, 1]])
    >>> word_sequence(captions, word_kernel=kappa).round(3)
    array([[1.   , 0.889],
           [0.889, 1.   ]])
    """
    captions_X, captions_Y = as_captions(X, Y)
    symbols_X, symbols_Y, n_symbols = as_symbols(captions_X, captions_Y)
    kernel = as_word_kernel(word_kernel, captions_X.n_words)
    weights = as_symbol_weights(word_weights, unknown_weight, kernel.n_words, n_symbols)
    length = check_integer("max_length", max_length, minimum=1)
    decay = check_real("match_decay", match_decay, minimum=0.0, exclusive=True)
    gap = check_real("gap_decay", gap_decay, minimum=0.0, maximum=1.0)
    is_normalized = check_flag("normalize", normalize)
    result = result_for(
        out,
        (len(symbols_X[2]) - 1, len(symbols_Y[2]) - 1),
        check_float_dtype("dtype", dtype),
        (word_kernel, word_weights),
    )
    _fill(
        result,
        (symbols_X, symbols_Y),
        weights,
        kernel,
        match_decay=decay,
        max_length=min(length, longest_caption(symbols_X, symbols_Y)),
        gap_decay=gap,
        per_length=False,
        normalize=is_normalized,
        n_threads=n_threads,
        progress=progress,
    )
    return result


def word_sequence_components(
    X: Texts,
    Y: Texts | None = None,
    *,
    word_kernel: Any = None,
    word_weights: npt.ArrayLike | None = None,
    unknown_weight: float = 1.0,
    max_length: int = 3,
    gap_decay: float = 1.0,
    dtype: npt.DTypeLike = np.float64,
    out: Array | None = None,
    n_threads: int | None = None,
    progress: Progress = False,
) -> npt.NDArray[Any]:
    r"""Separate the word-sequence kernel by the length of the subsequences.

    ``components[i, j, l - 1]`` is the sum over the subsequences of l words, so that

    .. math:: K_{ij} = \sum_{l=1}^{L} \lambda_m^{2l} \, \mathrm{components}_{ijl}

    is `word_sequence` without normalisation for every match_decay and every L up to
    `max_length`.

    Parameters
    ----------
    X, Y, word_kernel, word_weights, unknown_weight, max_length, gap_decay, dtype, \
    n_threads, progress
        As in `word_sequence`.
    out : ndarray of shape (n_samples_X, n_samples_Y, max_length), optional
        Where to put the result: C-contiguous, of dtype `dtype`.

    Returns
    -------
    ndarray of shape (n_samples_X, n_samples_Y, max_length)

    Raises
    ------
    TypeError, ValueError
        As `word_sequence`.

    Examples
    --------
    >>> from kernelcore.kernels import word_sequence_components
    >>> word_sequence_components(["dog chase cat"], ["cat chase dog", "dog cat"])
    array([[[3., 0., 0.],
            [2., 1., 0.]]])
    """
    captions_X, captions_Y = as_captions(X, Y)
    symbols_X, symbols_Y, n_symbols = as_symbols(captions_X, captions_Y)
    kernel = as_word_kernel(word_kernel, captions_X.n_words)
    weights = as_symbol_weights(word_weights, unknown_weight, kernel.n_words, n_symbols)
    length = check_integer("max_length", max_length, minimum=1)
    gap = check_real("gap_decay", gap_decay, minimum=0.0, maximum=1.0)
    n_rows, n_columns = len(symbols_X[2]) - 1, len(symbols_Y[2]) - 1
    result = result_for(
        out,
        (n_rows, n_columns, length),
        check_float_dtype("dtype", dtype),
        (word_kernel, word_weights),
    )
    _fill(
        result.reshape(n_rows, n_columns * length),
        (symbols_X, symbols_Y),
        weights,
        kernel,
        match_decay=1.0,
        max_length=length,
        gap_decay=gap,
        per_length=True,
        normalize=False,
        n_threads=n_threads,
        progress=progress,
    )
    return result


def _fill(
    out: Array,
    symbols: tuple[Ragged, Ragged],
    weights: npt.NDArray[np.float64],
    kernel: CheckedWordKernel,
    *,
    match_decay: float,
    max_length: int,
    gap_decay: float,
    per_length: bool,
    normalize: bool,
    n_threads: int | None,
    progress: Progress,
) -> None:
    """Compute the matrix `out`, by listing the subsequences where that is faster."""
    is_exact = kernel.dense is None and kernel.sparse is None
    is_listable = is_exact and _is_listable(*symbols, max_length)
    scale = match_scale(
        weights,
        match_decay,
        kernel.largest,
        np.float64 if is_listable else np.float32,
        relative=normalize and max_length == 1,  # normalisation removes a common factor
    )
    X, Y = symbols
    threads = threads_for(n_threads, float(len(X[0])) * len(Y[0]))
    with reporting(progress, "word sequences") as report:
        options = (max_length, gap_decay, per_length, normalize, out, threads, report)
        if is_listable:
            _core.word_sequence_exact(X, Y, scale, *options)
        else:
            _core.word_sequence(X, Y, scale, kernel.dense, kernel.sparse, *options)
    # A subsequence of l words has at most n**l places in n words.
    n_words = [float(np.diff(side[1][side[2]]).max(initial=1)) for side in symbols]
    match = float(scale.max(initial=0.0)) ** 2 * kernel.largest * n_words[0] * n_words[1]
    bound = math.log2(max_length) + max_length * math.log2(max(match, 1.0))
    limit = min(np.finfo(kind).maxexp for kind in (out.dtype, scale.dtype))
    if bound > limit - 1 and not scan_values(out, 1).is_finite:
        raise ValueError(
            "max_length, match_decay, word_weights and word_kernel must be small enough for "
            f"sums within {out.dtype}, got infinite ones"
        )


def _is_listable(X: Ragged, Y: Ragged, max_length: int) -> bool:
    """Whether listing the subsequences of exact matches takes less time and memory."""
    sides = [X] if Y is X else [X, Y]
    longest = longest_caption(X, Y)
    n_captions = sum(len(offsets) - 1 for _, offsets, _ in sides)
    if max_length <= 3 and n_captions * longest**3 <= 2**16:
        return True  # of a caption of n words there are n**3 at most
    n_subsequences = sum(_count_subsequences(offsets, max_length) for _, offsets, _ in sides)
    if n_subsequences <= 2**16:
        return True
    # 60 bytes each, compared with 8 bytes of the result and a constant for short calls.
    n_bearable = 2**21 + (len(X[2]) - 1) * (len(Y[2]) - 1) // 12
    # About 30 ns each, compared with 0.1 ns for a pair of words otherwise.
    n_word_pairs = len(X[0]) * len(Y[0]) // (2 if Y is X else 1)
    return n_subsequences <= min(n_bearable, n_word_pairs // 300)


def _count_subsequences(caption_offsets: npt.NDArray[np.int64], max_length: int) -> int:
    """Count the subsequences of all captions; stop above 2**62."""
    lengths, counts = np.unique(np.diff(caption_offsets), return_counts=True)
    total: int = 0
    for length, count in zip(lengths.tolist(), counts.tolist(), strict=True):
        for k in range(1, min(max_length, length) + 1):
            total += count * math.comb(length, k)
            if total > 2**62:
                return total
    return total
