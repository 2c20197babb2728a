"""The word-assignment similarity: an optimal matching of the words of two texts."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from kernelcore import _core
from kernelcore._check import Array, check_flag, check_float_dtype, result_for, scan_values
from kernelcore._threads import Progress, reporting, threads_for
from kernelcore.kernels._texts import (
    Texts,
    as_captions,
    as_symbol_weights,
    as_symbols,
    as_word_kernel,
    match_scale,
)


def word_assignment(
    X: Texts,
    Y: Texts | None = None,
    *,
    word_kernel: Any = None,
    word_weights: npt.ArrayLike | None = None,
    unknown_weight: float = 1.0,
    normalize: bool = True,
    dtype: npt.DTypeLike = np.float64,
    out: Array | None = None,
    n_threads: int | None = None,
    progress: Progress = False,
) -> npt.NDArray[Any]:
    r"""Gram matrix of the word-assignment similarity with exact or soft matches.

    .. math::

        K(s, t) = \max_x \sum_{ij} \sqrt{g(s_i) g(t_j)} \, \kappa(s_i, t_j) \, x_{ij}
        \quad \text{with} \quad \sum_j x_{ij} \le 1, \; \sum_i x_{ij} \le 1

    links each word of a caption to one word of the other at most, whatever their order. The
    similarity of two images sums K(s, t) over the cross product of their captions and is then
    normalised, :math:`K(x, y) / \sqrt{K(x, x) K(y, y)}`.

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
        (``WordKernel.over(vocabulary.words)``); used as float32. Words of negative similarity
        are not linked. A word outside the vocabulary has similarity 1 with itself and 0 with
        all others. By default this holds for every word: K(s, t) is then the number of words
        that both captions have.
    word_weights : array_like of shape (n_words,), optional
        Non-negative weight g of each word. The default is 1 for all.
    unknown_weight : float, default 1.0
        Weight of every word outside the vocabulary.
    normalize : bool, default True
        Divide as above. An image without words has similarity 0 with all.
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
        the vocabulary's size, a weight is out of range, weights differ by more than float32
        holds, or `out` has the wrong shape or layout or overlaps an input.

    See Also
    --------
    word_sequence : The kernel that minds the order of words.
    kernelcore.matching.linear_assignment : The assignment by itself.
    kernelcore.reference.kernels.word_assignment : The definition.

    Notes
    -----
    Similarities are float32, their sums float64. An assignment is positive semi-definite for
    few word kernels only [2]_; for those that are not, add a `ridge`. Where the words of two
    captions prefer different words, as most do, that is the assignment. Memory beyond the
    result is a table per thread of the similarities of one caption to all words of `Y`.

    References
    ----------
    .. [1] H. Froehlich, J. Wegner, F. Sieker and A. Zell, "Optimal assignment kernels for
       attributed molecular graphs", ICML 2005.
    .. [2] N. Kriege, P.-L. Giscard and R. Wilson, "On valid optimal assignment kernels and
       applications to graph classification", NIPS 2016.

    Examples
    --------
    >>> from kernelcore.kernels import word_assignment
    >>> word_assignment(["dog chase cat", "cat chase dog dog"], normalize=False)
    array([[3., 3.],
           [3., 4.]])

    One bike cannot be linked to a bike and a cycle at once:

    >>> import numpy as np
    >>> from kernelcore.captions import EncodedCaptions
    >>> ride, bike, cycle = range(3)
    >>> captions = EncodedCaptions.from_lists([[[ride, bike]], [[bike, cycle]]])
    >>> kappa = np.array([[1, 0, 0], [0, 1, 0.8], [0, 0.8, 1]])
    >>> word_assignment(captions, word_kernel=kappa)
    array([[1. , 0.5],
           [0.5, 1. ]])
    """
    captions_X, captions_Y = as_captions(X, Y)
    symbols_X, symbols_Y, n_symbols = as_symbols(captions_X, captions_Y)
    kernel = as_word_kernel(word_kernel, captions_X.n_words)
    weights = as_symbol_weights(word_weights, unknown_weight, kernel.n_words, n_symbols)
    is_normalized = check_flag("normalize", normalize)
    scale = match_scale(weights, 1.0, kernel.largest, np.float32, relative=is_normalized)
    result = result_for(
        out,
        (len(symbols_X[2]) - 1, len(symbols_Y[2]) - 1),
        check_float_dtype("dtype", dtype),
        (word_kernel, word_weights),
    )
    threads = threads_for(n_threads, 10.0 * len(symbols_X[0]) * len(symbols_Y[0]))
    with reporting(progress, "word assignment") as report:
        _core.word_assignment(
            symbols_X,
            symbols_Y,
            scale,
            kernel.dense,
            kernel.sparse,
            is_normalized,
            result,
            threads,
            report,
        )
    if not scan_values(result, 1).is_finite:
        raise ValueError(
            "word_weights and word_kernel must be small enough for sums of links within "
            f"{result.dtype}, got infinite ones"
        )
    return result
