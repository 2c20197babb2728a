"""
Measure the vectors of any model
================================

`kernelcore.evaluate` takes the vectors of a model such as CLIP and measures image search and
image annotation.
"""

# %%
# Random vectors stand for those of a model: 500 images, five captions of each.

import tempfile
from pathlib import Path

import numpy as np

import kernelcore
from kernelcore.evaluation import (
    Result,
    embedding_scores,
    streamed_ranks,
)
from kernelcore.plots import rank_histogram, recall_curves, similarity_matrix

rng = np.random.default_rng(0)
images = rng.normal(size=(500, 64)).astype(np.float32)
captions = np.repeat(images, 5, axis=0) + 4 * rng.normal(size=(2500, 64)).astype(np.float32)

result = kernelcore.evaluate(images, captions, captions_per_image=5, system="random")
print(result)

# %%
# The summary has every metric with its interval, what ties change, and chance.

summary = result.summary()
print(summary)

# %%
# A result keeps the values of every query. A file holds them.

print(result.values["annotation"]["mean_rank"][:3])
path = Path(tempfile.mkdtemp(), "result.json")
result.save(path)
print(Result.load(path) == result)

# %%
# Recalls, ranks, and the scores of the first images:

recall_curves(result)

# %%

rank_histogram(result)

# %%

scores = embedding_scores(images, captions)
owner = np.repeat(np.arange(500), 5)
similarity_matrix(scores, owner, max_images=12)

# %%
# The mean over five folds, as COCO 1K is measured:

folded = kernelcore.evaluate(scores, caption_image=owner, n_folds=5, system="five folds")
in_folds = folded.mean["search"]
print(folded)
print(in_folds)

# %%
# Ranks alone, without a matrix of scores:

ranks = streamed_ranks(images, captions, owner)
print(f"search R@10 {100 * np.mean(ranks.search <= 10):.1f} %")
