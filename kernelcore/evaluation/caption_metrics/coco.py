"""BLEU, ROUGE-L, CIDEr and CIDEr-D, as the COCO caption evaluation computes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from kernelcore._check import check_integer
from kernelcore.evaluation.caption_metrics import _ngrams
from kernelcore.evaluation.caption_metrics._corpus import (
    Caption,
    CaptionScores,
    Corpus,
    Floats,
    Integers,
    NgramOrder,
    References,
    check_references,
)

# The evaluation code of COCO adds these to counts, so that a precision of 0 / 0 is 0.
_TINY, _SMALL = 1e-15, 1e-9
_BETA = 1.2  # weight of the recall of ROUGE-L against its precision
_MAX_N, _SIGMA = 4, 6.0  # longest n-grams of CIDEr, and its penalty of lengths


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
    kernelcore.reference.evaluation.bleu : The definition in Python.

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
    >>> from kernelcore.evaluation.caption_metrics import bleu
    >>> scores = bleu(["a dog runs"], [["a black dog runs", "the dog runs fast"]], max_n=2)
    >>> scores.corpus.round(3)
    array([0.717, 0.507])
    """
    max_n = check_integer("max_n", max_n, minimum=1)
    corpus = Corpus.from_captions(candidates, references)
    n = corpus.n_sets
    matches, totals = np.zeros((2, n, max_n), dtype=np.int64)
    for column, order in enumerate(corpus.ngrams(max_n)):
        count, most = np.zeros((2, len(order.keys)), dtype=np.int32)
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


def rouge_l(candidates: Sequence[Caption], references: References) -> CaptionScores:
    r"""ROUGE-L: how much of a caption comes in the same order in a reference.

    .. math:: \mathrm{ROUGE}_L = \frac{(1 + \beta^2) P R}{R + \beta^2 P}, \quad
              P = \max_r \frac{\mathrm{lcs}(c, r)}{|c|}, \quad
              R = \max_r \frac{\mathrm{lcs}(c, r)}{|r|}

    with the length of the longest common subsequence of words, lcs, and a weight of
    :math:`\beta = 1.2` of the recall. The largest precision and the largest recall may come
    from different references.

    Parameters
    ----------
    candidates : sequence of captions, length n_captions
        Each is a list of tokens, or a text that is split at white space.
    references : sequence of sequences of captions, length n_captions
        The reference captions of each candidate, at least one.

    Returns
    -------
    CaptionScores
        The corpus score is the mean of the captions'. An empty caption scores 0.

    Raises
    ------
    TypeError
        If captions are not texts or sequences of tokens.
    ValueError
        If the numbers of candidates and sets of references differ, a set is empty, or there
        is no candidate.

    See Also
    --------
    unigram_rouge : The ROUGE of Hodosh et al. (2013), a recall of single words.
    kernelcore.reference.evaluation.rouge_l : The definition in Python.

    Notes
    -----
    Equal to ``pycocoevalcap.rouge`` where captions have one blank between words and are
    not empty; that code takes an empty caption for one of one empty word.

    References
    ----------
    .. [1] C.-Y. Lin, "ROUGE: a package for automatic evaluation of summaries", Text
       Summarization Branches Out, 2004.

    Examples
    --------
    >>> from kernelcore.evaluation.caption_metrics import rouge_l
    >>> round(rouge_l(["a dog runs"], [["a black dog runs", "it runs"]]).corpus, 3)
    0.836
    """
    corpus = Corpus.from_captions(candidates, references)
    n = corpus.n_sets
    sizes, lengths = np.diff(corpus.set_offsets), corpus.lengths
    common = np.empty(len(lengths) - n, dtype=np.int64)
    row = np.empty(int(lengths.max(initial=0)) + 1, dtype=np.int32)
    _ngrams.common_subsequences(corpus.words, corpus.offsets, corpus.set_offsets, row, common)

    starts = corpus.set_offsets[:-1] - n
    # an empty caption has nothing in common with any: 0 / 1
    precisions = common / np.maximum(np.repeat(lengths[:n], sizes), 1)
    precision = np.maximum.reduceat(precisions, starts)
    recall = np.maximum.reduceat(common / np.maximum(lengths[n:], 1), starts)
    scores: Floats = np.zeros(n)
    np.divide(
        (1 + _BETA**2) * precision * recall,
        recall + _BETA**2 * precision,
        out=scores,
        where=recall > 0,
    )
    return CaptionScores(float(scores.mean()), scores)


