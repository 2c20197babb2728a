"""
Do raters agree?
================

Before a metric is compared with people, it must be known how well people agree with each other.
"""

# %%
# Three raters see the quality of 120 captions with noise:

import matplotlib.pyplot as plt
import numpy as np

from kernelcore.evaluation.agreement import (
    cohen_kappa,
    krippendorff_alpha,
    krippendorff_alpha_interval,
)

rng = np.random.default_rng(0)
quality = rng.integers(1, 5, 120)


def ratings(noise):
    """Ratings of three people from 1 to 4."""
    seen = quality[:, None] + rng.normal(0, noise, (120, 3))
    return np.clip(np.round(seen), 1, 4)


# %%
# Krippendorff's alpha takes any number of raters; Cohen's kappa compares two.

careful = ratings(0.5)
print(f"alpha {krippendorff_alpha(careful, level='ordinal'):.2f}")
print(f"kappa {cohen_kappa(careful[:, 0], careful[:, 1], weights='quadratic'):.2f}")

# %%
# Alpha falls as the noise grows. The interval draws whole captions.

levels = np.linspace(0.2, 2.0, 7)
alphas, bounds = [], []
for noise in levels:
    given = ratings(noise)
    alphas.append(krippendorff_alpha(given, level="ordinal"))
    bounds.append(krippendorff_alpha_interval(given, level="ordinal", n_resamples=200, rng=0))

low, high = np.transpose(bounds)
figure, ax = plt.subplots(layout="constrained")
ax.plot(levels, alphas, "o-")
ax.fill_between(levels, low, high, alpha=0.3)
ax.set(xlabel="noise of a rater", ylabel="Krippendorff's alpha", ylim=(0, 1))
