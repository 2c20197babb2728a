"""Spatial pyramids beside one intersection and SciPy, and dense SIFT beside OpenCV.

One intersection of the concatenated, weighted cells is the least that a pyramid of fractions
can cost: the same minima, without levels. SciPy computes the city-block distances of the same
rows. OpenCV describes the same points of the same image; a keypoint of size s has bins of 1.5 s
pixels.
"""

from functools import cache

import numpy as np
import pytest
from common import size
from scipy.spatial.distance import cdist

from kernelcore._threads import one_blas_thread
from kernelcore.images import SpatialHistograms, dense_sift
from kernelcore.kernels import histogram_intersection, spatial_pyramid
from kernelcore.reference.kernels import spatial_pyramid as reference_pyramid

LEVELS, WORDS = 3, 640
WEIGHTS = np.repeat([1 / 4] * 5 + [1 / 2] * 16, WORDS)
SIZES = ["one size", "many sizes"]
# Height, width, step, bin size; the first is what `VisualWords` does.
GRIDS = [(224, 224, 2, 3.0), *((375, 500, 8, bin_size) for bin_size in (3.0, 8.0, 12.0, 24.0))]


@cache
def pyramids(sizes, n):
    finest = np.random.default_rng(1).integers(0, 9, (n, 16, WORDS)).astype(np.uint16)
    if sizes == "one size":  # the surplus goes into one word of the first cell
        totals = finest.sum((1, 2), dtype=np.int64)
        finest[:, 0, 0] += (totals.max() - totals).astype(np.uint16)
    return SpatialHistograms.from_finest(finest, LEVELS)


@cache
def weighted_cells(sizes, n):
    images = pyramids(sizes, n)
    fractions = images.counts.reshape(len(images), -1) / images.totals[:, np.newaxis]
    return (fractions * WEIGHTS).astype(np.float32)


@pytest.mark.parametrize(
    "peer", ["kernelcore", "kernelcore, one intersection", "scipy.spatial.distance.cdist"]
)
@pytest.mark.parametrize("n_threads", [1, 2])
@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("n", [250, 500, 1000])
def test_spatial_pyramid(benchmark, peer, n, sizes, n_threads):
    if peer.startswith("scipy") and n_threads > 1:
        pytest.skip("SciPy has one thread")
    benchmark.extra_info["work"] = f"spatial pyramid, photos of {sizes}"
    images, X = pyramids(sizes, size(n, 60)), weighted_cells(sizes, size(n, 60))
    benchmark.extra_info["size"] = f"{len(images):,} images, {LEVELS} levels, {WORDS} words"
    wide = X.astype(np.float64)
    masses = wide.sum(1)[:, np.newaxis] + wide.sum(1)
    call = {
        "kernelcore": lambda: spatial_pyramid(images, dtype=np.float32, n_threads=n_threads),
        "kernelcore, one intersection": lambda: histogram_intersection(X, n_threads=n_threads),
        "scipy.spatial.distance.cdist": lambda: cdist(wide, wide, "cityblock"),
    }[peer]
    few = images.select(np.arange(5))
    expected = reference_pyramid(few.counts, few.counts, few.totals, few.totals, LEVELS)
    gram = (masses - call()) / 2 if peer.startswith("scipy") else call()
    np.testing.assert_allclose(gram[:5, :5], expected, rtol=1e-5)
    benchmark(call)


@pytest.mark.parametrize("peer", ["kernelcore", "kernelcore, one by one"])
@pytest.mark.parametrize("sizes", SIZES)
def test_both_reflections(benchmark, peer, sizes):
    benchmark.extra_info["work"] = f"spatial pyramid, both reflections, photos of {sizes}"
    images = pyramids(sizes, size(1000, 60))
    benchmark.extra_info["size"] = f"{len(images):,} images, {LEVELS} levels, {WORDS} words"
    mirrored = images.mirrored()
    options = {"dtype": np.float32, "n_threads": 1}

    def one_by_one():
        plain, reflected = (spatial_pyramid(images, Y, **options) for Y in (None, mirrored))
        return (plain + reflected) / 2

    call = {
        "kernelcore": lambda: spatial_pyramid(images, mirror=True, **options),
        "kernelcore, one by one": one_by_one,
    }[peer]
    np.testing.assert_allclose(call()[:5, :5], one_by_one()[:5, :5], rtol=1e-5)
    benchmark(call)


@pytest.mark.parametrize("peer", ["kernelcore", "cv2.SIFT.compute"])
@pytest.mark.parametrize("grid", GRIDS, ids=str)
def test_dense_sift(benchmark, peer, grid):
    import cv2

    height, width, step, bin_size = grid
    benchmark.extra_info["work"] = f"dense SIFT, step {step}, bins of {bin_size:g}"
    benchmark.extra_info["size"] = f"{width} x {height} pixels"
    noise = np.random.default_rng(0).integers(0, 256, (height, width), np.uint8)
    grey = cv2.GaussianBlur(noise, (0, 0), 2.0)
    found = dense_sift(grey, step=step, bin_size=bin_size)
    sift = cv2.SIFT_create(sigma=0.5)
    points = [
        cv2.KeyPoint(float(x), float(y), 2 * bin_size / 3, 0.0, 0.0, 0)
        for y in found.y
        for x in found.x
    ]
    ours = np.minimum(np.rint(512 * found.points), 255)
    assert np.abs(ours - sift.compute(grey, points)[1]).max() <= 1
    if peer == "kernelcore":
        with one_blas_thread():
            benchmark(dense_sift, grey, step=step, bin_size=bin_size)
    else:
        benchmark(sift.compute, grey, points)
