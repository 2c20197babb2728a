"""The suffix stripper of Porter (1980)."""

from __future__ import annotations

from functools import lru_cache

_CONSONANT, _VOWEL = "c", "v"
_STEP_1B = ("at", "bl", "iz")
_STEP_2 = """
    ational:ate tional:tion enci:ence anci:ance izer:ize abli:able alli:al entli:ent eli:e
    ousli:ous ization:ize ation:ate ator:ate alism:al iveness:ive fulness:ful ousness:ous
    aliti:al iviti:ive biliti:ble
"""
_STEP_3 = "icate:ic ative: alize:al iciti:ic ical:ic ful: ness:"
_STEP_4 = """
    al: ance: ence: er: ic: able: ible: ant: ement: ment: ent: sion:s tion:t ou: ism: ate:
    iti: ous: ive: ize:
"""


def _rules(table: str) -> list[tuple[str, str]]:
    """Suffixes and what replaces them, the longest first."""
    pairs = ((rule.partition(":")[0], rule.partition(":")[2]) for rule in table.split())
    return sorted(pairs, key=lambda pair: -len(pair[0]))


_REPLACEMENTS = ((_rules(_STEP_2), 0), (_rules(_STEP_3), 0), (_rules(_STEP_4), 1))


@lru_cache(maxsize=1 << 16)
def porter_stem(word: str) -> str:
    """Strip the suffixes of an English word in lower case.

    Words of one or two letters stay as they are, as in the author's own program.

    References
    ----------
    .. [1] M. F. Porter, "An algorithm for suffix stripping", Program 14(3), 1980.
    """
    if len(word) <= 2:
        return word
    word = _plurals(word)
    word = _past_and_progressive(word)
    if word.endswith("y") and _has_vowel(word[:-1]):
        word = word[:-1] + "i"
    for rules, measure in _REPLACEMENTS:
        word = _replace(word, rules, measure)
    return _final_letters(word)


def _plurals(word: str) -> str:
    if word.endswith(("sses", "ies")):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith("ss") else word


def _past_and_progressive(word: str) -> str:
    if word.endswith("eed"):
        return word[:-1] if _measure(word[:-3]) > 0 else word
    suffix = next((s for s in ("ed", "ing") if word.endswith(s)), None)
    if suffix is None or not _has_vowel(word.removesuffix(suffix)):
        return word
    stem = word.removesuffix(suffix)
    if stem.endswith(_STEP_1B):
        return stem + "e"
    if _doubled(stem) and stem[-1] not in "lsz":
        return stem[:-1]
    return stem + "e" if _measure(stem) == 1 and _ends_short(stem) else stem


def _replace(word: str, rules: list[tuple[str, str]], measure: int) -> str:
    """Apply the rule of the longest suffix if enough of the word is left before it."""
    for suffix, replacement in rules:
        if word.endswith(suffix):
            stem = word.removesuffix(suffix)
            enough = _measure(stem + replacement if measure else stem) > measure
            return stem + replacement if enough else word
    return word


def _final_letters(word: str) -> str:
    if word.endswith("e"):
        measure = _measure(word[:-1])
        if measure > 1 or (measure == 1 and not _ends_short(word[:-1])):
            word = word[:-1]
    return word[:-1] if word.endswith("ll") and _measure(word[:-1]) > 1 else word


def _shape(stem: str) -> str:
    """Write c or v for each letter; y is a vowel after a consonant."""
    shape = ""
    for letter in stem:
        vowel = letter in "aeiou" or (letter == "y" and shape.endswith(_CONSONANT))
        shape += _VOWEL if vowel else _CONSONANT
    return shape


def _measure(stem: str) -> int:
    """Count how often vowels are followed by consonants."""
    return _shape(stem).count(_VOWEL + _CONSONANT)


def _has_vowel(stem: str) -> bool:
    return _VOWEL in _shape(stem)


def _doubled(stem: str) -> bool:
    return len(stem) > 1 and stem[-1] == stem[-2] and _shape(stem)[-1] == _CONSONANT


def _ends_short(stem: str) -> bool:
    """Tell whether the end is consonant, vowel, consonant other than w, x and y."""
    return _shape(stem).endswith("cvc") and stem[-1] not in "wxy"
