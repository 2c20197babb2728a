"""Weights and decays far from 1: normalised kernels depend on their ratios alone."""

import math
import sys
import tracemalloc
from functools import partial
from unittest import mock

import numpy as np
import pytest
from refusals import refuses

from kernelcore.captions import EncodedCaptions
from kernelcore.images import SpatialHistograms
from kernelcore.kcca import KernelColumns
from kernelcore.kernels import (
    average,
    bag_of_words,
    bag_of_words_f1,
    histogram_intersection,
    spatial_pyramid,
    tag_rank,
    word_assignment,
    word_sequence,
)

MODULE = sys.modules["kernelcore.kernels.spatial_pyramid"]  # a function has its name
X = EncodedCaptions.from_lists([[[0, 1, 2]], [[1], [2, 0]], [[]], [[0, 0, -1]]], n_words=3)
LONG = EncodedCaptions.from_lists([[[0] * 40]], n_words=3)
KAPPA = np.array([[1, 0.5, 0], [0.5, 1, 0.25], [0, 0.25, 1]])
WEIGHTS = np.array([0.3, 1.0, 2.5])


@pytest.mark.parametrize("match_decay", [5e-324, 1e-200, 1e-100, 1e60, 1e308])
def test_a_word_is_like_itself_whatever_a_match_counts(match_decay):
    assert word_sequence(["dog"], match_decay=match_decay).tolist() == [[1.0]]
    soft = word_sequence(X, max_length=1, match_decay=match_decay, word_kernel=KAPPA)
    expected = word_sequence(X, max_length=1, word_kernel=KAPPA)
    np.testing.assert_allclose(soft, expected, rtol=1e-6)


def test_squares_of_similarities_may_leave_float64():
    """Similarities of 1e-200 with themselves: their product is 0 in float64."""
    texts = ["a b c", "c b a", "a d"]
    single = word_sequence(texts, max_length=1)
    np.testing.assert_allclose(word_sequence(texts, match_decay=1e-100), single, rtol=1e-14)
    assert np.diagonal(word_sequence(texts, match_decay=1e-100)).tolist() == [1.0] * 3
    whole = word_sequence(texts, match_decay=1e40)  # squares of 1e+240: whole texts decide
    np.testing.assert_allclose(whole, np.eye(3), atol=1e-30)


@pytest.mark.parametrize("power", [-400, -130, -10, 10, 128, 400])
@pytest.mark.parametrize("kappa", [None, KAPPA])
def test_powers_of_two_change_no_bit(power, kappa):
    scaled = np.ldexp(WEIGHTS, power)
    for kernel, options in (
        (word_assignment, {"word_kernel": kappa}),
        (word_sequence, {"word_kernel": kappa, "max_length": 1}),
    ):
        expected = kernel(X, word_weights=WEIGHTS, unknown_weight=0.5, **options)
        given = {"word_weights": scaled, "unknown_weight": float(np.ldexp(0.5, power))}
        assert kernel(X, **given, **options).tobytes() == expected.tobytes()
    for kernel in (bag_of_words, bag_of_words_f1):
        expected = kernel(X, word_weights=WEIGHTS, unknown_weight=0.5)
        found = kernel(X, word_weights=scaled, unknown_weight=float(np.ldexp(0.5, power)))
        assert found.tobytes() == expected.tobytes()


@pytest.mark.parametrize("unknown_weight", [1e-300, 1e80, 1e308])
def test_unknown_words_of_any_weight(unknown_weight):
    K = word_assignment(["dog", "dog cat"], unknown_weight=unknown_weight)
    np.testing.assert_allclose(K, [[1, 0.5**0.5], [0.5**0.5, 1]], rtol=1e-6)


@pytest.mark.parametrize("share", [1e-289, 1e-160, 1e-30])
def test_an_image_of_rare_weight_is_like_itself(share):
    for kernel in (bag_of_words, bag_of_words_f1):
        K = kernel(X, word_weights=[1.0, share, 1.0], unknown_weight=share)
        assert K[0, 0] == K[3, 3] == 1.0
        K = kernel(X.select([1]).with_caption(0), word_weights=[1.0, share, 1.0])
        assert K[0, 0] == 1.0


