"""ROUGE-L of the COCO caption evaluation."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kernelcore._validation import check_real
from kernelcore.evaluation.caption_metrics import _ngrams
from kernelcore.evaluation.caption_metrics._corpus import (
    Caption,
    CaptionScores,
    Corpus,
    Floats,
    References,
)


def rouge_l(
    candidates: Sequence[Caption], references: References, *, beta: float = 1.2
) -> CaptionScores:
    r"""ROUGE-L: how much of a caption comes in the same order in a reference.

    .. math:: \mathrm{ROUGE}_L = \frac{(1 + \beta^2) P R}{R + \beta^2 P}, \quad
              P = \max_r \frac{\mathrm{lcs}(c, r)}{|c|}, \quad
              R = \max_r \frac{\mathrm{lcs}(c, r)}{|r|}

    with the length of the longest common subsequence of words, lcs. The largest precision
    and the largest recall may come from different references.

    Parameters
    ----------
    candidates : sequence of captions, length n_captions
        Each is a list of tokens, or a text that is split at white space.
    references : sequence of sequences of captions, length n_captions
        The reference captions of each candidate, at least one.
    beta : float, default 1.2
        Weight of the recall against the precision, >= 0.

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
    kernelcore.reference.caption_metrics.rouge_l : The definition in Python.

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
    >>> from kernelcore.evaluation import rouge_l
    >>> round(rouge_l(["a dog runs"], [["a black dog runs", "it runs"]]).corpus, 3)
    0.836
    """
    beta = check_real("beta", beta, minimum=0.0)
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
        (1 + beta**2) * precision * recall,
        recall + beta**2 * precision,
        out=scores,
        where=recall > 0,
    )
    return CaptionScores(float(scores.mean()), scores)
