"""
Words that mean something similar
=================================

Captions of one photo say the same in different words. An aligner learns from them which words
stand for each other; co-occurrence finds words of the same scene.
"""

# %%
# The words of the captions of 150 drawn scenes, with the part of speech of each:

import matplotlib.pyplot as plt
import numpy as np

from kernelcore.captions import CaptionNormalizer, Vocabulary
from kernelcore.datasets import make_scenes
from kernelcore.lexical import (
    Alignment,
    Distributional,
    combine,
    ibm1,
    ibm2,
)

(photos,) = make_scenes(250, size=(32, 32)).dataset.split_sets("train")
normalize = CaptionNormalizer().fit(photos.captions)
tokens = normalize.normalize_images(photos.captions)
verbs = {"chase", "pursue", "pull", "push", "kick", "ride", "hold", "jump", "sit", "run"}
tagged = [
    [[(word, "VERB" if word in verbs else "NOUN") for word in own] for own in image]
    for image in tokens
]

# %%
# By alignment a dog is near to a hound. By co-occurrence it is near to what dogs do.

aligned = Alignment().fit(tagged).word_kernel()
together = Distributional().fit(tokens).word_kernel()
figure, axes = plt.subplots(1, 2, layout="constrained")
for ax, kernel in zip(axes, (aligned, together), strict=True):
    ax.barh(*zip(*kernel.most_similar("dog", 8), strict=True))
axes[0].set(title="alignment", xlabel="similarity to dog")
axes[1].set(title="co-occurrence", xlabel="similarity to dog")

# %%
# The greater of both similarities is what published systems use. It is not positive
# semi-definite:

words = sorted(set(aligned.words) & set(together.words))
best = combine(aligned.over(words), together.over(words))
print(np.linalg.eigvalsh(best.to_dense())[0])  # the smallest eigenvalue

# %%
# The aligner itself: translation probabilities between two lists of sentences.

vocabulary = Vocabulary.from_captions(tokens)
first = vocabulary.encode([[image[0]] for image in tokens])
second = vocabulary.encode([[image[1]] for image in tokens])
one, two = ibm1(first, second), ibm2(first, second)
print(one.probabilities.shape, two.probabilities.nnz)
