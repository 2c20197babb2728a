"""
Computations that survive a kill
================================

Results are Zarr arrays on disk. The same call that was killed, or lost its workers, computes
what is missing. Here the threads of this process do the work; a client of Dask takes their
place by ``client=``.
"""

# %%
# Two views, one of them in a file:

import tempfile
import warnings
from pathlib import Path

import numpy as np

from kernelcore.datasets import make_scenes
from kernelcore.distributed import (
    best_candidates,
    embed,
    evaluate,
    extract_features,
    fit_landmark_kcca,
    gram_to_zarr,
    streamed_ranks,
)
from kernelcore.images import CNN
from kernelcore.kernels import histogram_intersection
from kernelcore.plots import rank_histogram, similarity_matrix

rng = np.random.default_rng(0)
histograms = rng.random((300, 20))
words = histograms[:, :12] + 0.05 * rng.random((300, 12))
folder = Path(tempfile.mkdtemp())
np.save(folder / "histograms.npy", histograms)

# %%
# Kernel CCA over landmarks, then the vectors of both views:

rows = folder / "histograms.npy"
model = fit_landmark_kcca(rows, words, folder / "model", n_landmarks=20, n_components=8)
print(model.kcca.correlations_[:4].round(2), len(model.images.landmarks_))
images = embed(model, "images", rows, folder / "image-vectors")
captions = embed(model, "captions", words, folder / "caption-vectors")

# %%
# Exact ranks, and the best candidates of each caption:

result = evaluate(images, captions, folder / "ranks", system="landmarks")
print(result)
ranks = streamed_ranks(images, captions, folder / "ranks")
best = best_candidates(captions, images, folder / "best", k=3)
print((ranks.search == result.values["search"]["mean_rank"]).all(), best.positions[:2])

rank_histogram(result)

# %%
# A Gram matrix, of which any tool for Zarr reads parts:

K = gram_to_zarr(histogram_intersection, histograms[:60], None, folder / "gram", tile=32)
print(K.shape, K.chunks)
similarity_matrix(K[:])

# %%
# Features of photos. Files that cannot be read are marked, and the rest goes on.

make_scenes(3).write(folder / "scenes")
(folder / "scenes" / "images" / "broken.png").write_bytes(b"no photo")
photos = sorted((folder / "scenes" / "images").iterdir())
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    features = extract_features(photos, CNN(), folder / "features")
print(features.features.shape, features.failed, told[0].message)
