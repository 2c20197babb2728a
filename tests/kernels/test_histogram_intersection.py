"""The intersection of histograms: the reference, SciPy, exact counts, odd numbers."""

import numpy as np
import pytest
import scipy.sparse as sp
from refusals import refuses
from scipy.spatial.distance import cdist

from kernelcore.kernels import histogram_intersection
from kernelcore.reference.kernels import histogram_intersection as reference_intersection


def random_histograms(rng, n, d, dtype):
    if np.dtype(dtype).kind == "u":
        return rng.integers(0, np.iinfo(dtype).max, (n, d), dtype=dtype, endpoint=True)
    return rng.random((n, d)).astype(dtype)


def tolerance(dtype, reference_value):
    """What the header promises: blocks of bins in lanes, then a tree, then float64."""
    if np.dtype(dtype).kind == "u":
        return 0
    block_steps = 4096 // 64
    return (block_steps + 6) * np.finfo(dtype).eps * reference_value


# Sizes around the vector group, the register block, the tile and the block of bins.
SHAPES = [
    *[(1, 1, 1), (3, 5, 15), (5, 3, 17), (33, 65, 64)],
    *[(32, 64, 1025), (2, 130, 4099), (261, 133, 33)],
]


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.uint8, np.uint16, np.uint32])
@pytest.mark.parametrize(("m", "n", "d"), SHAPES)
def test_equals_the_reference(isa, dtype, m, n, d):
    rng = np.random.default_rng(d)
    X, Y = random_histograms(rng, m, d, dtype), random_histograms(rng, n, d, dtype)
    wide = (A if A.dtype.kind == "u" else A.astype(np.float64) for A in (X, Y))
    expected = reference_intersection(*wide)
    result = histogram_intersection(X, Y)
    assert result.dtype == (np.uint64 if np.dtype(dtype).kind == "u" else dtype)
    assert (np.abs(result - expected) <= tolerance(dtype, expected)).all()
    symmetric = histogram_intersection(X)
    assert symmetric.tobytes() == histogram_intersection(X, X.copy()).tobytes()
    assert (symmetric == symmetric.T).all()


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint32])
@pytest.mark.parametrize("d", [63, 4096, 10_000])
def test_full_counts_do_not_overflow(isa, dtype, d):
    top = np.iinfo(dtype).max
    X = np.full((3, d), top, dtype)
    assert (histogram_intersection(X) == d * int(top)).all()
    assert (histogram_intersection(X, np.ones((2, d), dtype)) == d).all()


# Bins 0, 32, ... of a block share a lane of 16-bit sums; every bin exceeds a byte.
@pytest.mark.parametrize(("dtype", "n_lanes"), [(np.uint16, 32), (np.uint32, 16)])
@pytest.mark.parametrize("excess", [0, 1])
def test_narrow_and_wide_sums_agree_where_a_lane_crosses_the_limit(isa, dtype, n_lanes, excess):
    X = np.full((5, 40 * n_lanes + 7), 1000, dtype)
    X[:, 3] = np.iinfo(dtype).max - 40 * 1000 + excess  # lane 3 has 40 more bins
    assert (histogram_intersection(X) == X[0].sum(dtype=np.uint64)).all()


@pytest.mark.parametrize("dtype", [np.uint16, np.uint32])
@pytest.mark.parametrize("n_large", [1, 40, 41])  # of 20 x 512: on either side of one in 256
def test_few_large_counts_are_exact(isa, dtype, n_large):
    rng = np.random.default_rng(n_large)
    X, Y = rng.integers(0, 256, (2, 20, 512)).astype(dtype)
    for counts in (X, Y):  # in the same few bins, so that they meet
        at = np.unravel_index(rng.choice(60, n_large, replace=False), (20, 3))
        counts[at] = rng.integers(256, np.iinfo(dtype).max, n_large, dtype, endpoint=True)
    assert (histogram_intersection(X) == reference_intersection(X, X)).all()
    out = np.full((20, 20), 9, np.uint64)  # what stood there does not count
    histogram_intersection(X, Y, out=out, n_threads=2)
    assert (out == reference_intersection(X, Y)).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_subnormal_and_huge_bins(isa, dtype):
    limits = np.finfo(dtype)
    X = np.array([[limits.smallest_subnormal, limits.max, 1.0]], dtype)
    Y = np.array([[limits.tiny, 0.0, limits.max]], dtype)
    assert histogram_intersection(X, Y)[0, 0] == 1
    assert histogram_intersection(X[:, :1], Y[:, :1])[0, 0] == limits.smallest_subnormal


