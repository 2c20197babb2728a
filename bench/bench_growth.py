"""How time grows with the size of a problem: each size is a way of its curve's group.

A curve changes one size and keeps the others. CPU time of one thread counts, so that what
others take of the machine does not. bench/report.py fits a line through the logarithms.
"""

import time

import data
import numpy as np
import pytest
from results import target

from kernelcore.evaluation.ranks import retrieval_ranks
from kernelcore.kcca import LandmarkFeatures, partial_gram_schmidt
from kernelcore.kernels import histogram_intersection, word_sequence
from kernelcore.reference.evaluation import gold_ranks as reference_ranks
from kernelcore.reference.kernels import (
    histogram_intersection as reference_intersection,
)
from kernelcore.reference.kernels import word_sequence as reference_sequence

pytestmark = pytest.mark.benchmark(timer=time.process_time)


def sizes(*values):
    """Sizes of a curve; the first two where problems are small."""
    return pytest.mark.ways(*values[: data.size(len(values), 2)])


@pytest.fixture
def measure_curve(request, measure, way):
    """Measure one size of a curve, whose exponent is known where its leading term counts."""

    def run(curve, call, check, *, exponent, shape, targets=()):
        about = {"shape": shape, "exponent": exponent}
        is_first = way == request.node.get_closest_marker("ways").args[0]
        targets = [target(text, of=str(way)) for text in targets if is_first]
        measure(f"growth of {curve}", {way: call}, check=check, targets=targets, **about)

    return run


def intersection(n, n_bins):
    X = np.random.default_rng(0).random((n, n_bins), np.float32)
    few = X[:3].astype(np.float64)
    expected = reference_intersection(few, few)
    return lambda: histogram_intersection(
        X, n_threads=1
    ), lambda gram: np.testing.assert_allclose(gram[:3, :3], expected, rtol=1e-5)


@sizes(250, 500, 1000, 2000)
def test_intersection_by_images(measure_curve, way):
    measure_curve(
        "histogram intersection, images",
        *intersection(way, 2000),
        exponent=2,
        shape="2,000 bins, one input",
        targets=["exponent <= 2.1"],
    )


@sizes(1000, 2000, 4000, 8000, 16_000)
def test_intersection_by_bins(measure_curve, way):
    measure_curve(
        "histogram intersection, bins",
        *intersection(400, way),
        exponent=1,
        shape="400 images, one input",
    )


def sequences(n_captions, length, n_words):
    captions = data.drawn_captions(n_captions // data.N_CAPTIONS, n_words, length)
    kernel = data.soft_word_kernel(n_words)
    similar, lists = kernel.todok(), data.as_lists(captions.select(range(1)))
    expected = reference_sequence(
        lists, lists, lambda a, b: similar.get((a, b), 0.0), normalize=True
    )
    return lambda: word_sequence(
        captions, word_kernel=kernel, n_threads=1
    ), lambda gram: np.testing.assert_allclose(gram[:1, :1], expected, rtol=1e-4)


@sizes(1250, 2500, 5000, 10_000)
def test_sequences_by_captions(measure_curve, way):
    measure_curve(
        "word sequences, captions", *sequences(way, 8, 3000), exponent=2, shape="8 words each"
    )


@sizes(4, 8, 16, 32)
def test_sequences_by_length(measure_curve, way):
    measure_curve(
        "word sequences, words in a caption",
        *sequences(2500, way, 3000),
        exponent=2,
        shape="2,500 captions",
    )


@sizes(500, 1000, 2000, 4000, 8000)
def test_sequences_by_vocabulary(measure_curve, way):
    measure_curve(
        "word sequences, vocabulary",
        *sequences(2500, 8, way),
        exponent=0,
        shape="2,500 captions of 8 words, 1 % of all words similar",
    )


@sizes(200, 400, 800, 1600)
def test_gram_schmidt_by_rank(measure_curve, way):
    K = data.rbf(*[np.random.default_rng(0).normal(size=(2000, 20))] * 2)

    def check(result):
        few = result.pivots[:20]
        np.testing.assert_allclose(result.features[few] @ result.features.T, K[few], atol=1e-6)

    measure_curve(
        "partial Gram-Schmidt, rank",
        lambda: partial_gram_schmidt(K, tolerance=0.0, max_rank=way),
        check,
        exponent=2,
        shape="2,000 samples",
    )


@sizes(10_000, 20_000, 40_000, 80_000)
def test_landmarks_by_images(measure_curve, way):
    X = np.random.default_rng(0).random((way, 500), np.float32)

    def features():
        estimator = LandmarkFeatures(
            lambda A, B: histogram_intersection(A, B, n_threads=1), n_landmarks=100
        )
        return estimator.fit_transform(X)

    def check(F):
        assert ((F**2).sum(axis=1) <= X.sum(axis=1) * (1 + 1e-3)).all()

    measure_curve(
        "landmark features, images",
        features,
        check,
        exponent=1,
        shape="100 landmarks, 500 bins",
        targets=["exponent <= 1.1"],
    )


@sizes(1000, 2000, 4000)
def test_ranks_by_images(measure_curve, way):
    scores = np.random.default_rng(0).random((way, way), np.float32)
    expected = reference_ranks(scores[:3].tolist(), [[0], [1], [2]])

    def check(ranks):
        assert ranks.annotation[:3].tolist() == expected

    measure_curve(
        "ranks, images and captions",
        lambda: retrieval_ranks(scores, np.arange(way), n_threads=1),
        check,
        exponent=2,
        shape="both directions from the scores",
    )
