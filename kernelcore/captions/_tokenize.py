"""Tokeniser: lower-case words of a caption."""

from __future__ import annotations

import re
import unicodedata

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
