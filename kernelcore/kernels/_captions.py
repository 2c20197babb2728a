"""Word counts of the captions of each image."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from kernelcore.captions.encoded import EncodedCaptions, offsets_of
from kernelcore.kernels.prepared import samples_of

if TYPE_CHECKING:
    from scipy.sparse import csr_array


class WordCounts(NamedTuple):
    """Counts of the words of each image.

    Attributes
    ----------
    counts : csr_array of float64, shape (n_images, n_words + len(unknown_ids))
        Words of the vocabulary by their ids, and behind them those outside it.
    n_words : int
        Size of the vocabulary.
    unknown_ids : ndarray of int32
        Negative ids of the words outside the vocabulary, ascending.
    """

    counts: csr_array
    n_words: int
    unknown_ids: npt.NDArray[np.int32]

    def over(self, unknown_ids: npt.NDArray[np.int32]) -> csr_array:
        """Return the counts over the columns of more unknown words, ascending too."""
        from scipy.sparse import csr_array

        shape = (self.counts.shape[0], self.n_words + len(unknown_ids))
        if shape == self.counts.shape:
            return self.counts
        new = self.n_words + np.searchsorted(unknown_ids, self.unknown_ids)
        columns = self.counts.indices
        is_unknown = columns >= self.n_words
        columns = columns.copy()
        columns[is_unknown] = new[columns[is_unknown] - self.n_words]
        parts = (self.counts.data, columns, self.counts.indptr)
        made: csr_array = csr_array(parts, shape=shape)
        return made


def count_words(captions: EncodedCaptions) -> WordCounts:
    """Count the words of all captions of each image together."""
    from scipy.sparse import csr_array

    ids = captions.word_ids
    is_unknown = ids < 0
    unknown_ids, places = np.unique(ids[is_unknown], return_inverse=True)
    columns = (
        ids.astype(np.int64) if captions.n_words + len(unknown_ids) >= 2**31 else ids.copy()
    )
    columns[is_unknown] = captions.n_words + places
    starts = captions.caption_offsets[captions.image_offsets]
    shape = (len(captions), captions.n_words + len(unknown_ids))
    counts = csr_array((np.ones(len(ids)), columns, starts), shape=shape)
    counts.sum_duplicates()
    return WordCounts(counts, captions.n_words, unknown_ids)


Texts: TypeAlias = EncodedCaptions | Sequence[str] | Sequence[Sequence[str]]
"""Captions of images, or texts whose words stand between white space: one or several each."""

Ragged: TypeAlias = tuple[npt.NDArray[np.int32], npt.NDArray[np.int64], npt.NDArray[np.int64]]
"""Symbols, the captions' offsets in them, the images' offsets in the captions."""


def encode_strings(X: Any, Y: Any) -> tuple[Any, Any]:
    """Both inputs as captions; strings are split, their words outside any vocabulary."""
    X, Y = samples_of(X), samples_of(Y)
    if isinstance(X, EncodedCaptions):
        return X, Y
    ids: dict[str, int] = {}

    def encode(name: str, texts: Any) -> EncodedCaptions:
        is_list = isinstance(texts, Sequence) and not isinstance(texts, (str, bytes))
        items: list[Any] = [None]
        if is_list:
            items = [[own] if isinstance(own, str) else own for own in texts]
        if not all(
            isinstance(own, (list, tuple)) and all(isinstance(text, str) for text in own)
            for own in items
        ):
            raise TypeError(
                f"{name} must be EncodedCaptions or a list of strings"
                f"{'' if name == 'X' else ', as X is'}, got {type(texts).__name__}"
            )
        split = [text.split() for own in items for text in own]
        words = [ids.setdefault(word, -1 - len(ids)) for text in split for word in text]
        return EncodedCaptions(
            word_ids=np.array(words, np.int32),
            caption_offsets=offsets_of([len(text) for text in split]),
            image_offsets=offsets_of([len(own) for own in items]),
            caption_numbers=np.array([n for own in items for n in range(len(own))], np.int64),
            n_words=0,
        )

    return encode("X", X), None if Y is None else encode("Y", Y)


def check_captions(
    X: EncodedCaptions, Y: EncodedCaptions | None, *, name: str = "X"
) -> tuple[EncodedCaptions, EncodedCaptions]:
    """Return both inputs, `X` twice if there is one, if they share a vocabulary."""
    X = samples_of(X)
    other = X if Y is None else samples_of(Y)
    for argument, captions in ((name, X), ("Y", other)):
        if not isinstance(captions, EncodedCaptions):
            raise TypeError(
                f"{argument} must be EncodedCaptions, got {type(captions).__name__}"
            )
    if X.n_words != other.n_words:
        raise ValueError(
            "X and Y must be encoded with the same vocabulary, "
            f"got n_words {X.n_words} and {other.n_words}"
        )
    return X, other


def as_symbols(X: EncodedCaptions, Y: EncodedCaptions) -> tuple[Ragged, Ragged, int]:
    """Return both inputs, the same tuple twice if they are one, and the number of symbols.

    A word of the vocabulary is the symbol of its id; those outside it come behind them, in
    both inputs alike.
    """
    ids = [X.word_ids] if Y is X else [X.word_ids, Y.word_ids]
    unknown = np.unique(np.concatenate([part[part < 0] for part in ids]))

    def symbols(captions: EncodedCaptions) -> Ragged:
        words = captions.word_ids
        if unknown.size:
            places = captions.n_words + np.searchsorted(unknown, words)
            words = np.where(words < 0, places, words).astype(np.int32)
        return words, captions.caption_offsets, captions.image_offsets

    symbols_X = symbols(X)
    return symbols_X, symbols_X if Y is X else symbols(Y), X.n_words + len(unknown)
