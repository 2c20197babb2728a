"""BLEU and ROUGE of all pairs of a pool, against several sets of references."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from kernelcore.evaluation.caption_metrics import (
    rouge_tokens,
    unigram_bleu_matrix,
    unigram_rouge_matrix,
)
from kernelcore.experiments.hodosh2013.judged import CaptionPool

ALL, OWN = "all captions", "the caption in the pool"
OTHERS, ONE_OTHER = "the other captions", "one other caption"

TextMatrices: TypeAlias = Mapping[str, Mapping[str, npt.NDArray[np.float64]]]
"""By references and by metric, each of shape (n_images, n_captions)."""


def text_matrices(pool: CaptionPool) -> TextMatrices:
    """Return BLEU, BLEU_pre and ROUGE of every caption of a pool for every image.

    The references of an image are all its captions, its caption in the pool, its other
    captions, or the first of the others. If an image has no other caption, only the caption in
    the pool is a reference.
    """
    references: dict[str, Sequence[Sequence[str]]] = {OWN: [(own,) for own in pool.captions]}
    if pool.has_references:
        references = {
            ALL: pool.all_captions,
            **references,
            OTHERS: pool.others,
            ONE_OTHER: [others[:1] for others in pool.others],
        }
    return {
        name: {
            "BLEU": unigram_bleu_matrix(pool.captions, of),
            "BLEU_pre": unigram_bleu_matrix(pool.captions, of, tokenize=rouge_tokens),
            "ROUGE": unigram_rouge_matrix(pool.captions, of),
        }
        for name, of in references.items()
    }
