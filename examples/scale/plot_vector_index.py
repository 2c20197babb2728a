"""
An index that grows
===================

`VectorIndex` holds vectors in an index of FAISS. Vectors are added and removed; an index of
lists is faster and may miss some.
"""

# %%
# Clustered vectors, as those of photos are:

import matplotlib.pyplot as plt
import numpy as np

from kernelcore.distributed import VectorIndex

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
