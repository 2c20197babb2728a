"""Prepared operands: the same bits as what they were made of, checked once."""

import copy
import pickle

import numpy as np
import pytest
from refusals import refuses
from scipy.sparse import csr_array

from kernelcore._check import as_array
from kernelcore.captions import EncodedCaptions
from kernelcore.images import SpatialHistograms
from kernelcore.kcca import KCCA, KernelColumns, LandmarkFeatures, partial_gram_schmidt
from kernelcore.kernels import (
    bag_of_words,
    histogram_intersection,
    prepare,
    spatial_pyramid,
    word_sequence,
)
from kernelcore.kernels.prepared import Prepared

RNG = np.random.default_rng(0)
TEXTS = [[[0, 1, -4], [1, 2, 2]], [[2]], [], [[3, 0, -9, -4]]]
CAPTIONS = EncodedCaptions.from_lists(TEXTS, n_words=5)
PICTURES = SpatialHistograms.from_finest(RNG.integers(1, 9, (4, 4, 3)), 2)


def histograms(dtype, n=30):
    scale = {np.uint8: 200, np.uint16: 300, np.uint32: 70_000}.get(dtype, 1)
    return (RNG.gamma(0.3, size=(n, 40)) * scale).astype(dtype)


def test_few_large_counts_are_split_once():
    X = RNG.integers(0, 9, (20, 300)).astype(np.uint16)
    X[3, 5] = 60_000
    held = prepare(X)
    for _ in range(2):
        found = histogram_intersection(held, held.select([3, 4]))
        np.testing.assert_array_equal(found, histogram_intersection(X, X[[3, 4]]))


def test_sparse_rows_are_copied():
    X = csr_array(histograms(np.float64))
    held = prepare(X)
    X.data[:] = 0
    assert histogram_intersection(held).any()
    refuses(ValueError, "read-only", held.samples.data.fill, 1)


@pytest.mark.parametrize("where", [slice(0, None, 2), slice(None, None, -1), slice(9, 3, -3)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.uint8, np.uint16, np.uint32])
def test_slices_with_steps(where, dtype):
    X = histograms(dtype)
    held = prepare(X)
    expected = histogram_intersection(np.ascontiguousarray(X[where]), X)
    part = held.select(where)
    np.testing.assert_array_equal(histogram_intersection(part, held), expected)
    np.testing.assert_array_equal(np.asarray(part), X[where])
    sparse = prepare(csr_array(X))
    found = histogram_intersection(sparse.select(where), sparse)
    expected = histogram_intersection(csr_array(X[where]), csr_array(X))
    np.testing.assert_array_equal(found, expected)
    pictures = prepare(PICTURES).select(slice(None, None, -1))
    expected = spatial_pyramid(PICTURES.select(np.arange(len(PICTURES))[::-1]))
    np.testing.assert_array_equal(spatial_pyramid(pictures), expected)


def test_nobody_can_make_it_writeable():
    held = prepare(histograms(np.float64))
    sparse = prepare(csr_array(histograms(np.uint8)))
    assert sparse.samples.dtype == np.uint64
    for array in (
        held.samples, held.select([1, 2]).samples, held.select(slice(0, 9, 2)).samples,
        sparse.samples.data, sparse.samples.indices, sparse.select([1]).samples.data,
        prepare(CAPTIONS).samples.word_ids,
    ):  # fmt: skip
        refuses(ValueError, "WRITEABLE", array.setflags, write=True)


def test_gram_schmidt_and_landmarks():
    X = histograms(np.float64, 50)
    K = histogram_intersection(X)
    expected = partial_gram_schmidt(K, max_rank=20)
    found = partial_gram_schmidt(prepare(K), max_rank=20)
    np.testing.assert_array_equal(found.features, expected.features)
    lazy = KernelColumns.of(histogram_intersection, X)
    prepared = KernelColumns.of(histogram_intersection, prepare(X))
    np.testing.assert_array_equal(prepared.columns([4, 1]), lazy.columns([4, 1]))
    for choice in ("pivoted", "random"):
        for items, kernel in ((X, histogram_intersection), (K, "precomputed")):
            estimator = LandmarkFeatures(kernel, n_landmarks=10, choice=choice, rng=0)
            expected = estimator.fit_transform(items)
            np.testing.assert_array_equal(estimator.fit_transform(prepare(items)), expected)
    fitted = KCCA(2, regularization=1.0).fit(K, K)
    same = KCCA(2, regularization=1.0).fit(prepare(K), prepare(K))
    np.testing.assert_array_equal(same.x_scores_, fitted.x_scores_)


def test_a_kernel_of_the_user_reads_them_as_an_array():
    X = histograms(np.float64)
    expected = KernelColumns.of(lambda A, B: np.asarray(A) @ np.asarray(B).T, X)
    held = KernelColumns.of(lambda A, B: np.asarray(A) @ np.asarray(B).T, prepare(X))
    np.testing.assert_array_equal(held.columns([3]), expected.columns([3]))
    array = np.asarray(prepare(X))
    assert not array.flags.writeable
    assert np.array(prepare(X), dtype=np.float32).dtype == np.float32
    refuses(ValueError, "copy", np.asarray, prepare(X), dtype=np.float32, copy=False)


def test_it_owns_what_it_holds_and_cannot_change():
    X = histograms(np.float64)
    held = prepare(X)
    expected = histogram_intersection(X)
    X[:] = -1
    np.testing.assert_array_equal(histogram_intersection(held), expected)
    refuses(ValueError, "read-only", held.samples.fill, 1)
    refuses(AttributeError, "Prepared is immutable", setattr, held, "samples", X)
    assert prepare(held) is held
    assert (len(held), held.shape) == (30, (30, 40))
    assert prepare(CAPTIONS).shape == (4,)


@pytest.mark.parametrize("held", [prepare(histograms(np.float32)), prepare(CAPTIONS)])
def test_copies_are_checked_anew(held):
    for again in (pickle.loads(pickle.dumps(held)), copy.deepcopy(held)):
        assert isinstance(again, Prepared)
        assert repr(again) == repr(held)


def test_bad_input():
    for value in ([[1.0, np.nan]], [[1.0, np.inf], [0.0, 1.0]], np.ones(3), 3):
        refuses(ValueError, "X", prepare, value)
    refuses(ValueError, "X", prepare, csr_array([[1.0, np.nan]]))
    refuses(TypeError, "X", prepare, [["a"]])


def test_what_a_kernel_demands_is_still_checked():
    negative = prepare([[1.0, -1.0]])
    named = r"Y .* -1.0 at \[0, 1\]"
    refuses(ValueError, named, histogram_intersection, [[1.0, 2.0]], negative)
    rows_of_another_order = prepare(np.diag([1.0, 2.0, 3.0])).select([1, 0, 2])
    for odd in (
        prepare([[1.0, 0.5], [0.25, 1.0]]),
        prepare([[1.0, 0.5]]),
        rows_of_another_order,
    ):
        refuses(ValueError, "K", partial_gram_schmidt, odd)
    refuses(TypeError, "X", histogram_intersection, prepare(CAPTIONS))
    for kernel in (bag_of_words, word_sequence):
        refuses(TypeError, "X must be EncodedCaptions", kernel, prepare([[1.0]]))
    refuses(TypeError, "no dense matrix", as_array, "X", prepare(CAPTIONS), ndim=2)
