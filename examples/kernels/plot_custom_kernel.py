"""
A kernel of your own
====================

`custom` makes a Gram function of any function of two samples that Numba compiled. Threads,
progress and Ctrl-C come with it.
"""

# %%
# The chi-square kernel of histograms:

import matplotlib.pyplot as plt
import numba
import numpy as np

from kernelcore.kernels import CustomKernel, custom
from kernelcore.plots import kernel_spectrum


@numba.njit
def chi_square(x, y):
    """Return the exponential of the negative chi-square distance."""
    total = 0.0
    for i in range(x.size):
        if x[i] + y[i] > 0:
            total += (x[i] - y[i]) ** 2 / (x[i] + y[i])
    return np.exp(-total)


gram: CustomKernel = custom(chi_square)
X = np.random.default_rng(0).dirichlet(np.ones(20), size=200)
K = gram(X)
print(K.shape, K.dtype)

# %%
# It is an ordinary Gram function: rankers, kernel CCA and `gram_blocks` take it.

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
left.imshow(K)
left.set_title("chi-square kernel of 200 histograms")
kernel_spectrum(K, ax=right)