class DocumentFrequencies:
    """In how many documents each n-gram occurs; the captions of one image are a document.

    Made by `from_references`, for `cider` and `cider_d`: to weight the n-grams of a few
    captions, or of every batch of a training, by one large corpus.

    Attributes
    ----------
    n_documents : int
    counts : list of ndarray of int64
        Number of documents with each n-gram, from single words to four words.

    Notes
    -----
    Holds 16 bytes per distinct n-gram. Looking one up takes the logarithm of their number.

    Examples
    --------
    >>> from kernelcore.evaluation.caption_metrics import DocumentFrequencies
    >>> references = [["a dog runs", "the dog"], ["a dog sleeps"], ["a cat"]]
    >>> DocumentFrequencies.from_references(references)
    DocumentFrequencies(3 documents, 13 n-grams)
    """

    def __init__(self, corpus: Corpus, orders: Sequence[NgramOrder]) -> None:
        self.n_documents = corpus.n_sets
        self._vocabulary = corpus.vocabulary
        self._keys = [order.keys for order in orders]
        self.counts = []
        for order in orders:
            last_set, counts = np.zeros((2, len(order.keys)), dtype=np.int64)
            ids = order.ids, order.offsets, corpus.set_offsets
            _ngrams.count_documents(*ids, last_set, counts)
            self.counts.append(counts)

    @classmethod
    def from_references(cls, references: References) -> DocumentFrequencies:
        """Count the n-grams of these captions.

        Parameters
        ----------
        references : sequence of sequences of captions
            The captions of each image, at least one; each a list of tokens, or a text that
            is split at white space.

        Returns
        -------
        DocumentFrequencies

        Raises
        ------
        TypeError
            If captions are not texts or sequences of tokens.
        ValueError
            If there is no image, or one without a caption.
        """
        check_references(references)
        corpus = Corpus.numbered((), references)
        return cls(corpus, list(corpus.ngrams(_MAX_N)))

    def __repr__(self) -> str:
        n_ngrams = sum(map(len, self._keys))
        return f"DocumentFrequencies({self.n_documents} documents, {n_ngrams} n-grams)"

    def counts_of(
        self, vocabulary: dict[str, int], orders: Sequence[NgramOrder]
    ) -> list[Integers]:
        """Count of each n-gram of another numbering, order by order; 0 for unknown ones."""
        unknown = -1
        words = np.array(
            [self._vocabulary.get(word, unknown) for word in vocabulary], dtype=np.int64
        )
        known, counts = words, []
        for number, order in enumerate(orders):
            if number:
                prefixes, last = np.divmod(order.keys, len(words))
                known = _positions(
                    self._keys[number], known[prefixes], words[last], len(self._vocabulary)
                )
            counts.append(np.append(self.counts[number], 0)[known])  # at -1, the last
        return counts


def _positions(keys: Integers, prefixes: Integers, words: Integers, n_words: int) -> Integers:
    """Where n-grams stand among the keys, -1 where they, or a part of them, do not."""
    wanted = prefixes * n_words + words
    positions = np.searchsorted(keys, wanted)
    found = (prefixes >= 0) & (words >= 0)
    found[found] = np.append(keys, -1)[positions[found]] == wanted[found]
    return np.where(found, positions, -1)


def cider(
    candidates: Sequence[Caption],
    references: References,
    *,
    document_frequencies: DocumentFrequencies | None = None,
) -> CaptionScores:
    r"""CIDEr: mean cosine of the tf-idf vectors of a caption and its references.

    .. math:: \mathrm{CIDEr}(c) = \frac{10}{N} \sum_{n=1}^{N} \frac{1}{m} \sum_{j=1}^{m}
              \frac{g_n(c) \cdot g_n(r_j)}{\|g_n(c)\| \, \|g_n(r_j)\|}

    where :math:`g_n` holds, for each n-gram, its number of occurrences times the logarithm
    of the number of documents over the number of documents with the n-gram.

    Parameters
    ----------
    candidates : sequence of captions, length n_captions
        Each is a list of tokens, or a text that is split at white space. The authors stem
        the words first.
    references : sequence of sequences of captions, length n_captions
        The reference captions of each candidate, at least one.
    document_frequencies : DocumentFrequencies, optional
        What to weight n-grams by; the default is to count them in `references`, where the
        references of one candidate are one document. N-grams not in it count as if they
        were in one document.

    Returns
    -------
    CaptionScores
        Between 0 and 10. The corpus score is the mean of the captions'.

    Raises
    ------
    TypeError
        If captions are not texts or sequences of tokens, or `document_frequencies` is
        another kind of object.
    ValueError
        If the numbers of candidates and sets of references differ, a set is empty, or there
        is no candidate.

    See Also
    --------
    cider_d : The variant that the COCO evaluation reports under the name CIDEr.
    kernelcore.reference.evaluation.cider : The definition in Python.

    Notes
    -----
    N is 4. Takes O(tokens) memory, and that times the logarithm of the tokens for time.
    With one document every weight is log 1 = 0, and so is every score: give
    `document_frequencies` to score few captions.

    References
    ----------
    .. [1] R. Vedantam, C. L. Zitnick and D. Parikh, "CIDEr: consensus-based image
       description evaluation", CVPR 2015.

    Examples
    --------
    >>> from kernelcore.evaluation.caption_metrics import cider
    >>> candidates = ["a dog runs", "a cat sleeps"]
    >>> references = [["the dog runs", "a dog is running"], ["a cat sleeps well"]]
    >>> cider(candidates, references).captions.round(2)
    array([2.67, 5.85])
    """
    return _cider(candidates, references, document_frequencies, is_clipped=False)


