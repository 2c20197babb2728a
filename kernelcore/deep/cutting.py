"""Raw captions cut into fragments or parsed, with the vectors of their words."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from kernelcore.captions import FragmentExtractor, Vocabulary, parse_trees
from kernelcore.captions.fragments import FragmentKind
from kernelcore.captions.normalize import english_pipeline
from kernelcore.deep.fragment_space import Captions
from kernelcore.lexical import WordVectors

_N_RANDOM = 50


def new_extractor(
    sentence: str, kind: FragmentKind | None, word_vectors: WordVectors | None
) -> FragmentExtractor:
    """Return what will cut raw captions, not fitted; it knows the words that have vectors."""
    vocabulary = None
    if word_vectors is not None:
        ones = np.ones(len(word_vectors), np.int64)
        vocabulary = Vocabulary(word_vectors.words, ones, ones, 1)
    return FragmentExtractor(
        kind or ("words" if sentence == "mean" else "dependencies"),
        collapsed=sentence != "tree",
        vocabulary=vocabulary,
        spacy_model=english_pipeline(),
    )


def cut(texts: Sequence[str], sentence: str, extractor: FragmentExtractor) -> Captions:
    """Cut raw captions into fragments of known words, or parse them for a tree."""
    if sentence != "tree":
        return extractor.transform(texts, unknown="drop")
    return parse_trees(
        texts,
        extractor.vocabulary_,
        extractor.relations_,
        spacy_model=extractor.spacy_model,
    )


def rows_by_id(
    word_vectors: WordVectors | None, n_words: int, generator: torch.Generator
) -> Tensor:
    """Return the vector of each word by its id; without vectors they are drawn."""
    if word_vectors is None:
        return torch.randn((n_words, _N_RANDOM), generator=generator, device=generator.device)
    if len(word_vectors) != n_words:
        raise ValueError(
            f"word_vectors must have one row per word of the vocabulary ({n_words}), "
            f"got {len(word_vectors)}"
        )
    return torch.from_numpy(word_vectors.vectors.copy()).to(generator.device)
