"""Spatial pyramid Gram against one histogram intersection of concatenated, weighted cells.

That intersection is the least a pyramid of fractions can cost: the same minima, without
levels. The peer of the tables is SciPy's city-block distance of the same rows.
"""

import numpy as np
import pytest

from kernelcore.images.pyramid import SpatialHistograms
from kernelcore.kernels import histogram_intersection, spatial_pyramid
from kernelcore.reference.spatial_pyramid import spatial_pyramid as reference_pyramid

N, LEVELS, WORDS = 1000, 3, 640
WEIGHTS = np.repeat([1 / 4] * 5 + [1 / 2] * 16, WORDS)


@pytest.fixture(scope="module", params=["one size", "many sizes"])
def images(request):
    finest = np.random.default_rng(1).integers(0, 9, (N, 16, WORDS)).astype(np.uint16)
    if request.param == "one size":  # the surplus goes into one word of the first cell
        totals = finest.sum((1, 2), dtype=np.int64)
        finest[:, 0, 0] += (totals.max() - totals).astype(np.uint16)
    return request.param, SpatialHistograms.from_finest(finest, LEVELS)


def weighted_cells(images):
    fractions = images.counts.reshape(len(images), -1) / images.totals[:, None]
    return (fractions * WEIGHTS).astype(np.float32)


def check(images, gram):
    few = images.select(np.arange(5))
    counts, totals = few.counts, few.totals
    expected = reference_pyramid(counts, counts, totals, totals, LEVELS)
    np.testing.assert_allclose(gram[:5, :5], expected, rtol=1e-5)


def group(sizes, n_threads):
    return f"spatial pyramid, {N} images of {sizes}, {n_threads} thread(s)"


@pytest.mark.parametrize("n_threads", [1, 2])
def test_spatial_pyramid(benchmark, images, n_threads):
    sizes, pyramids = images
    check(pyramids, spatial_pyramid(pyramids, dtype=np.float32))
    benchmark.group = group(sizes, n_threads)
    benchmark.pedantic(
        lambda: spatial_pyramid(pyramids, dtype=np.float32, n_threads=n_threads),
        rounds=4,
        warmup_rounds=1,
    )


@pytest.mark.parametrize("n_threads", [1, 2])
def test_intersection_of_weighted_cells(benchmark, images, n_threads):
    sizes, pyramids = images
    X = weighted_cells(pyramids)
    check(pyramids, histogram_intersection(X))
    benchmark.group = group(sizes, n_threads)
    benchmark.pedantic(
        lambda: histogram_intersection(X, n_threads=n_threads), rounds=4, warmup_rounds=1
    )


def test_mirrored_views(benchmark, images):
    sizes, pyramids = images
    benchmark.group = group(sizes, 1) + ", both views"
    benchmark.pedantic(
        lambda: spatial_pyramid(pyramids, mirror=True, dtype=np.float32, n_threads=1), rounds=3
    )


def test_mirrored_views_one_by_one(benchmark, images):
    sizes, pyramids = images
    mirrored = pyramids.mirrored()

    def both():
        options = {"dtype": np.float32, "n_threads": 1}
        plain, reversed_ = (spatial_pyramid(pyramids, Y, **options) for Y in (None, mirrored))
        return (plain + reversed_) / 2

    np.testing.assert_allclose(
        both()[:5, :5], spatial_pyramid(pyramids, mirror=True)[:5, :5], rtol=1e-5
    )
    benchmark.group = group(sizes, 1) + ", both views"
    benchmark.pedantic(both, rounds=3)


def test_scipy_city_block(benchmark, images):
    from scipy.spatial.distance import cdist

    sizes, pyramids = images
    X = weighted_cells(pyramids).astype(np.float64)
    mass = X[:5].sum(1)
    check(pyramids, (mass[:, None] + mass - cdist(X[:5], X[:5], "cityblock")) / 2)
    benchmark.group = group(sizes, 1)
    benchmark.pedantic(lambda: cdist(X, X, "cityblock"), rounds=1)
