"""Measure work for its memory or its length, each in a process of its own.

    python bench/scale.py            # memory of what must not grow with the square
    python bench/scale.py --long     # one system of the study of 2013, from photos to tests

Peak memory is the largest resident size while the work runs, less what the process had before
it began: its inputs, the results that it was given to fill, and Python. Needs Linux.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import data
import numpy as np
import record

import kernelcore
from kernelcore.captions import EncodedCaptions
from kernelcore.kcca import (
    KCCA,
    KernelColumns,
    LandmarkFeatures,
    feature_basis,
    partial_gram_schmidt,
)
from kernelcore.kernels import histogram_intersection, word_sequence

N_COLUMNS, RANK = record.size(30_000, 2000), record.size(300, 50)
N_IMAGES, N_BINS, N_LANDMARKS = record.size(100_000, 4000), 1000, record.size(300, 50)
N_COMPONENTS = record.size(100, 20)
N_POOL, PER_IMAGE, N_DIMENSIONS = record.size(5000, 200), 5, record.size(768, 32)
N_PHOTOS = record.size(96, 8)
N_ALL_PHOTOS = 8000


@dataclass(frozen=True)
class Cost:
    """What a piece of work took."""

    seconds: float
    extra_bytes: int
    peak_bytes: int


def cost_of(work: Callable[[], object]) -> Cost:
    """Time of the work, and memory beyond what the process has when it begins."""
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew
    before = _status("VmRSS")
    start = time.perf_counter()
    work()
    seconds = time.perf_counter() - start
    peak = _status("VmHWM")
    return Cost(seconds, peak - before, peak)


def _status(name: str) -> int:
    found = re.search(rf"{name}:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found is not None
    return 1024 * int(found[1])


def sequences() -> dict[str, Any]:
    """Word-sequence Gram matrix of all training captions, into a matrix that is there."""
    captions = data.training_captions().select(range(record.size(data.N_IMAGES, 300)))
    kernel = data.soft_word_kernel(captions.n_words)
    out = np.zeros((len(captions), len(captions)), np.float32)
    few = captions.select(range(5))
    options = {"word_kernel": kernel, "dtype": np.float32}
    cost = cost_of(lambda: word_sequence(captions, out=out, **options))
    np.testing.assert_allclose(out[:5, :5], word_sequence(few, **options), rtol=1e-4)
    return {**vars(cost), "n_captions": captions.n_captions}


def columns() -> dict[str, Any]:
    """Kernel CCA of two kernels of which only columns are ever computed."""
    views = data.blobs(N_COLUMNS)
    fitted: dict[str, Any] = {}

    def fit() -> None:
        bases = [
            feature_basis(
                partial_gram_schmidt(
                    KernelColumns.of(data.rbf, view), tolerance=0.0, max_rank=RANK
                ).features
            )
            for view in views
        ]
        fitted["correlations"] = KCCA(20, regularization=1.0).fit(*bases).correlations_

    cost = cost_of(fit)
    check_correlations(fitted["correlations"])
    return {**vars(cost), "n": N_COLUMNS, "rank": RANK, "matrix_bytes": 8 * N_COLUMNS**2}


def check_correlations(correlations: np.ndarray) -> None:
    """They fall from above 0.5 and lie in [0, 1]: the views share what was put into both."""
    assert (np.diff(correlations) <= 1e-6).all()
    assert 0.5 < correlations[0] <= 1.0 + 1e-6


def landmark_kcca(n_images: int) -> dict[str, Any]:
    """Kernel CCA over landmarks of generated photos and captions resampled from real ones.

    A photo's histogram is made from the words of its captions and noise, so that there is
    something to find.
    """
    rng = np.random.default_rng(0)
    real = data.training_captions()
    chosen = rng.integers(0, len(real), n_images)
    captions = real.select(chosen)
    photos = histograms_of(captions, rng)
    fitted: dict[str, Any] = {}

    def fit() -> None:
        views = zip((histogram_intersection, word_sequence), (photos, captions), strict=True)
        bases = [
            feature_basis(
                LandmarkFeatures(
                    partial(kernel), n_landmarks=N_LANDMARKS, choice="random", rng=0
                ).fit_transform(view)
            )
            for kernel, view in views
        ]
        fitted["correlations"] = (
            KCCA(N_COMPONENTS, regularization=(0.1, 2.0)).fit(*bases).correlations_
        )

    cost = cost_of(fit)
    check_correlations(fitted["correlations"])
    return {
        **vars(cost),
        "n_images": n_images,
        "n_captions": captions.n_captions,
        "n_landmarks": N_LANDMARKS,
    }


def histograms_of(captions: EncodedCaptions, rng: np.random.Generator) -> np.ndarray:
    n_words = np.diff(captions.caption_offsets[captions.image_offsets])
    owners = np.repeat(np.arange(len(captions)), n_words)
    X = rng.gamma(0.2, size=(len(captions), N_BINS)).astype(np.float32)
    np.add.at(X, (owners, captions.word_ids % N_BINS), np.float32(1.0))
    return X / X.sum(axis=1, keepdims=True)


def landmarks() -> dict[str, Any]:
    """The same for a quarter, a half and all of the images, for its growth."""
    sizes = [N_IMAGES // 4, N_IMAGES // 2, N_IMAGES]
    found = [in_child(f"landmarks of {n}") for n in sizes]
    seconds = [one["seconds"] for one in found]
    return {
        **found[-1],
        "sizes": sizes,
        "seconds_by_size": seconds,
        "exponent": float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0]),
    }


def photos() -> dict[str, Any]:
    """Visual words of a sample of photos; the time of all is a multiple of it."""
    from kernelcore.images import VisualWords

    paths = sorted((data.FLICKR / "images").glob("*.jpg"))
    some = paths[:: max(1, len(paths) // N_PHOTOS)][:N_PHOTOS]
    start = time.perf_counter()
    words = VisualWords(rng=0, n_sample_images=record.size(200, 8)).fit(paths)
    fit_seconds = time.perf_counter() - start
    cost = cost_of(lambda: words.transform(some))
    each = cost.seconds / len(some)
    return {
        **vars(cost),
        "n_photos": len(some),
        "codebooks_seconds": fit_seconds,
        "n_extrapolated": N_ALL_PHOTOS,
        "extrapolated_seconds": fit_seconds + N_ALL_PHOTOS * each,
    }


def evaluation_from_scores() -> dict[str, Any]:
    """All metrics of both tasks from a matrix of scores."""
    shape = (N_POOL, PER_IMAGE * N_POOL)
    scores = np.random.default_rng(0).standard_normal(shape, dtype=np.float32)
    few = scores[:50, : 50 * PER_IMAGE]
    kernelcore.evaluate(few, captions_per_image=PER_IMAGE)  # loads what has to be loaded
    cost = cost_of(lambda: kernelcore.evaluate(scores, captions_per_image=PER_IMAGE).to_dict())
    return {**vars(cost), "n_images": shape[0], "n_captions": shape[1]}


def evaluation_from_embeddings() -> dict[str, Any]:
    """The same from embeddings."""
    rng = np.random.default_rng(0)
    images, captions = (
        rng.standard_normal((n, N_DIMENSIONS), dtype=np.float32)
        for n in (N_POOL, PER_IMAGE * N_POOL)
    )

    def measure(n_images: int) -> dict[str, Any]:
        return kernelcore.evaluate(
            image_vectors=images[:n_images],
            caption_vectors=captions[: PER_IMAGE * n_images],
            captions_per_image=PER_IMAGE,
        ).to_dict()

    measure(50)
    cost = cost_of(lambda: measure(N_POOL))
    return {
        **vars(cost),
        "n_images": N_POOL,
        "n_captions": len(captions),
        "n_dimensions": N_DIMENSIONS,
    }


def study() -> dict[str, Any]:
    """Tri5Sem from photos to significance tests.

    Nothing is cached but what this run makes, and features of photos if
    KERNELCORE_BENCH_PHOTOS names a cache folder that has no more than these.
    """
    from kernelcore.experiments import hodosh2013

    with tempfile.TemporaryDirectory() as folder:
        if photos_of := os.environ.get("KERNELCORE_BENCH_PHOTOS"):
            shutil.copytree(photos_of, folder, dirs_exist_ok=True)
        done = hodosh2013.run(data.FLICKR, systems=["Tri5Sem"], cache_dir=folder)
    stages = {stage.name: stage.seconds for stage in done.stages.stages}
    total = sum(stages.values())
    return {
        "stages": stages,
        "peak_bytes": max(stage.peak_bytes or 0 for stage in done.stages.stages),
        "total_seconds": total,
        "seconds_without_photos": total - stages["histograms of photos"],
    }


CASES: dict[str, Callable[[], dict[str, Any]]] = {
    "word sequences": sequences,
    "kernel columns on demand": columns,
    "landmark KCCA": landmarks,
    "photos": photos,
    "evaluation from scores": evaluation_from_scores,
    "evaluation from embeddings": evaluation_from_embeddings,
}
LONG = {"Tri5Sem": study}
NEED_FLICKR = {"photos", "Tri5Sem"}


def in_child(case: str) -> dict[str, Any]:
    """Result of a case in a fresh process, whose memory nobody else has touched."""
    done = subprocess.run(
        [sys.executable, __file__, "--case", case], capture_output=True, text=True, check=False
    )
    if done.returncode:
        sys.exit(f"{case} failed:\n{done.stderr}")
    return dict(json.loads(done.stdout.splitlines()[-1]))


def run(case: str) -> dict[str, Any]:
    """Measure a case, or a part of one, in this process."""
    if case.startswith("landmarks of "):
        return landmark_kcca(int(case.rpartition(" ")[2]))
    return {**CASES, **LONG}[case]()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--long", action="store_true", help="run the study instead")
    parser.add_argument("--resume", action="store_true", help="measure what is not kept yet")
    parser.add_argument("--case", help="run one case here and print it")
    options = parser.parse_args()
    if options.case:
        print(json.dumps(run(options.case)))
        return
    for case in LONG if options.long else CASES:
        if case in NEED_FLICKR and not (data.FLICKR / "images").is_dir():
            print(f"{case}: needs the photos of Flickr8k, see docs/data.md")
            continue
        if options.resume and record.is_stored("scale", case):
            continue
        found = in_child(case)
        record.store("scale", case, found)
        print(f"{case}: {found}")


if __name__ == "__main__":
    main()
