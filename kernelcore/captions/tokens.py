"""Tokeniser, stop words, and spellings of compounds."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from itertools import chain, pairwise
from types import MappingProxyType

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
