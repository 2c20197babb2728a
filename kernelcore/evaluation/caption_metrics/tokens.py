"""From a caption to the tokens that metrics compare."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection

from kernelcore._validation import as_list
from kernelcore.captions._stop_words import STOP_WORDS
from kernelcore.evaluation.caption_metrics._porter import porter_stem

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
_TOKEN = re.compile(
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
    >>> from kernelcore.evaluation import coco_tokenize
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
    >>> from kernelcore.evaluation import bleu_tokens
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
    >>> from kernelcore.evaluation import rouge_tokens
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
    return _TOKEN.findall(text)
