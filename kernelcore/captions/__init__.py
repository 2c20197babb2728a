"""From raw captions to word ids.

A vocabulary is collected from normalised training captions and turns every caption into a
sequence of word ids. `EncodedCaptions` holds those sequences for the text kernels.
"""

from kernelcore.captions.encoded import EncodedCaptions
from kernelcore.captions.vocabulary import Vocabulary

__all__ = ["EncodedCaptions", "Vocabulary"]
