"""
Kernel canonical correlation analysis
=====================================

Kernel CCA finds directions of two views that are correlated. Correlations of the training
samples tell little: held-out samples show how many of them are real.
"""

# %%
# Two views of 400 samples with six things in common:

import numpy as np

from kernelcore.kcca import KCCA, factorize, kernel_basis
from kernelcore.plots import canonical_correlations, kernel_spectrum

rng = np.random.default_rng(0)
common = rng.normal(size=(600, 6))
X = np.hstack([common, rng.normal(size=(600, 30))]) @ rng.normal(size=(36, 36))
Y = np.hstack([common, rng.normal(size=(600, 20))]) @ rng.normal(size=(26, 26))
train, new = np.arange(400), np.arange(400, 600)
Kx, Ky = X[train] @ X[train].T, Y[train] @ Y[train].T

# %%
# The eigenvalues of both kernels:

kernel_spectrum({"first view": Kx, "second view": Ky})

# %%
# A basis of each kernel is made once. Each value of the regularisation then costs one small
# decomposition.

basis = kernel_basis(Kx, decomposition="eigen")
factorization = factorize(basis, Ky, decomposition="eigen")
for kappa in (0.1, 10.0, 1000.0):
    directions = factorization.directions(regularization=kappa)
    print(kappa, directions.correlations[:8].round(2))

# %%
# Correlations of training and of new samples:

kcca = KCCA.from_factorization(factorization, 20, regularization=10.0)
canonical_correlations(kcca, (X[new] @ X[train].T, Y[new] @ Y[train].T))
