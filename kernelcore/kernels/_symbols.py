"""Captions of two inputs with one numbering of words, for the compiled text kernels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from kernelcore.captions.encoded import EncodedCaptions, offsets_of
from kernelcore.kernels.prepared import samples_of

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
