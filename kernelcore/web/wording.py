"""What pages say about the words of a sentence: how much they counted, which are unknown."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

_WORD = re.compile(r"([^\W_]+(?:['-][^\W_]+)*)")
_STRENGTHS = (0.05, 0.2, 0.4)  # least parts of words that are marked faintly, more and most


class Piece(NamedTuple):
    """A piece of a sentence.

    Attributes
    ----------
    text : str
    strength : int
        How much the word counted, from 0 for nothing to 3.
    percent : int
        Its part of what all words contributed.
    """

    text: str
    strength: int
    percent: int


def marked(sentence: str, shares: Sequence[tuple[str, float]]) -> list[Piece]:
    """Cut a sentence into words and what stands between them.

    Parameters
    ----------
    sentence : str
    shares : sequence of (str, float)
        What each word contributes to a score. Negative ones count as nothing.

    Returns
    -------
    list of Piece

    Examples
    --------
    >>> from kernelcore.web.wording import marked
    >>> [tuple(p) for p in marked("A dog!", [("dog", 0.3), ("A", -0.1)])]
    [('A', 0, 0), (' ', 0, 0), ('dog', 3, 100), ('!', 0, 0)]
    """
    total = sum(max(share, 0.0) for _, share in shares)
    parts: dict[str, float] = {}
    for word, share in shares:
        key = word.casefold()
        parts[key] = max(share / total if total > 0 else 0.0, parts.get(key, 0.0))
    pieces = []
    for text in filter(None, _WORD.split(sentence)):
        part = parts.get(text.casefold(), 0.0)
        strength = sum(part >= least for least in _STRENGTHS)
        pieces.append(Piece(text, strength, round(100 * part)))
    return pieces


class Instead(NamedTuple):
    """A known word and the sentence with it in the place of an unknown one."""

    word: str
    sentence: str


class Advice(NamedTuple):
    """An unknown word and what may stand in its place."""

    word: str
    instead: tuple[Instead, ...]


def advice(sentence: str, unknown: Mapping[str, Sequence[str]]) -> list[Advice]:
    """Offer sentences without unknown words.

    Examples
    --------
    >>> from kernelcore.web.wording import advice
    >>> [found] = advice("A dogg runs", {"dogg": ("dog",)})
    >>> found.word, found.instead[0].sentence
    ('dogg', 'A dog runs')
    """
    return [
        Advice(word, tuple(Instead(near, _replaced(sentence, word, near)) for near in nearest))
        for word, nearest in unknown.items()
    ]


def _replaced(sentence: str, word: str, near: str) -> str:
    pattern = rf"(?<!\w){re.escape(word)}(?!\w)"
    return re.sub(pattern, lambda _: near, sentence, flags=re.IGNORECASE)
