"""Tokenisers, stop words, spellings of compounds, and Porter's stemmer."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from functools import lru_cache
from itertools import chain, pairwise
from types import MappingProxyType

from kernelcore._validation import as_list

# Combining marks, and the blocks whose vowel signs Python's \w leaves out of a word
_MARKS = (
    "\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670"
    "\u0900-\u0963\u0966-\u0dff\u0e31-\u0e4e\u0eb1-\u0ece"
)
_LETTERS = rf"(?:[^\W_]|[{_MARKS}])+"
# Letters and digits of any script with apostrophes between them, or a number with its
# separators. Hyphens divide: which compounds are written as one word is decided later, for
# all their spellings alike.
_TOKEN = re.compile(rf"\d+(?:[.,:]\d+)+|{_LETTERS}(?:'{_LETTERS})*")
_CLITIC = re.compile(r"(?:n't|'(?:s|re|ve|ll|d|m))$")
# Only the first blank of a run may begin a match: else a run takes quadratic time.
_SPACED_CLITIC = re.compile(r"(?<!\s)\s+(?=n't\b|'(?:s|re|ve|ll|d|m)\b)")
_APOSTROPHES = str.maketrans(dict.fromkeys("\u2018\u2019\u02bc\u0060\u00b4", "'"))


def tokenize(caption: str) -> list[str]:
    """Cut a caption into lower-case words without punctuation.

    Compatible forms of a character become one (NFKC). The endings 's, n't, 're, 've, 'll, 'd
    and 'm are cut off and dropped; other apostrophes inside a word are left out. Captions
    that come tokenised already, with spaces around 's and punctuation, give the same words.
    """
    text = unicodedata.normalize("NFKC", caption.translate(_APOSTROPHES)).lower()
    text = _SPACED_CLITIC.sub("", text)
    words = (_CLITIC.sub("", match) for match in _TOKEN.findall(text))
    return [word.replace("'", "") for word in words if word]


# Stop words, by part of speech. Numbers stay out of the list: *two dogs* is another picture
# than *a dog*. The tokeniser leaves *ca*, *wo* and *sha* of can't, won't and shan't.
_DETERMINERS = "a an the this that these those some any each every another other such same own"
_PRONOUNS = """
    i me my mine myself we us our ours ourselves you your yours yourself yourselves he him his
    himself she her hers herself it its itself they them their theirs themselves oneself
    who whom whose which what there here someone somebody something anyone anybody anything
    everyone everybody everything nobody nothing
"""
_AUXILIARIES = """
    be am is are was were been being have has had having do does did doing done will would
    shall should can could may might must ought
    ca wo sha
"""
_PREPOSITIONS = """
    of in on at to from with without by for about against between among amongst into onto
    upon within through throughout during before after above below over under off out up down
    toward towards along across around near beside besides behind beyond inside outside via
    per as than like amid amidst
"""
_CONJUNCTIONS = """
    and or nor but so if because while whilst although though whereas unless until till since
    whether either neither both then when where why how
"""
_ADVERBS = """
    not no very too also just only again further once more most much many few less least all
    both almost quite rather really still yet already ever never always often maybe perhaps
    however therefore thus well even now
