"""A rule-based English lemmatiser with tables of exceptions.

It looks at one word at a time and so cannot tell the noun *stand* from the verb. spaCy can;
this one needs no model and nothing installed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

# base form, then the forms that no rule leads back to it
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
# end like an inflected form without being one
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
# what is left of hav(e), danc(e), rescu(e), chang(e), paddl(e), decorat(e), realiz(e)
_LOST_E = re.compile(r"(?:[cuvz]|[^n]g|[aeiou]s|[bcdfgkpstz]l|[^aeiou]at|[iu]at)$")
# what is left of hik(e) or us(e): a short syllable without e would have doubled its end
_SHORT = re.compile(r"[^aeiouy]*[aeiouy][^aeiouwxy]$")


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
