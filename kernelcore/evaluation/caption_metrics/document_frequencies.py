"""In how many documents each n-gram of a corpus of reference captions occurs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kernelcore._validation import check_integer
from kernelcore.evaluation.caption_metrics import _ngrams
from kernelcore.evaluation.caption_metrics._corpus import (
    Corpus,
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
