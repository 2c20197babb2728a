"""Long calls of ``kernelcore.kernels`` and ``kernelcore.kcca``."""

from functools import partial

import numpy as np
from scipy import sparse
from table import table

from kernelcore import kcca, kernels
from kernelcore.captions import EncodedCaptions
from kernelcore.images import SpatialHistograms

CALLS, call = table()
RNG = np.random.default_rng(0)


def encoded(n, n_captions=5, n_tokens=12, n_words=3000):
    count = n * n_captions
    return EncodedCaptions(
        RNG.integers(0, n_words, count * n_tokens, np.int32),
        np.arange(count + 1) * n_tokens,
        np.arange(n + 1) * n_captions,
        np.tile(np.arange(n_captions), n),
        n_words,
    )


@call("kernels.histogram_intersection", 4000, 30, fast=True)
def histogram_intersection(n):
    X = RNG.random((n, 8000), np.float32)
    return partial(kernels.histogram_intersection, X)


@call("kernels.histogram_intersection[bytes]", 8000, 30, fast=True)
def intersection_of_bytes(n):
    X = RNG.integers(0, 256, (n, 16_000), np.uint8)
    return partial(kernels.histogram_intersection, X)


@call("kernels.histogram_intersection[sparse]", 4000, 30, fast=True)
def sparse_intersection(n):
    X = np.arange(n * 1500).reshape(n, 1500)
    return partial(kernels.histogram_intersection, sparse.csr_array(X % 7 * (X % 3 == 0) * 0.1))


@call("kernels.spatial_pyramid", 12_000, 30)
def spatial_pyramid(n):
    counts = RNG.integers(0, 9, (n, 16, 128), np.uint8)
    return partial(kernels.spatial_pyramid, SpatialHistograms.from_finest(counts, 3))


@call("kernels.tag_rank", 5000, 20, fast=True)
def tag_rank(n):
    return partial(kernels.tag_rank, encoded(n))


@call("kernels.TagRank.gram", 8000, 20)
def tag_rank_gram(n):
    captions = encoded(n)
    return partial(kernels.TagRank().fit(captions).gram, captions)


@call("kernels.word_sequence", 1500, 10, fast=True)
def word_sequence(n):
    captions = encoded(n, n_tokens=40)
    return partial(kernels.word_sequence, captions, max_length=4)


@call("kernels.word_sequence[soft]", 1500, 10, fast=True)
def soft_word_sequence(n):
    similar = sparse.random(3000, 3000, 0.003, format="csr", rng=0)
    word_kernel = (similar + similar.T) / 2 + sparse.eye_array(3000)
    return partial(kernels.word_sequence, encoded(n), word_kernel=word_kernel.tocsr())


@call("kernels.word_sequence_components", 1000, 10)
def word_sequence_components(n):
    return partial(kernels.word_sequence_components, encoded(n, n_tokens=30))


@call("kernels.word_assignment", 3000, 10, fast=True)
def word_assignment(n):
    return partial(kernels.word_assignment, encoded(n, n_words=30))


@call("kernels.word_assignment[long texts]", 8, 2, fast=True)
def assignment_of_long_texts(n):
    """A table for each word of one text and each of another."""
    factors = RNG.random((300, 4))
    texts = encoded(n, n_captions=1, n_tokens=3000 if n > 2 else 30, n_words=300)
    return partial(kernels.word_assignment, texts, word_kernel=factors @ factors.T / 4)


@call("kernels.bag_of_words", 30_000, 30)
def bag_of_words(n):
    return partial(kernels.bag_of_words, encoded(n, n_tokens=20))


@call("kernels.bag_of_words_f1", 30_000, 30)
def bag_of_words_f1(n):
    return partial(kernels.bag_of_words_f1, encoded(n, n_tokens=20))


@call("kernels.prepare", 60_000, 30, may_end=True)
def prepare(n):
    X = RNG.random((n, 2000), np.float32)
    return lambda n_threads=None: kernels.prepare(X, n_threads=n_threads).samples


@call("kernels.Prepared", 30_000, 30, may_end=True)
def prepared(n):
    captions = encoded(n, n_tokens=20)
    return lambda n_threads=None: kernels.bag_of_words(
        kernels.Prepared(captions, n_threads=n_threads)
    )


@call("kernels.CustomKernel.__call__", 5000, 30)
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
    return partial(kernel, X)


@call("kernels.gram_blocks", 6000, 30)
def gram_blocks(n):
    X = RNG.random((n, 8000), np.float32)
    return lambda: [block.values for block in kernels.gram_blocks(intersect, X)]


intersect = partial(kernels.histogram_intersection, n_threads=1)


def gram(n):
    X = RNG.normal(size=(n, n // 2))
    return X @ X.T


@call("kcca.KCCA", 3000, 30)
def fit(n):
    K = gram(n), gram(n)
    return lambda **run: kcca.KCCA(5, **run).fit(*K).correlations_


@call("kcca.factorize", 3000, 30)
def factorize(n):
    return partial(kcca.factorize, gram(n), gram(n))


@call("kcca.factorize[eigen]", 700, 30, delay=0.1, may_end=True)  # one call of LAPACK each
def factorize_eigen(n):
    return partial(kcca.factorize, gram(n), gram(n), decomposition="eigen")


@call("kcca.kernel_basis", 4000, 30)
def kernel_basis(n):
    return partial(kcca.kernel_basis, gram(n))


@call("kcca.partial_gram_schmidt", 4000, 30)
def partial_gram_schmidt(n):
    return partial(kcca.partial_gram_schmidt, gram(n))


@call("kcca.LandmarkFeatures.fit", 300_000, 300)
def landmarks(n):
    X = RNG.random((n, 50), np.float32)

    def fit(**run):
        features = kcca.LandmarkFeatures(intersect, n_landmarks=400, **run)
        return features.fit(X).transform(X[:9])

    return fit


@call("kcca.LandmarkFeatures.transform", 600_000, 300)
def landmark_transform(n):
    X = RNG.random((n, 50), np.float32)
    features = partial(kcca.LandmarkFeatures, intersect, n_landmarks=200, choice="random")
    return lambda **run: features(rng=0, **run).fit(X[:1000]).transform(X)
