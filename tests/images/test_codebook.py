import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelcore.images import Codebook, learn_codebook
from kernelcore.reference.images import nearest_word as reference_word

RNG = np.random.default_rng(0)


@given(
    n_points=st.integers(0, 60),
    n_words=st.integers(1, 9),
    n_dims=st.integers(1, 5),
    seed=st.integers(0, 999),
)
@settings(max_examples=60, deadline=None)
def test_equals_the_reference_on_integers(n_points, n_words, n_dims, seed):
    # Distances of small integers are exact, ties are frequent: the first word must win.
    rng = np.random.default_rng(seed)
    centers = 2.0 * rng.integers(-3, 4, (n_words, n_dims))
    centers[0] -= centers.sum(axis=0)  # about an origin of zero nothing is rounded
    points = rng.integers(-5, 6, (n_points, n_dims)).astype(np.float32)
    assert (Codebook(centers).assign(points) == reference_word(points, centers)).all()


def test_nearest_to_float32_rounding_far_from_the_origin():
    centers = RNG.normal(size=(50, 20)) + 1000
    points = (centers[RNG.integers(0, 50, 3000)] + RNG.normal(size=(3000, 20))).astype("f4")
    words = Codebook(centers).assign(points)
    distances = ((points[:, None, :].astype("f8") - centers.astype("f4")) ** 2).sum(axis=2)
    excess = distances[np.arange(3000), words] - distances.min(axis=1)
    # |x . c'| is about 1000 * sqrt(20) * |c'| with centred codewords of length sqrt(20).
    assert excess.max() < 20 * np.finfo(np.float32).eps * 1000 * 20
    assert (excess == 0).mean() > 0.99


def test_rows_or_columns_may_be_contiguous():
    points = RNG.normal(size=(1100, 7)).astype(np.float32)
    codebook = Codebook(RNG.normal(size=(13, 7)))
    words = codebook.assign(points)
    assert words.dtype == np.intp
    for other in (
        np.asfortranarray(points),
        np.repeat(points, 2, axis=0)[::2],
        np.repeat(points, 2, axis=1)[:, ::2],
        points.astype(">f4"),
        points.astype(np.float64),
    ):
        other.flags.writeable = False
        assert (codebook.assign(other) == words).all()


def test_centers_are_kept_apart_and_read_only():
    centers = np.zeros((2, 2), np.float32)
    codebook = Codebook(centers)
    centers[:] = 7
    assert not codebook.centers.any()
    assert (codebook.n_words, codebook.n_dims) == (2, 2)
    with pytest.raises(ValueError, match="read-only"):
        codebook.centers[0] = 1


@pytest.mark.parametrize(
    ("centers", "error", "match"),
    [
        ([], ValueError, "centers must be a 2-D array"),
        (np.zeros((0, 3)), ValueError, "centers must not be empty"),
        ([[np.nan]], ValueError, "centers must be finite"),
        ([["a"]], TypeError, "centers must hold real numbers"),
    ],
)
def test_bad_centers(centers, error, match):
    with pytest.raises(error, match=match):
        Codebook(centers)


@pytest.mark.parametrize(
    ("points", "error", "match"),
    [
        (np.zeros((3, 5), np.float32), ValueError, r"points must have shape \(n_points, 4\)"),
        (np.zeros(4, np.float32), ValueError, r"points must have shape .* got \(4,\)"),
        ([[1, 2, 3, np.inf]], ValueError, "points must be finite"),
        ([[1, 2, 3, 1j]], TypeError, "points must hold real numbers"),
    ],
)
def test_bad_points(points, error, match):
    with pytest.raises(error, match=match):
        Codebook(np.zeros((2, 4))).assign(points)


def test_learning_finds_separate_clusters():
    centres = np.array([[0.0, 0.0], [50.0, 0.0], [0.0, 50.0], [50.0, 50.0]])
    points = np.repeat(centres, 100, axis=0) + RNG.normal(size=(400, 2))
    learned = learn_codebook(points, 4, rng=0)
    order = reference_word(centres, learned.centers)
    np.testing.assert_allclose(learned.centers[order], centres, atol=1)


def test_learning_is_as_good_as_full_k_means():
    cluster = pytest.importorskip("sklearn.cluster")
    points = RNG.normal(size=(4000, 6)).astype(np.float32)

    def inertia(centers):
        return ((points - centers[reference_word(points, centers)]) ** 2).sum()

    full = cluster.KMeans(16, n_init=1, random_state=0).fit(points)
    assert inertia(learn_codebook(points, 16, rng=0).centers) < 1.05 * full.inertia_


def test_learning_follows_the_seed():
    points = RNG.normal(size=(3000, 4))
    first = learn_codebook(points, 20, rng=3).centers
    assert learn_codebook(points, 20, rng=np.random.default_rng(3)).centers.tobytes() == (
        first.tobytes()
    )
    assert learn_codebook(points, 20, rng=4).centers.tobytes() != first.tobytes()


def test_no_more_words_than_different_points():
    points = np.repeat([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], 50, axis=0)
    learned = learn_codebook(points, 64, rng=0)
    np.testing.assert_allclose(np.sort(learned.centers, axis=0), points[::50], rtol=1e-6)


@pytest.mark.parametrize(
    ("points", "n_words", "error", "match"),
    [
        (np.zeros((0, 3)), 2, ValueError, "points must not be empty"),
        ([[np.nan]], 2, ValueError, "points must be finite"),
        ([[1.0]], 0, ValueError, "n_words must be an integer >= 1"),
        ([[1.0]], 2.5, TypeError, "n_words must be an integer"),
    ],
)
def test_bad_learning(points, n_words, error, match):
    with pytest.raises(error, match=match):
        learn_codebook(points, n_words)
