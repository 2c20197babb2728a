"""Distributional similarity: words are similar if they occur with the same words."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Literal

import numpy as np
import numpy.typing as npt
import scipy

from kernelcore._check import check_choice, check_real
from kernelcore._estimator import Estimator
from kernelcore._store import lines_of, read_text
from kernelcore.captions.normalize import TaggedWord
from kernelcore.captions.vocabulary import TokenizedImages, Vocabulary
from kernelcore.lexical.word_kernel import WordKernel, cosine_kernel


def read_tagged_corpus(path: str | os.PathLike[str]) -> list[list[TaggedWord]]:
    """Read a tagged corpus: one sentence a line, words as ``word/tag`` between spaces.

    This is the form of the Brown corpus. The words come as they stand in the file; join
    those of a sentence with spaces and a `kernelcore.captions.CaptionNormalizer` treats it
    like a caption.

    Parameters
    ----------
    path : path-like
        A UTF-8 text file. Empty lines are passed over.

    Returns
    -------
    list of list of (str, str)
        Word and tag of each token of each sentence.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If the file is not UTF-8, or a token has no tag.

    Examples
    --------
    >>> from kernelcore.lexical import read_tagged_corpus
    >>> with open("corpus.txt", "w") as file:
    ...     _ = file.write("The/at dog/nn ran/vbd ./.")
    >>> read_tagged_corpus("corpus.txt")
    [[('The', 'at'), ('dog', 'nn'), ('ran', 'vbd'), ('.', '.')]]
    """
    sentences = []
    for number, line in enumerate(lines_of(read_text(path)), 1):
        sentence = []
        for token in line.split():
            word, _, tag = token.rpartition("/")
            if not word or not tag:
                raise ValueError(
                    f"{os.fspath(path)}, line {number}: tokens must be word/tag, got {token!r}"
                )
            sentence.append((word, tag))
        if sentence:
            sentences.append(sentence)
    return sentences


class Distributional(Estimator):
    r"""Cosine similarity of vectors of positive pointwise mutual information.

    .. math:: \mathbf{w}_i = \max\left(0, \log_2 \frac{P(w, w_i)}{P(w) P(w_i)}\right)

    :math:`P(w)` is the share of contexts that hold w, :math:`P(w, w_i)` the share that hold
    both; how often a word stands in one context does not matter.

    Parameters
    ----------
    min_count : int, default 5
        Occurrences a word must have in the corpus to be counted at all.
    context : {"caption", "image"}, default "caption"
        Whether each caption is a context of its own, or all captions of an image together
        are one. For a plain corpus an "image" is a document and a "caption" a sentence.
    threshold : float, default 0.01
        Similarities below it become 0.

    Attributes
    ----------
    vocabulary_ : Vocabulary
        The words counted.
    vectors_ : csr_array of float64, shape (n_words, n_words)
        Positive pointwise mutual information of each pair, in bits.

    References
    ----------
    .. [1] M. Hodosh, P. Young and J. Hockenmaier, "Framing image description as a ranking
       task: data, models and evaluation metrics", Journal of Artificial Intelligence
       Research 47, 2013.

    Examples
    --------
    >>> from kernelcore.lexical import Distributional
    >>> captions = [[["dog", "run", "grass"], ["cat", "run", "grass"], ["man", "swim"]]]
    >>> kernel = Distributional(min_count=1).fit(captions).word_kernel()
    >>> kernel.most_similar("run", 2)
    [('grass', 1.0), ('cat', 0.77...)]
    """

    def __init__(
        self,
        min_count: int = 5,
        *,
        context: Literal["caption", "image"] = "caption",
        threshold: float = 0.01,
    ) -> None:
        self.min_count = min_count
        self.context = context
        self.threshold = threshold

    def fit(self, captions: TokenizedImages) -> Distributional:
        """Count words and their contexts.

        Parameters
        ----------
        captions : nested sequence of str
            Normalised words of each caption of each image, or of each sentence of each
            document.

        Returns
        -------
        Distributional
            This object.

        Raises
        ------
        TypeError, ValueError
            If an option is none of those above or `captions` is not nested so.
        """
        check_choice("context", self.context, ("caption", "image"))
        self.vocabulary_ = Vocabulary.from_captions(captions, min_count=self.min_count)
        encoded = self.vocabulary_.encode(captions, unknown="drop")
        offsets = encoded.caption_offsets
        if self.context == "image":
            offsets = offsets[encoded.image_offsets]
        n_contexts = len(offsets) - 1
        occurs = scipy.sparse.csr_array(
            (np.ones(len(encoded.word_ids)), encoded.word_ids.copy(), offsets.copy()),
            shape=(n_contexts, len(self.vocabulary_)),
        )
        occurs.sum_duplicates()
        occurs.data[:] = 1.0
        together = scipy.sparse.coo_array(occurs.T @ occurs)
        alone: npt.NDArray[np.float64] = np.asarray(occurs.sum(axis=0))
        information = np.log2(
            together.data * n_contexts / (alone[together.row] * alone[together.col])
        )
        self.vectors_ = scipy.sparse.csr_array(
            (np.maximum(information, 0.0), (together.row, together.col)), shape=together.shape
        )
        self.vectors_.eliminate_zeros()
        return self

    def word_kernel(self, words: Iterable[str] | None = None) -> WordKernel:
        """Return the cosines of the vectors of `words` (default: of all that were counted).

        The vectors span all words counted, whatever the words asked for. A word that was
        not counted is similar to itself alone.
        """
        self._check_fitted("vectors_")
        threshold = check_real("threshold", self.threshold, minimum=0, maximum=1)
        wanted = self.vocabulary_ if words is None else words
        return cosine_kernel(wanted, self.vocabulary_.index, self.vectors_, threshold)
