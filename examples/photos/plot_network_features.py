"""
Features of a network
=====================

EfficientNet-Lite0 describes a photo, or each of its regions, by 1,280 numbers. Its weights come
as a package, and OpenCV runs it.
"""

# %%
# Four photos. One pass gives the features and the classes of ImageNet:

import matplotlib.pyplot as plt
import numpy as np

from kernelcore.datasets import make_scenes
from kernelcore.images import CNN, Grid, RegionCNN, square_roots
from kernelcore.models import imagenet_labels

photos = make_scenes(4, rng=5, size=(224, 224)).images
described = CNN().transform(photos)
print(described)
labels = imagenet_labels()
for row in described.probabilities:
    print(", ".join(labels[k] for k in row.argsort()[:-4:-1]))

# %%
# Square roots scaled to length 1 give a better kernel than the plain features:

unit = square_roots(described.features)
print((unit @ unit.T).round(2))

# %%
# Regions: the whole photo first, then windows of a grid. Any object with `propose` and
# `identity` may propose boxes.

grid = Grid(levels=(2, 3))
boxes = grid.propose(photos[0])
print(boxes.corners.shape)
regions = RegionCNN(proposers=[grid], max_regions=14).transform(photos[:2])
print(regions)

# %%
# Similarity of each region of the first photo to the whole of the second:

first = square_roots(regions.features[: regions.offsets[1]])
whole = square_roots(regions.features[regions.offsets[1]][None])
alike = (first @ whole.T)[1:, 0]
figure, axes = plt.subplots(1, 3, figsize=(9, 3.2), layout="constrained")
axes[0].imshow(photos[1])
axes[0].set_title("the other photo")
for ax, k, name in ((axes[1], alike.argmax(), "most"), (axes[2], alike.argmin(), "least")):
    left, top, right, bottom = regions.boxes[1 + k]
    ax.imshow(photos[0])
    ax.add_patch(plt.Rectangle((left, top), right - left, bottom - top, fill=False, lw=3))
    ax.set_title(f"{name} similar: {alike[k]:.2f}")
for ax in axes:
    ax.axis("off")
print(np.sort(alike).round(2))
