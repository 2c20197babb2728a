import numpy as np

from kernelcore.images.pyramid import SpatialHistograms
from kernelcore.kernels import histogram_intersection, spatial_pyramid

X = SpatialHistograms.from_finest(np.random.default_rng(3).integers(0, 6, (5, 16, 10)) + 1, 3)


def test_16_and_32_bit_counts_mix():
    wide = SpatialHistograms(X.counts.astype(np.uint32), X.totals, X.n_levels)
    assert (spatial_pyramid(wide, X) == spatial_pyramid(X)).all()


def test_level_weights_pick_levels():
    whole = X.counts[:, 0] / X.totals[:, None]
    found = spatial_pyramid(X, level_weights=[1, 0, 0])
    np.testing.assert_allclose(found, histogram_intersection(whole))
    default = spatial_pyramid(X)
    np.testing.assert_allclose(default, spatial_pyramid(X, level_weights=[0.25, 0.25, 0.5]))
