"""Alignment similarity: words that translate one another in captions of one image."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from itertools import pairwise, permutations
from typing import TypeAlias

import numpy as np
import scipy

from kernelcore._check import check_integer, check_real
from kernelcore._estimator import Estimator
from kernelcore._threads import Progress
from kernelcore.captions.encoded import EncodedCaptions
from kernelcore.captions.normalize import TaggedWord
from kernelcore.lexical.ibm import TranslationModel, ibm2, usable_pairs
from kernelcore.lexical.word_kernel import WordKernel, cosine_kernel

TaggedImages: TypeAlias = Sequence[Sequence[Sequence[TaggedWord]]]
"""(word, part-of-speech tag) of each word of each caption of each image."""


class Alignment(Estimator):
    r"""Similarity of words by how they translate one another between captions of one image.

    All ordered pairs of captions of one training image are a parallel corpus, once with
    their nouns alone and once with their verbs alone. From each corpus IBM model 2, see `ibm2`,
    learns translation probabilities, and a word becomes the vector

    .. math:: \mathbf{w}_i = p_N(w_i \mid w) P_N(w) + p_V(w_i \mid w) P_V(w)

    where :math:`P_N(w)` and :math:`P_V(w)` are the shares of the occurrences of w that are
    tagged as a noun and as a verb. The word kernel is the cosine of these vectors.

    Parameters
    ----------
    noun_tags, verb_tags : collection of str, default ("NOUN",) and ("VERB",)
        Part-of-speech tags of nouns and of verbs.
    noun_min_count, noun_min_share : int, float, default 5 and 0.5
        A word is a noun if at least this number, and at least this share, of its occurrences
        are tagged as nouns.
    verb_min_count, verb_min_share : int, float, default 25 and 0.25
        The same for verbs, which are more often tagged wrongly.
    threshold : float, default 0.05
        Similarities below it become 0.

    Attributes
    ----------
    nouns_, verbs_ : tuple of str
        The two vocabularies, by falling count; a word may be in both.
    noun_model_, verb_model_ : TranslationModel or None
        What was learned from each corpus; None where it holds no sentence pair.
    words_ : tuple of str
        Nouns and verbs together, in alphabetical order.
    vectors_ : csr_array of float64, shape (n_words, n_words)
        The vector of each word, a row, over the same words.

    References
    ----------
    .. [1] M. Hodosh, P. Young and J. Hockenmaier, "Framing image description as a ranking
       task: data, models and evaluation metrics", Journal of Artificial Intelligence
       Research 47, 2013.

    Examples
    --------
    >>> from kernelcore.lexical import Alignment
    >>> images = [
    ...     [
    ...         [("biker", "NOUN"), ("ride", "VERB"), (place, "NOUN")],
    ...         [("cyclist", "NOUN"), ("race", "VERB"), (place, "NOUN")],
    ...         [("biker", "NOUN"), (place, "NOUN")],
    ...     ]
    ...     for place in ("hill", "road")
    ... ]
    >>> kernel = Alignment(noun_min_count=1).fit(images).word_kernel()
    >>> kernel.most_similar("cyclist", 1)
    [('biker', 0.28...)]
    """

    def __init__(
        self,
        *,
        noun_tags: Collection[str] = ("NOUN",),
        verb_tags: Collection[str] = ("VERB",),
        noun_min_count: int = 5,
        noun_min_share: float = 0.5,
        verb_min_count: int = 25,
        verb_min_share: float = 0.25,
        threshold: float = 0.05,
    ) -> None:
        self.noun_tags = noun_tags
        self.verb_tags = verb_tags
        self.noun_min_count = noun_min_count
        self.noun_min_share = noun_min_share
        self.verb_min_count = verb_min_count
        self.verb_min_share = verb_min_share
        self.threshold = threshold

    def fit(self, captions: TaggedImages, *, progress: Progress = False) -> Alignment:
        """Learn the nouns and verbs that translate one another.

        Parameters
        ----------
        captions : nested sequence of (str, str)
            Word and part-of-speech tag of each word of each caption of each image, as
            `kernelcore.captions.CaptionNormalizer.tag_images` returns them.
        progress : bool or callable, default False
            Show a bar for each corpus, or call this with (iterations done, in all).

        Returns
        -------
        Alignment
            This object.

        Raises
        ------
        TypeError, ValueError
            If an option is none of those above or `captions` is not nested so.
        """
        _check_tagged(captions)
        noun_shares = self._shares(captions, "noun")
        verb_shares = self._shares(captions, "verb")
        self.nouns_, self.verbs_ = tuple(noun_shares), tuple(verb_shares)
        self.noun_model_ = self._align(captions, self.noun_tags, self.nouns_, progress)
        self.verb_model_ = self._align(captions, self.verb_tags, self.verbs_, progress)
        self.words_ = tuple(sorted({*self.nouns_, *self.verbs_}))
        self.vectors_ = self._spread(noun_shares, self.noun_model_) + self._spread(
            verb_shares, self.verb_model_
        )
        return self

    def word_kernel(self, words: Iterable[str] | None = None) -> WordKernel:
        """Return the cosines of the vectors of `words` (default: of all nouns and verbs).

        A word that is neither a noun nor a verb of the training captions is similar to
        itself alone.
        """
        self._check_fitted("vectors_")
        index = {word: row for row, word in enumerate(self.words_)}
        threshold = check_real("threshold", self.threshold, minimum=0, maximum=1)
        wanted = self.words_ if words is None else words
        return cosine_kernel(wanted, index, self.vectors_, threshold)

    def _shares(self, captions: TaggedImages, part: str) -> dict[str, float]:
        """Share of the occurrences of each word that are tagged as noun (or verb)."""
        tags = getattr(self, f"{part}_tags")
        if isinstance(tags, str):
            raise TypeError(f"{part}_tags must be a collection of tags, got {tags!r}")
        least = check_integer(
            f"{part}_min_count", getattr(self, f"{part}_min_count"), minimum=1
        )
        least_share = check_real(
            f"{part}_min_share", getattr(self, f"{part}_min_share"), minimum=0, maximum=1
        )
        tokens = [token for image in captions for caption in image for token in caption]
        in_all = Counter(word for word, _ in tokens)
        as_part = Counter(word for word, tag in tokens if tag in tags)
        return {
            word: count / in_all[word]
            for word, count in sorted(as_part.items(), key=lambda item: (-item[1], item[0]))
            if count >= least and count >= least_share * in_all[word]
        }

    def _align(
        self,
        captions: TaggedImages,
        tags: Collection[str],
        words: Sequence[str],
        progress: Progress,
    ) -> TranslationModel | None:
        """Train the IBM model on the words of one part of speech."""
        index = {word: i for i, word in enumerate(words)}
        sentences = EncodedCaptions.from_lists(
            [
                [
                    [index[word] for word, tag in caption if tag in tags and word in index]
                    for caption in image
                ]
                for image in captions
            ],
            n_words=len(words),
        )
        source, target = _caption_pairs(sentences)
        if len(usable_pairs(source, target)) == 0:
            return None
        return ibm2(source, target, progress=progress)

    def _spread(
        self, shares: dict[str, float], model: TranslationModel | None
    ) -> scipy.sparse.csr_array:
        """Weight the translations of one part of speech by it, over all words."""
        index = {word: row for row, word in enumerate(self.words_)}
        shape = (len(index), len(index))
        if model is None:
            return scipy.sparse.csr_array(shape)
        rows = np.array([index[word] for word in shares], dtype=np.intp)
        weights = np.array(list(shares.values()))
        table = scipy.sparse.coo_array(model.probabilities[: len(shares), :])  # no row of NULL
        return scipy.sparse.csr_array(
            (table.data * weights[table.row], (rows[table.row], rows[table.col])), shape=shape
        )


def _caption_pairs(sentences: EncodedCaptions) -> tuple[EncodedCaptions, EncodedCaptions]:
    """All ordered pairs of captions of the same image."""
    pairs = [
        pair
        for first, last in pairwise(sentences.image_offsets.tolist())
        for pair in permutations(range(first, last), 2)
    ]
    source, target = np.array(pairs, dtype=np.intp).reshape(-1, 2).T
    alone = sentences.caption_as_image()
    return alone.select(source), alone.select(target)


def _check_tagged(captions: TaggedImages) -> None:
    for image in captions:
        for caption in image:
            for token in caption:
                if isinstance(token, str) or not (
                    len(token) == 2 and all(isinstance(part, str) for part in token)
                ):
                    raise TypeError(
                        "captions must be nested as images, captions, (word, tag) pairs, "
                        f"got {token!r} for a pair"
                    )
