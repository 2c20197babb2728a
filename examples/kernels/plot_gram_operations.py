"""
Operations on Gram matrices
===========================

Normalise, centre, raise to a power, lift the diagonal, and weigh several kernels.
"""

# %%
# Three kernels of the same samples. The third has nothing to do with the labels.

import matplotlib.pyplot as plt
import numpy as np

from kernelcore.errors import NotFittedError
from kernelcore.kernels import (
    GramCenterer,
    average,
    normalize,
    power,
    ridge,
)

rng = np.random.default_rng(0)
labels = np.repeat([-1.0, 1.0], 40)
signal = labels[:, None] * np.ones((1, 5))
parts = [signal + s * rng.normal(size=(80, 5)) for s in (1.0, 2.0)] + [rng.normal(size=(80, 5))]
kernels = [normalize(part @ part.T) for part in parts]

# %%
# Their mean, with a weight for each:

K = average(kernels, weights=[2, 1, 0])

# %%
# Centring takes the mean of the samples away, and new samples use the means of the training
# samples.

centerer = GramCenterer()
try:
    centerer.transform(K)
except NotFittedError as error:
    print(error)
centred = centerer.fit_transform(K)
print(abs(centred.sum(axis=0)).max() < 1e-10)

# %%
# A power sharpens a kernel, a ridge lifts its diagonal:

shown = {
    "first kernel": kernels[0],
    "weighted mean": K,
    "centred": centred,
    "mean squared": power(K, 2),
    "with a ridge": ridge(K, 1.5),
}
figure, axes = plt.subplots(1, 5, figsize=(14, 3.2), layout="constrained")
for ax, (name, matrix) in zip(axes, shown.items(), strict=True):
    ax.imshow(matrix, vmin=-1, vmax=1.5, cmap="PuOr")
    ax.set_title(name)
    ax.axis("off")
