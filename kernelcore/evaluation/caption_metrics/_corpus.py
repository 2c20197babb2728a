"""Candidate captions and their references as word ids and n-gram ids."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, count, pairwise
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from kernelcore._ragged import offsets_of

Caption: TypeAlias = str | Sequence[str]
"""A caption as its tokens, or as a text whose tokens stand between white space."""

References: TypeAlias = Sequence[Sequence[Caption]]
"""The reference captions of each candidate."""

Floats: TypeAlias = npt.NDArray[np.float64]
Integers: TypeAlias = npt.NDArray[np.int64]


class CaptionScores(NamedTuple):
    """Score of a corpus of captions and of each of them.

    Attributes
    ----------
    corpus : float
    captions : ndarray of float64, shape (n_captions,)
    """

    corpus: float
    captions: Floats


class NgramOrder(NamedTuple):
    """The n-grams of one order of all captions, laid out as the words are.

    `keys` holds the distinct n-grams, ascending: the id of the first n - 1 words times the
    number of words, plus the id of the last word. Words are their own keys.
    """

    ids: Integers
    offsets: Integers
    keys: Integers


@dataclass(frozen=True, eq=False)
class Corpus:
    """Captions as ragged word ids: the candidates, then the references of each of them.

    The references of candidate i are captions ``set_offsets[i] .. set_offsets[i + 1] - 1``.
    """

    vocabulary: dict[str, int]
    words: Integers
    offsets: Integers
    set_offsets: Integers

    @classmethod
    def from_captions(cls, candidates: Sequence[Caption], references: References) -> Corpus:
        """Check the captions and their number, split them into words and number the words."""
        check_captions("candidates", candidates)
        check_references(references)
        if len(candidates) != len(references):
            raise ValueError(
                "references must have one set of captions per candidate "
                f"({len(candidates)}), got {len(references)}"
            )
        return cls.numbered(candidates, references)

    @classmethod
    def numbered(cls, candidates: Sequence[Caption], references: References) -> Corpus:
        """Split captions into words and number the words."""
        captions = _token_lists("candidates", candidates)
        captions += _token_lists("references", chain.from_iterable(references))
        numbers: defaultdict[str, int] = defaultdict(count().__next__)
        words = map(numbers.__getitem__, chain.from_iterable(captions))
        return cls(
            words=np.fromiter(words, dtype=np.int64),
            vocabulary=dict(numbers),
            offsets=offsets_of([len(caption) for caption in captions]),
            set_offsets=len(candidates) + offsets_of([len(group) for group in references]),
        )

    @property
    def n_sets(self) -> int:
        """Number of sets of references, and of candidates if there are any."""
        return len(self.set_offsets) - 1

    @property
    def lengths(self) -> Integers:
        """Number of words of each caption."""
        return np.diff(self.offsets)

    def ngrams(self, max_n: int) -> Iterator[NgramOrder]:
        """Yield the n-grams of each order from 1 to `max_n`, numbered."""
        n_words = len(self.vocabulary)
        ids = self.words
        yield NgramOrder(ids, self.offsets, np.arange(n_words))
        starts = np.arange(len(ids))
        ends = np.repeat(self.offsets[1:], self.lengths)
        for n in range(2, max_n + 1):
            fits = starts + n <= ends[starts]
            starts = starts[fits]
            keys, ids = np.unique(
                ids[fits] * n_words + self.words[starts + n - 1], return_inverse=True
            )
            yield NgramOrder(ids, offsets_of(np.maximum(self.lengths - n + 1, 0)), keys)


def check_references(references: Any) -> None:
    """Check that `references` holds sequences with at least one caption each."""
    check_captions("references", references)
    for i, captions in enumerate(references):
        check_captions(f"references[{i}]", captions)


def check_captions(name: str, captions: Any) -> None:
    """Check that this is a sequence, and not a single text, with something in it."""
    if isinstance(captions, str) or not isinstance(captions, Sequence):
        raise TypeError(f"{name} must be a sequence, got {type(captions).__name__}")
    if not captions:
        raise ValueError(f"{name} must hold a caption, got none")


def _token_lists(name: str, captions: Iterable[Caption]) -> list[Sequence[str]]:
    return [
        caption.split() if isinstance(caption, str) else _checked_tokens(name, caption)
        for caption in captions
    ]


def _checked_tokens(name: str, caption: Any) -> Sequence[str]:
    if not isinstance(caption, Sequence) or not all(isinstance(w, str) for w in caption):
        raise TypeError(f"{name} must hold texts or sequences of tokens, got {caption!r}")
    return caption


def as_texts(
    candidates: Sequence[Caption], references: References
) -> tuple[list[str], list[list[str]]]:
    """Check paired captions; return each as its tokens with one blank between them."""
    corpus = Corpus.from_captions(candidates, references)
    words = np.array(list(corpus.vocabulary), dtype=object)[corpus.words]
    texts = [" ".join(words[start:end]) for start, end in pairwise(corpus.offsets)]
    return texts[: len(candidates)], [texts[i:j] for i, j in pairwise(corpus.set_offsets)]
