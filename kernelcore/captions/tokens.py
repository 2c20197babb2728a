"""Words of English captions: tokens, stop words, compounds, base forms and spelling.

`lemma` is a rule-based lemmatiser with tables of exceptions. It needs no model, but reads one
word at a time: it cannot distinguish the noun *stand* from the verb, as spaCy can.
`SpellingCorrector` corrects words by a list of correct ones, one edit away.
"""

from __future__ import annotations

import os
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from itertools import chain, pairwise
from types import MappingProxyType

from kernelcore._store import lines_of, read_text

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

_LISTS = (_DETERMINERS, _PRONOUNS, _AUXILIARIES, _PREPOSITIONS, _CONJUNCTIONS, _ADVERBS)
STOP_WORDS: frozenset[str] = frozenset(" ".join(_LISTS).split())
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
    candidates = list(_candidates(word)) or [word]
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
        """Return the word, or the likeliest correct one."""
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
