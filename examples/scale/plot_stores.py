"""
Computations that survive a kill
================================

A store is a folder of finished pieces. The same call that was killed, or lost its workers, goes
on with what is in the store. Here the threads of this process do the work; a client of Dask
takes their place by ``executor=``.
"""

# %%
# Vectors of two views, in files:

import tempfile
import warnings
from pathlib import Path

import numpy as np

from kernelcore.datasets import make_scenes
from kernelcore.distributed import (
    ClusterLostError,
    PiecesFailedError,
    best_candidates,
    embed,
    evaluate,
    extract_features,
    fit_landmark_kcca,
    gram_to_store,
    landmark_features,
    load_landmarks,
    open_features,
    open_rows,
    read_gram,
    streamed_ranks,
    write_rows,
)
from kernelcore.images import CNN
from kernelcore.plots import rank_histogram, similarity_matrix

rng = np.random.default_rng(0)
histograms = rng.random((300, 20))
words = histograms[:, :12] + 0.05 * rng.random((300, 12))
folder = Path(tempfile.mkdtemp())
write_rows(folder / "histograms", histograms)
rows = open_rows(folder / "histograms")
print(rows.shape)

# %%
# Kernel CCA over landmarks, then the vectors of both views:

model = fit_landmark_kcca(rows, words, folder / "model", n_landmarks=20, n_components=8)
view = model.images
print(model.correlations[:4].round(2), view.coefficients.shape)
images = embed(folder / "model", "images", rows, folder / "image-vectors")
captions = embed(folder / "model", "captions", words, folder / "caption-vectors")

# %%
# Exact ranks, and the best candidates of each caption:

result = evaluate(images, captions, folder / "ranks", system="landmarks")
print(result)
ranks = streamed_ranks(images, captions, store=folder / "ranks")
best = best_candidates(captions, images, folder / "best", k=3)
print((ranks.search == result.values["search"]["mean_rank"]).all(), best.positions[:2])

rank_histogram(result)

# %%
# Landmark features and a whole Gram matrix:

landmark_features("histogram_intersection", rows, folder / "landmarks", n_landmarks=10)
landmarks = load_landmarks(folder / "landmarks")
print(landmarks.positions[:5])
gram_to_store("histogram_intersection", histograms[:60], None, folder / "gram", tile=32)
similarity_matrix(read_gram(folder / "gram"))

# %%
# Features of photos. Files that cannot be read are told, and the rest goes on.

make_scenes(3).write(folder / "scenes")
(folder / "scenes" / "images" / "broken.png").write_bytes(b"no photo")
photos = sorted((folder / "scenes" / "images").iterdir())
try:
    with warnings.catch_warnings(record=True):
        warnings.simplefilter("always")
        extract_features(photos, CNN(), folder / "features")
except (ClusterLostError, PiecesFailedError) as error:
    print(error)
features = open_features(folder / "features")
print(features.rows.shape, list(features.failures))
