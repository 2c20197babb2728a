"""Word assignment of captions, where all or few words are similar, beside SciPy."""

from itertools import pairwise

import numpy as np
import pytest
from common import as_lists, size, training_captions
from scipy.optimize import linear_sum_assignment

from kernelcore.kernels import word_assignment
from kernelcore.reference.kernels import word_assignment as reference_assignment


def similarities(n_words, share):
    """Symmetric similarities of a share of the words."""
    rng = np.random.default_rng(1)
    kernel = rng.random((n_words, n_words), np.float32)
    kernel *= rng.random((n_words, n_words), np.float32) < share
    kernel = np.triu(kernel, 1)
    return kernel + kernel.T + np.eye(n_words, dtype=np.float32)


def loop_over_scipy(X, Y, kernel):
    """Similarities of all words that occur, looked up pair by pair."""
    ids, words = np.unique(np.concatenate([X.word_ids, Y.word_ids]), return_inverse=True)
    similar = np.eye(len(ids), dtype=np.float32)
    known = np.flatnonzero(ids >= 0)
    similar[np.ix_(known, known)] = kernel[np.ix_(ids[known], ids[known])]
    x, y = (
        [part[a:b] for a, b in pairwise(captions.caption_offsets)]
        for captions, part in zip((X, Y), np.split(words, [len(X.word_ids)]), strict=True)
    )
    K = np.zeros((len(x), len(y)))
    for i, j in np.ndindex(*K.shape):
        gains = similar[np.ix_(x[i], y[j])]
        K[i, j] = gains[linear_sum_assignment(gains, maximize=True)].sum()
    return K


@pytest.mark.parametrize("peer", ["kernelcore", "scipy.optimize.linear_sum_assignment, a loop"])
@pytest.mark.parametrize("n", [2, 10, 20, 40])
@pytest.mark.parametrize("similar", [0.02, 1.0])
def test_word_assignment(benchmark, peer, similar, n):
    n = size(n, 6)
    X, Y = (
        training_captions().select(np.arange(start, start + n)).caption_as_image()
        for start in (0, n)
    )
    benchmark.extra_info["work"] = f"word assignment, {similar:.0%} of words similar"
    benchmark.extra_info["size"] = f"{X.n_captions:,} x {Y.n_captions:,} captions"
    kernel = similarities(X.n_words, similar)

    def kappa(a, b):
        return float(a == b) if min(a, b) < 0 else float(kernel[a, b])

    few = (as_lists(Z.select(range(8))) for Z in (X, Y))
    expected = reference_assignment(*few, kappa=kappa, normalize=False)
    options = {"word_kernel": kernel, "normalize": False, "n_threads": 1}
    call = {
        "kernelcore": lambda: word_assignment(X, Y, **options),
        "scipy.optimize.linear_sum_assignment, a loop": lambda: loop_over_scipy(X, Y, kernel),
    }[peer]
    np.testing.assert_allclose(call()[:8, :8], expected, rtol=1e-5)
    benchmark(call)
