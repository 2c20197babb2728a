"""Tokenisers of caption metrics, and Porter's stemmer."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

from kernelcore.captions.tokens import STOP_WORDS

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
    """Suffixes and their replacements, the longest first."""
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


# What the evaluation code of COCO leaves out, and what its tokeniser makes of brackets
_PUNCTUATION = frozenset(("'", '"', "`", ".", "?", "!", ",", ":", "-", ";"))
_BRACKETS = {
    "(": "-lrb-",
    ")": "-rrb-",
    "[": "-lsb-",
    "]": "-rsb-",
    "{": "-lcb-",
    "}": "-rcb-",
}
_QUOTES = str.maketrans("\u2018\u2019\u02bc\u201c\u201d", "'''\"\"")
_L = r"[^\W_]"  # a letter or digit of any script
_TREEBANK_TOKEN = re.compile(
    rf"""
    \d+(?:[.,:/-]\d+)*(?:{_L}|-{_L})*               # 3.5, 10:30, 1/2, 4x4, 2-story
    | (?:{_L}\.)+{_L}\.?                            # u.s., p.m.
    | can(?=not\b) | gon(?=na\b) | wan(?=na\b) | got(?=ta\b)
    | {_L}+?(?=n't\b) | n't\b                       # do n't
    | '(?:s|m|d|re|ve|ll)\b
    | {_L}+(?:[-_/.]{_L}+|'(?!(?:s|m|d|re|ve|ll|t)\b){_L}+)*
    | --+ | \.\.\.+ | [^\w\s]
    """,
    re.VERBOSE,
)
_BREAK = re.compile(r"[-/]")
_NOT_ALPHANUMERIC = re.compile(r"[\W_]")


def coco_tokenize(caption: str) -> list[str]:
    """Cut a caption into tokens much as the COCO caption evaluation does, without Java.

    Lower-case tokens of the Penn Treebank: words with their hyphens and slashes inside,
    ``do n't``, ``dog 's``, ``can not``, brackets as ``-lrb-`` and ``-rrb-``. Quotation marks,
    dashes, dots, commas, colons, semicolons, question and exclamation marks are left out.

    Parameters
    ----------
    caption : str

    Returns
    -------
    list of str

    Raises
    ------
    TypeError
        If `caption` is not a text.

    Notes
    -----
    The COCO code runs Stanford's PTBTokenizer 3.4.1. This one differs where that knows
    abbreviations (``st.`` and ``mr.`` keep their full stop there), single letters with a
    full stop, elisions such as ``'n'``, times written as ``5:54pm`` (two tokens there),
    e-mail addresses and emoticons. Of the raw captions of Flickr8k (40,460) and of COCO
    val2017 (25,014) 10 and 20 come out differently.

    Examples
    --------
    >>> from kernelcore.evaluation.caption_metrics import coco_tokenize
    >>> coco_tokenize("A man's T-shirt doesn't fit (again).")
    ['a', 'man', "'s", 't-shirt', 'does', "n't", 'fit', '-lrb-', 'again', '-rrb-']
    """
    return [
        _BRACKETS.get(token, token)
        for token in _treebank_tokens(caption)
        if token not in _PUNCTUATION and not token.startswith(("--", "..."))
    ]


def bleu_tokens(caption: str) -> list[str]:
    """Cut a caption into tokens as Hodosh et al. (2013) do for BLEU.

    Tokens of the Penn Treebank in lower case, broken up at hyphens (and slashes), of which
    letters and digits are kept.

    Parameters
    ----------
    caption : str

    Returns
    -------
    list of str

    Raises
    ------
    TypeError
        If `caption` is not a text.

    Notes
    -----
    The paper uses the OpenNLP tokeniser, which is not at hand: this is our own choice.

    References
    ----------
    .. [1] M. Hodosh, P. Young and J. Hockenmaier, "Framing image description as a ranking
       task: data, models and evaluation metrics", JAIR 47, 2013, section 4.4.

    Examples
    --------
    >>> from kernelcore.evaluation.caption_metrics import bleu_tokens
    >>> bleu_tokens("A well-known man's dog doesn't bark .")
    ['a', 'well', 'known', 'man', 's', 'dog', 'does', 'nt', 'bark']
    """
    parts = (part for token in _treebank_tokens(caption) for part in _BREAK.split(token))
    return [word for part in parts if (word := _NOT_ALPHANUMERIC.sub("", part))]


def rouge_tokens(caption: str) -> list[str]:
    """Cut a caption into stems of content words as Hodosh et al. (2013) do for ROUGE.

    The words of `bleu_tokens` but `kernelcore.captions.STOP_WORDS`, stemmed by Porter's
    algorithm.

    Parameters
    ----------
    caption : str

    Returns
    -------
    list of str

    Raises
    ------
    TypeError
        If `caption` is not a text.

    Notes
    -----
    The paper follows Lin's ROUGE script, whose list of stop words is longer than ours; it
    also holds numbers.

    References
    ----------
    .. [1] M. F. Porter, "An algorithm for suffix stripping", Program 14(3), 1980.
    .. [2] C.-Y. Lin, "ROUGE: a package for automatic evaluation of summaries", Text
       Summarization Branches Out, 2004.

    Examples
    --------
    >>> from kernelcore.evaluation.caption_metrics import rouge_tokens
    >>> rouge_tokens("Two dogs are running through the snow-covered fields.")
    ['two', 'dog', 'run', 'snow', 'cover', 'field']
    """
    return [porter_stem(word) for word in bleu_tokens(caption) if word not in STOP_WORDS]


def _treebank_tokens(caption: str) -> list[str]:
    if not isinstance(caption, str):
        raise TypeError(f"caption must be a text, got {caption!r}")
    text = unicodedata.normalize("NFC", caption.translate(_QUOTES)).lower()
    return _TREEBANK_TOKEN.findall(text)
