"""
Choose the settings on development photos
=========================================

A grid of settings is tried on photos that are in neither the training nor the test split.
"""

# %%
# Linear kernels of random vectors stand for those of photos and captions.

import numpy as np

from kernelcore.evaluation import evaluate
from kernelcore.kcca import factorize
from kernelcore.models import KCCARanker, select_kcca

rng = np.random.default_rng(0)
photos = rng.normal(size=(400, 40))
captions = photos @ rng.normal(size=(40, 30)) + 12 * rng.normal(size=(400, 30))
train, dev, test = np.split(np.arange(400), [200, 300])


def kernels(rows):
    """Linear kernels of these photos and captions with the training items."""
    return photos[rows] @ photos[train].T, captions[rows] @ captions[train].T


# %%
# `select_kcca` tries every combination. One factorisation of the training kernels serves all.

factorization = factorize(*kernels(train))
selection = select_kcca(
    factorization,
    *kernels(dev),
    n_components_grid=[5, 10, 20],
    regularization_grid=[0.1, 1.0, 10.0, 100.0, 1000.0],
    correlation_power_grid=[0, 3],
)
print(selection.best())

# %%
# The table shows what each setting is worth:

print(selection.to_frame())

# %%
# The test split is used once, at the end. The scores combine the best settings by Borda's
# count.

scores = selection.scores(*kernels(test), task="annotation", n_best=2)
print(evaluate(scores, system="winners"))

# %%
# The ranker of the best setting alone:

ranker = KCCARanker.from_factorization(factorization, **selection.best()._asdict())
print(evaluate(ranker.scores(*kernels(test)), system="best"))
