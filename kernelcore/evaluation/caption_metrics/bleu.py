"""BLEU of the COCO caption evaluation, for a corpus and for each caption."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from kernelcore._validation import check_integer
from kernelcore.evaluation.caption_metrics import _ngrams
from kernelcore.evaluation.caption_metrics._corpus import (
    Caption,
    Corpus,
    Floats,
    Integers,
    References,
)

# The evaluation code of COCO adds these to counts, so that a precision of 0 / 0 is 0.
_TINY, _SMALL = 1e-15, 1e-9


class BleuScores(NamedTuple):
    """BLEU-1 to BLEU-n of a corpus of captions and of each of them.

    Attributes
    ----------
    corpus : ndarray of float64, shape (max_n,)
        ``corpus[n - 1]`` is BLEU-n.
    captions : ndarray of float64, shape (n_captions, max_n)
    """

    corpus: Floats
    captions: Floats


def bleu(
    candidates: Sequence[Caption], references: References, *, max_n: int = 4
) -> BleuScores:
    r"""BLEU-1 to BLEU-n with the brevity penalty, as the COCO evaluation computes them.

    .. math:: \mathrm{BLEU}_n = \min\left(1, e^{1 - r / c}\right)
              \left( \prod_{k=1}^{n} p_k \right)^{1/n}

    where :math:`p_k` is the share of the candidates' k-grams that a reference has too, each
    counted at most as often as one reference has it, :math:`c` is the number of words of
    the candidates and :math:`r` that of the reference closest in length to each of them
    (the shorter of two equally close).

    Parameters
    ----------
    candidates : sequence of captions, length n_captions
        Each is a list of tokens, or a text that is split at white space. Nothing is
        lower-cased or cleaned: see `coco_tokenize`.
    references : sequence of sequences of captions, length n_captions
        The reference captions of each candidate, at least one.
    max_n : int, default 4
        Longest n-grams.

    Returns
    -------
    BleuScores
        `corpus` adds the counts of all captions before it divides, so it is not the mean of
        `captions`.

    Raises
    ------
    TypeError
        If captions are not texts or sequences of tokens.
    ValueError
        If the numbers of candidates and sets of references differ, a set is empty, or there
        is no candidate.

    See Also
    --------
    unigram_bleu : The BLEU of Hodosh et al. (2013), without the brevity penalty.
    kernelcore.reference.caption_metrics.bleu : The definition in Python.

    Notes
    -----
    Equal to ``pycocoevalcap.bleu`` [2]_, which adds 1e-15 to the matches and 1e-9 to the
    k-grams of each order: a caption without a match of some order gets a number close to 0
    and not 0. Takes O(tokens * max_n) time and memory.

    References
    ----------
    .. [1] K. Papineni, S. Roukos, T. Ward and W.-J. Zhu, "BLEU: a method for automatic
       evaluation of machine translation", ACL 2002.
    .. [2] X. Chen et al., "Microsoft COCO captions: data collection and evaluation server",
       arXiv:1504.00325, 2015.

    Examples
    --------
    >>> from kernelcore.evaluation import bleu
    >>> scores = bleu(["a dog runs"], [["a black dog runs", "the dog runs fast"]], max_n=2)
    >>> scores.corpus.round(3)
    array([0.717, 0.507])
    """
    max_n = check_integer("max_n", max_n, minimum=1)
    corpus = Corpus.from_captions(candidates, references)
    n = corpus.n_sets
    matches, totals = (np.zeros((n, max_n), dtype=np.int64) for _ in range(2))
    for column, order in enumerate(corpus.ngrams(max_n)):
        count, most = (np.zeros(len(order.keys), dtype=np.int32) for _ in range(2))
        found = np.empty(n, dtype=np.int64)
        _ngrams.count_matches(order.ids, order.offsets, corpus.set_offsets, count, most, found)
        matches[:, column] = found
        totals[:, column] = np.diff(order.offsets[: n + 1])
    lengths = corpus.lengths[:n]
    closest = _closest_lengths(corpus)
    whole = _bleu(
        matches.sum(axis=0, keepdims=True),
        totals.sum(axis=0, keepdims=True),
        lengths.sum(keepdims=True),
        closest.sum(keepdims=True),
    )
    return BleuScores(whole[0], _bleu(matches, totals, lengths, closest))


def _closest_lengths(corpus: Corpus) -> Integers:
    """Length of the reference closest to each candidate's, the shorter one of two."""
    n = corpus.n_sets
    sizes = np.diff(corpus.set_offsets)
    candidate, reference = np.repeat(corpus.lengths[:n], sizes), corpus.lengths[n:]
    # |difference| first, then the length itself
    order = np.lexsort((reference, np.abs(reference - candidate), np.repeat(range(n), sizes)))
    return reference[order[corpus.set_offsets[:-1] - n]]


def _bleu(matches: Integers, totals: Integers, lengths: Integers, closest: Integers) -> Floats:
    """Rows of BLEU-1 to BLEU-n from rows of counts."""
    precisions = (matches + _TINY) / (totals + _SMALL)
    orders = np.arange(1, matches.shape[1] + 1)
    means = np.cumprod(precisions, axis=1) ** (1 / orders)
    inverse_ratio = (closest + _SMALL) / (lengths + _TINY)
    penalties: Floats = np.exp(np.minimum(0.0, 1 - inverse_ratio))
    return means * penalties[:, np.newaxis]
