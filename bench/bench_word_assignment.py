"""Word assignment between captions, exact and with a word kernel, against a loop over SciPy."""

from itertools import pairwise

import data
import numpy as np
import pytest
from results import target
from scipy.optimize import linear_sum_assignment

from kernelcore.kernels import word_assignment
from kernelcore.reference.kernels import word_assignment as reference_assignment

N_IMAGES, N_LOOPED = data.size(400, 40), data.size(40, 6)
WORDS = {"none": 0.0, "2 %": 0.02, "all": 1.0}


def drawn_kernel(n_words, share):
    """Symmetric similarities of a share of the words; None where words match exactly."""
    if not share:
        return None
    rng = np.random.default_rng(1)
    kernel = rng.random((n_words, n_words), np.float32)
    kernel *= rng.random((n_words, n_words), np.float32) < share
    kernel = np.triu(kernel, 1)
    return kernel + kernel.T + np.eye(n_words, dtype=np.float32)


def similarity_of(kernel):
    """Similarity of two words; those outside the vocabulary are alike if they are the same."""

    def kappa(a, b):
        if kernel is None or min(a, b) < 0:
            return float(a == b)
        return float(kernel[a, b])

    return kappa


def by_scipy(X, Y, kernel):
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


@pytest.mark.parametrize("similar", WORDS)
def test_all_pairs(measure, captions, similar):
    measure(**problem(captions, similar, N_IMAGES, "all"))


@pytest.mark.ways("kernelcore", "scipy, a loop")
@pytest.mark.parametrize("similar", ["2 %", "all"])
def test_beside_scipy(measure, captions, similar):
    measure(**problem(captions, similar, N_LOOPED, "beside SciPy"))


def problem(captions, similar, n_images, where):
    X, Y = (
        captions.select(np.arange(start, start + n_images)).caption_as_image()
        for start in (0, n_images)
    )
    kernel = drawn_kernel(captions.n_words, WORDS[similar])
    few = (data.as_lists(Z.select(range(8))) for Z in (X, Y))
    expected = reference_assignment(*few, kappa=similarity_of(kernel), normalize=False)
    options = {"word_kernel": kernel, "normalize": False, "n_threads": 1}
    ways = {"kernelcore": lambda: word_assignment(X, Y, **options)}
    if where == "beside SciPy":
        ways["scipy, a loop"] = lambda: by_scipy(X, Y, kernel)
    return {
        "work": f"word assignment, {similar} of words similar, {where}",
        "ways": ways,
        "check": lambda gram: np.testing.assert_allclose(gram[:8, :8], expected, rtol=1e-5),
        "rounds": 3,
        "shape": f"{X.n_captions:,} x {Y.n_captions:,} captions",
        "size": float(X.n_captions * Y.n_captions),
        "unit": "pairs",
        "targets": [target("rate >= 1e6")] if kernel is not None and where == "all" else [],
    }
