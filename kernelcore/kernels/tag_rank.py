"""The tag-rank kernel: captions with the same words in the same order are similar."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kernelcore import _core
from kernelcore._check import Array, check_float_dtype, check_real, result_for
from kernelcore._estimator import Estimator
from kernelcore._threads import Progress, reporting, threads_for
from kernelcore.captions.encoded import EncodedCaptions
from kernelcore.kernels._texts import Ragged, Texts, as_captions, as_symbols

# Of different captions no distance is so small in float32 that a narrower kernel would differ.
_NARROWEST = 1e-30


class TagRank(Estimator):
    r"""Tag-rank kernel with the statistics of training captions.

    .. math::

        K(s, t) = \frac12 \exp\left(-\frac{\chi^2(a_s, a_t)}{2 \Omega_a}\right)
        + \frac12 \exp\left(-\frac{\chi^2(r_s, r_t)}{2 \Omega_r}\right), \qquad
        \chi^2(u, v) = \sum_w \frac{(u_w - v_w)^2}{u_w + v_w}

    With p the mean position of word w in caption s, counted from 1, its absolute rank is
    :math:`a_s(w) = 1 / \log_2(1 + p)`, its relative rank :math:`r_s(w)` the share of the
    word's occurrences in training that stand behind p; both are 0 for words that s does not
    have. The kernel of two images is the mean over all pairs of their captions.

    Parameters
    ----------
    absolute_width : float, optional
        :math:`\Omega_a > 0`; the default is the mean chi-square distance of absolute ranks
        over all pairs of training captions.
    relative_width : float, optional
        :math:`\Omega_r > 0`; the default is the mean distance of relative ranks.
    width_factor : float, default 1.0
        Positive factor of the widths that are estimated.

    Attributes
    ----------
    absolute_width_, relative_width_ : float
        The widths in use.
    position_offsets_ : ndarray of int64, shape (n_words + 1,)
        Where each word of the vocabulary begins in `positions_`.
    positions_ : ndarray of int64, shape (n_occurrences,)
        Positions of the words in the training captions, those of one word together and
        ascending.
    all_positions_ : ndarray of int64, shape (n_tokens,)
        Positions of all words, ascending: a word that is outside the vocabulary, or that
        training does not have, is ranked among them.

    Raises
    ------
    TypeError
        If captions are neither EncodedCaptions nor texts or a parameter is not a real number.
    ValueError
        If a parameter is not positive, vocabularies differ in size, or a width is to be
        estimated and there are no two different training captions.

    See Also
    --------
    tag_rank : The same in one call.
    kernelcore.reference.kernels.tag_rank : The definition.

    Notes
    -----
    Distances are sums over shared words alone: :math:`\chi^2(u, v) = \sum_w u_w + \sum_w v_w
    - \sum 4 u_w v_w / (u_w + v_w)`. Sums and exponentials are float32, the mean over an
    image's captions float64: the error is a few units of float32's precision. Equal captions
    have similarity 1 exactly.

    References
    ----------
    .. [1] S. J. Hwang and K. Grauman, "Learning the relative importance of objects from
       tagged images for retrieval and cross-modal search", International Journal of Computer
       Vision 100, 2012.
    .. [2] M. Hodosh, P. Young and J. Hockenmaier, "Framing image description as a ranking
       task", Journal of Artificial Intelligence Research 47, 2013.

    Examples
    --------
    >>> from kernelcore.captions import EncodedCaptions
    >>> from kernelcore.kernels import TagRank
    >>> dog, run, cat = range(3)
    >>> captions = EncodedCaptions.from_lists([[[dog, run]], [[run, dog]], [[cat]]])
    >>> kernel = TagRank().fit(captions)
    >>> kernel.gram(captions).round(3)
    array([[1.   , 0.714, 0.585],
           [0.714, 1.   , 0.585],
           [0.585, 0.585, 1.   ]])
    """

    absolute_width_: float
    relative_width_: float
    position_offsets_: npt.NDArray[np.int64]
    positions_: npt.NDArray[np.int64]
    all_positions_: npt.NDArray[np.int64]

    def __init__(
        self,
        *,
        absolute_width: float | None = None,
        relative_width: float | None = None,
        width_factor: float = 1.0,
    ) -> None:
        self.absolute_width = absolute_width
        self.relative_width = relative_width
        self.width_factor = width_factor

    def fit(self, captions: Texts) -> TagRank:
        """Collect the words' positions in the training captions and estimate the widths."""
        self._fit(captions, "captions")
        return self

    def gram(
        self,
        X: Texts,
        Y: Texts | None = None,
        *,
        dtype: npt.DTypeLike = np.float64,
        out: Array | None = None,
        n_threads: int | None = None,
        progress: Progress = False,
    ) -> npt.NDArray[Any]:
        """Gram matrix of captions, with the statistics of training.

        Parameters
        ----------
        X : EncodedCaptions, Prepared or sequence of texts
            Captions of n_samples_X images over the vocabulary of the training captions; or
            texts, strings split at white space or lists of tokens.
        Y : EncodedCaptions, Prepared or sequence of texts, optional
            Captions of n_samples_Y images. Omit it for the symmetric Gram matrix of `X`,
            which does half the work.
        dtype : {float32, float64}, default float64
            Dtype of the result.
        out : ndarray of shape (n_samples_X, n_samples_Y), optional
            Where to put the result: C-contiguous, of dtype `dtype`. A call that is
            interrupted leaves it unusable.
        n_threads : int, optional
            Threads to use; the default is every core this process may run on. The result
            is the same, bit for bit, for every value.
        progress : bool or callable, default False
            True draws a bar (extra ``cli``); a callable is called with (tasks done, tasks).

        Returns
        -------
        ndarray of shape (n_samples_X, n_samples_Y)
            Values in [0, 1]. An image without captions has similarity 0 with all, itself
            included; one of a single caption has 1 with itself, one of several less, unless
            they are equal.
        """
        self._check_fitted("absolute_width_")
        return self._gram(
            X, Y, None, dtype=dtype, out=out, n_threads=n_threads, progress=progress
        )

    def _fit(self, captions: Texts, name: str) -> _RankedTags:
        """Fit the kernel; return the tags of the captions with their ranks."""
        encoded, _ = as_captions(captions, name=name)
        factor = check_real("width_factor", self.width_factor, minimum=0.0, exclusive=True)
        positions = _positions(encoded.caption_offsets)
        is_known = encoded.word_ids >= 0
        known = encoded.word_ids[is_known]
        order = np.lexsort((positions[is_known], known))
        self.positions_ = positions[is_known][order]
        counts = np.bincount(known, minlength=encoded.n_words)
        self.position_offsets_ = np.concatenate(([0], np.cumsum(counts, dtype=np.int64)))
        self.all_positions_ = np.sort(positions)

        tags = self._rank(encoded, encoded)
        for width_name, ranks in (
            ("absolute_width", tags.absolute),
            ("relative_width", tags.relative),
        ):
            width = getattr(self, width_name)
            if width is not None:
                width = check_real(width_name, width, minimum=0.0, exclusive=True)
            else:
                distance = tags.mean_chi2(ranks)
                if not distance > 0:
                    raise ValueError(
                        f"{width_name} must be given where no two training captions differ, "
                        "got None"
                    )
                width = factor * distance
                if not 0 < width < np.inf:
                    raise ValueError(
                        f"width_factor must leave the widths within float64, got {factor}"
                    )
            setattr(self, f"{width_name}_", width)
        return tags

    def _gram(
        self,
        X: Texts,
        Y: Texts | None,
        tags: _RankedTags | None,
        *,
        dtype: npt.DTypeLike,
        out: Array | None,
        n_threads: int | None,
        progress: Progress,
    ) -> npt.NDArray[Any]:
        """Compute `gram`; the tags of both inputs may be ranked already."""
        left, right = as_captions(X, Y)
        n_words = len(self.position_offsets_) - 1
        if left.n_words != n_words:
            raise ValueError(
                "X must be encoded with the vocabulary of the training captions "
                f"({n_words} words), got n_words {left.n_words}"
            )
        tags = tags or self._rank(left, right)
        shape = (len(tags.X[2]) - 1, len(tags.Y[2]) - 1)
        result = result_for(out, shape, check_float_dtype("dtype", dtype), ())
        absolute_width = max(self.absolute_width_, _NARROWEST)
        relative_width = max(self.relative_width_, _NARROWEST)
        threads = threads_for(n_threads, float(len(left.word_ids)) * len(right.word_ids))
        with reporting(progress, "tag ranks") as report:
            _core.tag_rank(*tags, absolute_width, relative_width, result, threads, report)
        return result

    def _rank(self, X: EncodedCaptions, Y: EncodedCaptions) -> _RankedTags:
        """Return the tags of both inputs with their absolute and relative ranks.

        The relative rank is the share of the training occurrences of the tag's word that are
        behind its position.
        """
        symbols_X, symbols_Y, n_symbols = as_symbols(X, Y)
        left, right, tag_words, positions = _distinct_tags(symbols_X, symbols_Y)
        # An occurrence's key sorts by word, then position; a mean position, by its whole part.
        last = int(self.all_positions_[-1]) if self.all_positions_.size else 0
        counts = np.diff(self.position_offsets_)
        keys = np.repeat(np.arange(len(counts)), counts) * (last + 1) + self.positions_
        places = np.minimum(np.floor(positions), last).astype(np.int64)

        before = np.searchsorted(self.all_positions_, places, side="right")
        total = np.full(len(places), len(self.all_positions_))
        words = tag_words.astype(np.int64)
        in_training = words < len(counts)
        in_training[in_training] = counts[words[in_training]] > 0
        words, places = words[in_training], places[in_training]
        found = np.searchsorted(keys, words * (last + 1) + places, side="right")
        before[in_training] = found - self.position_offsets_[words]
        total[in_training] = counts[words]
        absolute = 1.0 / np.log2(1.0 + positions)
        relative = 1.0 - before / np.maximum(total, 1)
        return _RankedTags(left, right, tag_words, n_symbols, absolute, relative)


