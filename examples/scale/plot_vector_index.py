"""
An index that grows
===================

`VectorIndex` holds vectors in an index of FAISS. Vectors are added and removed; an index of
lists is faster and may miss some. `ApproximateSearch` finds photos by such lists.
"""

# %%
# Clustered vectors, as those of photos are:

import tempfile

import matplotlib.pyplot as plt
import numpy as np

from kernelcore.distributed import VectorIndex
from kernelcore.models import Encoders
from kernelcore.search import ApproximateSearch

rng = np.random.default_rng(0)
centres = rng.normal(size=(50, 32))
vectors = centres[rng.integers(0, 50, 4000)] + 0.5 * rng.normal(size=(4000, 32))
index = VectorIndex(vectors)
found = index.search(vectors[:2], k=3)
print(found.positions)

# %%
# Add and remove by number:

index.add(rng.normal(size=(2, 32)), ids=[4000, 4001])
index.remove([0])
print(len(index), index.search(vectors[:1], k=1).positions)

# %%
# What does an index of lists lose?

probes = (1, 2, 4, 8, 16)
recalls = [
    VectorIndex(vectors, kind="lists", n_lists=100, n_probes=n).recall(vectors[:200], k=10)
    for n in probes
]
figure, ax = plt.subplots(layout="constrained")
ax.plot(probes, recalls, "o-")
ax.set(xlabel="lists that a search looks at", ylabel="recall of the ten nearest")

# %%
# Beside an index of photos on the disk, lists make searches that need not read all vectors:


def letters(texts):
    """Count letters, in place of a network."""
    return [[str(text).count(letter) for letter in "abcdeghot"] for text in texts]


encoders = Encoders(letters, letters, name="letters")
photos = encoders.index(["dog.jpg", "cat.jpg", "boat.jpg"])
with tempfile.TemporaryDirectory() as folder:
    photos.save(folder)
    ApproximateSearch.build(photos, encoders, folder)
    [found] = ApproximateSearch(encoders, folder).search(["a cat"], k=1)
print(found[0].name)