SOFT = partial(word_sequence, X, word_kernel=KAPPA)
RAW = partial(word_assignment, normalize=False)
BEYOND = [
    ("match_decay", partial(word_sequence, ["a b"]), [1e300, 1e-200]),
    ("match_decay", partial(word_sequence, ["a b c"]), [1e60]),
    ("match_decay", partial(word_sequence, ["a b c"], normalize=False), [1e60]),
    ("match_decay", SOFT, [1e-30]),
    ("word_weights", SOFT, [[1, 1, 1e60]]),
    ("unknown_weight", SOFT, [1e60]),
    ("word_kernel", partial(word_sequence, X), [KAPPA * 1e38, KAPPA * 1e-40, KAPPA * 1e15]),
    ("unknown_weight", partial(word_assignment, X), [1e80]),
    ("word_weights", partial(word_assignment, X), [[1, 1e-60, 1]]),
    ("word_weights", partial(RAW, X), [[6e38] * 3]),
    ("word_kernel", partial(RAW, LONG, dtype="f4"), [KAPPA * 2e37]),
    ("word_weights", partial(bag_of_words, X), [[1, 1e-300, 1]]),
    ("unknown_weight", partial(bag_of_words, X), [1e-300]),
    ("level_weights", lambda **o: spatial_pyramid(pyramid([4, 4]), **o), [[1.0, 1e308]]),
    ("X", histogram_intersection, [[[1e308] * 2], np.full((1, 2), 3e38, np.float32)]),
]


@pytest.mark.parametrize(("name", "call", "values"), BEYOND)
def test_what_leaves_the_range_is_refused_by_name(name, call, values):
    for value in values:
        refuses(ValueError, rf"^[\w, ]*\b{name}\b[\w, ]* must", call, **{name: value})


def test_weights_of_a_mean_have_a_sum_beyond_float64():
    assert average([[[1.0]], [[3.0]]], weights=[1e308, 1e308]).tolist() == [[2.0]]


@pytest.mark.parametrize("width", [5e-324, 1e-308, 1e-300])
def test_narrow_tag_ranks_tell_only_equal_captions_alike(isa, width):
    one = EncodedCaptions.from_lists([[[0, 1]], [[1, 0]], [[2]], [[0, 1]]], n_words=3)
    K = tag_rank(one, absolute_width=width, relative_width=width)
    expected = np.eye(4)
    expected[0, 3] = expected[3, 0] = 1
    np.testing.assert_allclose(K, expected, atol=1e-37)
    np.testing.assert_array_equal(tag_rank(one, absolute_width=1e308, relative_width=1e308), 1)


def pyramid(totals, n_words=2):
    counts = np.zeros((len(totals), 4, n_words), np.uint16)
    counts[:, 0, 0] = totals
    return SpatialHistograms.from_finest(counts, 2)


@pytest.mark.parametrize("mirror", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_pyramids_in_tiles_have_the_same_bits(monkeypatch, mirror, dtype):
    rng = np.random.default_rng(8)
    counts = rng.poisson(2.0, (23, 4, 5)) + 1
    photos = SpatialHistograms.from_finest(counts.astype(np.uint16), 2)
    others = photos.select(np.arange(9))
    options = {"mirror": mirror, "dtype": dtype}
    whole = [spatial_pyramid(photos, Y, **options) for Y in (None, others)]
    monkeypatch.setattr(MODULE, "_FRACTION_BYTES", 4 * photos.counts[0].size * 8)
    for Y, expected in zip((None, others), whole, strict=True):
        steps = mock.Mock()
        K = spatial_pyramid(photos, Y, **options, progress=steps)
        assert K.tobytes() == expected.tobytes()
        done, total = steps.call_args.args
        assert done == total > 1


def test_pyramids_on_demand_take_little_memory(monkeypatch):
    """No float copy of all photos, which would take 34 MB."""
    monkeypatch.setattr(MODULE, "_FRACTION_BYTES", 2**20)
    rng = np.random.default_rng(9)
    counts = rng.integers(0, 3, (2000, 16, 100)).astype(np.uint16)
    photos = SpatialHistograms.from_finest(counts, 3)
    tracemalloc.start()
    try:
        columns = lambda indices: spatial_pyramid(photos, photos.select(indices))  # noqa: E731
        KernelColumns(columns, np.ones(2000)).columns(np.arange(16))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 8 * 2**20


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("soft", [False, True])
@pytest.mark.parametrize("n_words", [1, 20, 60, 200])
@pytest.mark.parametrize("max_length", [1, 3, 30])
def test_sums_of_many_equal_words_are_finite_or_refused(dtype, soft, n_words, max_length):
    captions = EncodedCaptions.from_lists([[[0] * n_words]])
    kernel = np.ones((1, 1)) if soft else None
    exact = sum(math.comb(n_words, k) ** 2 for k in range(1, max_length + 1))
    options = {"word_kernel": kernel, "match_decay": 1, "max_length": max_length}
    call = partial(word_sequence, captions, normalize=False, dtype=dtype, **options)
    if exact > float(np.finfo(np.float32).max):  # the core sums in float32
        refuses(ValueError, "max_length", call)
    else:
        assert call()[0, 0] == pytest.approx(float(exact), rel=1e-4)
