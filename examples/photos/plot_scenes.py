"""
Drawn scenes
============

Everything in this gallery can be tried without a corpus: scenes are drawn, with five captions
each. The same number gives the same bits on every machine.
"""

# %%
# Fourteen scenes:

import matplotlib.pyplot as plt

from kernelcore.datasets import make_scenes

scenes = make_scenes(14, rng=5)
figure, axes = plt.subplots(2, 7, figsize=(12, 2.8), layout="constrained")
for ax, image in zip(axes.flat, scenes.images, strict=True):
    ax.imshow(image)
    ax.axis("off")

# %%
# What the first scene shows, and where:

scene = scenes.scenes[0]
agent = scene.agent
print(agent, scene.relation, scene.patient, sep="\n")
left, top, right, bottom = scenes.boxes[0, 0]

figure, ax = plt.subplots(figsize=(4, 3), layout="constrained")
ax.imshow(scenes.images[0])
ax.add_patch(plt.Rectangle((left, top), right - left, bottom - top, fill=False, color="white"))
ax.axis("off")

# %%
# Its captions use different words, voices and details:

photos = scenes.dataset
print(*photos.captions[0], sep="\n")

# %%
# All captions of all scenes as one list, with the scene of each: the columns of a matrix of
# scores.

pool = photos.pool()
print(len(pool.captions), pool.caption_image[:7])
