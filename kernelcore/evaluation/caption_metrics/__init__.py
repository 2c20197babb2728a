"""Similarity of captions and reference captions, by the words that they share.

The unigram BLEU and ROUGE of Hodosh et al. (2013) score ranked captions for images; BLEU,
ROUGE-L, CIDEr and CIDEr-D score written captions as the COCO caption evaluation does, from
n-grams numbered once and counted in compiled loops. METEOR and SPICE are Java programs that
`pycocoevalcap` runs.
"""

from kernelcore.evaluation.caption_metrics.coco import (
    DocumentFrequencies,
    bleu,
    cider,
    cider_d,
    rouge_l,
)
from kernelcore.evaluation.caption_metrics.java import meteor, spice
from kernelcore.evaluation.caption_metrics.tokens import (
    bleu_tokens,
    coco_tokenize,
    rouge_tokens,
)
from kernelcore.evaluation.caption_metrics.unigram import unigram_bleu, unigram_rouge

__all__ = [
    "DocumentFrequencies",
    "bleu",
    "bleu_tokens",
    "cider",
    "cider_d",
    "coco_tokenize",
    "meteor",
    "rouge_l",
    "rouge_tokens",
    "spice",
    "unigram_bleu",
    "unigram_rouge",
]
