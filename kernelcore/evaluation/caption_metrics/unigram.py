"""BLEU and ROUGE as Hodosh et al. (2013) use them: shares of single words."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias, overload

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


@overload
def unigram_bleu(  # type: ignore[overload-overlap]  # a str is a sequence of str, too
    candidates: str, references: Sequence[str], *, tokenize: Tokenize = ...
) -> float: ...
@overload
def unigram_bleu(
    candidates: Sequence[str], references: Sequence[Sequence[str]], *, tokenize: Tokenize = ...
) -> Floats: ...
def unigram_bleu(
    candidates: str | Sequence[str],
    references: Sequence[str] | Sequence[Sequence[str]],
    *,
    tokenize: Tokenize = bleu_tokens,
) -> float | Floats:
    r"""Share of a caption's words that a reference has too.

    .. math:: \mathrm{BLEU}(i, s) = \frac{\sum_{w \in s} \min(c_s(w), \max_{r \in R_i} c_r(w))}
              {\sum_{w \in s} c_s(w)}

    where :math:`c_s(w)` is the number of times word w occurs in s: the unigram precision of
    BLEU, without its brevity penalty.

    Parameters
    ----------
    candidates : str or sequence of str, length n_captions
        One caption, or one for each set of references.
    references : sequence of str, or sequence of sequences of str, length n_captions
        The reference captions of the candidate, or those of each candidate; at least one.
    tokenize : callable, default `bleu_tokens`
        From a caption to its tokens. With `rouge_tokens` this is the BLEU_pre of the paper.

    Returns
    -------
    float or ndarray of float64, shape (n_captions,)
        In [0, 1]. A caption without a word scores 0.

    Raises
    ------
    TypeError
        If captions are not texts.
    ValueError
        If the numbers of candidates and sets of references differ, a set is empty, or there
        is no candidate.

    See Also
    --------
    unigram_bleu_matrix : Every caption for every image.
    bleu : BLEU of longer n-grams for a corpus, with the brevity penalty.
    kernelcore.reference.evaluation.unigram_bleu : The definition in Python.

    References
    ----------
    .. [1] M. Hodosh, P. Young and J. Hockenmaier, "Framing image description as a ranking
       task: data, models and evaluation metrics", JAIR 47, 2013, section 4.4.

    Examples
    --------
    >>> from kernelcore.evaluation.caption_metrics import rouge_tokens, unigram_bleu
    >>> references = ["Two dogs run.", "The dogs are running in snow."]
    >>> unigram_bleu("Dogs in the white snow", references)
    0.8
    >>> unigram_bleu("a running dog", references, tokenize=rouge_tokens)
    1.0
    """
    counts = _paired_counts(candidates, references, tokenize)
    scores = _ratio(counts.paired_matches(any_reference=True), counts.candidate_totals)
    return float(scores[0]) if isinstance(candidates, str) else scores


@overload
def unigram_rouge(  # type: ignore[overload-overlap]  # a str is a sequence of str, too
    candidates: str, references: Sequence[str], *, tokenize: Tokenize = ...
) -> float: ...
@overload
def unigram_rouge(
    candidates: Sequence[str], references: Sequence[Sequence[str]], *, tokenize: Tokenize = ...
) -> Floats: ...
def unigram_rouge(
    candidates: str | Sequence[str],
    references: Sequence[str] | Sequence[Sequence[str]],
    *,
    tokenize: Tokenize = rouge_tokens,
) -> float | Floats:
    r"""Share of the references' words that a caption has too.

    .. math:: \mathrm{ROUGE}(i, s) = \frac{\sum_{r \in R_i} \sum_{w \in r}
              \min(c_s(w), c_r(w))}{\sum_{r \in R_i} \sum_{w \in r} c_r(w)}

    Parameters
    ----------
    candidates : str or sequence of str, length n_captions
        One caption, or one for each set of references.
    references : sequence of str, or sequence of sequences of str, length n_captions
        The reference captions of the candidate, or those of each candidate; at least one.
    tokenize : callable, default `rouge_tokens`
        From a caption to its tokens.

    Returns
    -------
    float or ndarray of float64, shape (n_captions,)
        In [0, 1]. References without a word give 0.

    Raises
    ------
    TypeError
        If captions are not texts.
    ValueError
        If the numbers of candidates and sets of references differ, a set is empty, or there
        is no candidate.

    See Also
    --------
    unigram_rouge_matrix : Every caption for every image.
    rouge_l : ROUGE-L of the COCO evaluation.
    kernelcore.reference.evaluation.unigram_rouge : The definition in Python.

    References
    ----------
    .. [1] M. Hodosh, P. Young and J. Hockenmaier, "Framing image description as a ranking
       task: data, models and evaluation metrics", JAIR 47, 2013, section 4.4.

    Examples
    --------
    >>> from kernelcore.evaluation.caption_metrics import unigram_rouge
    >>> unigram_rouge("A running dog", ["Two dogs run.", "The dogs are running in snow."])
    0.6666666666666666
    """
    counts = _paired_counts(candidates, references, tokenize)
    scores = _ratio(counts.paired_matches(any_reference=False), counts.reference_totals)
    return float(scores[0]) if isinstance(candidates, str) else scores


def unigram_bleu_matrix(
    candidates: Sequence[str],
    references: Sequence[Sequence[str]],
    *,
    tokenize: Tokenize = bleu_tokens,
) -> Floats:
    """`unigram_bleu` of every caption for every image.

    Parameters
    ----------
    candidates : sequence of str, length n_captions
    references : sequence of sequences of str, length n_images
        The reference captions of each image, at least one.
    tokenize : callable, default `bleu_tokens`
        From a caption to its tokens; `rouge_tokens` gives BLEU_pre.

    Returns
    -------
    ndarray of float64, shape (n_images, n_captions)
        In the orientation of the score matrices that `evaluate` takes.

    Raises
    ------
    TypeError, ValueError
        As `unigram_bleu`, but the numbers may differ.

    Examples
    --------
    >>> from kernelcore.evaluation.caption_metrics import unigram_bleu_matrix
    >>> unigram_bleu_matrix(["a dog runs", "a cat"], [["the dog runs"], ["a cat sleeps"]])
    array([[0.66666667, 0.        ],
           [0.33333333, 1.        ]])
    """
    counts = _Counts(candidates, references, tokenize, paired=False)
    return _ratio(counts.all_matches(any_reference=True), counts.candidate_totals)


def unigram_rouge_matrix(
    candidates: Sequence[str],
    references: Sequence[Sequence[str]],
    *,
    tokenize: Tokenize = rouge_tokens,
) -> Floats:
    """`unigram_rouge` of every caption for every image.

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
        In the orientation of the score matrices that `evaluate` takes.

    Raises
    ------
    TypeError, ValueError
        As `unigram_rouge`, but the numbers may differ.

    Examples
    --------
    >>> from kernelcore.evaluation.caption_metrics import unigram_rouge_matrix
    >>> unigram_rouge_matrix(["a dog runs", "a cat"], [["the dog runs"], ["a cat sleeps"]])
    array([[1. , 0. ],
           [0. , 0.5]])
    """
    counts = _Counts(candidates, references, tokenize, paired=False)
    totals = counts.reference_totals[:, np.newaxis]
    return _ratio(counts.all_matches(any_reference=False), totals)


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
        *,
        paired: bool,
    ) -> None:
        check_captions("candidates", candidates)
        check_reference_sets(references)
        check_callable("tokenize", tokenize)
        corpus = Corpus.from_captions(
            _tokens("candidates", candidates, tokenize),
            [_tokens("references", captions, tokenize) for captions in references],
            paired=paired,
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

    def paired_matches(self, *, any_reference: bool) -> Floats:
        """Count the words that candidate i shares with set i."""
        matches = np.zeros(self._n_candidates)
        for mine, theirs in self._matrices(any_reference):
            matches += mine.multiply(theirs).sum(axis=1)
        return matches

    def all_matches(self, *, any_reference: bool) -> Floats:
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


def _paired_counts(candidates: Any, references: Any, tokenize: Tokenize) -> _Counts:
    """Count a batch, or one caption and its references as a batch of one."""
    if isinstance(candidates, str):
        candidates, references = [candidates], [references]
    return _Counts(candidates, references, tokenize, paired=True)


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
