"""Sentences as a table of word ids, the form that encoders read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import torch
from torch import Tensor

from kernelcore._validation import Array, check_integer
from kernelcore.captions import EncodedCaptions, Vocabulary
from kernelcore.captions.tokens import tokenize

Tokenize: TypeAlias = Callable[[str], list[str]]
"""Cuts a sentence into words."""

UNKNOWN = 0
"""Id of every word outside the vocabulary; the words of the vocabulary count from 1."""


class Sentences(NamedTuple):
    """Sentences of at most a number of words, one a row.

    Attributes
    ----------
    word_ids : Tensor of int64, shape (n_sentences, n_tokens)
        0 is a word outside the vocabulary, and what stands after the end of a sentence.
    lengths : Tensor of int64, shape (n_sentences,)
        Words of each sentence, at least 1: a sentence without words is one unknown word.
        On the CPU, wherever the ids are.
    """

    word_ids: Tensor
    lengths: Tensor

    @classmethod
    def from_captions(cls, captions: EncodedCaptions, *, max_tokens: int) -> Sentences:
        """Lay captions out as rows, each cut after `max_tokens` words.

        Parameters
        ----------
        captions : EncodedCaptions
            Captions of all images, one after another.
        max_tokens : int

        Returns
        -------
        Sentences

        Examples
        --------
        >>> from kernelcore.captions import EncodedCaptions
        >>> from kernelcore.deep import Sentences
        >>> captions = EncodedCaptions.from_lists([[[0, 1, -5]], [[2]]])
        >>> Sentences.from_captions(captions, max_tokens=2).word_ids
        tensor([[1, 2],
                [3, 0]])
        """
        width = check_integer("max_tokens", max_tokens, minimum=1)
        starts, ends = captions.caption_offsets[:-1], captions.caption_offsets[1:]
        lengths = np.minimum(ends - starts, width)
        places = np.arange(int(lengths.max(initial=1)))
        inside = places < lengths[:, np.newaxis]
        table = np.full(inside.shape, UNKNOWN, np.int64)
        rows = (starts[:, np.newaxis] + places)[inside]
        table[inside] = np.maximum(captions.word_ids[rows], -1) + 1
        return cls(torch.from_numpy(table), torch.from_numpy(np.maximum(lengths, 1)))

    def take(self, rows: Tensor) -> Sentences:
        """Return the sentences at these positions, no wider than the longest of them."""
        lengths = self.lengths[rows]
        width = int(lengths.max()) if len(lengths) else 1
        return Sentences(self.word_ids[rows.to(self.word_ids.device), :width], lengths)

    def to(self, device: torch.device | str) -> Sentences:
        """Return the sentences with their ids on a device."""
        return Sentences(self.word_ids.to(device), self.lengths)


def vocabulary_of(
    sentences: Sequence[str], *, min_count: int, tokenize: Tokenize = tokenize
) -> Vocabulary:
    """Collect the words of raw sentences, stop words and all: an encoder reads the order."""
    return Vocabulary.from_captions([list(map(tokenize, sentences))], min_count=min_count)


def as_sentences(
    sentences: Sequence[str],
    vocabulary: Vocabulary,
    *,
    max_tokens: int,
    tokenize: Tokenize = tokenize,
) -> Sentences:
    """Lay raw sentences out as rows of word ids."""
    captions = vocabulary.encode([list(map(tokenize, sentences))])
    return Sentences.from_captions(captions, max_tokens=max_tokens)


def vocabulary_parts(vocabulary: Vocabulary) -> tuple[dict[str, Array], dict[str, Any]]:
    """Return what a file keeps of a vocabulary: arrays, and what JSON holds."""
    arrays: dict[str, Array] = {
        "counts": vocabulary.counts,
        "document_frequency": vocabulary.document_frequency,
    }
    return arrays, {"words": vocabulary.words, "n_documents": vocabulary.n_documents}


def space_of(arrays: Mapping[str, Array]) -> dict[str, Array]:
    """Return what a file keeps of a space: its weights, by their names there."""
    return {
        name.removeprefix("space."): array
        for name, array in arrays.items()
        if name not in ("counts", "document_frequency")
    }


def vocabulary_from(arrays: Mapping[str, Array], metadata: Mapping[str, Any]) -> Vocabulary:
    """Make the vocabulary that `vocabulary_parts` took apart."""
    return Vocabulary(
        metadata["words"],
        arrays["counts"],
        arrays["document_frequency"],
        metadata["n_documents"],
    )
