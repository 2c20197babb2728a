"""BLEU and ROUGE as Hodosh et al. (2013) use them: shares of single words."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

import numpy as np
from scipy import sparse

from kernelcore._check import check_callable
from kernelcore.evaluation.caption_metrics._corpus import (
    Corpus,
    Floats,
    check_captions,
    check_references,
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
    corpus = _corpus(candidates, references, tokenize)
    totals = corpus.lengths[: len(candidates)]
    return _matches(corpus, any_reference=True) / np.maximum(totals, 1)


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
    corpus = _corpus(candidates, references, tokenize)
    totals = np.add.reduceat(corpus.lengths, corpus.set_offsets[:-1])[:, np.newaxis]
    return _matches(corpus, any_reference=False) / np.maximum(totals, 1)


def _corpus(
    candidates: Sequence[str], references: Sequence[Sequence[str]], tokenize: Tokenize
) -> Corpus:
    """Check the captions and cut them into tokens."""
    check_captions("candidates", candidates)
    check_references(references)
    check_callable("tokenize", tokenize)

    def tokens(name: str, captions: Sequence[str]) -> list[Sequence[str]]:
        for caption in captions:
            if not isinstance(caption, str):
                raise TypeError(f"{name} must hold texts, got {caption!r}")
        return list(map(tokenize, captions))

    sets = [tokens("references", captions) for captions in references]
    return Corpus.numbered(tokens("candidates", candidates), sets)


def _matches(corpus: Corpus, *, any_reference: bool) -> Floats:
    """Count the words that every set of references, a row, shares with every candidate.

    With `any_reference` a word is shared as often as one of them has it, else as often as all
    have it, one after the other. Counts are cut into levels, of which level k has a 1 where the
    count is k or more: then min(a, b) is the sum over levels of the products.
    """
    n = int(corpus.set_offsets[0])
    offsets = corpus.set_offsets - n
    shape = (corpus.n_sets, offsets[-1])
    sets = sparse.csr_array((np.ones(shape[1]), np.arange(shape[1]), offsets), shape=shape)
    matches = np.zeros((corpus.n_sets, n))
    for level in _levels(corpus):
        theirs = sparse.csr_array(sets @ level[n:])
        if any_reference:
            theirs = theirs.sign()
        for start in range(0, len(matches), _BLOCK):
            block = sparse.csr_array(theirs[start : start + _BLOCK])
            matches[start : start + _BLOCK] += (block @ level[:n].T).toarray()
    return matches


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
