"""CIDEr and CIDEr-D, and document frequencies of n-grams."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kernelcore._validation import check_integer, check_real
from kernelcore.evaluation.caption_metrics import _ngrams
from kernelcore.evaluation.caption_metrics._corpus import (
    Caption,
    CaptionScores,
    Corpus,
    Floats,
    Integers,
    NgramOrder,
    References,
)


class DocumentFrequencies:
    """In how many documents each n-gram occurs; the captions of one image are a document.

    Made by `from_references`, for `cider` and `cider_d`: to weight the n-grams of a few
    captions, or of every batch of a training, by one large corpus.

    Attributes
    ----------
    n_documents : int
    max_n : int
        Length of the longest n-grams.

    Notes
    -----
    Holds 16 bytes per distinct n-gram. Looking one up takes the logarithm of their number.

    Examples
    --------
    >>> from kernelcore.evaluation import DocumentFrequencies
    >>> references = [["a dog runs", "the dog"], ["a dog sleeps"], ["a cat"]]
    >>> frequencies = DocumentFrequencies.from_references(references)
    >>> frequencies.n_documents, frequencies["dog"], frequencies["a dog"], frequencies["cow"]
    (3, 2, 2, 0)
    """

    def __init__(self, corpus: Corpus, orders: Sequence[NgramOrder]) -> None:
        self.n_documents = corpus.n_sets
        self.max_n = len(orders)
        self._vocabulary = corpus.vocabulary
        self._keys = [order.keys for order in orders]
        self.counts = [self._count(corpus, order) for order in orders]

    @classmethod
    def from_references(cls, references: References, *, max_n: int = 4) -> DocumentFrequencies:
        """Count the n-grams of these captions.

        Parameters
        ----------
        references : sequence of sequences of captions
            The captions of each image, at least one; each a list of tokens, or a text that
            is split at white space.
        max_n : int, default 4
            Length of the longest n-grams.

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
        max_n = check_integer("max_n", max_n, minimum=1)
        corpus = Corpus.from_references(references)
        return cls(corpus, list(corpus.ngrams(max_n)))

    def __repr__(self) -> str:
        n_ngrams = sum(map(len, self._keys))
        return f"DocumentFrequencies({self.n_documents} documents, {n_ngrams} n-grams)"

    def __getitem__(self, ngram: str | Sequence[str]) -> int:
        """Return in how many documents an n-gram occurs: its words, or a text of them."""
        words = ngram.split() if isinstance(ngram, str) else ngram
        corpus = Corpus.from_references([[words]])
        if not 1 <= len(words) <= self.max_n:
            raise KeyError(f"an n-gram must have 1 to {self.max_n} words, got {len(words)}")
        orders = list(corpus.ngrams(len(words)))
        return int(self.counts_of(corpus.vocabulary, orders)[-1][orders[-1].ids[0]])

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

    @staticmethod
    def _count(corpus: Corpus, order: NgramOrder) -> Integers:
        last_set, counts = (np.zeros(len(order.keys), dtype=np.int64) for _ in range(2))
        _ngrams.count_documents(order.ids, order.offsets, corpus.set_offsets, last_set, counts)
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
    max_n: int = 4,
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
    max_n : int, default 4
        Longest n-grams.

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
        If the numbers of candidates and sets of references differ, a set is empty, there is
        no candidate, or `document_frequencies` has no n-grams as long as `max_n`.

    See Also
    --------
    cider_d : The variant that the COCO evaluation reports under the name CIDEr.
    kernelcore.reference.caption_metrics.cider : The definition in Python.

    Notes
    -----
    Takes O(tokens * max_n) memory, and that times the logarithm of the tokens for time.
    With one document every weight is log 1 = 0, and so is every score: give
    `document_frequencies` to score few captions.

    References
    ----------
    .. [1] R. Vedantam, C. L. Zitnick and D. Parikh, "CIDEr: consensus-based image
       description evaluation", CVPR 2015.

    Examples
    --------
    >>> from kernelcore.evaluation import cider
    >>> candidates = ["a dog runs", "a cat sleeps"]
    >>> references = [["the dog runs", "a dog is running"], ["a cat sleeps well"]]
    >>> cider(candidates, references, max_n=2).captions.round(2)
    array([5.33, 8.16])
    """
    return _cider(candidates, references, document_frequencies, max_n, clip=False, sigma=None)


def cider_d(
    candidates: Sequence[Caption],
    references: References,
    *,
    document_frequencies: DocumentFrequencies | None = None,
    max_n: int = 4,
    sigma: float = 6.0,
) -> CaptionScores:
    r"""CIDEr-D, the CIDEr of the COCO evaluation.

    .. math:: \mathrm{CIDEr\mbox{-}D}(c) = \frac{10}{N} \sum_{n=1}^{N} \frac{1}{m}
              \sum_{j=1}^{m} \exp\left(-\frac{(l(c) - l(r_j))^2}{2 \sigma^2}\right)
              \frac{\min(g_n(c), g_n(r_j)) \cdot g_n(r_j)}{\|g_n(c)\| \, \|g_n(r_j)\|}

    As `cider`, but words said over and over gain nothing (the minimum), and neither do
    captions longer or shorter than the reference.

    Parameters
    ----------
    candidates : sequence of captions, length n_captions
        Each is a list of tokens, or a text that is split at white space. Words are not
        stemmed for this variant.
    references : sequence of sequences of captions, length n_captions
        The reference captions of each candidate, at least one.
    document_frequencies : DocumentFrequencies, optional
        What to weight n-grams by; the default is to count them in `references`.
    max_n : int, default 4
        Longest n-grams.
    sigma : float, default 6.0
        Width of the penalty on the difference of lengths, in words, > 0.

    Returns
    -------
    CaptionScores
        Between 0 and 10. The corpus score is the mean of the captions'.

    Raises
    ------
    TypeError, ValueError
        As `cider`; and if `sigma` is not a number > 0.

    See Also
    --------
    kernelcore.reference.caption_metrics.cider_d : The definition in Python.

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
    >>> from kernelcore.evaluation import DocumentFrequencies, cider_d
    >>> references = [["the dog runs", "a dog is running"], ["a cat sleeps well"]]
    >>> frequencies = DocumentFrequencies.from_references(references)
    >>> score = cider_d(["a dog dog dog"], references[:1], document_frequencies=frequencies)
    >>> round(score.corpus, 2)
    0.8
    """
    sigma = check_real("sigma", sigma, minimum=0.0, exclusive=True)
    return _cider(candidates, references, document_frequencies, max_n, clip=True, sigma=sigma)


def _cider(
    candidates: Sequence[Caption],
    references: References,
    document_frequencies: DocumentFrequencies | None,
    max_n: int,
    *,
    clip: bool,
    sigma: float | None,
) -> CaptionScores:
    max_n = check_integer("max_n", max_n, minimum=1)
    _check_frequencies(document_frequencies, max_n)
    corpus = Corpus.from_captions(candidates, references)
    orders = list(corpus.ngrams(max_n))
    if document_frequencies is None:
        document_frequencies = DocumentFrequencies(corpus, orders)
        counts = document_frequencies.counts
    else:
        counts = document_frequencies.counts_of(corpus.vocabulary, orders)
    scores: Floats = np.zeros(corpus.n_sets)
    penalties = _length_penalties(corpus, sigma)
    for order, count in zip(orders, counts, strict=True):
        # an n-gram that no document has weighs as much as one of a single document
        weights = np.log(document_frequencies.n_documents / np.maximum(count, 1))
        mine, theirs = (np.zeros(len(order.keys), dtype=np.int32) for _ in range(2))
        _ngrams.add_similarities(
            order.ids,
            order.offsets,
            corpus.set_offsets,
            weights,
            penalties,
            clip,
            mine,
            theirs,
            scores,
        )
    scores *= 10 / (max_n * np.diff(corpus.set_offsets))
    return CaptionScores(float(scores.mean()), scores)


def _length_penalties(corpus: Corpus, sigma: float | None) -> Floats:
    n = corpus.n_sets
    if sigma is None:
        return np.ones(len(corpus.lengths) - n)
    n_bigrams = np.maximum(corpus.lengths - 1, 0)
    candidate = np.repeat(n_bigrams[:n], np.diff(corpus.set_offsets))
    penalties: Floats = np.exp(-((candidate - n_bigrams[n:]) ** 2) / (2 * sigma**2))
    return penalties


def _check_frequencies(frequencies: DocumentFrequencies | None, max_n: int) -> None:
    if frequencies is None:
        return
    if not isinstance(frequencies, DocumentFrequencies):
        raise TypeError(
            "document_frequencies must be DocumentFrequencies, "
            f"got {type(frequencies).__name__}"
        )
    if frequencies.max_n < max_n:
        raise ValueError(
            f"document_frequencies must have n-grams up to max_n ({max_n}), "
            f"got up to {frequencies.max_n}"
        )
