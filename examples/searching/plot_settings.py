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
from kernelcore.models import FittedSettings, GridSearch, KCCARanker, SharesFit, select_kcca
from kernelcore.plots import regularization_path

rng = np.random.default_rng(0)
photos = rng.normal(size=(400, 40))
captions = photos @ rng.normal(size=(40, 30)) + 12 * rng.normal(size=(400, 30))
train, dev, test = np.split(np.arange(400), [200, 300])


def linear(X, Y=None):
    """Scalar products of all pairs."""
    return X @ (X if Y is None else Y).T


# %%
# `GridSearch` tries every combination. It fits once for all settings that share the costly part
# of a fit, as rankers with `fit_settings` do.

ranker = KCCARanker(image_kernel=linear, text_kernel=linear)
grid = {
    "n_components": [5, 10, 20],
    "regularization": [0.1, 1.0, 10.0, 100.0, 1000.0],
    "correlation_power": [0, 3],
}
print(isinstance(ranker, SharesFit))
search = GridSearch(ranker, grid, n_best=2)
search.fit(photos[train], captions[train], dev=(photos[dev], captions[dev]))
print(search.best_params_)

# %%
# The path shows what the regularisation is worth:

regularization_path(search)

# %%
# The test split is used once, at the end. The scores combine the best settings by Borda's
# count.

print(evaluate(search.scores(photos[test], captions[test]), system="winners"))

# %%
# `select_kcca` searches the same grid from a factorisation at hand.

factorization = factorize(linear(photos[train]), linear(captions[train]))
selection = select_kcca(
    factorization,
    linear(photos[dev], photos[train]),
    linear(captions[dev], captions[train]),
    n_components=[5, 10, 20],
    regularization=[0.1, 1.0, 10.0],
)
best = selection.best()
print(best)

# %%
# What `GridSearch` uses within: all settings from one fit.

fitted: FittedSettings = ranker.fit_settings(
    photos[train], captions[train], [{"n_components": 5}]
)
one = fitted.ranker(0)
print(one.n_components, one.regularization)
