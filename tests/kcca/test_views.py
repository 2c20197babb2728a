"""Kernel CCA over lists of views: against the estimator underneath and against cca-zoo."""

from functools import partial

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.metrics.pairwise import linear_kernel, rbf_kernel

from kernelcore.errors import NotFittedError
from kernelcore.kcca import KCCA, TwoViewKCCA

KERNEL = partial(rbf_kernel, gamma=0.1)
rng = np.random.default_rng(0)
SHARED = rng.normal(size=(70, 2))
VIEWS = [
    np.hstack([SHARED, rng.normal(size=(70, 2))]),
    np.tanh(SHARED @ rng.normal(size=(2, 3))) + 0.2 * rng.normal(size=(70, 3)),
]
TRAIN, TEST = [v[:50] for v in VIEWS], [v[50:] for v in VIEWS]


def test_equals_the_estimator_over_kernels():
    model = TwoViewKCCA((KERNEL, linear_kernel), KCCA(3, regularization=0.5))
    x, y = model.fit_transform(TRAIN)
    (X, Y), (X_new, Y_new) = TRAIN, TEST
    kcca = KCCA(3, regularization=0.5).fit(KERNEL(X, X), linear_kernel(Y, Y))
    np.testing.assert_array_equal(model.kcca_.correlations_, kcca.correlations_)
    x_new, y_new = model.transform(TEST)
    np.testing.assert_array_equal(x_new, kcca.transform_x(KERNEL(X_new, X)))
    np.testing.assert_array_equal(y_new, kcca.transform_y(linear_kernel(Y_new, Y)))
    correlations = [np.corrcoef(x[:, k], y[:, k])[0, 1] for k in range(3)]
    assert model.score(TRAIN) == pytest.approx(np.mean(correlations))


def test_views_may_be_numbers_of_samples():
    K = KERNEL(VIEWS[0], VIEWS[0])
    looked_up = TwoViewKCCA((lambda A, B: K[np.ix_(A, B)], linear_kernel), KCCA(2))
    looked_up.fit([np.arange(50), TRAIN[1]])
    computed = TwoViewKCCA((KERNEL, linear_kernel), KCCA(2)).fit(TRAIN)
    expected = computed.score(TEST)
    assert looked_up.score([np.arange(50, 70), TEST[1]]) == pytest.approx(expected)


def test_a_constant_component_has_no_correlation():
    model = TwoViewKCCA(KERNEL, KCCA(1)).fit(TRAIN)
    assert model.score([TEST[0][:1], TEST[1][:1]]) == 0.0


def test_stands_in_cca_zoo_s_tools():
    zoo = pytest.importorskip("cca_zoo")
    from cca_zoo import metrics, model_selection, nonparametric

    assert zoo
    kcca = KCCA(2, regularization=49 * 0.1 / 0.9, tolerance=0.0, decomposition="eigen")
    ours = TwoViewKCCA(KERNEL, kcca).fit(TRAIN)
    theirs = nonparametric.KCCA(2, kernel="rbf", gamma=0.1, shrinkage=0.1).fit(TRAIN)
    for views in (TRAIN, TEST):
        assert ours.score(views) == pytest.approx(theirs.score(views), abs=1e-6)
    pairs = metrics.pairwise_correlations(ours.transform(TEST))
    mean = metrics.average_pairwise_correlations(pairs).mean()
    assert ours.score(TEST) == pytest.approx(mean)

    scores = model_selection.cross_val_score(ours, TRAIN, cv=2)
    halves = [[v[:25] for v in TRAIN], [v[25:] for v in TRAIN]]
    by_hand = [
        clone(ours).fit(halves[1]).score(halves[0]),
        clone(ours).fit(halves[0]).score(halves[1]),
    ]
    np.testing.assert_allclose(scores, by_hand, rtol=1e-12)
    grid = {"kcca__regularization": [1e-4, 5.0]}
    search = model_selection.GridSearchCV(ours, grid, cv=2).fit(TRAIN)
    assert search.best_params_ == {"kcca__regularization": 5.0}


@pytest.mark.parametrize(
    ("arguments", "views", "error", "message"),
    [
        ((1,), TRAIN, TypeError, "kernel must be"),
        (((KERNEL,),), TRAIN, ValueError, "kernel must be a function, or one for each"),
        (((KERNEL, "rbf"),), TRAIN, TypeError, "kernel must be callable, got 'rbf'"),
        ((KERNEL, 3), TRAIN, TypeError, "kcca must be a KCCA, got int"),
        (
            (KERNEL,),
            TRAIN[:1],
            ValueError,
            "views must be two views of the same samples, got 1",
        ),
        ((KERNEL,), 1, TypeError, "views must be a sequence, got type int"),
        ((KERNEL,), [TRAIN[0], 1], TypeError, r"views\[1\] must be a sequence of samples"),
        (
            (KERNEL,),
            [TRAIN[0], TEST[0]],
            ValueError,
            "the same training samples, got 50 and 20",
        ),
        ((lambda A, B: [[np.nan]],), TRAIN, ValueError, r"kernel\(X, Y\) must be finite"),
    ],
)
def test_bad_input(arguments, views, error, message):
    with pytest.raises(error, match=message):
        TwoViewKCCA(*arguments).fit(views)


def test_use_before_fit_and_of_other_samples():
    with pytest.raises(NotFittedError, match="TwoViewKCCA must be fitted first"):
        TwoViewKCCA(KERNEL).transform(TEST)
    with pytest.raises(ValueError, match="views must hold the same samples, got 20 and 50"):
        TwoViewKCCA(KERNEL).fit(TRAIN).score([TEST[0], TRAIN[1]])
