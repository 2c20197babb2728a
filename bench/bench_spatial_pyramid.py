"""Spatial pyramid Gram against one histogram intersection of concatenated, weighted cells.

That intersection is the least a pyramid of fractions can cost: the same minima, without
levels. The peer is SciPy's city-block distance of the same rows.
"""

import data
import numpy as np
import pytest
from results import target

from kernelcore.images import SpatialHistograms
from kernelcore.kernels import histogram_intersection, spatial_pyramid
from kernelcore.reference.kernels import spatial_pyramid as reference_pyramid

N, LEVELS, WORDS = data.size(1000, 60), 3, 640
WEIGHTS = np.repeat([1 / 4] * 5 + [1 / 2] * 16, WORDS)
SHAPE = f"{N:,} images, {LEVELS} levels, {WORDS} words"


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


def checker(images):
    few = images.select(np.arange(5))
    expected = reference_pyramid(few.counts, few.counts, few.totals, few.totals, LEVELS)
    return lambda gram: np.testing.assert_allclose(gram[:5, :5], expected, rtol=1e-5)


@pytest.mark.ways("kernelcore", "kernelcore, one intersection", "scipy")
@pytest.mark.parametrize("n_threads", [1, 2])
def test_spatial_pyramid(measure, images, n_threads):
    from scipy.spatial.distance import cdist

    sizes, pyramids = images
    X = weighted_cells(pyramids)
    wide = X.astype(np.float64)
    masses = wide.sum(1)[:, None] + wide.sum(1)
    options = {"n_threads": n_threads}
    measure(
        f"spatial pyramid, photos of {sizes}",
        {
            "kernelcore": lambda: spatial_pyramid(pyramids, dtype=np.float32, **options),
            "kernelcore, one intersection": lambda: histogram_intersection(X, **options),
            "scipy": None if n_threads > 1 else lambda: cdist(wide, wide, "cityblock"),
        },
        read={"scipy": lambda distances: (masses - distances) / 2},
        check=checker(pyramids),
        n_threads=n_threads,
        shape=SHAPE,
        targets=[target("time <= 1.1 x kernelcore, one intersection")],
    )


@pytest.mark.ways("kernelcore", "kernelcore, one by one")
def test_both_reflections(measure, images):
    sizes, pyramids = images
    mirrored = pyramids.mirrored()
    options = {"dtype": np.float32, "n_threads": 1}

    def one_by_one():
        plain, reflected = (spatial_pyramid(pyramids, Y, **options) for Y in (None, mirrored))
        return (plain + reflected) / 2

    expected = one_by_one()[:5, :5]
    measure(
        f"spatial pyramid, both reflections, photos of {sizes}",
        {
            "kernelcore": lambda: spatial_pyramid(pyramids, mirror=True, **options),
            "kernelcore, one by one": one_by_one,
        },
        check=lambda gram: np.testing.assert_allclose(gram[:5, :5], expected, rtol=1e-5),
        shape=SHAPE,
    )
