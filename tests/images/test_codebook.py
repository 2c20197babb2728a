"""From points to words and histograms of words, and roots of features."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from refusals import refuses, refuses_each

from kernelcore.images import Codebook, SpatialHistograms, learn_codebook, square_roots
from kernelcore.images.pyramid import count_words, grid_cells
from kernelcore.reference import images as reference

RNG = np.random.default_rng(0)


@given(
    n_points=st.integers(0, 60), n_words=st.integers(1, 9), n_dims=st.integers(1, 5),
    seed=st.integers(0, 999),
)  # fmt: skip
@settings(max_examples=60, deadline=None)
def test_words_equal_the_reference_on_integers(n_points, n_words, n_dims, seed):
    # Distances of small integers are exact, ties are frequent: the first word must win.
    rng = np.random.default_rng(seed)
    centers = 2.0 * rng.integers(-3, 4, (n_words, n_dims))
    centers[0] -= centers.sum(axis=0)  # about an origin of zero nothing is rounded
    points = rng.integers(-5, 6, (n_points, n_dims)).astype(np.float32)
    words = Codebook(centers).assign(points)
    assert (words == reference.nearest_word(points, centers)).all()


def test_nearest_to_float32_rounding_far_from_the_origin():
    centers = RNG.normal(size=(50, 20)) + 1000
    points = (centers[RNG.integers(0, 50, 3000)] + RNG.normal(size=(3000, 20))).astype("f4")
    words = Codebook(centers).assign(points)
    distances = ((points[:, None, :].astype("f8") - centers.astype("f4")) ** 2).sum(axis=2)
    excess = distances[np.arange(3000), words] - distances.min(axis=1)
    # |x . c'| is about 1000 * sqrt(20) * |c'| with centred codewords of length sqrt(20).
    assert excess.max() < 20 * np.finfo(np.float32).eps * 1000 * 20
    assert (excess == 0).mean() > 0.99


def test_points_may_have_any_layout_and_type():
    points = RNG.normal(size=(1100, 7)).astype(np.float32)
    codebook = Codebook(RNG.normal(size=(13, 7)))
    words = codebook.assign(points)
    assert words.dtype == np.intp
    for other in (
        np.asfortranarray(points), np.repeat(points, 2, axis=0)[::2],
        np.repeat(points, 2, axis=1)[:, ::2], points.astype(">f4"), points.astype(np.float64),
    ):  # fmt: skip
        other.flags.writeable = False
        assert (codebook.assign(other) == words).all()


def test_bad_centers_points_and_numbers_of_words_are_refused():
    odd = [[], np.zeros((0, 3)), [[np.nan]], [["a"]]]
    refuses_each(Codebook, {"centers": odd}, centers=[[1.0]])
    odd = [np.zeros((3, 5), "f4"), np.zeros(4, "f4"), [[1, 2, 3, np.inf]], [[1, 2, 3, 1j]]]
    refuses_each(Codebook(np.zeros((2, 4))).assign, {"points": odd}, points=np.zeros((1, 4)))
    odd = {"points": [np.zeros((0, 3)), [[np.nan]]], "n_words": [0, 2.5]}
    refuses_each(learn_codebook, odd, points=[[1.0]], n_words=1)


def test_learning_is_as_good_as_full_k_means():
    cluster = pytest.importorskip("sklearn.cluster")
    points = RNG.normal(size=(4000, 6)).astype(np.float32)

    def inertia(centers):
        return ((points - centers[reference.nearest_word(points, centers)]) ** 2).sum()

    full = cluster.KMeans(16, n_init=1, random_state=0).fit(points)
    assert inertia(learn_codebook(points, 16, rng=0).centers) < 1.05 * full.inertia_


def test_learning_follows_the_seed():
    points = RNG.normal(size=(3000, 4))
    seeds = 3, np.random.default_rng(3), 4
    learned = [learn_codebook(points, 20, rng=rng) for rng in seeds]
    first, same, other = (codebook.centers.tobytes() for codebook in learned)
    assert first == same != other


def test_no_more_words_than_different_points():
    points = np.repeat([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], 50, axis=0)
    learned = learn_codebook(points, 64, rng=0)
    np.testing.assert_allclose(np.sort(learned.centers, axis=0), points[::50], rtol=1e-6)


def random_histograms(n_images, *, n_words=5, n_levels=3):
    finest = np.random.default_rng(0).integers(1, 9, (n_images, 4 ** (n_levels - 1), n_words))
    return SpatialHistograms.from_finest(finest, n_levels)


@given(
    size=st.tuples(st.integers(1, 40), st.integers(1, 40)), step=st.integers(1, 5),
    n_levels=st.integers(1, 4), seed=st.integers(0, 99),
)  # fmt: skip
@settings(max_examples=60, deadline=None)
def test_counts_equal_the_reference(size, step, n_levels, seed):
    y, x = (np.arange(0, side, step) for side in size)
    words = np.random.default_rng(seed).integers(0, 3, (len(y), len(x)))
    finest = count_words(words, grid_cells(y, x, size, n_levels), n_words=3, n_levels=n_levels)
    histograms = SpatialHistograms.from_finest(finest[None], n_levels)
    expected = reference.count_words(words, y, x, size, n_words=3, n_levels=n_levels)
    assert (histograms.counts[0] == expected).all()
    assert histograms.totals == [words.size]


@pytest.mark.parametrize(("total", "dtype"), [(65535, np.uint16), (65536, np.uint32)])
def test_narrowest_type_that_holds_the_totals(total, dtype):
    assert SpatialHistograms([[[total]]], [total], 1).counts.dtype == dtype
    assert SpatialHistograms.from_finest([[[total]]], 1).counts.dtype == dtype
    both = SpatialHistograms([[[1]], [[total]]], [1, total], 1)
    assert both.counts.dtype == dtype
    assert both.counts.ravel().tolist() == [1, total]
    assert both.select([0]).counts.dtype == np.uint16


FOUR = np.array([[[3, 1]]], np.uint16)


@pytest.mark.parametrize(
    ("error", "named", "counts", "totals", "n_levels"),
    [
        (ValueError, "level 0 .* 5 .* 0", FOUR, [5], 1),
        (ValueError, "totals", FOUR * 0, [0], 1), (ValueError, "totals", FOUR, [-4], 1),
        (ValueError, "totals", FOUR, [2**32], 1), (ValueError, "totals", FOUR, [4, 4], 1),
        (ValueError, ".*n_levels=2", FOUR, [4], 2), (ValueError, "n_levels", FOUR, [4], 0),
        (ValueError, "n_levels", FOUR, [4], 9), (TypeError, "n_levels", FOUR, [4], 1.0),
        (TypeError, "totals", FOUR, [4.0], 1), (TypeError, "counts", FOUR * 1.0, [4], 1),
        (TypeError, "counts", FOUR * np.nan, [4], 1), (ValueError, "counts", FOUR[0], [4], 1),
        (ValueError, "counts .*-1", [[[5, -1]]], [4], 1),
        (ValueError, "counts", [[[1], [1, 2]]], [4], 1),
        (ValueError, "level 1 and", [[[2, 2], [1, 1], [2, 0], [0, 0], [0, 1]]], [4], 2),
    ]
)  # fmt: skip
def test_bad_histograms_are_refused(error, named, counts, totals, n_levels):
    refuses(error, named, SpatialHistograms, counts, totals, n_levels)


def test_bad_cells_of_the_finest_level_are_refused():
    finest = [[[1], [1], [1]]]
    refuses(ValueError, ".*n_levels=2", SpatialHistograms.from_finest, finest, 2)


@pytest.mark.parametrize("n_levels", [1, 2, 3, 4])
def test_mirrored_histograms_are_those_of_the_mirrored_words(n_levels):
    words = np.random.default_rng(n_levels).integers(0, 6, (16, 24))
    cells = grid_cells(np.arange(16), np.arange(24), words.shape, n_levels)
    options = {"n_words": 6, "n_levels": n_levels}
    counts = [count_words(own, cells, **options)[np.newaxis] for own in (words, words[:, ::-1])]
    original, mirror = (SpatialHistograms.from_finest(own, n_levels) for own in counts)
    np.testing.assert_array_equal(original.mirrored().counts, mirror.counts)
    np.testing.assert_array_equal(mirror.mirrored().counts, original.counts)


def test_histograms_are_concatenated():
    histograms, join = random_histograms(6), SpatialHistograms.concatenate
    joined = join([histograms.select(indices) for indices in ([0, 1], [], [2, 3, 4, 5])])
    assert (joined.counts == histograms.counts).all()
    assert (joined.totals == histograms.totals).all()
    refuses(ValueError, "parts", join, [])
    refuses(TypeError, r"parts .*3 at \[1\]", join, [histograms, 3])
    for other in (random_histograms(1, n_words=4), random_histograms(1, n_levels=2)):
        refuses(ValueError, r"parts .*\[1\]", join, [histograms, other])


ROWS = arrays(np.float32, st.tuples(st.integers(0, 5), st.integers(1, 6)), elements=st.floats(
    -(2.0**99), 2.0**99, width=32
))  # fmt: skip


@given(ROWS)
def test_roots_are_those_of_the_share_of_an_entry(rows):
    sums = abs(rows).astype(float).sum(axis=1, keepdims=True)
    roots = np.sign(rows) * np.sqrt(abs(rows) / np.where(sums > 0, sums, 1))
    np.testing.assert_allclose(square_roots(rows), roots, rtol=1e-5, atol=1e-12)


def test_roots_of_integers_are_of_float32():
    whole = square_roots(np.array([[4, 0], [0, 9]], ">i2"))
    assert whole.dtype == np.float32
    np.testing.assert_array_equal(whole, np.eye(2))


def test_roots_of_what_is_no_table_of_numbers_are_refused():
    odd = [[1.0, 2.0], [[1.0, np.nan]], [[1e300]], [[1j]], [["a"]]]
    refuses_each(square_roots, {"features": odd}, features=[[1.0]])
    refuses(ValueError, r"features .*\[1\]", square_roots, [[0.0], [1e-60]])
