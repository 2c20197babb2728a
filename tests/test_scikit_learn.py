"""Transformers as scikit-learn wants them: its checks, pipelines, folds, data frames."""

import pickle
from functools import partial

import numpy as np
import pytest
from programs import output_of
from refusals import refuses
from sklearn.base import clone
from sklearn.exceptions import NotFittedError as TheirNotFittedError
from sklearn.linear_model import Ridge
from sklearn.metrics.pairwise import polynomial_kernel, rbf_kernel
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import KernelCenterer
from sklearn.svm import SVR
from sklearn.utils import estimator_checks, get_tags

from kernelcore.errors import NotFittedError
from kernelcore.kcca import KCCA, LandmarkFeatures
from kernelcore.kernels import GramCenterer, TagRank, histogram_intersection
from kernelcore.lexical import Alignment

TRANSFORMERS = {
    "function": LandmarkFeatures(rbf_kernel),
    "random": LandmarkFeatures(partial(polynomial_kernel, degree=2), choice="random", rng=0),
    "precomputed": LandmarkFeatures(),
    "centerer": GramCenterer(),
}
rng = np.random.default_rng(0)
X = rng.normal(size=(60, 4))
K = rbf_kernel(X)
TARGET = np.sin(X[:, 0]) + X[:, 1]
FOLDS = KFold(4)


@pytest.mark.parametrize("name", TRANSFORMERS)
@pytest.mark.filterwarnings("ignore:.*does not inherit from:UserWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")  # no array API here
def test_no_check_of_scikit_learn_fails(name):
    results = estimator_checks.check_estimator(TRANSFORMERS[name], on_fail=None)
    assert len(results) > 40
    assert not {r["check_name"]: r["exception"] for r in results if r["status"] == "failed"}


@pytest.mark.parametrize("estimator", [KCCA(), TagRank(), Alignment()])
def test_the_other_estimators_have_tags_and_claim_no_matrix(estimator):
    tags = get_tags(estimator)
    assert not tags.input_tags.two_d_array
    assert not tags.target_tags.required
    assert tags.requires_fit
    assert clone(estimator).get_params().keys() == estimator.get_params().keys()


def by_hand(model, kernel):
    """Scores of folds whose kernels are cut out of the whole one."""
    scores = []
    for train, test in FOLDS.split(kernel):
        fitted = clone(model).fit(kernel[np.ix_(train, train)], TARGET[train])
        scores.append(fitted.score(kernel[np.ix_(test, train)], TARGET[test]))
    return scores


@pytest.mark.parametrize("choice", ["pivoted", "random"])
def test_folds_of_a_precomputed_kernel(choice):
    landmarks = LandmarkFeatures(n_landmarks=20, choice=choice, rng=0)
    model = make_pipeline(landmarks, Ridge(1e-3))
    assert get_tags(model).input_tags.pairwise
    scores = cross_val_score(model, K, TARGET, cv=FOLDS)
    np.testing.assert_array_equal(scores, by_hand(model, K))
    by_function = make_pipeline(clone(landmarks).set_params(kernel=rbf_kernel), Ridge(1e-3))
    assert not get_tags(by_function).input_tags.pairwise
    expected = cross_val_score(by_function, X, TARGET, cv=FOLDS)
    np.testing.assert_allclose(scores, expected, rtol=1e-6)


def test_a_centred_kernel_in_a_pipeline():
    model = make_pipeline(GramCenterer(), SVR(kernel="precomputed"))
    scores = cross_val_score(model, K, TARGET, cv=FOLDS)
    np.testing.assert_array_equal(scores, by_hand(model, K))
    peer = make_pipeline(KernelCenterer(), SVR(kernel="precomputed"))
    np.testing.assert_allclose(scores, cross_val_score(peer, K, TARGET, cv=FOLDS), rtol=1e-8)
    centred_first = make_pipeline(GramCenterer(), LandmarkFeatures(n_landmarks=20), Ridge())
    scores = cross_val_score(centred_first, K, TARGET, cv=FOLDS)
    np.testing.assert_array_equal(scores, by_hand(centred_first, K))


def test_a_search_over_the_number_of_landmarks():
    model = make_pipeline(LandmarkFeatures(), Ridge(1e-3))
    search = GridSearchCV(model, {"landmarkfeatures__n_landmarks": [2, 30]}, cv=FOLDS)
    assert search.fit(K, TARGET).best_params_ == {"landmarkfeatures__n_landmarks": 30}
    assert "LandmarkFeatures" in repr(search)


def test_a_pipeline_of_data_frames():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(np.abs(X), columns=list("abcd")).add_prefix("x")
    landmarks = LandmarkFeatures(histogram_intersection, n_landmarks=3)
    features = make_pipeline(landmarks).fit_transform(frame)
    np.testing.assert_array_equal(features, clone(landmarks).fit_transform(frame.to_numpy()))


def test_items_that_are_no_matrix_have_no_columns():
    landmarks = LandmarkFeatures(lambda A, B: K[np.ix_(A, B)], n_landmarks=5)
    assert landmarks.fit(np.arange(60)).transform([3]).shape == (1, 5)
    assert not hasattr(landmarks, "n_features_in_")


def test_what_is_no_kernel_is_refused_by_name():
    """In the words of scikit-learn too, for which its checks look."""
    for error, samples in (
        *((TypeError, np.array([[1.0, odd]], object)) for odd in ("a", None, 10**400)),
        (ValueError, np.array([[1, 2**60]], object)),
        *((ValueError, odd) for odd in (K[0], K[:, :0], K[:, :7], K * np.nan)),
        *((error, K * 1j) for error in (TypeError, ValueError)),
    ):
        refuses(error, "^K must", GramCenterer().fit, samples)


def test_numbers_as_objects_are_numbers():
    centred = GramCenterer().fit_transform(K.astype(object))
    np.testing.assert_array_equal(centred, GramCenterer().fit_transform(K))


def test_not_fitted_error_is_scikit_learn_s_too():
    with pytest.raises(TheirNotFittedError, match="call fit") as caught:
        LandmarkFeatures().transform(K)
    assert isinstance(caught.value, NotFittedError)
    assert type(caught.value).__name__ == "NotFittedError"
    again = pickle.loads(pickle.dumps(caught.value))
    assert (type(again), again.args) == (type(caught.value), caught.value.args)


def test_nothing_here_imports_scikit_learn():
    code = """
import sys
from kernelcore.errors import NotFittedError
from kernelcore.kcca import LandmarkFeatures
from kernelcore.kernels import GramCenterer

try:
    LandmarkFeatures().transform([[1.0]])
except NotFittedError as error:
    assert type(error) is NotFittedError
GramCenterer().fit_transform([[2.0, 1.0], [1.0, 3.0]])
LandmarkFeatures().fit_transform([[2.0, 1.0], [1.0, 3.0]])
print("sklearn" in sys.modules)
"""
    assert output_of(code).strip() == "False"
