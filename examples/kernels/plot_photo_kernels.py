"""
Kernels of photos
=================

Two photos are alike if they have the same visual words, and more so if the words stand at the
same places.
"""

# %%
# Visual words of colour in the cells of a pyramid:

import matplotlib.pyplot as plt

from kernelcore.datasets import make_scenes
from kernelcore.images import VisualWords
from kernelcore.kernels import histogram_intersection, spatial_pyramid

scenes = make_scenes(40, rng=6)
words = VisualWords(n_words={"colour": 32}, n_sample_images=20).fit(scenes.images)
photos = words.transform(scenes.images)["colour"]
print(photos)

# %%
# The histogram intersection counts what two photos share as a whole; the spatial pyramid also
# looks at where it is. `mirror` takes a photo and its mirror image as equals.

whole = photos.counts[:, 0].astype("float32")
matrices = {
    "histogram intersection": histogram_intersection(whole / whole.sum(axis=1, keepdims=True)),
    "spatial pyramid": spatial_pyramid(photos),
    "with mirror images": spatial_pyramid(photos, mirror=True),
}
figure, axes = plt.subplots(1, 3, figsize=(11, 3.6), layout="constrained")
for ax, (name, K) in zip(axes, matrices.items(), strict=True):
    ax.imshow(K, cmap="viridis", vmin=0, vmax=1)
    ax.set_title(name)

# %%
# The photo most like the first, by the pyramid:

K = matrices["spatial pyramid"]
nearest = K[0, 1:].argmax() + 1
figure, axes = plt.subplots(1, 2, figsize=(6, 2.4), layout="constrained")
for ax, i in zip(axes, (0, nearest), strict=True):
    ax.imshow(scenes.images[i])
    ax.set_title(f"similarity {K[0, i]:.2f}")
    ax.axis("off")
