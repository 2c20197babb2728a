"""Base forms and spelling of single English words.

`lemma` is a rule-based lemmatiser with tables of exceptions. It needs no model, but reads one
word at a time: it cannot distinguish the noun *stand* from the verb, as spaCy can.
`SpellingCorrector` corrects words by a list of correct ones, one edit away.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping

from kernelcore._store import lines_of, read_text

# A base form, then its irregular forms.
_IRREGULAR = """
    man men, child children, person people persons, foot feet, tooth teeth, goose geese, mouse
    mice, cactus cacti, ox oxen, bus buses, gas gases, lens lenses, axe axes, ache aches,
    mustache mustaches, moustache moustaches, cookie cookies, movie movies, leaf leaves, knife
    knives, life lives, wife wives, wolf wolves, shelf shelves, half halves, calf calves, scarf
    scarves, loaf loaves, thief thieves, hoof hooves, elf elves, arise arose arisen, awake
    awoke, beat beaten, become became, begin began begun, bend bent, bind bound, bite bit
    bitten, bleed bled, blow blew blown, break broke broken, bring brought, build built, burn
    burnt, buy bought, catch caught, choose chose chosen, cling clung, come came, creep crept,
    deal dealt, dig dug, draw drew drawn, drink drank drunk, drive drove driven, eat ate eaten,
    fall fell fallen, feed fed, feel felt, fight fought, find found, flee fled, fling flung, fly
    flew flown, forget forgot forgotten, freeze froze frozen, get got gotten, give gave given,
    go went gone goes, grow grew grown, hang hung, hear heard, hide hid hidden, hold held, keep
    kept, kneel knelt, know knew known, lead led, lean leant, leap leapt, learn learnt, lie lied
    lain lying, light lit, lose lost losing, make made, mean meant, meet met, pay paid, ride
    rode ridden, ring rang rung, rise risen, run ran, say said, see saw seen, sell sold, send
    sent, shake shook shaken, shine shone, shoot shot, show shown, sing sang sung, sink sank
    sunk, sit sat, sleep slept, slide slid, speak spoke spoken, spend spent, spin spun, steal
    stole stolen, stick stuck, strike struck, sweep swept, swim swam swum, swing swung, take
    took taken, teach taught, tear tore torn, tell told, think thought, throw threw thrown,
    tread trod trodden, wake woke woken, weave wove woven, weep wept, wear wore worn, win won,
    wind wound, write wrote written, agree agreed, free freed, add adding added, sneak snuck,
    die died dying, tie tied tying, shoe shoes, canoe canoes, change changed changing, ski skis,
    bikini bikinis, taxi taxis, tutu tutus, menu menus
"""
# Words that only look like inflected forms.
_UNINFLECTED = """
    building clothing ceiling evening morning wedding lightning railing sibling inning herring
    earring naked sacred hundred wicked rugged lens glasses sunglasses goggles pants shorts
    jeans clothes stairs upstairs downstairs series species christmas canvas atlas abdomen
    specimen omen
