"""Word similarities, with which a text kernel matches *bike* with *bicycle*.

There are three sources of similarity: WordNet's hierarchy of nouns (`WordNetLin`),
co-occurrence in captions (`Distributional`), and captions that describe the same image in
other words (`Alignment`, over the IBM models `ibm1` and `ibm2`). Each returns a `WordKernel`
over a vocabulary; `combine` merges several. `read_tagged_corpus` reads a tagged corpus, such
as the Brown corpus, and `load_word_vectors` pre-trained word vectors. `learn_word_vectors`
learns vectors from a text, and `join_word_vectors` concatenates vectors of several sources.
"""

from kernelcore.lexical.alignment import Alignment
from kernelcore.lexical.distributional import Distributional, read_tagged_corpus
from kernelcore.lexical.ibm import TranslationModel, ibm1, ibm2
from kernelcore.lexical.vectors import (
    WordVectors,
    join_word_vectors,
    learn_word_vectors,
    load_installed_glove,
    load_word_vectors,
)
from kernelcore.lexical.word_kernel import WordKernel, combine
from kernelcore.lexical.wordnet import WordNetLin

__all__ = [
    "Alignment",
    "Distributional",
    "TranslationModel",
    "WordKernel",
    "WordNetLin",
    "WordVectors",
    "combine",
    "ibm1",
    "ibm2",
    "join_word_vectors",
    "learn_word_vectors",
    "load_installed_glove",
    "load_word_vectors",
    "read_tagged_corpus",
]
