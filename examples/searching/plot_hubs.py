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
from kernelcore.models import (
    BordaEnsemble,
    HubCorrection,
    KCCARanker,
    borda_scores,
    hub_corrected,
)

rng = np.random.default_rng(0)
items = rng.normal(size=(600, 60)) + 0.6
photos = items + rng.normal(size=items.shape)
captions = items + 2 * rng.normal(size=items.shape)
train, test = np.arange(400), np.arange(400, 600)
scores = embedding_scores(photos[test], captions[test])

# %%
# How often is each caption the first of a photo? Without hubs this would be once.

bank = embedding_scores(photos[train], captions[test])
corrected = {"as they are": scores}
for method in ("csls", "z_score", "inverted_softmax"):
    corrected[method] = hub_corrected(scores, bank, task="annotation", method=method)

figure, ax = plt.subplots(layout="constrained")
for name in ("as they are", "csls"):
    counts = np.bincount(corrected[name].argmax(axis=1), minlength=len(test))
    ax.plot(np.sort(counts)[::-1][:40], label=name)
ax.set(xlabel="captions, the most frequent first", ylabel="photos that rank it first")
ax.legend()

# %%
# Annotation with each of the corrections:

bank_of_captions = embedding_scores(photos[test], captions[train])
search = hub_corrected(scores, bank_of_captions, task="search")
results = [evaluate(own, search, system=name) for name, own in corrected.items()]
print(ResultTable(results))

# %%
# `HubCorrection` wraps a ranker and takes its own training items as the bank. `BordaEnsemble`
# combines rankers by the places that they give.


def linear(X, Y=None):
    """Scalar products of all pairs."""
    return X @ (X if Y is None else Y).T


plain = KCCARanker(60, image_kernel=linear, text_kernel=linear, regularization=1000.0)
hubs = HubCorrection(plain)
both = BordaEnsemble([plain, hubs]).fit(photos[train], captions[train])
of_both = both.scores(photos[test], captions[test])
print(evaluate(of_both, system="both"))

# %%
# The count alone, for matrices of scores:

votes = borda_scores([corrected["csls"], corrected["z_score"]], task="annotation")
print(evaluate(votes, system="two corrections"))
