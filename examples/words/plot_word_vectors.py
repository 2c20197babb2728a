"""
Word vectors
============

Short vectors of words, learned from any text or read from a file. Words of the same kind are
near to each other.
"""

# %%
# Vectors learned from the captions of drawn scenes:

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from kernelcore.captions import CaptionNormalizer
from kernelcore.datasets import make_scenes
from kernelcore.lexical import (
    WordKernel,
    WordNetLin,
    join_word_vectors,
    learn_word_vectors,
    load_installed_glove,
    load_word_vectors,
    read_tagged_corpus,
)

captions = make_scenes(300, size=(32, 32)).dataset.captions
tokens = CaptionNormalizer().normalize_images(captions)
sentences = [own for image in tokens for own in image]
vectors = learn_word_vectors(sentences, n_dimensions=40, min_count=3)
print(vectors)

# %%
# Two directions of the vectors of some words:

words = ["dog", "cat", "horse", "man", "woman", "boy", "red", "blue", "snow", "grass", "ball"]
words = [word for word in words if word in vectors.index]
chosen = vectors.restrict(words).vectors
_, _, axes = np.linalg.svd(chosen - chosen.mean(axis=0))
places = chosen @ axes[:2].T
figure, ax = plt.subplots(layout="constrained")
ax.scatter(*places.T)
for word, place in zip(words, places, strict=True):
    ax.annotate(word, place, xytext=(4, 4), textcoords="offset points")
ax.set(xlabel="first direction", ylabel="second direction")

# %%
# Files in the forms of GloVe and word2vec, vectors of an installed package, and both side by
# side:

folder = Path(tempfile.mkdtemp())
(folder / "vectors.txt").write_text("dog 1.0 0.5\ncat 0.5 1.0\n")
mine = load_word_vectors(folder / "vectors.txt")
glove = load_installed_glove(words=words)
print(mine, glove, join_word_vectors(glove, vectors))

# %%
# WordNet knows what a word is a kind of. The frequency of words comes from a tagged text.

(folder / "corpus.txt").write_text("The/at dog/nn saw/vbd a/at cat/nn in/in a/at car/nn ./.\n")
corpus = read_tagged_corpus(folder / "corpus.txt")
counts = {word: 1 for sentence in corpus for word, tag in sentence if tag == "nn"}
if Path("/usr/share/wordnet/data.noun").is_file():
    kernel: WordKernel = WordNetLin("/usr/share/wordnet", counts).word_kernel(counts)
    print(kernel.most_similar("dog", 2))