def tag_rank(
    X: Texts,
    Y: Texts | None = None,
    *,
    training: Texts | None = None,
    absolute_width: float | None = None,
    relative_width: float | None = None,
    width_factor: float = 1.0,
    dtype: npt.DTypeLike = np.float64,
    out: Array | None = None,
    n_threads: int | None = None,
    progress: Progress = False,
) -> npt.NDArray[Any]:
    """Gram matrix of the tag-rank kernel: `TagRank`, fitted and used in one call.

    Parameters
    ----------
    X, Y, dtype, out, n_threads, progress
        As in `TagRank.gram`.
    training : EncodedCaptions, Prepared or sequence of texts, optional
        Captions from which the positions of the words and the widths are estimated; see
        `TagRank`. The default is `X`. Pass the training captions if `X` holds others.
    absolute_width, relative_width, width_factor
        As in `TagRank`.

    Returns
    -------
    ndarray of shape (n_samples_X, n_samples_Y)

    Raises
    ------
    TypeError, ValueError
        As `TagRank`.

    Examples
    --------
    >>> from kernelcore.captions import EncodedCaptions
    >>> from kernelcore.kernels import tag_rank
    >>> training = EncodedCaptions.from_lists([[[0, 1, 2]], [[0, 2, 1]]])
    >>> tag_rank(training.select([0]), training, training=training).round(3)
    array([[1.   , 0.607]])
    """
    kernel = TagRank(
        absolute_width=absolute_width, relative_width=relative_width, width_factor=width_factor
    )
    tags = kernel._fit(X, "X") if training is None else kernel._fit(training, "training")
    return kernel._gram(
        X,
        Y,
        tags if training is None and Y is None else None,
        dtype=dtype,
        out=out,
        n_threads=n_threads,
        progress=progress,
    )


