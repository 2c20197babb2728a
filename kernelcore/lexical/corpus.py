"""Text from outside the captions, to learn the company that words keep."""

from __future__ import annotations

import os

from kernelcore._reading import read_text
from kernelcore.captions.normalize import TaggedWord


def read_tagged_corpus(path: str | os.PathLike[str]) -> list[list[TaggedWord]]:
    """Read a tagged corpus: one sentence a line, words as ``word/tag`` between spaces.

    This is the form of the Brown corpus. The words come as they stand in the file; join
    those of a sentence with spaces and a `kernelcore.captions.CaptionNormalizer` treats it
    like a caption.

    Parameters
    ----------
    path : path-like
        A UTF-8 text file. Empty lines are passed over.

    Returns
    -------
    list of list of (str, str)
        Word and tag of each token of each sentence.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If the file is not UTF-8, or a token has no tag.

    Examples
    --------
    >>> from kernelcore.lexical import read_tagged_corpus
    >>> with open("corpus.txt", "w") as file:
    ...     _ = file.write("The/at dog/nn ran/vbd ./.")
    >>> read_tagged_corpus("corpus.txt")
    [[('The', 'at'), ('dog', 'nn'), ('ran', 'vbd'), ('.', '.')]]
    """
    sentences = []
    for number, line in enumerate(read_text(path).splitlines(), 1):
        sentence = []
        for token in line.split():
            word, _, tag = token.rpartition("/")
            if not word or not tag:
                raise ValueError(
                    f"{os.fspath(path)}, line {number}: tokens must be word/tag, got {token!r}"
                )
            sentence.append((word, tag))
        if sentence:
            sentences.append(sentence)
    return sentences
