"""IBM translation models 1 and 2, trained by expectation maximisation."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy

from kernelcore._check import check_integer
from kernelcore._ragged import offsets_of
from kernelcore._threads import Progress, reporting
from kernelcore.captions.encoded import EncodedCaptions
from kernelcore.lexical import _ibm

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class TranslationModel:
    """Parameters of a trained translation model.

    Attributes
    ----------
    probabilities : csr_array of float64, shape (n_source_words + 1, n_target_words)
        p(target word | source word). Rows of words that were seen add up to 1, the others
        are empty. The last row is that of the NULL word.
    log_likelihood : ndarray of float64, shape (n_iterations,)
        Natural logarithm of the probability of the target sentences given the source
        sentences (and the lengths), before each iteration. It never falls.
    """

    probabilities: scipy.sparse.csr_array
    log_likelihood: Floats


def ibm1(
    source: EncodedCaptions,
    target: EncodedCaptions,
    *,
    n_iterations: int = 5,
    progress: Progress = False,
) -> TranslationModel:
    r"""Learn translation probabilities by IBM model 1.

    .. math:: p(e_1 \dots e_m \mid f_1 \dots f_l)
              = \prod_{j=1}^{m} \frac{1}{l} \sum_{i=1}^{l} t(e_j \mid f_i)

    Every target word translates one source word, any one with equal probability. A NULL word
    before the first of every source sentence is for target words without a translation. The
    translations :math:`t` are learned by expectation maximisation from uniform ones.

    Parameters
    ----------
    source, target : EncodedCaptions
        The parallel corpus: caption p of `source`, counted over all images, translates
        caption p of `target`. Pairs with an empty side are left out.
    n_iterations : int, default 5
        Iterations of expectation maximisation.
    progress : bool or callable, default False
        Show a bar, or call this with (iterations done, iterations in all).

    Returns
    -------
    TranslationModel

    Raises
    ------
    ValueError
        If the two have different numbers of captions, or a word is outside its vocabulary.

    See Also
    --------
    kernelcore.reference.language.ibm1 : The definition in Python.

    Notes
    -----
    Takes four bytes for each pair of a source and a target word in one sentence pair, and
    time in proportion to their number, once an iteration. Sums are in float64 in the order
    of the corpus.

    References
    ----------
    .. [1] P. F. Brown, S. A. Della Pietra, V. J. Della Pietra and R. L. Mercer, "The
       mathematics of statistical machine translation: parameter estimation",
       Computational Linguistics 19(2), 1993.

    Examples
    --------
    >>> from kernelcore.captions import EncodedCaptions
    >>> from kernelcore.lexical import ibm1
    >>> source = EncodedCaptions.from_lists([[[0, 1]], [[0]]])
    >>> target = EncodedCaptions.from_lists([[[0, 1]], [[0]]])
    >>> model = ibm1(source, target, n_iterations=10)
    >>> model.probabilities.toarray().round(2)
    array([[0.95, 0.05],
           [0.01, 0.99],
           [0.95, 0.05]])
    """
    n_iterations = check_integer("n_iterations", n_iterations, minimum=1)
    return _trained(source, target, n_iterations, 0, progress)


def ibm2(
    source: EncodedCaptions,
    target: EncodedCaptions,
    *,
    n_iterations: int = 5,
    n_model1_iterations: int = 5,
    progress: Progress = False,
) -> TranslationModel:
    r"""Learn translation probabilities by IBM model 2.

    .. math:: p(e_1 \dots e_m \mid f_1 \dots f_l)
              = \prod_{j=1}^{m} \sum_{i=1}^{l} a(i \mid j, l, m) \, t(e_j \mid f_i)

    As `ibm1`, but a target position prefers some source positions: the alignments
    :math:`a` are learned too, from uniform ones, after the translations of model 1.

    Parameters
    ----------
    source, target : EncodedCaptions
        The parallel corpus; see `ibm1`.
    n_iterations : int, default 5
        Iterations of model 2.
    n_model1_iterations : int, default 5
        Iterations of model 1 before them.
    progress : bool or callable, default False
        Show a bar, or call this with (iterations done, iterations in all).

    Returns
    -------
    TranslationModel
        With the log-likelihood before each iteration of model 2.

    Raises
    ------
    ValueError
        If the two have different numbers of captions, or a word is outside its vocabulary.

    References
    ----------
    .. [1] P. F. Brown, S. A. Della Pietra, V. J. Della Pietra and R. L. Mercer, "The
       mathematics of statistical machine translation: parameter estimation",
       Computational Linguistics 19(2), 1993.
    """
    n_iterations = check_integer("n_iterations", n_iterations, minimum=1)
    n_first = check_integer("n_model1_iterations", n_model1_iterations, minimum=0)
    model = _trained(source, target, n_first, n_iterations, progress)
    return TranslationModel(model.probabilities, model.log_likelihood[n_first:])


def _trained(
    source: EncodedCaptions,
    target: EncodedCaptions,
    n_model1: int,
    n_model2: int,
    progress: Progress,
) -> TranslationModel:
    """Train by iterations of model 1, then of model 2."""
    source, target = _checked_pairs(source, target)
    source_offsets, source_ids = _with_null(source)
    n_source_words = source.n_words + 1
    lengths, n_targets = np.diff(source_offsets), np.diff(target.caption_offsets)
    link_offsets = offsets_of(lengths * n_targets)

    n_links = int(link_offsets[-1])
    capacity = min(n_links, n_source_words * target.n_words)
    if capacity > np.iinfo(np.int32).max:
        raise ValueError(
            "source and target must link at most 2**31 - 1 pairs of words, "
            f"got up to {capacity}: split the corpus"
        )
    links = np.empty(n_links, dtype=np.int32)
    entry_targets = np.empty(capacity, dtype=np.int32)
    entry_offsets = np.empty(n_source_words + 1, dtype=np.int64)
    n_entries = _ibm.link_words(
        source_ids,
        source_offsets,
        target.word_ids,
        target.caption_offsets,
        link_offsets,
        np.argsort(source_ids, kind="stable"),
        offsets_of(np.bincount(source_ids, minlength=n_source_words)),
        np.repeat(np.arange(len(lengths)), lengths),
        np.full(target.n_words, -1, dtype=np.int32),
        links,
        entry_targets,
        entry_offsets,
    )
    entry_targets = entry_targets[:n_entries].copy()

    translations = np.full(n_entries, 1.0 / max(len(np.unique(entry_targets)), 1))
    # Pairs of equal lengths share a table of alignments, with one row per target position.
    shapes, shape_of_pair = np.unique(
        np.stack((lengths, n_targets)), axis=1, return_inverse=True
    )
    alignment_offsets = offsets_of(shapes[0] * shapes[1])[:-1][shape_of_pair.ravel()]
    row_lengths = np.repeat(shapes[0], shapes[1])
    alignments = np.repeat(1.0 / row_lengths, row_lengths)
    log_likelihood = np.empty(n_model1 + n_model2)
    with reporting(progress, "align words") as report:
        for i in range(len(log_likelihood)):
            translation_counts = np.zeros_like(translations)
            alignment_counts = np.zeros_like(alignments)
            log_likelihood[i] = _ibm.expected_counts(
                source_offsets,
                target.caption_offsets,
                link_offsets,
                links,
                translations,
                alignment_offsets,
                alignments,
                translation_counts,
                alignment_counts,
            )
            translations = _normalized(translation_counts, np.diff(entry_offsets))
            if i >= n_model1:
                alignments = _normalized(alignment_counts, row_lengths)
            if report:
                report(i + 1, len(log_likelihood))
    table = scipy.sparse.csr_array(
        (translations, entry_targets, entry_offsets), shape=(n_source_words, target.n_words)
    )
    table.sort_indices()
    return TranslationModel(table, log_likelihood)


def usable_pairs(source: EncodedCaptions, target: EncodedCaptions) -> npt.NDArray[np.intp]:
    """Positions of the sentence pairs without an empty side."""
    return np.flatnonzero(
        (np.diff(source.caption_offsets) > 0) & (np.diff(target.caption_offsets) > 0)
    )


def _checked_pairs(
    source: EncodedCaptions, target: EncodedCaptions
) -> tuple[EncodedCaptions, EncodedCaptions]:
    for name, captions in (("source", source), ("target", target)):
        if not isinstance(captions, EncodedCaptions):
            raise TypeError(f"{name} must be EncodedCaptions, got {type(captions).__name__}")
        if captions.word_ids.size and captions.word_ids.min() < 0:
            raise ValueError(f"{name} must hold words of its vocabulary only, got unknown ones")
    if source.n_captions != target.n_captions:
        raise ValueError(
            "source and target must have equally many captions, "
            f"got {source.n_captions} and {target.n_captions}"
        )
    usable = usable_pairs(source, target)
    if len(usable) == 0:
        raise ValueError("source and target must have a pair without an empty side, got none")
    return source.caption_as_image().select(usable), target.caption_as_image().select(usable)


def _with_null(
    source: EncodedCaptions,
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]:
    """Insert the null word, with id `n_words`, before each sentence."""
    offsets = source.caption_offsets + np.arange(source.n_captions + 1)
    ids = np.full(len(source.word_ids) + source.n_captions, source.n_words, dtype=np.int32)
    is_word = np.ones(len(ids), dtype=bool)
    is_word[offsets[:-1]] = False
    ids[is_word] = source.word_ids
    return offsets, ids


def _normalized(counts: Floats, row_lengths: npt.NDArray[np.int64]) -> Floats:
    """Divide every row of a ragged table by its sum; rows of zeros stay zero."""
    rows = np.repeat(np.arange(len(row_lengths)), row_lengths)
    totals = np.bincount(rows, weights=counts, minlength=len(row_lengths))
    divisors: Floats = np.maximum(totals, np.finfo(np.float64).tiny)[rows]
    return counts / divisors
