"""How time grows with one size of a problem, while the others stay.

CPU time of one thread counts, so that what others take of the machine does not. bench/report.py
fits a line through the logarithms; the exponent that is stored is that of the leading term. The
benchmarks of the same functions check the answers.
"""

import time
from functools import partial

import numpy as np
import pytest
from common import N_CAPTIONS, N_WORDS, drawn_captions, rbf, size, soft_word_kernel

from kernelcore.evaluation.ranks import retrieval_ranks
from kernelcore.images import SpatialHistograms
from kernelcore.kcca import LandmarkFeatures, partial_gram_schmidt
from kernelcore.kernels import (
    bag_of_words,
    histogram_intersection,
    spatial_pyramid,
    tag_rank,
    word_assignment,
    word_sequence,
)


def intersection(n, n_bins):
    X = np.random.default_rng(0).random((n, n_bins), np.float32)
    return lambda: histogram_intersection(X, n_threads=1)


def sequences(n_captions=2500, length=8, n_words=N_WORDS):
    captions = drawn_captions(size(n_captions, 100) // N_CAPTIONS, n_words, length)
    kernel = soft_word_kernel(n_words)
    return lambda: word_sequence(captions, word_kernel=kernel, n_threads=1)


def of_captions(kernel, n_captions):
    captions = drawn_captions(size(n_captions, 100) // N_CAPTIONS, N_WORDS, 8)
    return lambda: kernel(captions, n_threads=1)


def pyramid(n):
    finest = np.random.default_rng(0).integers(0, 9, (n, 16, 50)).astype(np.uint16)
    X = SpatialHistograms.from_finest(finest, 3)
    return lambda: spatial_pyramid(X, n_threads=1)


def gram_schmidt(rank):
    X = np.random.default_rng(0).normal(size=(size(2000, 300), 20))
    K = rbf(X, X)
    return lambda: partial_gram_schmidt(K, tolerance=0.0, max_rank=rank)


def landmarks(n):
    X = np.random.default_rng(0).random((n, 500), np.float32)
    return lambda: LandmarkFeatures(
        lambda A, B: histogram_intersection(A, B, n_threads=1), n_landmarks=100
    ).fit_transform(X)


def ranks(n):
    scores = np.random.default_rng(0).random((n, n), np.float32)
    return lambda: retrieval_ranks(scores, np.arange(n), n_threads=1)


OF_WORDS = {
    "bag of words": bag_of_words,
    "tag rank": tag_rank,
    "word assignment": word_assignment,
}
CURVES = {
    "histogram intersection, images": (
        "2,000 bins, one input", 2, [250, 500, 1000, 2000], lambda n: intersection(n, 2000)),
    "histogram intersection, bins": (
        "400 images, one input", 1, [1000, 2000, 4000, 8000], lambda n: intersection(400, n)),
    "spatial pyramid, images": ("3 levels of 50 words", 2, [250, 500, 1000, 2000], pyramid),
    "word sequences, captions": (
        "8 words each", 2, [1250, 2500, 5000, 10_000], lambda n: sequences(n_captions=n)),
    "word sequences, words in a caption": (
        "2,500 captions", 2, [4, 8, 16, 32], lambda n: sequences(length=n)),
    "word sequences, vocabulary": (
        "2,500 captions of 8 words, 1 % of all words similar", 0, [500, 1000, 2000, 4000],
        lambda n: sequences(n_words=n)),
    **{f"{name}, captions": (
        "8 words each", 2, [1250, 2500, 5000], partial(of_captions, kernel))
        for name, kernel in OF_WORDS.items()},
    "partial Gram-Schmidt, rank": ("2,000 samples", 2, [200, 400, 800, 1600], gram_schmidt),
    "landmark features, images": (
        "100 landmarks, 500 bins", 1, [10_000, 20_000, 40_000, 80_000], landmarks),
    "ranks, images and captions": (
        "both directions from the scores", 2, [1000, 2000, 4000], ranks),
}  # fmt: skip
"""What stays, the exponent of the algorithm, the sizes, and the work of one size."""


@pytest.mark.benchmark(timer=time.process_time)
@pytest.mark.parametrize(
    ("curve", "n"), [(curve, n) for curve, about in CURVES.items() for n in about[2]]
)
def test_growth(benchmark, curve, n):
    stays, exponent, _, work_of = CURVES[curve]
    benchmark.extra_info |= {"work": curve, "size": stays, "n": n, "exponent": exponent}
    benchmark(work_of(size(n, 300)))
