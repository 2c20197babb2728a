"""
Search photos by a sentence
===========================

A :class:`~kernelcore.models.PhotoRanker` learns from photos and their captions. Then it finds
photos that it has never seen, here drawn scenes.
"""

# %%
# Three fifths of the scenes have the part of training photos. The ranker describes them by
# EfficientNet-Lite0 and learns which photos go with which words.

import matplotlib.pyplot as plt

from kernelcore.datasets import make_scenes
from kernelcore.images import CNN
from kernelcore.models import PhotoRanker

scenes = make_scenes(75, rng=5)
train, test = (scenes.dataset.split(name) for name in ("train", "test"))
ranker = PhotoRanker(features=CNN())
ranker.fit(scenes.images[train], [scenes.dataset.captions[i] for i in train])

# %%
# An index holds the vectors of photos. It is made once and searched many times.

index = ranker.index(scenes.images[test], names=[scenes.dataset.image_ids[i] for i in test])
sentence = "a dog on the grass"
[found] = ranker.search([sentence], index, k=4)
for match in found:
    print(f"{match.score:6.3f}  {match.name}")

# %%
# The best four:

figure, axes = plt.subplots(1, 4, figsize=(10, 2.4), layout="constrained")
for ax, match in zip(axes, found, strict=True):
    ax.imshow(scenes.images[test[match.item]])
    ax.set_title(f"{match.score:.2f}")
    ax.axis("off")
figure.suptitle(sentence)

# %%
# The same vectors annotate a photo. These sentences are the candidates:

sentences = [scenes.dataset.captions[i][0] for i in test]
[best] = ranker.annotate(scenes.images[test[:1]], sentences, k=3)
for match in best:
    print(f"{match.score:6.3f}  {match.name}")
print("Its own caption:", sentences[0])