RATIOS = ["jaccard", "bray_curtis"]


@pytest.mark.parametrize("kind", ["f4", "f8", "u1", "u2"])
@pytest.mark.parametrize("as_rows", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("similarity", RATIOS)
def test_a_ratio_is_one_for_equal_rows_and_positive_semi_definite(similarity, as_rows, kind):
    rng = np.random.default_rng(5)
    X = (rng.gamma(0.3, size=(40, 700)) * 60 * (rng.random((40, 700)) < 0.4)).astype(kind)
    X[7] = 0
    K = histogram_intersection(as_rows(X), similarity=similarity)
    assert K.dtype == (np.float32 if kind == "f4" else np.float64)
    assert K.diagonal().tolist() == [float(i != 7) for i in range(40)]
    assert (K[7] == 0).all()
    assert ((K >= 0) & (K <= 1)).all()
    assert np.linalg.eigvalsh(K.astype(np.float64)).min() > -1e-6


def test_agrees_with_distances_of_scipy():
    """min(x, y) = (x + y - |x - y|) / 2, of which Ruzicka's ratio; Bray-Curtis."""
    rng = np.random.default_rng(1)
    X, Y = rng.random((20, 300)), rng.random((30, 300))
    block = cdist(X, Y, "cityblock")
    masses = X.sum(1)[:, None] + Y.sum(1)
    for similarity, peer in (
        ("sum", (masses - block) / 2),
        ("jaccard", (masses - block) / (masses + block)),
        ("bray_curtis", 1 - cdist(X, Y, "braycurtis")),
    ):
        found = histogram_intersection(X, Y, similarity=similarity)
        np.testing.assert_allclose(found, peer, rtol=1e-12)


@pytest.mark.parametrize("similarity", RATIOS)
@pytest.mark.parametrize("as_rows", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_a_ratio_holds_at_the_ends_of_the_range_or_is_refused(kind, as_rows, similarity):
    limits = np.finfo(kind)
    for scale in (limits.smallest_subnormal, limits.tiny, limits.max / 8):
        X = as_rows(np.array([[3, 1, 0], [1, 1, 2]], kind) * kind(scale))
        K = histogram_intersection(X, similarity=similarity)
        assert K[0, 1] == pytest.approx(1 / 3 if similarity == "jaccard" else 1 / 2)
    top = as_rows(np.array([[limits.max, 0], [0, limits.max]], kind))
    huge = as_rows(np.full((1, 2), limits.max, kind))
    refuses(ValueError, "X", histogram_intersection, huge, top, similarity=similarity)


@pytest.mark.parametrize(("n_rows", "n_steps"), [(31, 1), (32, 1), (33, 2), (64, 2)])
def test_every_step_has_rows_to_compute(n_rows, n_steps):
    """The rows of a small matrix are dealt out by 32."""
    totals = set()
    options = {"n_threads": 1, "progress": lambda done, total: totals.add(total)}
    histogram_intersection(np.ones((n_rows, 3)), np.ones((5, 3)), **options)
    assert totals == {n_steps}


@pytest.mark.parametrize("dtype", [np.float16, np.int64, bool, np.longdouble])
def test_other_real_dtypes_are_read_as_float64(dtype):
    X = np.random.default_rng(4).integers(0, 2, (7, 20)).astype(dtype)
    expected = histogram_intersection(X.astype(np.float64))
    for second in (None, X.astype(np.float32), X.astype(np.uint8)):
        K = histogram_intersection(X, second)
        assert K.dtype == np.float64
        np.testing.assert_array_equal(K, expected)


def test_counts_of_different_ranges_are_brought_together():
    rng = np.random.default_rng(6)
    X = rng.integers(0, 200, (9, 40)).astype(np.uint16)
    Y = rng.integers(0, 60_000, (5, 40)).astype(np.uint32)
    assert (histogram_intersection(X, Y) == reference_intersection(X, Y)).all()
    assert (histogram_intersection(Y, X) == reference_intersection(Y, X)).all()
