"""
Matrices that do not fit into memory
====================================

A Gram matrix can be made tile by tile, into a file or into whatever is computed from it.
"""

# %%
# `prepare` checks samples once for many calls.

import tempfile
import time
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from kernelcore.kernels import gram_blocks, histogram_intersection, prepare

X = np.random.default_rng(0).random((1200, 64), np.float32)
samples = prepare(X)
print(samples)

# %%
# The nearest other sample of each, without the whole matrix:

best = np.full(len(X), -np.inf)
for block in gram_blocks(histogram_intersection, samples, block_size=400):
    values = block.values.copy()
    if block.rows == block.columns:
        np.fill_diagonal(values, -np.inf)
    best[block.rows] = np.maximum(best[block.rows], values.max(axis=1))
    best[block.columns] = np.maximum(best[block.columns], values.max(axis=0))
print(best[:3].round(2))

# %%
# A file, tile by tile. `kernelcore.distributed.gram_to_zarr` resumes where a run was stopped.

path = Path(tempfile.mkdtemp(), "K.npy")
K = np.lib.format.open_memmap(path, "w+", np.float32, (len(X), len(X)))
for rows, columns, values in gram_blocks(histogram_intersection, samples, block_size=400):
    K[rows, columns] = values
    K[columns, rows] = values.T
print(K.shape, np.load(path, mmap_mode="r").shape)

# %%
# Time grows with the square of the number of samples:

seconds = {}
for n in (300, 600, 1200):
    began = time.perf_counter()
    for _ in range(5):
        histogram_intersection(X[:n], n_threads=1)
    seconds[n] = (time.perf_counter() - began) / 5
_, ax = plt.subplots(layout="constrained")
ax.loglog(list(seconds), list(seconds.values()), "o-")
ax.set(xlabel="samples", ylabel="seconds", title="Histogram intersection")
