"""Compound words in one spelling: t-shirt, tee shirt and tshirt are one word."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from itertools import chain, pairwise
from types import MappingProxyType

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