def cider_d(
    candidates: Sequence[Caption],
    references: References,
    *,
    document_frequencies: DocumentFrequencies | None = None,
) -> CaptionScores:
    r"""CIDEr-D, the CIDEr of the COCO evaluation.

    .. math:: \mathrm{CIDEr\mbox{-}D}(c) = \frac{10}{N} \sum_{n=1}^{N} \frac{1}{m}
              \sum_{j=1}^{m} \exp\left(-\frac{(l(c) - l(r_j))^2}{2 \sigma^2}\right)
              \frac{\min(g_n(c), g_n(r_j)) \cdot g_n(r_j)}{\|g_n(c)\| \, \|g_n(r_j)\|}

    As `cider`, but words said over and over gain nothing (the minimum), and neither do
    captions longer or shorter than the reference. The width :math:`\sigma` is 6.

    Parameters
    ----------
    candidates : sequence of captions, length n_captions
        Each is a list of tokens, or a text that is split at white space. Words are not
        stemmed for this variant.
    references : sequence of sequences of captions, length n_captions
        The reference captions of each candidate, at least one.
    document_frequencies : DocumentFrequencies, optional
        What to weight n-grams by; the default is to count them in `references`.

    Returns
    -------
    CaptionScores
        Between 0 and 10. The corpus score is the mean of the captions'.

    Raises
    ------
    TypeError, ValueError
        As `cider`.

    See Also
    --------
    kernelcore.reference.evaluation.cider : The definition in Python.

    Notes
    -----
    Equal to ``pycocoevalcap.cider``, which measures the length l of a caption by its
    bigrams: an empty caption and one of a single word are equally long.

    References
    ----------
    .. [1] R. Vedantam, C. L. Zitnick and D. Parikh, "CIDEr: consensus-based image
       description evaluation", CVPR 2015.

    Examples
    --------
    >>> from kernelcore.evaluation.caption_metrics import DocumentFrequencies, cider_d
    >>> references = [["the dog runs", "a dog is running"], ["a cat sleeps well"]]
    >>> frequencies = DocumentFrequencies.from_references(references)
    >>> score = cider_d(["a dog dog dog"], references[:1], document_frequencies=frequencies)
    >>> round(score.corpus, 2)
    0.8
    """
    return _cider(candidates, references, document_frequencies, is_clipped=True)


def _cider(
    candidates: Sequence[Caption],
    references: References,
    document_frequencies: DocumentFrequencies | None,
    *,
    is_clipped: bool,
) -> CaptionScores:
    """Compute CIDEr, or CIDEr-D by clipped counts and a penalty of lengths."""
    frequencies: Any = document_frequencies
    if frequencies is not None and not isinstance(frequencies, DocumentFrequencies):
        kind = type(frequencies).__name__
        raise TypeError(f"document_frequencies must be DocumentFrequencies, got {kind}")
    corpus = Corpus.from_captions(candidates, references)
    orders = list(corpus.ngrams(_MAX_N))
    if frequencies is None:
        frequencies = DocumentFrequencies(corpus, orders)
        counts = frequencies.counts
    else:
        counts = frequencies.counts_of(corpus.vocabulary, orders)
    n, sizes = corpus.n_sets, np.diff(corpus.set_offsets)
    scores: Floats = np.zeros(n)
    penalties: Floats = np.ones(len(corpus.lengths) - n)
    if is_clipped:
        n_bigrams = np.maximum(corpus.lengths - 1, 0)
        distance = np.repeat(n_bigrams[:n], sizes) - n_bigrams[n:]
        penalties = np.exp(-(distance**2) / (2 * _SIGMA**2))
    for order, count in zip(orders, counts, strict=True):
        # an n-gram that no document has weighs as much as one of a single document
        weights = np.log(frequencies.n_documents / np.maximum(count, 1))
        mine, theirs = np.zeros((2, len(order.keys)), dtype=np.int32)
        ids = order.ids, order.offsets, corpus.set_offsets
        _ngrams.add_similarities(*ids, weights, penalties, is_clipped, mine, theirs, scores)
    scores *= 10 / (_MAX_N * sizes)
    return CaptionScores(float(scores.mean()), scores)
