"""Memory and time of large problems, each in one call: what must not grow with the square.

Peak memory is the largest resident size while the work runs. Memory beyond the inputs is the
peak less the size before the work began: its inputs, the results that it was given to fill, and
Python. Needs Linux. bench/run.py runs each test function in a process of its own.
"""

import ctypes
import gc
import os
import re
import shutil
import time
from functools import partial
from pathlib import Path

import data
import numpy as np
import pytest
import results
from results import target

import kernelcore
from kernelcore._threads import resolve_n_threads
from kernelcore.kcca import (
    KCCA,
    KernelColumns,
    LandmarkFeatures,
    feature_basis,
    partial_gram_schmidt,
)
from kernelcore.kernels import histogram_intersection, word_sequence

N_COLUMNS, RANK = data.size(30_000, 2000), data.size(300, 50)
N_IMAGES, N_BINS, N_LANDMARKS = data.size(100_000, 4000), 1000, data.size(300, 50)
N_COMPONENTS = data.size(100, 20)
N_POOL, PER_IMAGE, N_DIMENSIONS = data.size(5000, 200), 5, data.size(768, 32)
N_PHOTOS = data.size(96, 8)
N_ALL_PHOTOS = 8000

pytestmark = pytest.mark.slow
needs_photos = pytest.mark.skipif(
    not (data.FLICKR / "images").is_dir(),
    reason="needs the photos of Flickr8k, see docs/data.md",
)


@pytest.fixture
def measure_memory(benchmark):
    """Run the work once, check its answer, and store its time and its memory."""

    def run(work, call, check=lambda answer: None, *, way="kernelcore", targets=(), **about):
        answers, peaks = [], []

        def ended():
            peaks.append(status("VmHWM"))
            check(answers[-1])

        gc.collect()
        ctypes.CDLL(None).malloc_trim(0)
        Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew
        before = status("VmRSS")
        benchmark.group = f"{work}, time and memory"
        benchmark.pedantic(lambda: answers.append(call()), teardown=ended)
        if benchmark.disabled:
            ended()
        benchmark.extra_info |= {
            "work": work,
            "way": str(way),
            "n_threads": resolve_n_threads(None),
            "instruction_set": results.instruction_set(),
            "targets": list(targets),
            "extra_bytes": peaks[0] - before,
            "peak_bytes": peaks[0],
            **about,
        }

    return run


def status(name):
    """Resident size of this process, now (VmRSS) or at its largest (VmHWM), in bytes."""
    found = re.search(rf"{name}:\s+(\d+) kB", Path("/proc/self/status").read_text())
    return 1024 * int(found[1])


def test_word_sequences(measure_memory, captions):
    """Gram matrix of all training captions, into a matrix that is there."""
    kernel = data.soft_word_kernel(captions.n_words)
    out = np.zeros((len(captions), len(captions)), np.float32)
    options = {"word_kernel": kernel, "dtype": np.float32}
    expected = word_sequence(captions.select(range(5)), **options)
    measure_memory(
        "word sequences",
        lambda: word_sequence(captions, out=out, **options),
        lambda gram: np.testing.assert_allclose(gram[:5, :5], expected, rtol=1e-4),
        shape=f"{captions.n_captions:,} captions, one input",
        targets=[target("extra_bytes <= 200e6")],
    )


def check_correlations(correlations):
    """They fall from above 0.5 and lie in [0, 1]: the views share what was put into both."""
    assert (np.diff(correlations) <= 1e-6).all()
    assert 0.5 < correlations[0] <= 1.0 + 1e-6


def test_kernel_columns(measure_memory, benchmark):
    """Kernel CCA of two kernels of which only columns are ever computed."""
    views = data.blobs(N_COLUMNS)

    def fit():
        bases = []
        for view in views:
            K = KernelColumns.of(data.rbf, view)
            found = partial_gram_schmidt(K, tolerance=0.0, max_rank=RANK)
            bases.append(feature_basis(found.features))
        return KCCA(20, regularization=1.0).fit(*bases).correlations_

    measure_memory(
        "kernel columns on demand",
        fit,
        check_correlations,
        shape=f"two views of {N_COLUMNS:,} samples, rank {RANK}",
        targets=[target("matrices <= 1")],
    )
    info = benchmark.extra_info
    info["matrices"] = info["extra_bytes"] / (8 * N_COLUMNS**2)


def histograms_of(captions, rng):
    """Histograms of photos made from the words of their captions and noise."""
    n_words = np.diff(captions.caption_offsets[captions.image_offsets])
    owners = np.repeat(np.arange(len(captions)), n_words)
    X = rng.gamma(0.2, size=(len(captions), N_BINS)).astype(np.float32)
    np.add.at(X, (owners, captions.word_ids % N_BINS), np.float32(1.0))
    return X / X.sum(axis=1, keepdims=True)


