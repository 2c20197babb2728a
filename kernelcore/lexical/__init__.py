"""Word similarities, with which a text kernel matches *bike* with *bicycle*.

Three sources of similarity, each from another kind of evidence: WordNet's hierarchy of nouns
(`WordNetLin`), the company that words keep (`Distributional`), and captions that describe the
same image in other words (`Alignment`, over the IBM models `ibm1` and `ibm2`). Each returns
a `WordKernel` over a vocabulary; `combine` makes one of several. `read_tagged_corpus` reads
text from outside, such as the Brown corpus, and `load_word_vectors` the vectors that others
have trained. `learn_word_vectors` learns vectors from a text, and `join_word_vectors` puts
several sources together.
"""

from kernelcore.lexical.alignment import Alignment
from kernelcore.lexical.combine import Definiteness, combine, definiteness
from kernelcore.lexical.distributional import Distributional, read_tagged_corpus
from kernelcore.lexical.ibm import TranslationModel, ibm1, ibm2
from kernelcore.lexical.learned import join_word_vectors, learn_word_vectors
from kernelcore.lexical.word_kernel import WordKernel
from kernelcore.lexical.word_vectors import (
    WordVectors,
    load_installed_glove,
    load_word_vectors,
)
from kernelcore.lexical.wordnet import WordNetLin

__all__ = [
    "Alignment",
    "Definiteness",
    "Distributional",
    "TranslationModel",
    "WordKernel",
    "WordNetLin",
    "WordVectors",
    "combine",
    "definiteness",
    "ibm1",
    "ibm2",
    "join_word_vectors",
    "learn_word_vectors",
    "load_installed_glove",
    "load_word_vectors",
    "read_tagged_corpus",
]