class _RankedTags(NamedTuple):
    """Words of two inputs with their mean positions, each different pair once.

    Attributes
    ----------
    X, Y : tuple
        Both inputs with tags in place of symbols, each word of a caption once, ascending.
    words : ndarray of int32, shape (n_tags,)
        Symbol of each tag, ascending.
    n_symbols : int
    absolute, relative : ndarray of float64, shape (n_tags,)
        Ranks of each tag.
    """

    X: Ragged
    Y: Ragged
    words: npt.NDArray[np.int32]
    n_symbols: int
    absolute: npt.NDArray[np.float64]
    relative: npt.NDArray[np.float64]

    def mean_chi2(self, ranks: npt.NDArray[np.float64]) -> float:
        """Mean chi-square distance of `ranks` over all pairs of different captions of X."""
        tags, offsets, _ = self.X
        n_captions = len(offsets) - 1
        if n_captions < 2:
            return 0.0
        counts = np.bincount(tags, minlength=len(ranks)).astype(np.float64)
        shared = 0.0
        doubled = ranks + ranks
        own = np.divide(4.0 * (ranks * ranks), doubled, where=doubled > 0, out=doubled * 0.0)
        own_terms = (counts * own * counts).tolist()
        bounds = np.flatnonzero(np.diff(self.words, prepend=-1, append=-1))
        for begin, end in pairwise(bounds.tolist()):
            if end - begin == 1:  # most words of few captions
                shared += own_terms[begin]
                continue
            u, n = ranks[begin:end], counts[begin:end]
            sums = np.add.outer(u, u)
            products = 4.0 * np.multiply.outer(u, u)
            pairs = np.divide(products, sums, out=np.zeros_like(sums), where=sums > 0)
            shared += float(n @ pairs @ n)
        alone = 2.0 * n_captions * float(counts @ ranks)
        total = alone - shared
        if total <= 1e-12 * alone:  # equal captions, but for rounding
            return 0.0
        return total / (n_captions * (n_captions - 1))


