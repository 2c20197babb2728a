"""
Write captions
==============

A language model reads the features of a photo and writes a caption, word by word. It also ranks
photos by how probable they make a caption.
"""

# %%
# Drawn scenes, described by the mean colours of 48 cells:

import matplotlib.pyplot as plt

from kernelcore.datasets import make_scenes
from kernelcore.deep import Captioner

scenes = make_scenes(120, size=(48, 64))
cells = scenes.images.reshape(120, 6, 8, 8, 8, 3).mean(axis=(2, 4)).reshape(120, -1)
captions = scenes.dataset.captions
captioner = Captioner(
    n_components=64,
    n_embedding=32,
    min_count=2,
    learning_rate=1e-2,
    batch_size=32,
    n_epochs=5,
    rng=0,
)
captioner.fit(cells[:100], captions[:100])

# %%
# What it writes for four others. So short a training teaches it the grammar, and hardly what is
# in a picture:

written = captioner.generate(cells[116:], beam_size=3)
figure, axes = plt.subplots(2, 2, figsize=(9, 6), layout="constrained")
for ax, image, text in zip(axes.flat, scenes.images[116:], written, strict=True):
    ax.imshow(image)
    ax.set_title(text, fontsize=9, wrap=True)
    ax.axis("off")

# %%
# Log-likelihoods of captions, of their own photo each:

print(captioner.log_likelihoods(cells[116:], [own[0] for own in captions[116:]]).round(1))
