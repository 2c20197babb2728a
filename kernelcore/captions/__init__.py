"""Caption preprocessing: normalisation, vocabulary, encoding and parsing.

`CaptionNormalizer` turns captions into content words in base form. A `Vocabulary` of the
training captions gives every word an id, and `EncodedCaptions` holds the sequences of ids
that all text kernels read. `FragmentExtractor` extracts pairs of related words,
`SentenceFragments`, and `parse_trees` whole dependency trees.
"""

from kernelcore.captions.encoded import EncodedCaptions
from kernelcore.captions.normalize import CaptionNormalizer
from kernelcore.captions.parses import (
    FragmentExtractor,
    SentenceFragments,
    SentenceTrees,
    parse_trees,
)
from kernelcore.captions.tokens import COMPOUNDS, STOP_WORDS
from kernelcore.captions.vocabulary import Vocabulary

__all__ = [
    "COMPOUNDS",
    "STOP_WORDS",
    "CaptionNormalizer",
    "EncodedCaptions",
    "FragmentExtractor",
    "SentenceFragments",
    "SentenceTrees",
    "Vocabulary",
    "parse_trees",
]
