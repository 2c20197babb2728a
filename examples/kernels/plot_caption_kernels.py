"""
Kernels of captions
===================

Each kernel sees other things in a caption: words, their order, their positions, or similar
words.
"""

# %%
# Five captions. The second exchanges the roles of the first, the third says the same in other
# words.

import matplotlib.pyplot as plt
import numpy as np

from kernelcore.captions import Vocabulary
from kernelcore.kernels import (
    TagRank,
    bag_of_words,
    bag_of_words_f1,
    tag_rank,
    word_assignment,
    word_sequence,
    word_sequence_components,
)
from kernelcore.lexical import WordKernel

texts = [
    "dog chase cat grass",
    "cat chase dog grass",
    "hound pursue kitten lawn",
    "dog sleep grass",
    "boat sail sea",
]
tokens = [[text.split()] for text in texts]
vocabulary = Vocabulary.from_captions(tokens)
captions = vocabulary.encode(tokens)

# %%
# Similar words match in part:

words = vocabulary.words
similar = np.eye(len(words), dtype=np.float32)
for one, other in (("dog", "hound"), ("cat", "kitten"), ("chase", "pursue"), ("grass", "lawn")):
    i, j = words.index(one), words.index(other)
    similar[i, j] = similar[j, i] = 0.8
kappa = WordKernel(words, similar)

# %%
# Six similarities:

matrices = {
    "bag of words": bag_of_words(captions),
    "F1 of words": bag_of_words_f1(captions),
    "word sequences": word_sequence(captions),
    "sequences, similar words": word_sequence(captions, word_kernel=kappa),
    "assignment, similar words": word_assignment(captions, word_kernel=kappa),
    "tag rank": tag_rank(captions, training=captions),
}
figure, axes = plt.subplots(2, 3, figsize=(11, 7), layout="constrained")
for ax, (name, K) in zip(axes.flat, matrices.items(), strict=True):
    ax.imshow(K, vmin=0, vmax=1, cmap="Blues")
    for (i, j), value in np.ndenumerate(K):
        colour = "white" if value > 0.6 else "black"
        ax.text(j, i, f"{value:.2f}", ha="center", va="center", color=colour)
    ax.set_title(name)
    ax.set_xticks(range(5), [str(i + 1) for i in range(5)])
    ax.set_yticks(range(5), texts if ax in axes[:, 0] else [""] * 5)

# %%
# A kernel of tag ranks keeps the statistics of its training captions:

kernel = TagRank().fit(captions)
print(kernel.gram(captions.select([0, 1])).round(2))

# %%
# Sequences of one, two and three words, counted apart:

print(word_sequence_components(texts[:1], texts[:2])[0])