@pytest.mark.ways(N_IMAGES, N_IMAGES // 2, N_IMAGES // 4)
def test_landmark_kcca(measure_memory, way):
    """Kernel CCA over landmarks of generated photos and captions resampled from real ones."""
    rng = np.random.default_rng(0)
    real = data.training_captions()
    captions = real.select(rng.integers(0, len(real), way))
    photos = histograms_of(captions, rng)

    def fit():
        bases = []
        for kernel, view in ((histogram_intersection, photos), (word_sequence, captions)):
            landmarks = LandmarkFeatures(
                partial(kernel), n_landmarks=N_LANDMARKS, choice="random", rng=0
            )
            bases.append(feature_basis(landmarks.fit_transform(view)))
        kcca = KCCA(N_COMPONENTS, regularization=(0.1, 2.0)).fit(*bases)
        return kcca.correlations_

    measure_memory(
        "landmark KCCA, images",
        fit,
        check_correlations,
        way=way,
        exponent=1,
        shape=f"{way:,} images, {captions.n_captions:,} captions, {N_LANDMARKS} landmarks",
        targets=[target(text, of=str(way)) for text in ("peak_bytes <= 8e9", "exponent <= 1.1")]
        if way == N_IMAGES
        else [],
    )


@needs_photos
def test_photos(measure_memory, benchmark):
    """Visual words of a sample of photos; the time of all is a multiple of it."""
    from kernelcore.images import VisualWords

    paths = sorted((data.FLICKR / "images").glob("*.jpg"))
    some = paths[:: max(1, len(paths) // N_PHOTOS)][:N_PHOTOS]
    start = time.perf_counter()
    words = VisualWords(rng=0, n_sample_images=data.size(200, 8)).fit(paths)
    codebooks = time.perf_counter() - start
    measure_memory(
        "photos",
        lambda: words.transform(some),
        shape=f"{len(some)} photos",
        targets=[target("extrapolated_seconds <= 600")],
    )
    if benchmark.enabled:
        each = benchmark.stats["min"] / len(some)
        benchmark.extra_info["extrapolated_seconds"] = codebooks + N_ALL_PHOTOS * each
        benchmark.extra_info["n_extrapolated"] = N_ALL_PHOTOS


def all_metrics(**arguments):
    return kernelcore.evaluate(**arguments, captions_per_image=PER_IMAGE).to_dict()


def test_evaluation_from_scores(measure_memory):
    """All metrics of both tasks from a matrix of scores."""
    shape = (N_POOL, PER_IMAGE * N_POOL)
    scores = np.random.default_rng(0).standard_normal(shape, dtype=np.float32)
    few = np.ascontiguousarray(scores[:50, : 50 * PER_IMAGE])
    all_metrics(annotation_scores=few)  # loads what has to be loaded
    measure_memory(
        "evaluation from scores",
        lambda: all_metrics(annotation_scores=scores),
        shape=f"{shape[0]:,} x {shape[1]:,}, float32",
    )


def test_evaluation_from_embeddings(measure_memory):
    """All metrics of both tasks from embeddings."""
    rng = np.random.default_rng(0)
    images, captions = (
        rng.standard_normal((n, N_DIMENSIONS), dtype=np.float32)
        for n in (N_POOL, PER_IMAGE * N_POOL)
    )
    all_metrics(image_vectors=images[:50], caption_vectors=captions[: 50 * PER_IMAGE])
    measure_memory(
        "evaluation from embeddings",
        lambda: all_metrics(image_vectors=images, caption_vectors=captions),
        shape=f"{N_POOL:,} x {len(captions):,} x {N_DIMENSIONS}, float32",
    )


@needs_photos
@pytest.mark.skipif(data.SMALL, reason="a study has one size")
def test_study(measure_memory, benchmark, tmp_path):
    """Tri5Sem from photos to significance tests, with nothing cached but what this run makes.

    If KERNELCORE_BENCH_PHOTOS names a cache folder with the features of photos, they are used.
    """
    from kernelcore.experiments import hodosh2013

    if photos := os.environ.get("KERNELCORE_BENCH_PHOTOS"):
        shutil.copytree(photos, tmp_path, dirs_exist_ok=True)
    stages = {}

    def run():
        options = {"systems": ["Tri5Sem"], "cache_dir": tmp_path}
        study = hodosh2013.Hodosh2013(data=data.FLICKR, **options)
        study.run(tmp_path / "results")
        stages.update((stage.name, stage.seconds) for stage in study.stages.stages)

    measure_memory(
        "Tri5Sem",
        run,
        shape="one system of the study of 2013, from photos to tests",
        targets=[target("seconds_without_photos <= 180")],
    )
    total = sum(stages.values())
    benchmark.extra_info["stages"] = stages
    benchmark.extra_info["seconds_without_photos"] = total - stages["histograms of photos"]