def _distinct_tags(
    X: Ragged, Y: Ragged
) -> tuple[Ragged, Ragged, npt.NDArray[np.int32], npt.NDArray[np.float64]]:
    """Both inputs with tags in place of symbols, and the word and mean position of each tag."""
    words, positions, offsets = _mean_positions(X[0], X[1])
    n_of_X = len(words)
    if Y is not X:
        words_Y, positions_Y, offsets_Y = _mean_positions(Y[0], Y[1])
        words = np.concatenate([words, words_Y])
        positions = np.concatenate([positions, positions_Y])
    order = np.lexsort((positions, words))
    words, positions = words[order], positions[order]
    is_new = np.ones(len(words), bool)
    is_new[1:] = (np.diff(words) != 0) | (np.diff(positions) != 0)
    tags = np.empty(len(words), np.int32)
    tags[order] = np.cumsum(is_new) - 1
    left = (tags[:n_of_X], offsets, X[2])
    right = left if Y is X else (tags[n_of_X:], offsets_Y, Y[2])
    return left, right, words[is_new].astype(np.int32), positions[is_new]


def _positions(caption_offsets: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Position of each token in its caption, counted from 1."""
    starts = np.repeat(caption_offsets[:-1], np.diff(caption_offsets))
    return np.arange(1, caption_offsets[-1] + 1) - starts


def _mean_positions(
    words: npt.NDArray[np.int32], caption_offsets: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float64], npt.NDArray[np.int64]]:
    """Different words of each caption, ascending, their mean positions, and the offsets."""
    n_captions = len(caption_offsets) - 1
    captions = np.repeat(np.arange(n_captions), np.diff(caption_offsets))
    order = np.lexsort((words, captions))
    captions, words = captions[order], words[order]
    is_new = np.ones(len(words), bool)
    is_new[1:] = (np.diff(captions) != 0) | (np.diff(words) != 0)
    starts = np.flatnonzero(is_new)
    counts = np.diff(starts, append=len(words))
    sums = np.bincount(np.cumsum(is_new) - 1, _positions(caption_offsets)[order], len(starts))
    per_caption = np.bincount(captions[starts], minlength=n_captions)
    offsets = np.concatenate(([0], np.cumsum(per_caption, dtype=np.int64)))
    return words[starts], sums / counts, offsets
