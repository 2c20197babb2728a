"""Long calls of ``kernelcore.kernels`` and ``kernelcore.kcca``."""

from functools import partial

import numpy as np
from scipy import sparse
from table import Table

from kernelcore import kcca, kernels
from kernelcore.captions import EncodedCaptions
from kernelcore.images import SpatialHistograms

CALLS = Table()
RNG = np.random.default_rng(0)


def encoded(n, n_captions=5, n_tokens=12, n_words=3000):
    count = n * n_captions
    return EncodedCaptions(
        RNG.integers(0, n_words, count * n_tokens, np.int32), np.arange(count + 1) * n_tokens,
        np.arange(n + 1) * n_captions, np.tile(np.arange(n_captions), n), n_words,
    )  # fmt: skip


def texts(**sizes):
    return lambda n: [encoded(n, **sizes)]


def rows(n_columns):
    return lambda n: [RNG.random((n, n_columns), np.float32)]


def few_counts(n):
    X = np.arange(n * 1500).reshape(n, 1500)
    return [sparse.csr_array(X % 7 * (X % 3 == 0) * 0.1)]


def similar_words():
    similar = sparse.random(3000, 3000, 0.003, format="csr", rng=0)
    return ((similar + similar.T) / 2 + sparse.eye_array(3000)).tocsr()


def pyramids(n):
    return [SpatialHistograms.from_finest(RNG.integers(0, 9, (n, 16, 128), np.uint8), 3)]


def tag_rank_gram(n):
    captions = encoded(n)
    return [kernels.TagRank().fit(captions), captions]


def softly(n):
    return partial(kernels.word_sequence, encoded(n), word_kernel=similar_words())


def long_texts(n):
    """A table for each word of one text and each of another."""
    factors = RNG.random((300, 4))
    texts = encoded(n, n_captions=1, n_tokens=3000 if n > 2 else 30, n_words=300)
    return partial(kernels.word_assignment, texts, word_kernel=factors @ factors.T / 4)


def prepare(n):
    [X] = rows(2000)(n)
    return lambda **run: kernels.prepare(X, **run).samples


def prepared(n):
    captions = encoded(n, n_tokens=20)
    return lambda **run: kernels.bag_of_words(kernels.Prepared(captions, **run))


def custom(n):
    import numba

    @numba.njit
    def far(x, y):
        total = 0.0
        for _ in range(3):
            for i in range(len(x)):
                for j in range(len(y)):
                    total += abs(x[i] - y[j])
        return total

    kernel, X = kernels.custom(far), RNG.random((n, 40))
    kernel(X[:2])  # compiles
    return kernel, X


intersect = partial(kernels.histogram_intersection, n_threads=1)


def gram(n):
    X = RNG.normal(size=(n, n // 2))
    return X @ X.T


def two_grams(n):
    return gram(n), gram(n)


def fit_kcca(n):
    K = two_grams(n)
    return lambda **run: kcca.KCCA(5, **run).fit(*K).correlations_


def landmarks(n, n_fit=None, n_out=None, **options):
    [X] = rows(50)(n)

    def fit(**run):
        features = kcca.LandmarkFeatures(intersect, **options, **run)
        return features.fit(X[:n_fit]).transform(X[:n_out])

    return fit


INTERSECTION, SEQUENCE = "kernels.histogram_intersection", "kernels.word_sequence"
CALLS.add(INTERSECTION, 4000, 30, rows(8000), fast=True)
CALLS.add(
    f"{INTERSECTION}[bytes]", 8000, 30, lambda n: [RNG.integers(0, 256, (n, 16_000), np.uint8)],
    fast=True,
)  # fmt: skip
CALLS.add(f"{INTERSECTION}[sparse]", 4000, 30, few_counts, fast=True)
CALLS.add("kernels.spatial_pyramid", 12_000, 30, pyramids)
CALLS.add("kernels.tag_rank", 5000, 20, texts(), fast=True)
CALLS.add("kernels.TagRank.gram", 8000, 20, tag_rank_gram)
CALLS.add(SEQUENCE, 1500, 10, texts(n_tokens=40), max_length=4, fast=True)
CALLS.add(f"{SEQUENCE}[soft]", 1500, 10, softly, fast=True)
CALLS.add("kernels.word_sequence_components", 1000, 10, texts(n_tokens=30))
CALLS.add("kernels.word_assignment", 3000, 10, texts(n_words=30), fast=True)
CALLS.add("kernels.word_assignment[long texts]", 8, 2, long_texts, fast=True)
CALLS.add("kernels.bag_of_words", 30_000, 30, texts(n_tokens=20))
CALLS.add("kernels.bag_of_words_f1", 30_000, 30, texts(n_tokens=20))
CALLS.add("kernels.prepare", 60_000, 30, prepare, may_end=True)
CALLS.add("kernels.Prepared", 30_000, 30, prepared, may_end=True)
CALLS.add("kernels.CustomKernel.__call__", 5000, 30, custom)
CALLS.add("kcca.KCCA", 3000, 30, fit_kcca)
CALLS.add("kcca.factorize", 3000, 30, two_grams)
# One call of LAPACK for each view.
once = {"delay": 0.1, "may_end": True}
CALLS.add("kcca.factorize[eigen]", 700, 30, two_grams, decomposition="eigen", **once)
CALLS.add("kcca.kernel_basis", 4000, 30, lambda n: [gram(n)])
CALLS.add("kcca.partial_gram_schmidt", 4000, 30, lambda n: [gram(n)])
CALLS.add(
    "kcca.LandmarkFeatures.fit", 300_000, 300, partial(landmarks, n_out=9, n_landmarks=400)
)
CALLS.add(
    "kcca.LandmarkFeatures.transform",
    600_000,
    300,
    partial(landmarks, n_fit=1000, n_landmarks=200, choice="random", rng=0),
)
