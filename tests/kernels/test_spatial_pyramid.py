import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelcore.images.pyramid import SpatialHistograms
from kernelcore.kernels import histogram_intersection, spatial_pyramid
from kernelcore.reference.kernels import spatial_pyramid as reference_pyramid


def histograms(rng, n_images, n_words, n_levels, side=None):
    """Random word maps, counted cell by cell; `side` None gives images of many sizes."""
    counts, totals = [], []
    for _ in range(n_images):
        size = side or int(rng.choice([8, 16, 24]))
        words = rng.integers(0, n_words, (size, size))
        cells = []
        for level in range(n_levels):
            step = size // 2**level
            for row in range(0, size, step):
                for col in range(0, size, step):
                    cell = words[row : row + step, col : col + step]
                    cells.append(np.bincount(cell.ravel(), minlength=n_words))
        counts.append(cells)
        totals.append(size * size)
    return SpatialHistograms(np.array(counts, np.uint16), np.array(totals), n_levels)


def expected(X, Y):
    return reference_pyramid(X.counts, Y.counts, X.totals, Y.totals, X.n_levels)


@given(
    n_levels=st.integers(1, 4),
    n_words=st.integers(1, 9),
    seed=st.integers(0, 1000),
    side=st.sampled_from([8, 16, None]),
)
@settings(max_examples=40, deadline=None)
def test_equals_the_reference(n_levels, n_words, seed, side):
    rng = np.random.default_rng(seed)
    X, Y = (histograms(rng, n, n_words, n_levels, side) for n in (4, 3))
    np.testing.assert_allclose(spatial_pyramid(X, Y), expected(X, Y), rtol=1e-13)
    np.testing.assert_allclose(spatial_pyramid(X), expected(X, X), rtol=1e-13)
    single = spatial_pyramid(X, Y, dtype=np.float32)
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, expected(X, Y), rtol=1e-5)


def test_16_and_32_bit_counts_mix():
    X = histograms(np.random.default_rng(1), 5, 6, 2, side=8)
    wide = SpatialHistograms(X.counts.astype(np.uint32), X.totals, X.n_levels)
    assert (spatial_pyramid(wide, X) == spatial_pyramid(X)).all()


def test_an_image_has_similarity_one_to_itself():
    X = histograms(np.random.default_rng(2), 6, 10, 3)
    K = spatial_pyramid(X)
    np.testing.assert_allclose(K.diagonal(), 1)
    assert (K < 1 + 1e-12).all()
    assert np.linalg.eigvalsh(K).min() > -1e-10


def test_level_weights_pick_levels():
    X = histograms(np.random.default_rng(3), 5, 10, 3)
    whole = X.counts[:, 0] / X.totals[:, None]
    np.testing.assert_allclose(
        spatial_pyramid(X, level_weights=[1, 0, 0]), histogram_intersection(whole)
    )
    default = spatial_pyramid(X)
    np.testing.assert_allclose(default, spatial_pyramid(X, level_weights=[0.25, 0.25, 0.5]))


@pytest.mark.parametrize("side", [8, None])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_mirror_averages_both_views(side, dtype):
    rng = np.random.default_rng(6)
    X, Y = histograms(rng, 70, 9, 3, side), histograms(rng, 5, 9, 3, side)
    rtol = 1e-5 if dtype is np.float32 else 1e-13
    for other in (X, Y):
        mean = (expected(X, other) + expected(X, other.mirrored())) / 2
        given = None if other is X else other
        K = spatial_pyramid(X, given, mirror=True, dtype=dtype)
        np.testing.assert_allclose(K, mean, rtol=rtol)
    K = spatial_pyramid(X, mirror=True, dtype=dtype)
    assert (K == K.T).all()
    assert np.linalg.eigvalsh(K.astype(np.float64)).min() > -1e-5
    assert spatial_pyramid(X, mirror=True, dtype=dtype, n_threads=3).tobytes() == K.tobytes()


def test_mirror_does_not_know_left_from_right():
    X = histograms(np.random.default_rng(7), 8, 9, 3)
    K = spatial_pyramid(X, mirror=True)
    assert not np.allclose(K, spatial_pyramid(X))
    np.testing.assert_allclose(spatial_pyramid(X, X.mirrored(), mirror=True), K, rtol=1e-13)
