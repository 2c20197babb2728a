"""
Kernel CCA without the kernel matrix
====================================

Landmarks turn any kernel into features of a fixed length. Time and memory then grow with the
number of samples, not with its square.
"""

# %%
# Histograms and captions of random words:

import matplotlib.pyplot as plt
import numpy as np

from kernelcore.captions import EncodedCaptions
from kernelcore.kcca import (
    KCCA,
    KernelColumns,
    LandmarkFeatures,
    feature_basis,
    partial_gram_schmidt,
)
from kernelcore.kernels import histogram_intersection, prepare, word_sequence

rng = np.random.default_rng(0)
topics = rng.integers(0, 10, 600)
histograms = rng.random((600, 30)) + (topics[:, None] == np.arange(30) % 10)
words = (topics[:, None] * 5 + rng.integers(0, 5, (600, 6))).reshape(600, 1, 6)
captions = EncodedCaptions.from_lists(words.tolist())

# %%
# Partial Gram-Schmidt chooses the samples that describe the others best. It asks for single
# columns of the kernel.

columns = KernelColumns.of(histogram_intersection, prepare(histograms))
features = partial_gram_schmidt(columns, max_rank=100)
print(len(features.pivots), features.pivots[:5])

# %%
# What is lost with m landmarks:

ranks = (10, 20, 50, 100, 200)
exact = histogram_intersection(histograms)
lost = []
for m in ranks:
    landmarks = LandmarkFeatures(histogram_intersection, n_landmarks=m)
    own = landmarks.fit_transform(histograms)
    lost.append(1 - np.trace(own @ own.T) / np.trace(exact))
figure, ax = plt.subplots(layout="constrained")
ax.plot(ranks, lost, "o-")
ax.set(xlabel="landmarks", ylabel="share of the trace that is left out", ylim=(0, None))

# %%
# Kernel CCA of both views by their features:

texts = LandmarkFeatures(word_sequence, n_landmarks=50)
images = LandmarkFeatures(histogram_intersection, n_landmarks=100)
kcca = KCCA(9, regularization=(0.1, 0.1)).fit(
    feature_basis(images.fit_transform(histograms)),
    feature_basis(texts.fit_transform(captions)),
)
print(kcca.correlations_.round(2))
