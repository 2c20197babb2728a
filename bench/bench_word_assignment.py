"""Word assignment between the captions of Flickr8k, exact and with a dense word kernel."""

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

from kernelcore.kernels import word_assignment

N_IMAGES = 400


def drawn_kernel(n_words, share):
    rng = np.random.default_rng(1)
    kernel = rng.random((n_words, n_words), np.float32)
    kernel *= rng.random((n_words, n_words), np.float32) < share
    kernel = np.triu(kernel, 1)
    return kernel + kernel.T + np.eye(n_words, dtype=np.float32)


@pytest.mark.parametrize("share", [0.0, 0.02, 1.0], ids=["exact", "2%", "dense"])
def test_word_assignment(measure, captions, share):
    X = captions.select(np.arange(N_IMAGES))
    Y = captions.select(np.arange(N_IMAGES, 2 * N_IMAGES))
    kernel = drawn_kernel(captions.n_words, share) if share else None
    measure(
        f"word assignment, {share:.0%} of words similar, 1 thread",
        word_assignment,
        X,
        Y,
        word_kernel=kernel,
        n_threads=1,
    )


@pytest.mark.parametrize("share", [0.02, 1.0], ids=["2%", "dense"])
def test_scipy_loop(measure, captions, share):
    kernel = drawn_kernel(captions.n_words, share)
    X = captions.select(np.arange(20))
    Y = captions.select(np.arange(20, 40))

    def loop(X, Y):
        K = np.zeros((len(X), len(Y)))
        for x, y in np.ndindex(*K.shape):
            for s in X.captions_of(x):
                for t in Y.captions_of(y):
                    gains = kernel[np.ix_(s[s >= 0], t[t >= 0])]
                    K[x, y] += gains[linear_sum_assignment(gains, maximize=True)].sum()
        return K

    measure(f"word assignment, {share:.0%} of words similar, 1 thread", loop, X, Y)
