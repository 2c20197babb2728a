"""Vocabulary of a collection of captions, with a rule for unknown words."""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from kernelcore._check import as_integer_array, as_strings, check_choice, check_integer, owned
from kernelcore._store import load_json, reading, save_json
from kernelcore.captions.encoded import EncodedCaptions

TokenizedImages: TypeAlias = Sequence[Sequence[Sequence[str]]]
"""Tokens of each caption of each image."""

_KIND = "vocabulary"
_PARTS = ("words", "counts", "document_frequency", "n_documents")


class Vocabulary:
    r"""Vocabulary of captions: words, their counts and their document frequencies.

    Parameters
    ----------
    words : sequence of str
        The words; a word's position is its id.
    counts : array_like of int, shape (n_words,)
        Occurrences of each word in the captions the vocabulary was made from.
    document_frequency : array_like of int, shape (n_words,)
        Images with the word in any of their captions, :math:`|D(w)|`.
    n_documents : int
        Number of images, :math:`|D|`.

    Attributes
    ----------
    words : tuple of str
    counts, document_frequency : ndarray of int64, shape (n_words,)
    n_documents : int
    index : mapping of str to int
        Id of each word.

    Raises
    ------
    TypeError
        If a word is not a string or a count not an integer.
    ValueError
        If a word comes twice, the lengths differ, or the counts contradict one another.

    Examples
    --------
    >>> from kernelcore.captions import Vocabulary
    >>> captions = [[["dog", "run"], ["dog"]], [["dog", "swim"]]]
    >>> vocabulary = Vocabulary.from_captions(captions)
    >>> vocabulary.words
    ('dog', 'run', 'swim')
    >>> vocabulary.document_frequency
    array([2, 1, 1])
    >>> vocabulary.encode([[["dog", "swim"]]]).word_ids
    array([0, 2], dtype=int32)
    """

    def __init__(
        self,
        words: Sequence[str],
        counts: npt.ArrayLike,
        document_frequency: npt.ArrayLike,
        n_documents: int,
    ) -> None:
        self.words = tuple(as_strings("words", words, unique=True))
        places = {word: i for i, word in enumerate(self.words)}
        self.index: Mapping[str, int] = MappingProxyType(places)
        self.counts = self._per_word("counts", counts)
        self.document_frequency = self._per_word("document_frequency", document_frequency)
        self.n_documents = check_integer("n_documents", n_documents, minimum=0)
        if (self.document_frequency > np.minimum(self.counts, self.n_documents)).any():
            raise ValueError(
                "document_frequency must be at most counts and at most n_documents"
            )

    def __reduce__(self) -> tuple[Any, ...]:
        """Restore through the constructor, which checks and makes the index."""
        return type(self), (
            self.words,
            self.counts,
            self.document_frequency,
            self.n_documents,
        )

    @classmethod
    def from_captions(cls, captions: TokenizedImages, *, min_count: int = 1) -> Vocabulary:
        """Collect the words of tokenised captions.

        Words are ordered by falling count, equal counts alphabetically: the order of the
        images does not matter.

        Parameters
        ----------
        captions : nested sequence of str
            Tokens of each caption of each image.
        min_count : int, default 1
            Occurrences a word must have to be included.

        Returns
        -------
        Vocabulary

        Raises
        ------
        TypeError
            If `captions` is not nested as images, captions, tokens.
        """
        min_count = check_integer("min_count", min_count, minimum=1)
        check_nesting("captions", captions)
        counts: Counter[str] = Counter()
        document_frequency: Counter[str] = Counter()
        for image in captions:
            here = Counter(token for caption in image for token in caption)
            counts.update(here)
            document_frequency.update(here.keys())
        words = sorted(
            (word for word, count in counts.items() if count >= min_count),
            key=lambda word: (-counts[word], word),
        )
        return cls(
            words,
            [counts[word] for word in words],
            [document_frequency[word] for word in words],
            len(captions),
        )

    def __len__(self) -> int:
        return len(self.words)

    def __iter__(self) -> Iterator[str]:
        return iter(self.words)

    def __contains__(self, word: object) -> bool:
        return word in self.index

    def __repr__(self) -> str:
        return f"Vocabulary({len(self)} words from {self.n_documents} images)"

    def idf(self) -> npt.NDArray[np.float64]:
        r"""Inverse document frequency of each word.

        .. math:: \mathrm{idf}(w) = \max\left(0, \log \frac{|D|}{|D(w)| + 1}\right)

        Natural logarithm. Without the maximum, a word in every image would have a negative
        weight, which has no square root.

        Returns
        -------
        ndarray of float64, shape (n_words,)
        """
        if self.n_documents == 0:
            return np.zeros(len(self))
        return np.maximum(0.0, np.log(self.n_documents / (self.document_frequency + 1.0)))

    @property
    def unknown_idf(self) -> float:
        """Inverse document frequency of a word that no image has, :math:`log |D|`."""
        return float(np.log(max(self.n_documents, 1)))

    def encode(
        self,
        captions: TokenizedImages,
        *,
        unknown: Literal["hash", "drop"] = "hash",
        caption_numbers: Sequence[Sequence[int]] | None = None,
    ) -> EncodedCaptions:
        """Turn tokenised captions into word ids.

        Parameters
        ----------
        captions : nested sequence of str
            Tokens of each caption of each image.
        unknown : {"hash", "drop"}, default "hash"
            Treatment of a word outside the vocabulary. "hash" gives it a negative id
            that depends on the word alone, so that it matches itself and nothing else in
            every call and process (two words share one of the 2^31 ids by accident once in
            a billion pairs). "drop" leaves it out, which moves its neighbours together.
        caption_numbers : nested sequence of int, optional
            Number of each caption within its image; the default counts from 0.

        Returns
        -------
        EncodedCaptions

        Raises
        ------
        TypeError
            If `captions` is not nested as images, captions, tokens.
        ValueError
            If `unknown` is neither.
        """
        check_choice("unknown", unknown, ("hash", "drop"))
        check_nesting("captions", captions)
        ids = dict(self.index)
        if unknown == "hash":
            words = {token for image in captions for caption in image for token in caption}
            ids |= {word: unknown_word_id(word) for word in words.difference(ids)}
        return EncodedCaptions.from_lists(
            [
                [[ids[token] for token in caption if token in ids] for caption in image]
                for image in captions
            ],
            caption_numbers=caption_numbers,
            n_words=len(self),
        )

    def decode(self, word_ids: npt.ArrayLike) -> list[str | None]:
        """Return the word of each id, None for the ids of words outside the vocabulary."""
        ids = as_integer_array("word_ids", word_ids, ndim=1, dtype=np.int64)
        if ids.size and ids.max() >= len(self):
            raise ValueError(f"word_ids must be below {len(self)}, got {ids.max()}")
        return [self.words[i] if i >= 0 else None for i in ids.tolist()]

    def to_dict(self) -> dict[str, Any]:
        """Return the words and their counts as plain values."""
        return {
            "n_documents": self.n_documents,
            "words": list(self.words),
            "counts": self.counts.tolist(),
            "document_frequency": self.document_frequency.tolist(),
        }

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Vocabulary:
        """Make a vocabulary from the result of `to_dict`."""
        return cls(**{name: document[name] for name in _PARTS})

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the vocabulary as a JSON file, whole or not at all."""
        save_json(path, {"kind": _KIND, **self.to_dict()})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Vocabulary:
        """Read a file of `save`; raise ValueError if it is damaged."""
        with reading(path):
            content = load_json(path)
            if content.pop("kind", None) != _KIND:
                raise ValueError(
                    f"{os.fspath(path)} must hold a vocabulary, got another kind of file"
                )
            return cls(**content.exactly(*_PARTS))

    def _per_word(self, name: str, values: npt.ArrayLike) -> npt.NDArray[np.int64]:
        array = owned(as_integer_array(name, values, ndim=1, dtype=np.int64))
        if len(array) != len(self):
            raise ValueError(
                f"{name} must have one entry per word ({len(self)}), got {len(array)}"
            )
        if array.size and array.min() < 0:
            raise ValueError(f"{name} must be non-negative, got {array.min()}")
        return array


def unknown_word_id(word: str) -> int:
    """Negative id of a word outside every vocabulary: 31 bits of its BLAKE2b hash."""
    digest = hashlib.blake2b(word.encode("utf-8"), digest_size=4).digest()
    return -1 - (int.from_bytes(digest, "little") & 0x7FFFFFFF)


def check_nesting(name: str, captions: TokenizedImages) -> None:
    """Raise unless `captions` is nested as images, captions, tokens.

    A string in place of a list would silently be read as a list of its characters.
    """
    for i, image in enumerate(captions):
        if isinstance(image, str):
            raise TypeError(
                f"{name} must be nested as images, captions, tokens: {name}[{i}] is a string"
            )
        for j, caption in enumerate(image):
            if isinstance(caption, str) or not all(isinstance(token, str) for token in caption):
                raise TypeError(
                    f"{name} must be nested as images, captions, tokens: {name}[{i}][{j}] is "
                    "not a list of strings"
                )
