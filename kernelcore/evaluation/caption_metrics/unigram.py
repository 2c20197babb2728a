"""BLEU and ROUGE as Hodosh et al. (2013) use them: shares of single words."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from scipy import sparse

from kernelcore._check import check_callable
from kernelcore.evaluation.caption_metrics._corpus import (
    Corpus,
    Floats,
    check_captions,
    check_reference_sets,
)
from kernelcore.evaluation.caption_metrics.tokens import bleu_tokens, rouge_tokens

Tokenize: TypeAlias = Callable[[str], Sequence[str]]
"""From a caption to the tokens that are compared."""

# Images whose overlaps with all captions are held at once
_BLOCK = 512


def unigram_bleu(
    candidates: Sequence[str],
    references: Sequence[Sequence[str]],
    *,
    tokenize: Tokenize = bleu_tokens,
) -> Floats:
    r"""Share of each caption's words that a reference of each image has too.

    .. math:: \mathrm{BLEU}(i, s) = \frac{\sum_{w \in s} \min(c_s(w), \max_{r \in R_i} c_r(w))}
              {\sum_{w \in s} c_s(w)}

    where :math:`c_s(w)` is the number of times word w occurs in s: the unigram precision of
    BLEU, without its brevity penalty.

    Parameters
    ----------
    candidates : sequence of str, length n_captions
    references : sequence of sequences of str, length n_images
        The reference captions of each image, at least one.
    tokenize : callable, default `bleu_tokens`
        From a caption to its tokens. With `rouge_tokens` this is the BLEU_pre of the paper.

    Returns
    -------
    ndarray of float64, shape (n_images, n_captions)
        In [0, 1], in the orientation of the score matrices that `evaluate` takes. A caption
        without a word scores 0.

    Raises
    ------
    TypeError
        If captions are not texts.
    ValueError
        If there is no candidate or no image, or an image has no reference.

    See Also
    --------
    bleu : BLEU of longer n-grams for a corpus, with the brevity penalty.
    kernelcore.reference.evaluation.unigram_bleu : The definition in Python.

    References
    ----------
    .. [1] M. Hodosh, P. Young and J. Hockenmaier, "Framing image description as a ranking
       task: data, models and evaluation metrics", JAIR 47, 2013, section 4.4.

    Examples
    --------
    >>> from kernelcore.evaluation.caption_metrics import unigram_bleu
    >>> unigram_bleu(["a dog runs", "a cat"], [["the dog runs"], ["a cat sleeps"]])
    array([[0.66666667, 0.        ],
           [0.33333333, 1.        ]])
    """
    counts = _Counts(candidates, references, tokenize)
    return _ratio(counts.matches(any_reference=True), counts.candidate_totals)


def unigram_rouge(
    candidates: Sequence[str],
    references: Sequence[Sequence[str]],
    *,
    tokenize: Tokenize = rouge_tokens,
) -> Floats:
    r"""Share of the words of each image's references that each caption has too.

    .. math:: \mathrm{ROUGE}(i, s) = \frac{\sum_{r \in R_i} \sum_{w \in r}
              \min(c_s(w), c_r(w))}{\sum_{r \in R_i} \sum_{w \in r} c_r(w)}

    Parameters
    ----------
    candidates : sequence of str, length n_captions
    references : sequence of sequences of str, length n_images
        The reference captions of each image, at least one.
    tokenize : callable, default `rouge_tokens`
        From a caption to its tokens.

    Returns
    -------
    ndarray of float64, shape (n_images, n_captions)
        In [0, 1]. References without a word give 0.

    Raises
    ------
    TypeError, ValueError
        As `unigram_bleu`.

    See Also
    --------
    rouge_l : ROUGE-L of the COCO evaluation.
    kernelcore.reference.evaluation.unigram_rouge : The definition in Python.

    References
    ----------
    .. [1] M. Hodosh, P. Young and J. Hockenmaier, "Framing image description as a ranking
       task: data, models and evaluation metrics", JAIR 47, 2013, section 4.4.

    Examples
    --------
    >>> from kernelcore.evaluation.caption_metrics import unigram_rouge
    >>> unigram_rouge(["a dog runs", "a cat"], [["the dog runs"], ["a cat sleeps"]])
    array([[1. , 0. ],
           [0. , 0.5]])
    """
    counts = _Counts(candidates, references, tokenize)
    totals = counts.reference_totals[:, np.newaxis]
    return _ratio(counts.matches(any_reference=False), totals)


class _Counts:
    """How often each word occurs in each candidate and in each reference.

    Counts are cut into levels, of which level k has a 1 where the count is k or more: then
    min(a, b) is the sum over levels of the products, and matches are products of matrices.
    """

    def __init__(
        self,
        candidates: Sequence[str],
        references: Sequence[Sequence[str]],
        tokenize: Tokenize,
    ) -> None:
        check_captions("candidates", candidates)
        check_reference_sets(references)
        check_callable("tokenize", tokenize)
        corpus = Corpus.from_captions(
            _tokens("candidates", candidates, tokenize),
            [_tokens("references", captions, tokenize) for captions in references],
            paired=False,
        )
        self._n_candidates = len(candidates)
        self._levels = list(_levels(corpus))
        set_offsets = corpus.set_offsets - len(candidates)
        self._sets = sparse.csr_array(
            (np.ones(set_offsets[-1]), np.arange(set_offsets[-1]), set_offsets),
            shape=(len(references), set_offsets[-1]),
        )
        self.candidate_totals = corpus.lengths[: len(candidates)]
        self.reference_totals = np.add.reduceat(
            corpus.lengths[len(candidates) :], set_offsets[:-1]
        )

    def matches(self, *, any_reference: bool) -> Floats:
        """Count the words that every set, a row, shares with every candidate."""
        matches = np.zeros((self._sets.shape[0], self._n_candidates))
        for mine, theirs in self._matrices(any_reference):
            for start in range(0, len(matches), _BLOCK):
                block = sparse.csr_array(theirs[start : start + _BLOCK])
                matches[start : start + _BLOCK] += (block @ mine.T).toarray()
        return matches

    def _matrices(
        self, any_reference: bool
    ) -> Iterator[tuple[sparse.csr_array, sparse.csr_array]]:
        """Candidates by words and sets by words, level by level.

        The latter hold the number of references that reach the level or, where one is as
        good as all of them, whether there are `any`.
        """
        for level in self._levels:
            theirs = sparse.csr_array(self._sets @ level[self._n_candidates :])
            yield level[: self._n_candidates], theirs.sign() if any_reference else theirs


def _levels(corpus: Corpus) -> Iterator[sparse.csr_array]:
    """Captions by words: 1 where a word occurs at least once, at least twice and so on."""
    n_words = len(corpus.vocabulary)
    owners = np.repeat(np.arange(len(corpus.lengths)), corpus.lengths)
    cells, counts = np.unique(owners * n_words + corpus.words, return_counts=True)
    for k in range(1, counts.max(initial=0) + 1):
        rows, columns = np.divmod(cells[counts >= k], n_words)
        yield sparse.csr_array(
            (np.ones(len(rows)), (rows, columns)), shape=(len(corpus.lengths), n_words)
        )


def _tokens(name: str, captions: Sequence[str], tokenize: Tokenize) -> list[Sequence[str]]:
    for caption in captions:
        if not isinstance(caption, str):
            raise TypeError(f"{name} must hold texts, got {caption!r}")
    return [tokenize(caption) for caption in captions]


def _ratio(matches: Floats, totals: npt.NDArray[np.int64]) -> Floats:
    """Return matches / totals, and 0 for 0 / 0."""
    ratio: Floats = matches / np.maximum(totals, 1)
    return ratio
