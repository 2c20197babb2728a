"""
Visual words
============

Colour, texture and gradients at each point of a photo become words of a codebook. A photo is
described by how often each word occurs in each cell.
"""

# %%
# Three features of one photo:

import warnings

import matplotlib.pyplot as plt
import numpy as np

from kernelcore.datasets import make_scenes
from kernelcore.images import (
    Codebook,
    UnreadableImageError,
    UnreadableImagesError,
    UnreadableImagesWarning,
    VisualWords,
    cielab,
    dense_sift,
    learn_codebook,
    oriented_energy,
    read_image,
)

photos = make_scenes(20, rng=5).images
photo = read_image(photos[1])
colour, texture = cielab(photo), oriented_energy(photo)
sift = dense_sift(photo, step=4, bin_size=3)
print(colour.values.shape, texture.values.shape, sift.values.shape)

# %%
# A codebook of eight colours, and the word of each pixel:

points = colour.values.reshape(3, -1).T
codebook: Codebook = learn_codebook(points, n_words=8, rng=0)
words = codebook.assign(points).reshape(photo.shape[:2])

figure, axes = plt.subplots(1, 4, figsize=(12, 2.6), layout="constrained")
pictures = {
    "photo": photo,
    "lightness": colour.values[0],
    "edges": texture.values[:6].sum(axis=0),
    "eight words of colour": words,
}
for ax, (name, picture) in zip(axes, pictures.items(), strict=True):
    ax.imshow(picture, cmap="tab10" if picture is words else "gray")
    ax.set_title(name)
    ax.axis("off")

# %%
# `VisualWords` does all of this for many photos:

visual_words = VisualWords(n_words={"colour": 16, "sift": 32}).fit(photos)
features = visual_words.transform(photos)
histograms = features["sift"]
print(histograms)

# %%
# The same photo and its mirror image, cell by cell:

figure, axes = plt.subplots(1, 2, figsize=(8, 3), layout="constrained", sharey=True)
own = features["colour"].select([1])
for ax, shown, name in zip(axes, (own, own.mirrored()), ("photo", "mirrored"), strict=True):
    ax.imshow(shown.counts[0, 1:5])
    ax.set(title=name, xlabel="word", ylabel="quarter of the photo")

# %%
# A photo that cannot be read is named. It can also be left out.

damaged = [photos[0], b"not a photo"]
try:
    visual_words.transform(damaged)
except UnreadableImagesError as error:
    print(error)
try:
    read_image(damaged[1])
except UnreadableImageError as error:
    print(error)
with warnings.catch_warnings():
    warnings.simplefilter("ignore", UnreadableImagesWarning)
    kept = visual_words.transform(damaged, on_error="skip")
print(kept.rows, np.array(list(kept.failures)))
