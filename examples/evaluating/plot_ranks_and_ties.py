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

from kernelcore.evaluation import evaluate
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

result = evaluate(scores, caption_image=owner, ks=(1, 5, 10, 20, 30))
print(result.mean["search"]["mean_reciprocal_rank"], result.chance["search"]["mean_rank"])

# %%
# How sure are they? Shares have Wilson's interval.

ks = [1, 5, 10, 20, 30]
recalls = [result.mean["search"][f"R@{k}"] for k in ks]
bounds = np.transpose([result.interval()["search"][f"R@{k}"] for k in ks])
figure, ax = plt.subplots(layout="constrained")
ax.plot(ks, recalls, "o-", label="R@k")
ax.fill_between(ks, *bounds, alpha=0.3, label="95 %, Wilson")
ax.plot(ks, [result.chance["search"][f"R@{k}"] for k in ks], "k--", label="chance")
ax.set(xlabel="k", ylabel="recall", ylim=(0, 1))
ax.legend()