"""

STOP_WORDS: frozenset[str] = frozenset(
    " ".join(
        (_DETERMINERS, _PRONOUNS, _AUXILIARIES, _PREPOSITIONS, _CONJUNCTIONS, _ADVERBS)
    ).split()
)
"""The English function words that `CaptionNormalizer` leaves out by default."""


COMPOUNDS: Mapping[str, str] = MappingProxyType(
    {
        "t shirt": "tshirt",
        "t shirts": "tshirts",
        "tee shirt": "tshirt",
        "tee shirts": "tshirts",
        "teeshirt": "tshirt",
        "teeshirts": "tshirts",
        "merry go round": "merrygoround",
        "merry go rounds": "merrygorounds",
        "tug of war": "tugofwar",
        "tug o war": "tugofwar",
        "hula hoop": "hulahoop",
        "hula hoops": "hulahoops",
        "four wheeler": "fourwheeler",
        "four wheelers": "fourwheelers",
        "4 wheeler": "fourwheeler",
        "4 wheelers": "fourwheelers",
        "ice cream": "icecream",
        "hot dog": "hotdog",
        "hot dogs": "hotdogs",
        "flip flop": "flipflop",
        "flip flops": "flipflops",
        "see saw": "seesaw",
        "teeter totter": "teetertotter",
    }
)
"""Compounds whose parts mean something else, or whose spellings no corpus need show."""


class CompoundSpelling:
    """Rewrites the spellings of compounds, longest match first.

    Parameters
    ----------
    table : mapping of str to str
        Spelling -> preferred spelling; words are divided by spaces on both sides.

    Raises
    ------
    TypeError
        If a spelling is not a string.
    ValueError
        If a spelling is empty.
    """

    def __init__(self, table: Mapping[str, str]) -> None:
        for spelling in chain.from_iterable(table.items()):
            if not isinstance(spelling, str):
                raise TypeError(f"compounds must map strings to strings, got {spelling!r}")
            if not spelling.strip():
                raise ValueError("compounds must not hold empty spellings")
        self.table = dict(table)
        self._rules = {tuple(key.split()): value.split() for key, value in table.items()}
        self._longest = max(map(len, self._rules), default=0)

    def learned_from(
        self, captions: Iterable[Sequence[str]], stop_words: Set[str]
    ) -> CompoundSpelling:
        """Add the compounds that these captions spell both as one word and as two.

        The more frequent spelling wins, two words where they are even, whose parts still
        match other captions. Pairs with a stop word are left alone (*a part* is not
        *apart*), and so is what the table decides.
        """
        words: Counter[str] = Counter()
        pairs: Counter[tuple[str, str]] = Counter()
        for caption in captions:
            words.update(caption)
            pairs.update(pairwise(caption))
        learned = dict(self.table)
        decided = {word for rule in self._rules.items() for side in rule for word in side}
        for pair, count in sorted(pairs.items()):
            joined = "".join(pair)
            if joined not in words or joined in decided or not stop_words.isdisjoint(pair):
                continue
            if words[joined] > count:
                learned[" ".join(pair)] = joined
            else:
                learned[joined] = " ".join(pair)
        return CompoundSpelling(learned)

    def __call__(self, tokens: Sequence[str]) -> list[str]:
        """Return the tokens with known compounds in one spelling."""
        result: list[str] = []
        start = 0
        while start < len(tokens):
            for length in range(min(self._longest, len(tokens) - start), 0, -1):
                replacement = self._rules.get(tuple(tokens[start : start + length]))
                if replacement is not None:
                    result += replacement
                    start += length
                    break
            else:
                result.append(tokens[start])
                start += 1
        return result


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


def rouge_tokens(caption: str, *, stop_words: Collection[str] = STOP_WORDS) -> list[str]:
    """Cut a caption into stems of content words as Hodosh et al. (2013) do for ROUGE.

    The words of `bleu_tokens` without stop words, stemmed by Porter's algorithm.

    Parameters
    ----------
    caption : str
    stop_words : collection of str
        Words to leave out, in lower case, before stemming; the default is
        `kernelcore.captions.STOP_WORDS`.

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
    if not isinstance(stop_words, frozenset):
        stop_words = as_list("stop_words", stop_words)
        if not all(isinstance(word, str) for word in stop_words):
            raise TypeError("stop_words must hold strings")
    return [porter_stem(word) for word in bleu_tokens(caption) if word not in stop_words]


def _treebank_tokens(caption: str) -> list[str]:
    if not isinstance(caption, str):
        raise TypeError(f"caption must be a text, got {caption!r}")
    text = unicodedata.normalize("NFC", caption.translate(_QUOTES)).lower()
    return _TREEBANK_TOKEN.findall(text)
