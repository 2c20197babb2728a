"""
Ranks, ties and intervals
=========================

A rank is the place of the first gold item. Where candidates have equal scores, a rule must say
which place that is.
"""

# %%
# A model that gives few different scores, for 200 images with two captions each:

import matplotlib.pyplot as plt
import numpy as np

from kernelcore.evaluation.metrics import chance_recall_at_k, wilson_interval
from kernelcore.evaluation.ranks import gold_ranks, retrieval_ranks

rng = np.random.default_rng(0)
owner = np.repeat(np.arange(200), 2)
scores = rng.normal(size=(200, 400))
scores[owner, np.arange(400)] += 2
coarse = np.round(scores)

# %%
# The four rules. With "min" the coarse model looks better than it is, with "max" worse. "mean"
# is what breaking ties at random would give.

rules = ("mean", "min", "max", "ordinal")
for rule in rules:
    exact, rounded = (retrieval_ranks(own, owner, ties=rule).search for own in (scores, coarse))
    print(f"{rule:8} R@5: exact {np.mean(exact <= 5):.3f}, rounded {np.mean(rounded <= 5):.3f}")

# %%
# Both tasks at once, and any set of gold candidates:

both = retrieval_ranks(scores, owner)
print(both.annotation[:3], both.search[:3])
print(gold_ranks([[0.1, 0.7, 0.2]], [[0, 2]]))

# %%
# Metrics of ranks, beside chance:

ranks = both.search
print(f"median {np.median(ranks)}, mean {np.mean(ranks):.1f}, ", end="")
print(f"MRR {np.mean(1 / ranks):.3f}, chance {chance_recall_at_k(200, 5):.3f}")

# %%
# How sure are they? Shares have Wilson's interval.

ks = np.arange(1, 31)
recalls = [np.mean(ranks <= k) for k in ks]
bounds = np.transpose([wilson_interval(share, len(ranks)) for share in recalls])
figure, ax = plt.subplots(layout="constrained")
ax.plot(ks, recalls, label="R@k")
ax.fill_between(ks, *bounds, alpha=0.3, label="95 %, Wilson")
ax.plot(ks, chance_recall_at_k(200, ks), "k--", label="chance")
ax.set(xlabel="k", ylabel="recall", ylim=(0, 1))
ax.legend()