"""
_LEMMAS: dict[str, str] = {
    form: base for base, *forms in map(str.split, _IRREGULAR.split(",")) for form in forms
} | {word: word for word in _UNINFLECTED.split()}

_VOWEL = re.compile(r"[aeiouy]")
_DOUBLED = re.compile(r"([bdfgklmnprtvz])\1$")
_KEEPS_DOUBLED = ("ll", "ff", "zz")
# Stems that lost an e: hav(e), danc(e), rescu(e), chang(e), paddl(e), decorat(e), realiz(e).
_LOST_E = re.compile(r"(?:[cuvz]|[^n]g|[aeiou]s|[bcdfgkpstz]l|[^aeiou]at|[iu]at)$")
# hik(e), us(e): a short syllable without e would have doubled its last letter.
_SHORT = re.compile(r"[^aeiouy]*[aeiouy][^aeiouwxy]$")

MIN_TRUSTED_COUNT = 5
"""A word this frequent in the training captions is no misspelling."""
MIN_LENGTH = 4
"""Shorter words have too many neighbours to be corrected."""


def lemma(word: str, counts: Mapping[str, int] | None = None) -> str:
    """Return the base form of an English word in lower case.

    Parameters
    ----------
    word : str
    counts : mapping of str to int, optional
        How often words occur in a corpus. Where an ending can come from several base forms
        (*riding*: rid, ride) the most frequent one wins; without a corpus, or if it has
        none of them, a rule of spelling decides.

    Returns
    -------
    str
    """
    if word in _LEMMAS:
        return _LEMMAS[word]
    candidates = list(_candidates(word))
    if not candidates:
        return word
    if counts:
        return max(candidates, key=lambda candidate: counts.get(candidate, 0))
    return candidates[0]


def _candidates(word: str) -> Iterator[str]:
    """Possible base forms of an inflected word, the likeliest by spelling alone first."""
    if len(word) < 4 or not word.isalpha():
        return
    if word.endswith(("men", "children")):
        yield word[:-2] + "an" if word.endswith("men") else word[:-3]
    elif word.endswith("ing"):
        yield from _verb_stems(word[:-3])
    elif word.endswith("ied") or (word.endswith("ies") and len(word) > 4):
        yield word[:-3] + "y"
        yield word[:-1]
    elif word.endswith("ed") and not word.endswith("eed"):
        yield from _verb_stems(word[:-2])
    elif word.endswith(("sses", "shes", "ches", "xes", "zzes", "oes")):
        yield word[:-2]
        yield word[:-1]
    elif word.endswith("s") and not word.endswith(("ss", "us", "is")):
        yield word[:-1]


def _verb_stems(stem: str) -> Iterator[str]:
    """Possible verbs that -ing or -ed was added to, the likeliest first."""
    if not _VOWEL.search(stem):  # ring, sled
        return
    if _DOUBLED.search(stem):
        shortened = [stem[:-1], stem]
        yield from reversed(shortened) if stem.endswith(_KEEPS_DOUBLED) else shortened
    elif _SHORT.fullmatch(stem):
        yield stem + "e"
    elif _LOST_E.search(stem):
        yield from (stem + "e", stem)
    else:
        yield from (stem, stem + "e")


class SpellingCorrector:
    """Replaces misspelt words by the likeliest word one edit away.

    A word is left alone if the list or, `MIN_TRUSTED_COUNT` times, the training
    captions have it. Otherwise it becomes the word of the list at distance one (a letter
    added, dropped, replaced, or two neighbours swapped) that is most frequent in the
    training captions; a word without such a candidate stays.

    Parameters
    ----------
    words : frozenset of str
        Correct words in lower case.
    counts : mapping of str to int
        How often each word occurs in the training captions.
    """

    def __init__(self, words: frozenset[str], counts: Mapping[str, int]) -> None:
        self._words = words
        self._counts = counts
        self._corrected: dict[str, str] = {}
        self._longest = max(map(len, words), default=0)
        self._alphabet = "".join(sorted(set().union(*words)))

    def __call__(self, word: str) -> str:
        if word not in self._corrected:
            self._corrected[word] = self._correct(word)
        return self._corrected[word]

    def _correct(self, word: str) -> str:
        if (
            not MIN_LENGTH <= len(word) <= self._longest + 1
            or not word.isalpha()
            or word in self._words
            or self._counts.get(word, 0) >= MIN_TRUSTED_COUNT
        ):
            return word
        candidates = {
            candidate
            for candidate in _one_edit_away(word, self._alphabet)
            if candidate in self._words and candidate in self._counts
        }
        return min(candidates, key=lambda other: (-self._counts[other], other), default=word)


def _one_edit_away(word: str, alphabet: str) -> Iterator[str]:
    for i in range(len(word) + 1):
        head, tail = word[:i], word[i:]
        for letter in alphabet:
            yield head + letter + tail
            yield head + letter + tail[1:]
        yield head + tail[1:]
        yield head + tail[1:2] + tail[:1] + tail[2:]


def read_word_list(path: str | os.PathLike[str]) -> frozenset[str]:
    """Read a UTF-8 file with one word a line, in lower case.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If the file is not UTF-8, or a line is not one word.
    """
    words = set()
    for number, line in enumerate(lines_of(read_text(path)), 1):
        word = line.strip()
        if "/" in word or len(word.split()) > 1:
            raise ValueError(
                f"{os.fspath(path)}, line {number}: must be one word, got {word[:80]!r}; "
                "unmunch lists the words of a hunspell dictionary"
            )
        words.add(word.lower())
    return frozenset(words - {""})
