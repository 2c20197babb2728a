"""
Hubs, and how to lower them
===========================

In a space of many dimensions a few captions are near to very many photos. Their scores are
lowered by what a bank of training items says of them.
"""

# %%
# Vectors of two views of the same items, with a common direction that makes hubs:

import matplotlib.pyplot as plt
import numpy as np

from kernelcore.evaluation import ResultTable, embedding_scores, evaluate
from kernelcore.models import borda_scores, hub_corrected

rng = np.random.default_rng(0)
items = rng.normal(size=(600, 60)) + 0.6
photos = items + rng.normal(size=items.shape)
captions = items + 2 * rng.normal(size=items.shape)
train, test = np.arange(400), np.arange(400, 600)
scores = embedding_scores(photos[test], captions[test])

# %%
# How often is each caption the first of a photo? Without hubs this would be once.

bank = embedding_scores(photos[train], captions[test])
annotation = hub_corrected(scores, bank, task="annotation")

figure, ax = plt.subplots(layout="constrained")
for name, own in (("as they are", scores), ("corrected", annotation)):
    counts = np.bincount(own.argmax(axis=1), minlength=len(test))
    ax.plot(np.sort(counts)[::-1][:40], label=name)
ax.set(xlabel="captions, the most frequent first", ylabel="photos that rank it first")
ax.legend()

# %%
# Both tasks with and without the correction:

search = hub_corrected(scores, embedding_scores(photos[test], captions[train]), task="search")
results = [
    evaluate(scores, system="as they are"),
    evaluate(annotation, search, system="corrected"),
]
print(ResultTable(results))

# %%
# Borda's count combines rankings by the places that they give:

votes = borda_scores([scores, annotation], task="annotation")
print(evaluate(votes, search, system="both"))
