"""Memory and time of large problems, each in one call: what must not grow with the square.

Peak memory is the largest resident size while the work runs. Memory beyond the inputs is the
peak less the size before the work began: its inputs, the results that it was given to fill, and
Python. Needs Linux. Each benchmark is to run in a process of its own.
"""

import ctypes
import gc
import re
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from common import size, soft_word_kernel, training_captions

import kernelcore
from kernelcore.kcca import KCCA, LandmarkFeatures, feature_basis
from kernelcore.kernels import histogram_intersection, word_sequence

pytestmark = pytest.mark.slow


def resident(name):
    """Resident size of this process, now (VmRSS) or at its largest (VmHWM), in bytes."""
    found = re.search(rf"{name}:\s+(\d+) kB", Path("/proc/self/status").read_text())
    return 1024 * int(found[1])


@pytest.fixture
def measure(benchmark):
    """Run the work once, and store its time and its memory; returns its answer."""

    def run(work, size, call):
        gc.collect()
        ctypes.CDLL(None).malloc_trim(0)
        Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew
        before = resident("VmRSS")
        answers, peaks = [], []
        benchmark.pedantic(
            lambda: answers.append(call()), teardown=lambda: peaks.append(resident("VmHWM"))
        )
        peak = (peaks or [resident("VmHWM")])[0]
        about = {"extra_bytes": peak - before, "peak_bytes": peak}
        benchmark.extra_info |= {"work": work, "size": size, **about}
        return answers[0]

    return run


@pytest.mark.parametrize("n_threads", [2])
def test_word_sequences(measure, n_threads):
    """Gram matrix of all training captions, into a matrix that is there."""
    captions = training_captions()
    out = np.zeros((len(captions), len(captions)), np.float32)
    options = {"word_kernel": soft_word_kernel(captions.n_words), "dtype": np.float32}
    expected = word_sequence(captions.select(range(5)), **options)
    about = f"{captions.n_captions:,} captions, one input"
    gram = measure("word sequences", about, lambda: word_sequence(captions, out=out, **options))
    np.testing.assert_allclose(gram[:5, :5], expected, rtol=1e-4)


def check_correlations(correlations):
    """They fall from above 0.5 and lie in [0, 1]: the views share what was put into both."""
    assert (np.diff(correlations) <= 1e-6).all()
    assert 0.5 < correlations[0] <= 1.0 + 1e-6


def histograms_of(captions, rng, n_bins=1000):
    """Histograms of photos made from the words of their captions and noise."""
    n_words = np.diff(captions.caption_offsets[captions.image_offsets])
    owners = np.repeat(np.arange(len(captions)), n_words)
    X = rng.gamma(0.2, size=(len(captions), n_bins)).astype(np.float32)
    np.add.at(X, (owners, captions.word_ids % n_bins), np.float32(1.0))
    return X / X.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("n_threads", [2])
@pytest.mark.parametrize("n", [25_000, 50_000, 100_000])
def test_landmark_kcca(measure, n, n_threads):
    """Kernel CCA over landmarks of generated photos and captions resampled from real ones."""
    n, n_landmarks = size(n, 1000), size(300, 50)
    rng = np.random.default_rng(0)
    real = training_captions()
    captions = real.select(rng.integers(0, len(real), n))
    photos = histograms_of(captions, rng)

    def fit():
        bases = []
        for kernel, view in ((histogram_intersection, photos), (word_sequence, captions)):
            landmarks = LandmarkFeatures(
                partial(kernel), n_landmarks=n_landmarks, choice="random", rng=0
            )
            bases.append(feature_basis(landmarks.fit_transform(view)))
        return KCCA(size(100, 20), regularization=(0.1, 2.0)).fit(*bases).correlations_

    about = f"{n:,} images, {captions.n_captions:,} captions, {n_landmarks} landmarks"
    check_correlations(measure("landmark KCCA", about, fit))


@pytest.mark.parametrize("n_threads", [2])
@pytest.mark.parametrize("source", ["scores", "embeddings"])
def test_evaluation(measure, source, n_threads):
    """All metrics of both tasks."""
    n, n_dimensions = size(5000, 200), size(768, 32)
    shapes = {"scores": [(n, 5 * n)], "embeddings": [(n, n_dimensions), (5 * n, n_dimensions)]}
    rng = np.random.default_rng(0)
    inputs = [rng.standard_normal(shape, dtype=np.float32) for shape in shapes[source]]
    names = (
        ["annotation_scores"] if source == "scores" else ["image_vectors", "caption_vectors"]
    )
    evaluate = partial(kernelcore.evaluate, captions_per_image=5)
    evaluate(np.eye(50, 8), np.eye(250, 8))  # loads what it needs
    about = " and ".join(f"{len(one):,} x {one.shape[1]:,}" for one in inputs)
    found = dict(zip(names, inputs, strict=True))
    measure(f"evaluation from {source}", f"{about}, float32", partial(evaluate, **found))
