"""Landmark features and kernel CCA over features: against the formula and the Gram route."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn.kernel_approximation import Nystroem

from kernelcore.captions import EncodedCaptions
from kernelcore.kcca import (
    KCCA,
    KernelBasis,
    LandmarkFeatures,
    feature_basis,
    kernel_basis,
)
from kernelcore.kernels import histogram_intersection, word_sequence

DTYPES = [np.float32, np.float64]
rng = np.random.default_rng(0)
X, X_NEW = rng.normal(size=(120, 4)), rng.normal(size=(17, 4))


def rbf(A, B):
    return np.exp(-cdist(A, B, "sqeuclidean") / 8.0)


K, K_NEW = rbf(X, X), rbf(X_NEW, X)


@pytest.mark.parametrize("choice", ["pivoted", "random"])
def test_the_kernel_of_the_features_is_nystroems(choice):
    estimator = LandmarkFeatures(rbf, n_landmarks=30, choice=choice, rng=3)
    features, new = estimator.fit_transform(X), estimator.transform(X_NEW)
    assert (features.shape, new.shape) == ((120, 30), (17, 30))
    z = estimator.landmarks_
    assert len(set(z)) == 30
    inverse = np.linalg.inv(K[np.ix_(z, z)])
    np.testing.assert_allclose(new @ features.T, K_NEW[:, z] @ inverse @ K[z], atol=1e-8)
    np.testing.assert_allclose(features @ features[z].T, K[:, z], atol=1e-10)
    np.testing.assert_allclose(estimator.transform(X), features, atol=1e-9)
    triangle = estimator.triangle_
    np.testing.assert_allclose(triangle @ triangle.T, K[np.ix_(z, z)], atol=1e-12)
    np.testing.assert_array_equal(triangle, np.tril(triangle))


@pytest.mark.parametrize("choice", ["pivoted", "random"])
def test_precomputed_kernels_are_the_same(choice):
    options = {"n_landmarks": 20, "choice": choice, "rng": 1}
    by_function = LandmarkFeatures(rbf, **options).fit(X)
    by_matrix = LandmarkFeatures(**options).fit(K)
    looked_up = LandmarkFeatures(lambda A, B: K[np.ix_(A, B)], **options)
    by_lookup = looked_up.fit(np.arange(120))
    for other in (by_matrix, by_lookup):
        assert other.landmarks_.tolist() == by_function.landmarks_.tolist()
        np.testing.assert_allclose(other.triangle_, by_function.triangle_, atol=1e-12)
    new = by_function.transform(X_NEW)
    np.testing.assert_allclose(by_matrix.transform(K_NEW), new, atol=1e-9)
    again = by_function.transform(X[[4, 0]])
    np.testing.assert_allclose(by_lookup.transform([4, 0]), again, atol=1e-9)


def test_random_choice_is_reproducible_and_covers_all():
    learned = [LandmarkFeatures(rbf, n_landmarks=10, choice="random", rng=i) for i in (5, 5, 6)]
    first, again, other = (own.fit(X).landmarks_ for own in learned)
    assert first.tolist() == again.tolist()
    assert set(first) != set(other)
    every = LandmarkFeatures(rbf, n_landmarks=500, choice="random", rng=0).fit(X)
    assert sorted(every.landmarks_) == list(range(120))


def test_landmarks_that_others_describe_are_left_out():
    twice = np.vstack([X[:10], X[:10]])
    for choice in ("pivoted", "random"):
        estimator = LandmarkFeatures(rbf, n_landmarks=20, choice=choice, rng=0)
        assert estimator.fit_transform(twice).shape == (20, 10)
    loose = LandmarkFeatures(rbf, n_landmarks=100, tolerance=0.1).fit(X)
    features = loose.transform(X)
    assert (K - features @ features.T).trace() <= 0.1 * K.trace()
    fewer = features[:, :-1]
    assert (K - fewer @ fewer.T).trace() > 0.1 * K.trace()


@pytest.mark.parametrize("dtype", DTYPES)
def test_our_kernels_and_their_items(dtype, monkeypatch):
    # Several blocks, the last one short.
    monkeypatch.setattr("kernelcore.kcca.landmarks._BLOCK", 13)
    histograms = rng.dirichlet(np.ones(20), 80).astype(dtype)
    estimator = LandmarkFeatures(histogram_intersection, n_landmarks=70)
    features = estimator.fit_transform(histograms)
    assert features.dtype == estimator.transform(histograms[:30]).dtype == dtype
    slack = 1e4 * np.finfo(dtype).eps
    np.testing.assert_allclose(estimator.transform(histograms), features, atol=slack)
    images = [[rng.integers(0, 9, 4).tolist() for _ in range(2)] for _ in range(60)]
    captions = EncodedCaptions.from_lists(images, n_words=9)
    by_words = LandmarkFeatures(word_sequence, n_landmarks=60).fit(captions)
    approximate = by_words.transform(captions) @ by_words.transform(captions).T
    whole = word_sequence(captions)
    np.testing.assert_allclose(approximate, whole, atol=1e-8 * whole.max())


@pytest.mark.parametrize("dtype", DTYPES)
def test_basis_of_features_is_that_of_their_kernel(dtype):
    F = (rng.normal(size=(60, 8)) * np.linspace(2.0, 0.5, 8) + 3.0).astype(dtype)
    basis, gram = feature_basis(F), kernel_basis(F @ F.T)
    slack = 1e4 * np.finfo(dtype).eps
    assert basis.vectors.dtype == basis.eigenvalues.dtype == dtype
    np.testing.assert_allclose(basis.eigenvalues, gram.eigenvalues, rtol=slack)
    expected = gram.vectors @ gram.vectors.T
    np.testing.assert_allclose(basis.vectors @ basis.vectors.T, expected, atol=slack)
    np.testing.assert_allclose(basis.vectors.sum(axis=0), 0.0, atol=slack)
    expected = basis.vectors * basis.eigenvalues
    np.testing.assert_allclose(basis.coordinates(F), expected, atol=100 * slack)
    assert len(feature_basis(F, max_rank=3).eigenvalues) == 3
    for tolerance in (0.5, 0.1, 1e-3):
        rank = len(feature_basis(F, tolerance=tolerance).eigenvalues)
        shares = np.cumsum(basis.eigenvalues) / basis.eigenvalues.sum()
        assert shares[rank - 1] >= 1 - tolerance - slack
        assert rank == 1 or shares[rank - 2] < 1 - tolerance + slack
    assert len(feature_basis(np.hstack([F, F]), tolerance=0.0).eigenvalues) == 8


@pytest.mark.parametrize("dtype", DTYPES)
def test_kcca_of_features_is_that_of_their_kernels(dtype, tmp_path):
    Fx = (rng.normal(size=(80, 6)) + 2.0).astype(dtype)
    Fy = np.tanh(Fx[:, :4] + 0.3 * rng.normal(size=(80, 4))).astype(dtype)
    new = rng.normal(size=(9, 6)).astype(dtype)
    options = {"regularization": (0.5, 0.1), "tolerance": 0.0}
    by_features = KCCA(3, **options).fit(feature_basis(Fx), feature_basis(Fy))
    by_grams = KCCA(3, **options).fit(Fx @ Fx.T, Fy @ Fy.T)
    slack = 3e4 * np.finfo(dtype).eps
    np.testing.assert_allclose(by_features.correlations_, by_grams.correlations_, atol=slack)
    np.testing.assert_allclose(by_features.x_scores_, by_grams.x_scores_, atol=slack)
    expected = by_grams.transform_x(new @ Fx.T)
    np.testing.assert_allclose(by_features.transform_x(new), expected, atol=slack)
    by_features.save(tmp_path / "model")
    again = KCCA.load(tmp_path / "model")
    np.testing.assert_array_equal(again.transform_x(new), by_features.transform_x(new))
    feature_basis(Fx, max_rank=4).save(tmp_path / "basis")
    basis = KernelBasis.load(tmp_path / "basis")
    assert basis.options == feature_basis(Fx, max_rank=4).options
    expected = feature_basis(Fx, max_rank=4).coordinates(new)
    np.testing.assert_array_equal(basis.coordinates(new), expected)


def test_pivots_leave_no_sample_far_from_all_landmarks():
    def farthest(choice, seed):
        estimator = LandmarkFeatures(rbf, n_landmarks=15, choice=choice, rng=seed)
        features = estimator.fit_transform(X)
        return (K - features @ features.T).diagonal().max()

    assert farthest("pivoted", 0) < min(farthest("random", seed) for seed in range(5))


def test_equals_scikit_learn_on_the_same_landmarks():
    for kernel, gamma in ((rbf, 1 / 8), ("rbf", None)):
        peer = Nystroem("rbf", gamma=gamma, n_components=25, random_state=0).fit(X)
        estimator = LandmarkFeatures(kernel, n_landmarks=25).fit(X[peer.component_indices_])
        expected = peer.transform(X_NEW) @ peer.transform(X).T
        found = estimator.transform(X_NEW) @ estimator.transform(X).T
        np.testing.assert_allclose(found, expected, atol=1e-7)
